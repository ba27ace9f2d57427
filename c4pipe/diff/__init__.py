"""What differs between two corpora.

Two finished corpora come in; counts and example pages that differ go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
