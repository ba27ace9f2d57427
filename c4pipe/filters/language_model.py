"""The file of a fastText language model that the user names: checked, known by its SHA-256, loaded once a process."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from c4pipe.errors import UsageError
from c4pipe.filters.fasttext import FastTextDetector, read_labels
from c4pipe.filters.language import Detector, suggested_languages
from c4pipe.io.paths import StoragePath, open_file, storage_path
from c4pipe.io.words import error_reason

_CHUNK = 1 << 20


@dataclass(frozen=True)
class LanguageModel:
    """The file of a fastText model. It can be pickled: another process reads the file at the same path.

    Attributes:
        path: where it is, as text: a path of this machine, or a URL of an object store.
        digest: its SHA-256.
    """

    path: str
    digest: str

    def detector(self) -> Detector:
        """Returns the model, loaded. Raises UsageError for a file that is missing, was changed or is no model."""
        return _detector(self.path, self.digest)

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


def find_model(path: str | os.PathLike[str], recipe: str, languages: Iterable[str]) -> LanguageModel:
    """Returns the model that a user names for a recipe, given the recipe's name and the languages that it keeps.

    Raises UsageError if it can't be read, if it is no fastText model of languages, or if the recipe keeps a language
    that it does not know.
    """
    model = LanguageModel(str(_absolute(path)), "")
    try:
        with model.local() as file:
            labels = read_labels(file)
            with open_file(file) as data:
                digest = _digest(data)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--language-model {path} can't be used: {error_reason(error)}; give the file of a fastText model that "
            "identifies languages, such as lid.176.bin"
        ) from None
    for language in languages:
        if language not in labels:
            known = f"{', '.join(labels[:10])} and {len(labels) - 10:,} more" if len(labels) > 10 else ", ".join(labels)
            raise UsageError(
                f"the language model {path} does not know the language {language!r} of recipe {recipe}; "
                f"name its own labels with --languages: {known}" + suggested_languages(language, labels)
            )
    return LanguageModel(model.path, digest)


@lru_cache(maxsize=1)
def _detector(path: str, digest: str) -> Detector:
    """Returns a loaded model. The steps of a job that run in one process share it."""
    model = LanguageModel(path, digest)
    try:
        with model.local() as file:
            LanguageModel(str(file), digest).check()
            return FastTextDetector(file)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the language model {path} can't be used: {error_reason(error)}; "
            "each worker needs the file that the job began with"
        ) from error


def _absolute(path: str | os.PathLike[str]) -> StoragePath:
    return storage_path(os.fspath(path)).absolute()


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
