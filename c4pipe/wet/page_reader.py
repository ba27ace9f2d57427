"""How the pages of a file are read: those of a WET file as they are, those of a WARC file from its HTML."""

from collections.abc import Callable, Iterator

from c4pipe.io.downloads import ByteStream
from c4pipe.wet.damage import Damage
from c4pipe.wet.html_process import TextExtractor
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from c4pipe.wet.warc_pages import SkippedRecord, read_warc_pages

PageReader = Callable[[ByteStream], Iterator[Page | Damage | SkippedRecord]]
"""Yields the pages of a file, its damage and the records that are no page."""


def page_reader(extraction: str) -> PageReader:
    """Returns what reads the pages of files.

    Args:
        extraction: how text is made from the HTML of WARC files (see `find_extraction`); "" for WET files.
    """
    if not extraction:
        return read_pages
    extractor = TextExtractor(extraction)
    return lambda stream: read_warc_pages(stream, extractor)
