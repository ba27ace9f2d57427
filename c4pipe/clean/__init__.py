"""Job 1: each page to a verdict, each WET file to one work file.

Pages and a recipe come in; verdicts, traces of how they came about, and work files go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
