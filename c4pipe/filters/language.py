"""The language of a text, as langdetect 1.0.9 with seed 0 guesses it (rule 17)."""

from typing import NamedTuple

from langdetect_rs import DetectorFactory, _core
from langdetect_rs._seed import seed_state

LANGUAGES = tuple(sorted(name.removesuffix(".json") for name in _core.builtin_files()))
"""The codes of the 55 languages that langdetect knows."""


class Guess(NamedTuple):
    """The most probable language of a text; the probability is rounded to six decimals."""

    language: str
    probability: float


class LanguageDetector:
    """langdetect with a fixed seed and a fixed order of its language profiles.

    langdetect itself draws a random seed and loads the profiles in the order of the folder's entries, which
    decides the last bits of a probability: with both fixed (seed 0, by name) a text has one answer everywhere.
    """

    def __init__(self) -> None:
        # The library's public loader takes the order from an installed langdetect's folder, if there is one.
        self._core = DetectorFactory()._core
        self._core.load_builtin(sorted(_core.builtin_files()))
        self._seed = seed_state(0)

    def guess(self, text: str) -> Guess | None:
        """Returns the best guess, or None where the text has nothing to go by (only digits, say)."""
        guesses = self._core.detect_langs(text, self._seed)
        return Guess(guesses[0][0], round(guesses[0][1], 6)) if guesses else None
