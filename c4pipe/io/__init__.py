"""Files and the network: local and remote paths, downloads with retries, atomic files, cache, locks.

Paths and URLs come in; streams of bytes and complete files go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
