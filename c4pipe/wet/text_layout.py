"""How documents lie in text files: their formats, which columns they have, where a document of plain text ends."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion

TEXT_ENDINGS = (
    *(".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst"),
    *(".txt", ".txt.gz", ".txt.zst"),
)
"""The endings of files of text that can be read; the ending tells the format."""

SPLITS = ("files", "blank-lines", "lines")
"""What a document of plain text is: a file, the lines between blank lines, or a line."""

NO_COLUMN = "none"
"""Instead of the name of a column: no column is read."""

KIND = "text"
"""The start of `TextLayout.extraction`."""

_EXTRACTION = re.compile(rf"{KIND}: column (\S+), url (\S+), timestamp (\S+), split (\S+)")


@dataclass(frozen=True)
class TextLayout:
    """How documents lie in text files.

    Attributes:
        text: the column, or the key of JSON objects, that has the text.
        url: the one that has the document's address; NO_COLUMN for addresses that are made.
        timestamp: the one that has its timestamp; NO_COLUMN for none.
        split: what a document of plain text is, one of SPLITS.

    Raises UsageError for values that can't be used.
    """

    text: str = "text"
    url: str = "url"
    timestamp: str = "timestamp"
    split: str = SPLITS[0]

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            known = f"{', '.join(SPLITS[:-1])} or {SPLITS[-1]}"
            raise UsageError(f"--split {self.split}: give {known}{suggestion(self.split, SPLITS)}")
        for option in ("text", "url", "timestamp"):
            if not getattr(self, option).strip():
                raise UsageError(f"--{option}-column {getattr(self, option)!r}: give the name of a column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read where a file has them, that of the text first."""
        return tuple(dict.fromkeys((self.text, *(each for each in (self.url, self.timestamp) if each != NO_COLUMN))))

    @property
    def extraction(self) -> str:
        """The layout as `Recipe.extraction` has it: two corpora of one layout have their text from one place."""
        names = [quote(each, safe="", errors="surrogateescape") for each in (self.text, self.url, self.timestamp)]
        return f"{KIND}: column {names[0]}, url {names[1]}, timestamp {names[2]}, split {self.split}"

    @classmethod
    def of_extraction(cls, extraction: str) -> "TextLayout":
        """Returns the layout whose `extraction` this is."""
        match: Any = _EXTRACTION.fullmatch(extraction)
        text, url, timestamp, split = match.groups()
        names = [unquote(each, errors="surrogateescape") for each in (text, url, timestamp)]
        return cls(names[0], names[1], names[2], split)


def is_text(extraction: str) -> bool:
    """Tells whether pages are documents of text files, given `Recipe.extraction`."""
    return extraction.startswith(f"{KIND}: ")


def is_parquet(name: str) -> bool:
    """Tells by its name whether a file is Parquet."""
    return name.endswith(".parquet")


def is_json(name: str) -> bool:
    """Tells by its name whether a file of text is JSON Lines; it is plain text otherwise, or Parquet."""
    return name.endswith(tuple(each for each in TEXT_ENDINGS if ".json" in each))
