"""The extraction of pages' text, such as `main: resiliparse 2.0.1`: extractors of HTML in WARC files, and the layout of
text files. WET files have text: their extraction is "".
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from c4pipe.errors import UsageError
from c4pipe.io.file_kinds import JSON_LINES, bare_name, with_packings
from c4pipe.io.words import suggestion

EXTRACTORS = {
    "all": ("warc", ("resiliparse",)),
    "main": ("warc", ("resiliparse",)),
    "trafilatura": ("trafilatura", ("trafilatura", "lxml", "lxml-html-clean", "justext", "resiliparse")),
}
"""The extractors: the extra that has their libraries, and the libraries on which their text depends."""

DEFAULT_EXTRACTOR = "all"
"""The extractor that comes nearest to the text of WET files: menus and footers stay in it."""

TEXT_ENDINGS = (".parquet", *with_packings(*JSON_LINES, ".txt"))
"""The endings of files of text that can be read, in small letters or capitals; the ending tells the format."""

TEXT_SPLITS = ("files", "blank-lines", "lines")
"""How plain text is split into documents: each file, the lines between two blank lines, or each line is a document."""

NO_COLUMN = "none"
"""Instead of the name of a column: no column is read."""

KIND = "text"
"""The kind of the inputs of `import`, and the start of `TextLayout.extraction`."""

_CRAWL_KINDS = ("wet", "warc")

_EXTRACTION = re.compile(rf"{KIND}: column (\S+), url (\S+), timestamp (\S+), split (\S+)")


@dataclass(frozen=True)
class TextLayout:
    """How documents lie in text files: the columns, or the keys of JSON, and how plain text is split (TEXT_SPLITS).

    With NO_COLUMN as `url`, addresses are made from file names and rows. With `all_columns`, values of keys that are no
    columns are counted (LEFT_VALUES). Raises UsageError for other values.
    """

    text: str = "text"
    url: str = "url"
    timestamp: str = "timestamp"
    split: str = TEXT_SPLITS[0]
    all_columns: bool = False

    def __post_init__(self) -> None:
        if self.split not in TEXT_SPLITS:
            known = f"{', '.join(TEXT_SPLITS[:-1])} or {TEXT_SPLITS[-1]}"
            raise UsageError(f"--split {self.split}: give {known}{suggestion(self.split, TEXT_SPLITS)}")
        for option in ("text", "url", "timestamp"):
            if not getattr(self, option).strip():
                raise UsageError(f"--{option}-column {getattr(self, option)!r}: give the name of a column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read if a file has them. The first is the text."""
        return tuple(dict.fromkeys((self.text, *(each for each in (self.url, self.timestamp) if each != NO_COLUMN))))

    @property
    def extraction(self) -> str:
        """The layout in the form of `Recipe.extraction`: equal layouts take the text from the same column."""
        names = [quote(each, safe="", errors="surrogateescape") for each in (self.text, self.url, self.timestamp)]
        return f"{KIND}: column {names[0]}, url {names[1]}, timestamp {names[2]}, split {self.split}"

    @classmethod
    def of_extraction(cls, extraction: str, all_columns: bool = False) -> "TextLayout":
        """Returns the layout whose `extraction` this is."""
        match: Any = _EXTRACTION.fullmatch(extraction)
        text, url, timestamp, split = match.groups()
        names = [unquote(each, errors="surrogateescape") for each in (text, url, timestamp)]
        return cls(names[0], names[1], names[2], split, all_columns)


def is_text_layout(extraction: str) -> bool:
    """Tells whether pages are documents of text files, given `Recipe.extraction`."""
    return extraction.startswith(f"{KIND}: ")


def is_parquet(name: str) -> bool:
    """Tells by its name whether a file is Parquet."""
    return name.lower().endswith(".parquet")


def is_json(name: str) -> bool:
    """Tells by its name whether a file of text is JSON Lines."""
    return bare_name(name).lower().endswith(JSON_LINES)


def choose_extraction(input_kind: str, extractor: str | None) -> str:
    """Returns the extraction of inputs of kind `wet` or `warc`, by an extractor, or by DEFAULT_EXTRACTOR.

    Raises UsageError as `find_extraction`, for another kind, and for an extractor if the inputs are no WARC files.
    """
    if input_kind not in _CRAWL_KINDS:
        hint = "c4pipe import reads text; " if input_kind == KIND else ""
        given = f"--from {input_kind}: {hint}give {' or '.join(_CRAWL_KINDS)}"
        raise UsageError(given + suggestion(input_kind, _CRAWL_KINDS))
    if input_kind == "warc":
        return find_extraction(DEFAULT_EXTRACTOR if extractor is None else extractor)
    if extractor is not None:
        raise UsageError(f"--extract {extractor} is for WARC files, which have HTML: add --from warc, or leave it out")
    return ""


def find_extraction(extractor: str) -> str:
    """Returns an extractor with the versions of its libraries, such as `main: resiliparse 2.0.1`.

    Two pages with the same HTML have the same text if their extractions are equal.

    Raises UsageError for an unknown extractor, or if one of its libraries is not installed.
    """
    if extractor not in EXTRACTORS:
        raise UsageError(
            f"--extract {extractor}: c4pipe extracts by {', '.join(EXTRACTORS)}" + suggestion(extractor, EXTRACTORS)
        )
    from importlib.metadata import PackageNotFoundError, version

    extra, libraries = EXTRACTORS[extractor]
    try:
        versions = {library: version(library) for library in (*libraries, "brotli")}
    except PackageNotFoundError as error:
        raise UsageError(
            f"WARC files need {error.name} to extract text by {extractor!r}: run pip install 'c4pipe[{extra}]'"
        ) from None
    return f"{extractor}: " + ", ".join(f"{library} {versions[library]}" for library in libraries)


def describe_extraction(extraction: str) -> str:
    """Describes the text of a page in a few words, given an extraction."""
    if is_text_layout(extraction):
        layout = TextLayout.of_extraction(extraction)
        plain = {"files": "a whole file", "blank-lines": "the lines between blank lines", "lines": "a line"}
        return f"the column `{layout.text}` of a row as it is, and in plain text {plain[layout.split]}"
    name, _, libraries = extraction.partition(": ")
    words = {"all": "all text of its HTML", "main": "the main content of its HTML"}
    return f"{words.get(name, f'what {name} finds in its HTML')} (by {libraries})"
