"""How many tokens a corpus has, exactly, and subsets of it with a token budget.

A corpus and a vocabulary come in; counts and lists of documents go out.
"""
