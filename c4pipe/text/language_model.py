"""The file of a fastText language model that the user names: checked, known by its SHA-256, loaded once a process."""

import os
from collections.abc import Iterable
from functools import lru_cache

from c4pipe.errors import UsageError
from c4pipe.io.words import error_reason
from c4pipe.text.fasttext import FastTextDetector, read_labels
from c4pipe.text.languages import Detector, suggested_languages
from c4pipe.text.model_path import ModelPath


class LanguageModel(ModelPath):
    """The file of a fastText model that identifies languages."""

    def detector(self) -> Detector:
        """Returns the model, loaded. Raises UsageError for a file that is missing, was changed or is no model."""
        return _detector(self)


def find_model(path: str | os.PathLike[str], recipe: str, languages: Iterable[str]) -> LanguageModel:
    """Returns the model that a user names for a recipe, given the recipe's name and the languages that it keeps.

    Raises UsageError if it can't be read, if it is no fastText model of languages, or if the recipe keeps a language
    that it does not know.
    """
    try:
        model, labels = LanguageModel(os.fspath(path), "").measured(read_labels)
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
    return model


@lru_cache(maxsize=1)
def _detector(model: LanguageModel) -> Detector:
    """Returns a loaded model. The steps of a job that run in one process share it."""
    return model.loaded("language model", FastTextDetector)
