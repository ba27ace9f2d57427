"""The C extensions and the switch between C and Python.

The same functions exist in Python, in the modules that use these. The output is identical; Python is slower.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

EXTENSION_VERSION = 7
"""The version of the C extensions, as both C files have it. It goes up with each change of their functions, so that
Python never calls an extension that was compiled of older sources."""


def load_extension(name: str) -> ModuleType | None:
    """Returns a C extension by its full name, or None if it was not compiled.

    Raises ImportError if the extension exists and can't be loaded, or was compiled of other sources: a broken build
    must not look like no build.
    """
    try:
        extension = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
    except ImportError as error:
        message = f"the C extension {name} can't be loaded ({error}): install c4pipe again, or delete the file"
        raise ImportError(message, name=name, path=error.path) from error
    if getattr(extension, "VERSION", None) != EXTENSION_VERSION:
        raise ImportError(
            f"the C extension {name} was compiled of other sources than those of this c4pipe: install c4pipe again "
            f"(in a clone: make setup), or delete {extension.__file__}",
            name=name,
            path=extension.__file__,
        )
    return extension


text_kernel = load_extension("c4pipe.native._text")
"""Usual records, lines, lower case, listed words, sentences, span hashes and signatures in C; None if Python does
them."""

langdetect_kernel = load_extension("c4pipe.native._langdetect")
"""langdetect in C (see `text.languages`); None if the package langdetect-rs runs instead."""

lower: Callable[[str], str] = text_kernel.lower if text_kernel else str.lower
"""`str.lower`, the quicker of the two."""


def kernels() -> dict[str, str]:
    """Returns which implementation runs, `compiled` or `python`, for each kernel: `text` and `langdetect`."""
    loaded = {"text": text_kernel, "langdetect": langdetect_kernel}
    return {name: "compiled" if module else "python" for name, module in loaded.items()}
