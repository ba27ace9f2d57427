"""The rules themselves: one pure function for each, and what they need: language, sentences, word and domain lookup.

Lines, texts and URLs come in; the lines that stay, or a decision, go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
