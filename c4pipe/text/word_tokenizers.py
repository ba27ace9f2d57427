"""Words of texts in many languages, as datatrove 0.10.1 finds them (`word_tokenizers.py`): each language has a library.

A tokenizer has a name: `spacy de`, `pythainlp`. The extra `languages` has the libraries; a library is imported when its
first text comes.
"""

import logging
import re
import string
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, cast

from c4pipe.errors import UsageError
from c4pipe.text.long_runs import cut_runs

_FindTokens = Callable[[str], Iterable[str]]

FindWords = Callable[[str], list[str]]
"""Returns the words of a text: none is empty or has white space at its ends."""

_NEEDED = {"spacy ja": ("sudachipy", "sudachidict_core"), "spacy vi": ("spacy", "pyvi"), "spacy zh": ("jieba",)}
"""The packages of some tokenizers; others need the package that their name begins with."""

_UNBROKEN = re.compile(r"(?<!\S)\S{10000,}")
_MARKS_ALONE = re.compile(r"[^\w\s]{500,}")  # spaCy: 0.03 s for 500 brackets, 1.5 s for 4,000
_JAPANESE_BYTES = 40_000  # of a text that SudachiPy takes
_LONG_NUMBER = re.compile("[0-9,]{20,}")
# indic-nlp-library 0.92 (MIT), indic_tokenize.py: the package itself needs Sphinx and pandas
_MARKS = {
    "indic": rf"([{string.punctuation}\u0964\u0965\uaaf1\uaaf0\uabeb-\uabef\u1c7e\u1c7f])",
    "urdu": rf"([{string.punctuation}\u0609\u060a\u060c\u061e\u066a-\u066d\u06d4])",
}
_NUMBERS = re.compile("([0-9]+ [,.:/] )+[0-9]+")


@cache
def word_tokenizer(name: str) -> FindWords:
    """Returns the word tokenizer of a name. Raises UsageError if it is unknown or not installed."""
    check_tokenizer(name)
    library, _, language = name.partition(" ")
    make = _MAKE.get(name) or _MAKE[library]
    with warnings.catch_warnings():  # the libraries' own
        warnings.simplefilter("ignore")
        tokens = make(language or library)
        tokens("a")  # loads the rest
    return lambda text: [word for part in _cut_text(text) for each in tokens(part) if (word := each.strip())]


def _cut_text(text: str) -> list[str]:
    """Returns the pieces of a text that a library gets: long runs take it a time with the square of their length."""
    return [part for some in cut_runs(text, _UNBROKEN, 10_000) for part in cut_runs(some, _MARKS_ALONE, 500)]


def check_tokenizer(name: str, of: str = "") -> None:
    """Raises UsageError if a word tokenizer is unknown or not installed; the message names the language `of`."""
    library, _, language = name.partition(" ")
    what = f"FineWeb-2 finds the words of {of} by" if of else "words are found by"
    if library not in _MAKE or (library == "spacy") != bool(language):
        raise UsageError(f"{what} {library or name!r}, which c4pipe does not support: leave the language out")
    needed = needed_packages(name)
    if not all(map(find_spec, needed)):
        package = "pyidaungsu-numpy2" if library == "pyidaungsu" else "'c4pipe[languages]'"
        raise UsageError(f"{what} {' and '.join(needed)}: run pip install {package}")


def needed_packages(name: str) -> tuple[str, ...]:
    """Returns the modules of the libraries that a word tokenizer needs."""
    library = name.partition(" ")[0]
    return () if name == "spacy en" or library in _MARKS else _NEEDED.get(name, (library,))


def _english(_: str) -> _FindTokens:
    from c4pipe.text.english_words import english_words

    return english_words().words


def _spacy(language: str) -> _FindTokens:
    import spacy

    nlp = spacy.blank(language)

    def tokens(text: str) -> list[str]:
        with nlp.memory_zone():  # or its vocabulary would grow with each text
            try:
                return [token.text for token in nlp.tokenizer(text)]
            except Exception:
                if "IS_ALPHA" not in text:  # one of spaCy's own names, on which it fails
                    raise
                return [token.text for token in nlp.tokenizer(text.replace("IS_ALPHA", ""))]

    if language == "vi":
        _remove_file(tokens, "pyvi.ViTokenizer", "ViTokenizer.model")
    return tokens


