"""The file of the user's fastText model: identified by its SHA-256, read by each worker that needs it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from c4pipe.io.paths import once_a_file, open_file, sha256_of, storage_path
from c4pipe.io.words import FILE_ERRORS, explain_errors

CHANGED = "its content was changed"

_CHUNK = 1 << 20

Loaded = TypeVar("Loaded")
AnyModel = TypeVar("AnyModel", bound="ModelPath")


@dataclass(frozen=True)
class ModelPath:
    """The file of a fastText model, which another process reads at the same path.

    Attributes:
        path: a path of this machine, or a URL of an object store.
        digest: its SHA-256; "" if it is not known yet.
    """

    path: str
    digest: str

    def check(self) -> None:
        """Raises OSError if the file is missing, ValueError if it was changed."""
        with self.local() as path:
            if self.digest_of(path) != self.digest:
                raise ValueError(CHANGED)

    def digest_of(self, path: Path) -> str:
        """Returns the digest of the model in a file of this machine. Raises OSError."""
        return _digest(path)

    def copy(self, target: Path) -> None:
        """Writes the model into a new file. Raises OSError."""
        with self.local() as path, open_file(path) as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, _CHUNK)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Yields a path on this machine: the file itself, or a copy during the `with` block. Raises OSError."""
        path = storage_path(self.path)
        if isinstance(path, Path):
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="c4pipe-model-") as folder:
            copy = Path(folder, "model.bin")
            with open_file(path) as source, copy.open("xb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
            yield copy

    def loaded(self, what: str, load: Callable[[Path], Loaded]) -> Loaded:
        """Returns the model, which `load` makes of a path on this machine; a process loads it once.

        Raises UsageError, with the words `what`, if the file is missing, was changed or is no model.
        """
        return cast(Loaded, _load(self, what, load))

    def measured(self: AnyModel, read: Callable[[Path], Loaded]) -> tuple[AnyModel, Loaded]:
        """Returns the model with its absolute path and its digest, and the result of `read`. Raises OSError."""
        model = replace(self, path=str(storage_path(self.path).absolute()))
        with model.local() as file:
            found = read(file)
            return replace(model, digest=model.digest_of(file)), found


@cache  # each page needs all classifiers of its recipe, however many
def _load(model: ModelPath, what: str, load: Callable[[Path], Loaded]) -> Loaded:
    advice = "each worker needs the file that the job began with"
    with explain_errors(f"the {what} {model.path} can't be used", advice, errors=FILE_ERRORS), model.local() as file:
        replace(model, path=str(file)).check()
        return load(file)


@once_a_file
def _digest(path: Path) -> str:
    with open_file(path) as file:
        return sha256_of(file)
