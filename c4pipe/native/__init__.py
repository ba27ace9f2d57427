"""What is done in C where that could be compiled; elsewhere Python does it, slower and with the same outcome."""

from collections.abc import Callable
from types import ModuleType

try:
    from c4pipe.native import _text

    native: ModuleType | None = _text
    """The compiled part, or None on a machine without compiler or wheel."""
except ImportError:
    native = None

try:
    from c4pipe.native import _langdetect

    langdetect: ModuleType | None = _langdetect
    """langdetect, compiled (see `filters.language`), or None."""
except ImportError:
    langdetect = None

lower: Callable[[str], str] = native.lower if native else str.lower
"""`str.lower`."""