def _remove_file(tokens: _FindTokens, module: str, model: str) -> None:
    """Removes the temporary file (up to 18 MB) of a library's model, which the library needs until its first text."""
    list(tokens("a"))
    attrgetter(model)(sys.modules[module]).modelfile.cleanup()


def _chinese(_: str) -> _FindTokens:
    import jieba

    jieba.setLogLevel("ERROR")
    return cast(_FindTokens, jieba.cut)


def _japanese(_: str) -> _FindTokens:
    import sudachipy

    tokenizer = sudachipy.Dictionary().tokenizer(sudachipy.SplitMode.A)
    return lambda text: (
        each.surface() for chunk in _cut_bytes(text, _JAPANESE_BYTES) for each in tokenizer.tokenize(chunk)
    )


def _cut_bytes(text: str, most: int) -> Iterator[str]:
    """Yields the pieces of a text, each of about `most` bytes of UTF-8 or less, as datatrove cuts it."""
    size, length = len(text.encode()), len(text)
    first, guess = 0, int(max(most * length / max(1, size) - 10, 1))
    while first < length:
        if len(text[first : first + guess].encode()) > most:
            guess = int(max(guess - 10, 1))
            continue
        last, end = min(length, first + guess), first + guess
        while len(text[first:last].encode()) < most and last < length:
            end = last = min(length, end + 10)
        if len(text[first:last].encode()) > most:
            end -= 10
        yield text[first:end]
        first = end


def _korean(_: str) -> _FindTokens:
    from kiwipiepy import Kiwi

    kiwi = Kiwi(num_workers=1, model_type="sbg")
    # datatrove takes out long numbers, then cuts the text that has them
    return lambda text: (text[each.start : each.end] for each in kiwi.tokenize(_LONG_NUMBER.sub("", text)))


def _khmer(_: str) -> _FindTokens:
    logging.getLogger("khmer-nltk").setLevel(logging.ERROR)
    from khmernltk import word_tokenize

    tokens: _FindTokens = word_tokenize
    _remove_file(tokens, "khmernltk.word_tokenize", "crf_model")
    return tokens


def _thai(_: str) -> _FindTokens:
    from pythainlp.tokenize import word_tokenize

    return partial(word_tokenize, keep_whitespace=False, engine="newmm-safe")


def _lao(_: str) -> _FindTokens:
    from laonlp.tokenize import multi_cut, word_tokenize

    def fewest_words(text: str, custom_dict: Any) -> list[str]:
        ways: dict[int, list[str]] = {0: []}  # the first of the shortest ways to each place that words lead to
        while (first := min(ways)) < len(text):
            words = ways.pop(first)
            for word in custom_dict.prefixes(text[first:]):
                end, way = first + len(word), [*words, word]
                ways[end] = min(way, ways.get(end, way), key=lambda each: (len(each), each))
            if not ways:
                other = multi_cut._PAT_NONLAO.match(text[first:])
                end = first + (other.end() if other else 1)
                while not (other or custom_dict.prefixes(text[end:]) or end == len(text)):
                    other = multi_cut._PAT_NONLAO.match(text[end:])
                    end += not other
                ways[end] = [*words, *text[first:end].split("/")]
        return ways[len(text)]

    multi_cut.mmcut = fewest_words  # its own lists all ways of a run, 2 to the power of its words
    return cast(_FindTokens, word_tokenize)


def _burmese(_: str) -> _FindTokens:
    import pyidaungsu

    return partial(pyidaungsu.tokenize, form="word")


def _by_marks(script: str) -> _FindTokens:
    """Returns a tokenizer for languages of India: marks are words, but not the marks in numbers and dates."""

    def tokens(text: str) -> list[str]:
        marked = re.sub(" +", " ", re.sub(_MARKS[script], r" \1 ", text.replace("\t", " "))).strip(" ")
        if script == "indic":
            marked = _NUMBERS.sub(lambda at: at[0].replace(" ", "") if at.start() else at[0], marked)
        return marked.split(" ")

    return tokens


_MAKE: Mapping[str, Callable[[str], _FindTokens]] = {
    "spacy": _spacy,
    "spacy en": _english,
    "spacy ja": _japanese,
    "spacy zh": _chinese,
    "pythainlp": _thai,
    "kiwipiepy": _korean,
    "khmernltk": _khmer,
    "laonlp": _lao,
    "pyidaungsu": _burmese,
    "indic": _by_marks,
    "urdu": _by_marks,
}
