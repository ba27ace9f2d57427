"""Pretraining examples: the objectives of T5, ALBERT and ELECTRA over token ids, packed into batches.

Documents and a vocabulary come in; NumPy arrays go out.
"""
