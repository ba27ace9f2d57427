"""Text for people: sizes, numbers and durations, excerpts of long texts, and text that is safe to print on a terminal.

Values come in, strings go out. Nothing here reads or writes a file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
