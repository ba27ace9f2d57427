"""Models for pretrain.py, each as its paper has it. docs/training.md says what differs."""
