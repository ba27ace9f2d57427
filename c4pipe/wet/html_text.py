"""HTML to text: which extractors there are, whether their libraries are installed, and the extraction itself."""

from collections.abc import Callable

from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion
from c4pipe.wet.text_layout import TextLayout, is_text

EXTRACTORS = {
    "all": ("warc", ("resiliparse",)),
    "main": ("warc", ("resiliparse",)),
    "trafilatura": ("trafilatura", ("trafilatura", "lxml", "lxml-html-clean", "justext", "resiliparse")),
}
"""The extractors: the extra that has their libraries, and the libraries on which their text depends."""

DEFAULT_EXTRACTOR = "all"
"""The extractor that comes nearest to the text of WET files: menus and footers stay in it."""


def choose_extraction(input_kind: str, extractor: str | None) -> str:
    """Returns how the text of pages is made: "" for WET files, as `find_extraction` for WARC files.

    Args:
        input_kind: `warc`, or another kind, which has text.
        extractor: one of EXTRACTORS, or None for DEFAULT_EXTRACTOR.

    Raises UsageError as `find_extraction`, and for an extractor where the inputs are no WARC files.
    """
    if input_kind == "warc":
        return find_extraction(DEFAULT_EXTRACTOR if extractor is None else extractor)
    if extractor is not None:
        raise UsageError(f"--extract {extractor} is for WARC files, which have HTML: add --from warc, or leave it out")
    return ""


def find_extraction(extractor: str) -> str:
    """Returns an extractor with the versions of its libraries, such as `main: resiliparse 2.0.1`.

    Two pages with the same HTML have the same text where this is the same.

    Raises UsageError for an unknown extractor, and where one of its libraries is not installed.
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
            f"WARC files need {error.name} to extract text by {extractor!r}: "
            f"install it with python -m pip install 'c4pipe[{extra}]'"
        ) from None
    return f"{extractor}: " + ", ".join(f"{library} {versions[library]}" for library in libraries)


def describe_extraction(extraction: str) -> str:
    """Returns what the text of a page is, in a few words, given an extraction."""
    if is_text(extraction):
        layout = TextLayout.of_extraction(extraction)
        plain = {"files": "a whole file", "blank-lines": "the lines between blank lines", "lines": "a line"}
        return f"the column `{layout.text}` of a row as it is, and in plain text {plain[layout.split]}"
    name, _, libraries = extraction.partition(": ")
    words = {"all": "all text of its HTML", "main": "the main content of its HTML"}
    return f"{words.get(name, f'what {name} finds in its HTML')} (by {libraries})"


def load_extractor(name: str) -> Callable[[str], str]:
    """Imports an extractor, and returns the function from HTML to text. Raises ImportError."""
    if name == "trafilatura":
        return _trafilatura()
    from resiliparse.extract.html2text import extract_plain_text

    is_main = name == "main"

    def extract(html: str) -> str:
        # Neither list marks nor alternative texts: WET files have none, and rules on lines would see them as text.
        return str(extract_plain_text(html, main_content=is_main, list_bullets=False, alt_texts=False))

    return extract


def _trafilatura() -> Callable[[str], str]:
    import logging

    import trafilatura

    logging.disable(logging.CRITICAL)  # a library's notes on pages; nobody reads them here

    def extract(html: str) -> str:
        # As FineWeb extracts, but for `deduplicate`: it compares a page with those before, so their order would matter.
        return trafilatura.extract(html, favor_precision=True, include_comments=False) or ""

    return extract
