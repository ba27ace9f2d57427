"""The jobs as a user asks for them: options, plan, run, verify; logs.

Plain option records come in; work folders, corpora and vocabularies go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
