"""What datatrove decides about pages: the installed package's own filters, page by page, as JSON Lines.

    python parity/datatrove_reference.py RECIPE,... PAGES FOLDER BAD_WORDS BLOCKED

Runs in an environment that has datatrove, without c4pipe. PAGES has a JSON object for each page, with `url` and `text`.
BLOCKED is a folder with the lists of the URL filter and a list of public suffixes, which would be downloaded. For the
recipe `classifiers`, two fastText models are trained on the pages and written into the folder `classifiers` beside it.
FOLDER gets RECIPE.jsonl, with one for each page: `reason`, as datatrove names it, or null, and `text`, as the filters
left it. The language is langdetect's, as in c4pipe, where datatrove would download a model of fastText.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4BadWordsFilter,
    C4QualityFilter,
    FastTextClassifierFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    URLFilter,
    c4_filters,
)
from datatrove.pipeline.filters.base_filter import get_filter_result
from datatrove.pipeline.formatters import PIIFormatter
from langdetect import DetectorFactory, LangDetectException, detect_langs
from tldextract import TLDExtract

LEAST_PROBABILITY = 0.65


@cache  # recipes have the same pages, and langdetect takes longer than their filters
def is_english(text: str) -> bool:
    """Tells whether langdetect takes a text for English."""
    try:
        best = detect_langs(text)[0]
    except LangDetectException:
        return False
    return bool(best.lang == "en" and best.prob >= LEAST_PROBABILITY)


class English:
    """Keeps a page that langdetect takes for English."""

    def filter(self, doc: Document) -> Any:
        """Returns what a filter of datatrove returns."""
        return (True, None) if is_english(doc.text) else (False, "language")


class Masks:
    """Replaces personal data. Each page begins with the first replacement, so that the order of pages has no effect."""

    def filter(self, doc: Document) -> bool:
        """Changes the text and keeps the page."""
        doc.text = PIIFormatter().format(doc.text)
        return True


class HighQuality(FastTextClassifierFilter):  # type: ignore[misc]
    """Keeps a page to which a classifier gives the label hq."""


class Advertising(FastTextClassifierFilter):  # type: ignore[misc]
    """Drops a page to which a classifier gives the label ad."""


def classifiers(folder: Path, pages: Path) -> list[FastTextClassifierFilter]:
    """Returns two filters with models that are trained here: on each third page, by signs in its text."""
    import fasttext

    folder.mkdir(exist_ok=True)
    models = {"quality": ("hq", "the ", {"wordNgrams": 2, "dim": 20}), "advertising": ("ad", "!", {"dim": 10})}
    with pages.open(encoding="utf-8") as lines:
        texts = [" ".join(json.loads(line)["text"].split()) for number, line in enumerate(lines) if number % 3 == 0]
    for name, (label, sign, options) in models.items():
        shares = [text.count(sign) / (len(text) + 1) for text in texts]
        middle = sorted(shares)[len(shares) // 2]
        rows = (f"__label__{label if each > middle else 'cc'} {text}" for each, text in zip(shares, texts, strict=True))
        examples = folder / "examples.txt"
        examples.write_text("\n".join(rows), encoding="utf-8")
        # fastText 0.9.2 makes a tenth of its first vectors in each thread. With fewer than 11 threads, the vectors that
        # are left have what was in memory, and training can end with "Encountered NaN". So each model is another one.
        # With many epochs, few pages are so near to a limit that the last bits of a probability decide.
        trained = fasttext.train_supervised(str(examples), epoch=20, bucket=50_000, thread=11, verbose=0, **options)
        trained.save_model(str(folder / f"{name}.bin"))
    return [
        HighQuality(str(folder / "quality.bin"), keep_labels=("hq", 0.5), newline_replacement=" "),
        Advertising(str(folder / "advertising.bin"), remove_labels=("ad", 0.9), newline_replacement=" "),
    ]


def url_filter(blocked: Path) -> URLFilter:
    """Returns the filter of URLs, with the lists of a folder in place of its own."""
    names = ("domains", "urls", "banned_words", "banned_subwords", "soft_banned_words")
    domains, urls, words, subwords, soft = (
        (blocked / name).read_text(encoding="utf-8").splitlines(keepends=True) for name in names
    )
    made = URLFilter(
        extra_domains=domains,
        extra_urls=urls,
        banned_words=words,
        banned_subwords=subwords,
        soft_banned_words=soft,
        use_integrated_lists=False,
    )
    suffixes = (blocked / "public_suffix_list.dat").absolute().as_uri()
    made.tldextractor = TLDExtract(cache_dir=None, suffix_list_urls=(suffixes,), fallback_to_snapshot=False)
    return made


def filters_of(recipe: str, blocked: Path, pages: Path) -> list[Any]:
    """Returns the filters of a recipe, in their order."""
    if recipe == "classifiers":
        return classifiers(blocked.parent / "classifiers", pages)
    gopher = [English(), GopherRepetitionFilter(), GopherQualityFilter()]
    fineweb = [*gopher, C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter(), Masks()]
    return {
        "gopher": gopher,
        "fineweb": fineweb,
        "fineweb_urls": [url_filter(blocked), *fineweb],
        "datatrove-c4": [C4QualityFilter(), English(), C4BadWordsFilter()],
    }[recipe]


def write_decisions(filters: Sequence[Any], pages: Path, out: Path) -> None:
    """Filters the pages, and writes what is decided about each."""
    with pages.open(encoding="utf-8") as lines, out.open("w", encoding="utf-8") as rows:
        for line in lines:
            page = json.loads(line)
            doc = Document(text=page["text"], id="", metadata={"url": page["url"], "language": "en"})
            reason = None
            for each in filters:
                kept, reason = get_filter_result(each.filter(doc))
                if not kept:
                    reason = reason or type(each).__name__
                    break
            rows.write(json.dumps({"reason": reason, "text": doc.text}) + "\n")


def main() -> None:
    """Filters the pages by each recipe."""
    recipes, pages, folder, bad_words, blocked = sys.argv[1:]
    DetectorFactory.seed = 0
    c4_filters.cached_asset_path_or_download = lambda *given, **named: bad_words  # the same list, not its download
    for recipe in recipes.split(","):
        filters = filters_of(recipe, Path(blocked), Path(pages))
        write_decisions(filters, Path(pages), Path(folder) / f"{recipe}.jsonl")


if __name__ == "__main__":
    main()
