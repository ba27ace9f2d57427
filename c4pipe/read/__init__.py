"""Reads a finished corpus in training code: documents in a random order, divided among processes, with a state.

What comes in is the path of a corpus, of a token-budget subset or of a file of text. What goes out are documents: dicts
with the columns of a corpus (docs/formats.md). Nothing large is imported before one of these functions is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
