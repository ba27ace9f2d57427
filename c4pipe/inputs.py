"""Which files a user means: paths, globs and folders to WET files."""

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from c4pipe.errors import UsageError

ENDINGS = (".wet", ".wet.gz")
"""What the names of WET files in a folder end in; a path or glob may name any file."""


class InputFile(NamedTuple):
    """A file to clean: its path, its name (which names its work file and breaks ties) and its size in bytes."""

    path: Path
    name: str
    size: int


def find_inputs(patterns: Sequence[str]) -> tuple[InputFile, ...]:
    """Returns the files that paths, globs and folders (searched recursively) name, each once, by name.

    Raises UsageError where one names nothing, or where two files have one name.
    """
    found: dict[str, Path] = {}
    for pattern in patterns:
        for path in _expand(pattern):
            other = found.setdefault(path.name, path)
            if other.resolve() != path.resolve():
                raise UsageError(
                    f"{other} and {path} have one name, and a work file is named after its WET file: "
                    "rename one, or clean them into two --work folders"
                )
    return tuple(InputFile(path, name, path.stat().st_size) for name, path in sorted(found.items()))


def _expand(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        paths = [each for each in path.rglob("*") if each.name.endswith(ENDINGS) and each.is_file()]
        if not paths:
            raise UsageError(f"the folder {pattern} has no file whose name ends in {' or '.join(ENDINGS)}")
        return paths
    if path.exists():
        return [path]
    names = glob(pattern, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    paths = [each for name in names if (each := Path(name)).is_file()]
    if not paths:
        kind = "the pattern matches no file" if has_magic(pattern) else "there is no such file or folder"
        raise UsageError(f"input {pattern!r}: {kind}")
    return paths
