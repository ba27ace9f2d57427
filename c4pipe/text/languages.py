"""The language of a text: by langdetect 1.0.9 with seed 0, or by CLD3 (mC4). For fastText see `language_model`."""

import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import suggestion
from c4pipe.native import langdetect_kernel

# The libraries of detectors are imported when a detector is made: readers of a corpus need only the codes.

# fmt: off
LANGDETECT_LANGUAGES = (
    "af", "ar", "bg", "bn", "ca", "cs", "cy", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "gu", "he", "hi",
    "hr", "hu", "id", "it", "ja", "kn", "ko", "lt", "lv", "mk", "ml", "mr", "ne", "nl", "no", "pa", "pl", "pt", "ro",
    "ru", "sk", "sl", "so", "sq", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh-cn", "zh-tw",
)
# fmt: on
"""The codes of the 55 languages that langdetect knows, in the order of their profiles."""

_SEED = 0
_DRAWS = 1 << 15
"""Random numbers of the compiled detector. Most texts need fewer: seven trials of at most 1,001 draws, up to half of
them repeated. For a text that needs more, langdetect-rs decides.
"""

UNKNOWN = "und"
"""The code of a page whose language is uncertain, or was not detected."""

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
"""The codes of the languages that CLD3 can return (its `task_context_params.cc`)."""

_TWO_LETTERS = {
    "ara": "ar", "arb": "ar", "ces": "cs", "cmn": "zh", "dan": "da", "deu": "de", "ekk": "et", "ell": "el", "eng": "en",
    "epo": "eo", "est": "et", "fas": "fa", "fin": "fi", "fra": "fr", "hin": "hi", "hun": "hu", "ita": "it", "jpn": "ja",
    "kor": "ko", "mal": "ml", "nld": "nl", "nob": "no", "nor": "no", "pes": "fa", "pol": "pl", "por": "pt", "rus": "ru",
    "slv": "sl", "spa": "es", "swe": "sv", "tha": "th", "tur": "tr", "zho": "zh",
}  # fmt: skip
"""ISO 639-3 codes, as GlotLID and OpenLID use them, of languages of word lists or Punkt."""

OLD_CODES = {"iw": "he", "jw": "jv"}
"""Old codes of ISO 639-1, some of which detectors still use, and today's codes."""

_SAME = (("he", "iw"), ("jv", "jw"), ("no", "nb", "nn"), ("tl", "fil"), ("zh-cn", "zh-hans"), ("zh-tw", "zh-hant"))
"""Codes of the same language; a detector knows one of them."""

LANGUAGE = "[A-Za-z][A-Za-z0-9_-]{0,31}"
"""The code of a language, also the name of a folder, as a regular expression."""


def language_name(code: str) -> str:
    """Returns the English name of a language, `Thai` for `th` or `tha_Thai`; the code if no name is known."""
    base = re.split("[-_]", code)[0]
    return _names().get(code) or _names().get(OLD_CODES.get(base, base), code)


@cache
def _names() -> dict[str, str]:
    lines = Path(__file__).with_name("language_names.tsv").read_text(encoding="utf-8").splitlines()
    return {code: name for code, _, name in (line.partition("\t") for line in lines)}


class Guess(NamedTuple):
    """A probable language of a text: its code, or UNKNOWN, and a probability from 0 to 1."""

    language: str
    probability: float


class Detector(Protocol):
    """Guesses the language of a text."""

    def guess(self, text: str) -> Guess | None:
        """Returns the best guess, or None if the text has no letters to judge by (only digits, for example)."""

    def labels(self, text: str, most: int) -> list[Guess]:
        """Returns the most probable languages, `most` at most, the best first; none if `guess` returns None.

        Improbable languages are left out, by langdetect below 0.1.
        """


class LanguageDetector:
    """langdetect with a fixed seed and a fixed order of its language profiles.

    langdetect itself takes a random seed, and loads the profiles in the order of the folder's entries, which decides
    the last bits of a probability. With seed 0 and profiles by name, a text has the same answer everywhere, by the C
    extension or by langdetect-rs.
    """

    def __init__(self) -> None:
        self._compiled = _compiled_detector() if langdetect_kernel else None
        if not self._compiled:
            self._library  # noqa: B018 - loads it before the first page

    def guess(self, text: str) -> Guess | None:
        """Returns the best guess, or None if the text has no letters to judge by."""
        best = self._compiled.guess(text, False) if self._compiled else NotImplemented
        if best is NotImplemented and self._compiled:  # accents are separate characters
            best = self._compiled.guess(_join_accents(text), True)
        if best is NotImplemented:
            return next(iter(self.labels(text, 1)), None)
        return Guess(LANGDETECT_LANGUAGES[best[0]], best[1]) if best else None

    def labels(self, text: str, most: int) -> list[Guess]:
        """Returns the languages with a probability above 0.1, `most` at most, the best first, without C."""
        from langdetect_rs._seed import seed_state

        guesses = self._library.detect_langs(text, seed_state(_SEED)) or ()
        return [Guess(language, probability) for language, probability in guesses[:most]]

    @cached_property
    def _library(self) -> Any:
        from langdetect_rs import DetectorFactory

        # Its public loader takes the order from an installed langdetect's folder, if there is one.
        core = DetectorFactory()._core
        core.load_builtin(list(LANGDETECT_LANGUAGES))
        return core


