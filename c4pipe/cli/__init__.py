"""What a user types: one module for each command, and how results are printed.

Arguments come in; the commands call `c4pipe.jobs` and print tables.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
