"""Why a page is in a corpus, or not.

A URL with a corpus, or a page with a recipe, comes in; the verdict of each rule goes out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
