"""The sections of a report about languages: pages, dropped pages, lengths and tokens of each."""

from collections import Counter
from collections.abc import Iterator, Mapping

from c4pipe.display.excerpts import short
from c4pipe.display.units import format_size
from c4pipe.report import length_histogram
from c4pipe.report.blocks import Block, Columns, Paragraph, Row, Table, share_bar, share_table
from c4pipe.report.funnel import percent
from c4pipe.report.report_input import ReportInput

_LANGUAGES = 110  # rows of a table: a page that someone changed could have more
_NAME_SIZE = 40  # characters of a language's code
_SHARES = {"5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95}


def languages(report: ReportInput) -> Iterator[Table]:
    """Yields the pages of the corpus by language."""
    by_language: dict[str, Counter[str]] = {}
    for name, pages in report.profile["pages"].items():
        language, _, split = name.partition("/")
        by_language.setdefault(language, Counter())[split] += pages
    largest_first = sorted(by_language.items(), key=lambda item: (-item[1].total(), item[0]))[:_LANGUAGES]
    if not largest_first:
        return
    kept = report.count("pages.kept")
    rows = [
        Row(
            language,
            (f"{splits.total():,}", percent(splits.total(), kept), f"{splits['validation']:,}"),
            share_bar(splits.total(), kept),
        )
        for language, splits in largest_first
    ]
    caption = "Pages of the corpus by language, and how many of them are in the validation split"
    yield Table(caption, ("language", "pages", "%", "validation"), rows, chart="share")


def lengths(report: ReportInput) -> Iterator[Block]:
    """Yields bytes and quantiles of lengths by language, and histograms."""
    yield from _quantiles(report)
    tables = [
        ("Pages by number of characters", ("characters", "pages"), report.profile["characters"]),
        ("Pages by number of lines", ("lines", "pages"), report.profile["lines"]),
        ("Lines by number of characters", ("characters", "lines"), report.profile["line_characters"]),
    ]
    if report.count("pages.kept"):
        yield Columns(
            [share_table(caption, heads, _ranges(counts), sum(counts.values())) for caption, heads, counts in tables]
        )


def _ranges(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns the name and count of each range of a histogram, from its least power of two to its largest."""
    powers = sorted(map(int, counts))
    ranges, power = [], powers[0] if powers else 1
    while powers and power <= powers[-1]:
        name = f"{power:,}" if power <= 1 else f"{power:,} to {2 * power - 1:,}"
        ranges.append((name, counts.get(str(power), 0)))
        power = max(1, 2 * power)
    return ranges


def dropped_languages(report: ReportInput) -> Iterator[Block]:
    """Yields the languages of the pages that the rule `language` dropped."""
    dropped = list(report.dropped_languages.items())[:_LANGUAGES]
    if not dropped:
        return
    total = sum(report.dropped_languages.values())
    kept = set(report.recipe.languages)
    rows = [
        Row(
            short(language, _NAME_SIZE),
            (f"{number:,}", percent(number, total)),
            share_bar(number, total, "dropped"),
            note="the detector was not sure enough" if language in kept else "",
        )
        for language, number in dropped
    ]
    caption = "Pages that the rule language dropped, by the language that the detector took them for"
    yield Table(caption, ("language", "pages", "%"), rows, chart=f"of {total:,} pages")


def _quantiles(report: ReportInput) -> Iterator[Table]:
    """Yields bytes, and quantiles of the number of characters, by language."""
    by_language: dict[str, Counter[int]] = {}
    for name, pages in report.profile["lengths"].items():
        language, _, first = name.rpartition("/")
        by_language.setdefault(language, Counter())[int(first)] += pages
    largest_first = sorted(by_language.items(), key=lambda item: (-item[1].total(), item[0]))
    named = {short(language, _NAME_SIZE): counts for language, counts in largest_first[:_LANGUAGES]}
    if len(by_language) > 1:
        named["together"] = sum(by_language.values(), Counter())
    sizes = report.profile["language_bytes"]
    rows = []
    for language, counts in named.items():
        size = sum(sizes.values()) if language == "together" else sizes.get(language, 0)
        found = [f"{length:,}" for length in length_histogram.quantiles(counts, list(_SHARES.values()))]
        rows.append(Row(language, (format_size(size), *found), total=language == "together"))
    if rows:
        caption = "Bytes of text, and characters of a page: so many or fewer have 5 %, 25 %, ... of the pages (± 3 %)"
        yield Table(caption, ("language", "text", *_SHARES), rows)


def tokens(report: ReportInput) -> Iterator[Block]:
    """Yields the tokens by language, where they are counted."""
    rows = []
    for language, splits in list(report.tokens.items())[:_LANGUAGES]:
        documents = sum(each["documents"] for each in splits.values())
        count = sum(each["tokens"] for each in splits.values())
        size = report.profile["language_bytes"].get(language, 0)
        a_document, a_token = (
            (f"{count / documents:,.0f}" if documents else "-"),
            (f"{size / count:.2f}" if count else "-"),
        )
        rows.append(Row(short(language, _NAME_SIZE), (f"{documents:,}", f"{count:,}", a_document, a_token)))
    if rows:
        heads = ("language", "documents", "tokens", "tokens a document", "bytes a token")
        yield Table("Tokens, with one for the end of each document", heads, rows)
    elif report.count("pages.kept"):
        yield Paragraph(
            "Not counted. c4pipe tokens . --vocab VOCABULARY counts them, and then c4pipe report . shows them here, "
            "both in the folder of the corpus."
        )
