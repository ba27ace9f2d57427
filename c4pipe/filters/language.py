"""The language of a text: langdetect 1.0.9 with seed 0 (rule 17), or CLD3 (mC4)."""

import json
import random
import sys
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from langdetect_rs import DetectorFactory, _core
from langdetect_rs._seed import seed_state
from langdetect_rs.detector import MAIL_RE, URL_RE
from langdetect_rs.utils.ngram import NGram

from c4pipe import native
from c4pipe.errors import C4pipeError, UsageError

LANGDETECT_LANGUAGES = tuple(sorted(name.removesuffix(".json") for name in _core.builtin_files()))
"""The codes of the 55 languages that langdetect knows."""

_SEED = 0
_DRAWS = 1 << 15
"""More than a text takes: seven trials of at most 1,001 draws, of which up to half are drawn again. If not, the library
is asked."""

UNKNOWN = "und"
"""The language of a page whose language is uncertain, or not asked for."""

# fmt: off
CLD3_LANGUAGES = (
    "af", "am", "ar", "az", "be", "bg", "bg-Latn", "bn", "bs", "ca", "ceb", "co", "cs", "cy", "da", "de", "el",
    "el-Latn", "en", "eo", "es", "et", "eu", "fa", "fi", "fil", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "haw",
    "hi", "hi-Latn", "hmn", "hr", "ht", "hu", "hy", "id", "ig", "is", "it", "iw", "ja", "ja-Latn", "jv", "ka",
    "kk", "km", "kn", "ko", "ku", "ky", "la", "lb", "lo", "lt", "lv", "mg", "mi", "mk", "ml", "mn", "mr", "ms",
    "mt", "my", "ne", "nl", "no", "ny", "pa", "pl", "ps", "pt", "ro", "ru", "ru-Latn", "sd", "si", "sk", "sl",
    "sm", "sn", "so", "sq", "sr", "st", "su", "sv", "sw", "ta", "te", "tg", "th", "tr", "uk", "ur", "uz", "vi",
    "xh", "yi", "yo", "zh", "zh-Latn", "zu",
)
# fmt: on
"""The codes of the languages that CLD3 can answer (its `task_context_params.cc`)."""


class Guess(NamedTuple):
    """The most probable language of a text, and its probability."""

    language: str
    probability: float


class Detector(Protocol):
    """What tells the language of a text."""

    def guess(self, text: str) -> Guess | None:
        """Returns the best guess, or None where the text has nothing to go by (only digits, say)."""


class LanguageDetector:
    """langdetect with a fixed seed and a fixed order of its language profiles.

    langdetect itself draws a random seed and loads the profiles in the order of the folder's entries, which
    decides the last bits of a probability: with both fixed (seed 0, by name) a text has one answer everywhere.
    What was compiled gives that answer, or else langdetect-rs.
    """

    def __init__(self) -> None:
        self._compiled = _compile() if native.langdetect else None
        if not self._compiled:
            self._library  # noqa: B018 - loads it before the first page

    def guess(self, text: str) -> Guess | None:
        """Returns the best guess, or None where the text has nothing to go by (only digits, say)."""
        found = self._compiled.guess(text, False) if self._compiled else NotImplemented
        if found is NotImplemented and self._compiled:  # accents as characters of their own
            prepared = NGram.normalize_vi(MAIL_RE.sub(" ", URL_RE.sub(" ", text)))
            found = self._compiled.guess(prepared, True)
        if found is NotImplemented:
            guesses = self._library.detect_langs(text, seed_state(_SEED))
            return Guess(guesses[0][0], guesses[0][1]) if guesses else None
        return Guess(LANGDETECT_LANGUAGES[found[0]], found[1]) if found else None

    @cached_property
    def _library(self) -> Any:
        # Its public loader takes the order from an installed langdetect's folder, if there is one.
        core = DetectorFactory()._core
        core.load_builtin(list(LANGDETECT_LANGUAGES))
        return core


@cache
def _compile() -> Any:
    """Returns a `native.langdetect.Detector` with the profiles of the langdetect package."""
    spec = find_spec("langdetect")  # to import it would cost more than to read its profiles
    assert spec
    assert spec.submodule_search_locations
    assert native.langdetect
    folder = Path(spec.submodule_search_locations[0], "profiles")
    profiles = [json.loads((folder / name).read_text("utf-8")) for name in LANGDETECT_LANGUAGES]
    draws = random.Random(_SEED).randbytes(4 * _DRAWS)
    compensated = sys.version_info >= (3, 12)  # sum(), by which the probabilities are normalised
    return native.langdetect.Detector(
        tuple((each["freq"], tuple(each["n_words"])) for each in profiles), NGram.normalize, draws, compensated
    )


class Cld3Detector:
    """CLD3 as TensorFlow Datasets' multilingual C4 asks it: on 100 to 10,000 bytes of the text."""

    def __init__(self, min_probability: float) -> None:
        """Loads CLD3; what is less probable than `min_probability`, or not reliable, is answered as `und`."""
        self._identifier = _cld3().NNetLanguageIdentifier(min_num_bytes=100, max_num_bytes=10_000)
        self._min_probability = min_probability

    def guess(self, text: str) -> Guess:
        """Returns the best guess, or `und`."""
        result = self._identifier.FindLanguage(text)
        certain = result.is_reliable and result.probability >= self._min_probability
        return Guess(result.language if certain else UNKNOWN, result.probability)


def _cld3() -> Any:
    if "tensorflow" in sys.modules and "gcld3" not in sys.modules:
        raise C4pipeError("CLD3 crashes where TensorFlow was loaded before it: import gcld3 first, or not both")
    try:
        import gcld3
    except ImportError:
        raise UsageError("this recipe needs CLD3: run pip install 'c4pipe[cld3]'") from None
    return gcld3


def known_languages(detector: str) -> tuple[str, ...]:
    """Returns the languages that a detector can answer."""
    return (*CLD3_LANGUAGES, UNKNOWN) if detector == "cld3" else LANGDETECT_LANGUAGES


def check_detector(detector: str) -> None:
    """Raises UsageError, with what to install, where a detector is not there."""
    if detector == "cld3":
        _cld3()


def make_detector(detector: str, min_probability: float) -> Detector:
    """Returns the detector of that name, `langdetect` or `cld3`. Raises UsageError where CLD3 is not installed."""
    return Cld3Detector(min_probability) if detector == "cld3" else LanguageDetector()
