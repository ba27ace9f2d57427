"""The file of a fastText model that the user names: known by its SHA-256, read where a worker needs it."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from c4pipe.errors import UsageError
from c4pipe.io.paths import open_file, storage_path
from c4pipe.io.words import error_reason

_CHUNK = 1 << 20

Loaded = TypeVar("Loaded")
AnyModel = TypeVar("AnyModel", bound="ModelPath")


@dataclass(frozen=True)
class ModelPath:
    """The file of a fastText model. It can be pickled: another process reads the file at the same path.

    Attributes:
        path: where it is, as text: a path of this machine, or a URL of an object store.
        digest: its SHA-256; "" where it is not known yet.
    """

    path: str
    digest: str

    def check(self) -> None:
        """Raises OSError if the file is missing, ValueError if it was changed."""
        with open_file(storage_path(self.path)) as file:
            if _digest(file) != self.digest:
                raise ValueError("its content was changed")

    def copy(self, target: Path) -> None:
        """Writes the model into a new file. Raises OSError."""
        with self.local() as path, open_file(path) as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, _CHUNK)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Yields a path on this machine: the file itself, or a copy that lasts as long as the `with` block. Raises
        OSError.
        """
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
        """Returns what `load` makes of the file. Raises UsageError for one that is missing, was changed or is no model.

        Args:
            what: the model in words, for messages.
            load: takes a path on this machine.
        """
        try:
            with self.local() as file:
                replace(self, path=str(file)).check()
                return load(file)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the {what} {self.path} can't be used: {error_reason(error)}; "
                "each worker needs the file that the job began with"
            ) from error

    def measured(self: AnyModel, read: Callable[[Path], Loaded]) -> tuple[AnyModel, Loaded]:
        """Returns the model with its absolute path and its digest, and what `read` returns of the file.

        Raises OSError, or what `read` raises.
        """
        model = replace(self, path=str(storage_path(self.path).absolute()))
        with model.local() as file:
            found = read(file)
            with open_file(file) as data:
                return replace(model, digest=_digest(data)), found


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
