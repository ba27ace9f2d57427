"""The vocabulary: weighted text to a sample, the sample to a SentencePiece model, figures on held-out pages.

Corpora and text files come in; a model, its files and its quality go out.
"""
