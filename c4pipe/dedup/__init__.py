"""Job 2: work files to a corpus without duplicates.

Work files come in; a published corpus goes out. Only fixed-width rows are shuffled to find duplicates.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
