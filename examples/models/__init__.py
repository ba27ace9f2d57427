"""Models for pretrain.py, each as its paper has it. README.md says what differs."""