def _join_accents(text: str) -> str:
    """Returns a text as langdetect prepares it: without addresses, accents joined with their letters."""
    from langdetect_rs.detector import MAIL_RE, URL_RE
    from langdetect_rs.utils.ngram import NGram

    return str(NGram.normalize_vi(MAIL_RE.sub(" ", URL_RE.sub(" ", text))))


@cache
def _compiled_detector() -> Any:
    """Returns the `Detector` of the C extension, with the profiles of the langdetect package."""
    from langdetect_rs.utils.ngram import NGram

    spec: Any = find_spec("langdetect")  # to import it would cost more than to read its profiles
    folder = Path(spec.submodule_search_locations[0], "profiles")
    profiles = tuple((folder / name).read_bytes() for name in LANGDETECT_LANGUAGES)
    draws = random.Random(_SEED).randbytes(4 * _DRAWS)
    compensated = sys.version_info >= (3, 12)  # the sum() that normalises the probabilities
    kernel: Any = langdetect_kernel
    return kernel.Detector(profiles, NGram.normalize, draws, compensated)


class Cld3Detector:
    """CLD3 with the limits of TensorFlow Datasets' multilingual C4: 100 to 10,000 bytes of the text."""

    def __init__(self, min_probability: float) -> None:
        """Loads CLD3. An unreliable guess, or one below `min_probability`, becomes `und`. Raises as `cld3_module`."""
        self._identifier = cld3_module().NNetLanguageIdentifier(min_num_bytes=100, max_num_bytes=10_000)
        self._min_probability = min_probability

    def guess(self, text: str) -> Guess:
        """Returns the best guess, or `und` with the probability of the best guess."""
        result = self._identifier.FindLanguage(text)
        certain = result.is_reliable and result.probability >= self._min_probability
        return Guess(result.language if certain else UNKNOWN, result.probability)

    def labels(self, text: str, most: int) -> list[Guess]:
        """Returns the languages of the parts of the text, a part a script, the most frequent first, uncertain too."""
        results = self._identifier.FindTopNMostFreqLangs(text, most)
        return [Guess(each.language, each.probability) for each in results if each.language != UNKNOWN]


def cld3_module() -> Any:
    """Returns the module of CLD3. Raises UsageError if it is missing, C4pipeError if TensorFlow was imported first."""
    if "tensorflow" in sys.modules and "gcld3" not in sys.modules:
        raise C4pipeError("CLD3 crashes when TensorFlow was imported before it: import gcld3 first")
    try:
        import gcld3
    except ModuleNotFoundError:
        raise UsageError("this recipe needs CLD3: run pip install 'c4pipe[cld3]'") from None
    return gcld3


def known_languages(detector: str) -> tuple[str, ...]:
    """Returns the languages that a detector can return; empty for `fasttext`, whose model has them."""
    if detector == "fasttext":
        return ()
    return (*CLD3_LANGUAGES, UNKNOWN) if detector == "cld3" else LANGDETECT_LANGUAGES


def knows_language(detector: str, language: str) -> bool:
    """Tells whether a detector can return this code; for `fasttext`, whether it can be a label."""
    if detector == "fasttext":
        return re.fullmatch(LANGUAGE, language) is not None
    return language in known_languages(detector)


def two_letter_code(language: str) -> str:
    """Returns the ISO 639-1 code of a label such as `eng_Latn`, if word lists or Punkt have it; else the label."""
    return _TWO_LETTERS.get(language.partition("_")[0], language)


def same_language(language: str) -> Iterator[str]:
    """Yields a code, then other codes of the same language: `he` for `iw`, `zh` for `zh-cn`."""
    yield language
    yield from (other for codes in _SAME if language in codes for other in codes)
    if language in ("zh-cn", "zh-tw"):
        yield "zh"


def suggested_languages(language: str, known: Sequence[str]) -> str:
    """Returns `; did you mean 'zh'?` if a detector knows another code of the language, or a similar code; else ""."""
    code = language.strip().lower().replace("_", "-")
    base = two_letter_code(code.partition("-")[0])
    for each in (code, base):
        same = {each, *(other for codes in _SAME if each in codes for other in codes)}
        if near := [other for other in known if other.lower() in same or two_letter_code(other) in same]:
            return f"; did you mean {' or '.join(map(repr, near[:2]))}?"
    return suggestion(base if base != code else language, known)


def make_detector(detector: str, min_probability: float) -> Detector:
    """Returns the detector `langdetect` or `cld3`; `min_probability` is for CLD3. Raises as `cld3_module`."""
    return Cld3Detector(min_probability) if detector == "cld3" else LanguageDetector()


LANGUAGES = "languages."
"""The prefix of the counters of `language_counter`."""


def language_counter(language: str, rule: str) -> str:
    """Returns the counter of pages of a language that a rule drops: `languages.de.bad_words`.

    Only the first rule `language` and the rules after it have such counters.
    """
    return f"{LANGUAGES}{language}.{rule}"


def drops_by_language(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Returns the counters of `language_counter`, by language and rule."""
    found: dict[str, dict[str, int]] = {}
    for name, number in counts.items():
        if name.startswith(LANGUAGES):
            language, _, rule = name.removeprefix(LANGUAGES).partition(".")
            found.setdefault(language, {})[rule] = number
    return found
