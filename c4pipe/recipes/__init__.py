"""Which rules, with which parameters, in which order: the rule table, recipes, TOML files, word and domain lists.

A name or a file comes in; a `Recipe` with its lists goes out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
