"""The vocabulary: weighted text to a sample, the sample to a SentencePiece model, figures on held-out pages.

Corpora and text files come in; a model, its files and its quality go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
