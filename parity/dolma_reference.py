"""What Dolma decides about pages: the installed package's own tagger and mixer, as JSON Lines.

    python parity/dolma_reference.py PAGES OUT

Runs in an environment that has dolma, without c4pipe. PAGES has a JSON object for each page, with `url` and `text`.
OUT gets one for each page: `reason`, the first attribute for which the mixer drops the page, "empty" for a page that
loses all its lines, or null; and `text`, as the mixer left it. The filters are those of Dolma's
configs/c4-replication/mixer.yaml. The language is langdetect's, as in c4pipe, where Dolma would download a model of
fastText.

Two things of Dolma's output are not compared. Where the last line is removed, the newline before it stays. And the
tagger counts characters in the text in lower case, in which "İ" is two, so in such a text the mixer removes lines at
wrong places: its `text` is null.
"""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dolma import mixer
from dolma.core.data_types import DocResult, Document, Span
from dolma.core.registry import TaggerRegistry
from dolma.core.runtime import create_and_run_tagger
from dolma.core.taggers import BaseTagger
from langdetect import DetectorFactory, LangDetectException, detect_langs

LANGUAGE, C4 = "ft_lang_id_en_doc_v2", "c4_v2"
ATTRIBUTES = ("has_curly_brace", "has_lorem_ipsum", "has_javascript", "has_naughty_word")
SPANS = ("lines_with_no_ending_punctuation", "lines_with_too_few_words")
LEAST_PROBABILITY = 0.5

TaggerRegistry.remove(LANGUAGE)


@TaggerRegistry.add(LANGUAGE)
class English(BaseTagger):
    """Langdetect under the name of Dolma's tagger for English, which would download its model."""

    def predict(self, doc: Document) -> DocResult:
        """Returns the probability of English."""
        try:
            best = detect_langs(doc.text)[0]
        except LangDetectException:
            return DocResult(doc=doc, spans=[Span(0, len(doc.text), "en", 0.0)])
        return DocResult(doc=doc, spans=[Span(0, len(doc.text), "en", best.prob if best.lang == "en" else 0.0)])


def mix(documents: Path, output: Path, taggers: Sequence[str]) -> None:
    """Runs the mixer of configs/c4-replication over documents that some of its taggers have seen."""

    def excluding(name: str, test: str) -> str:
        return f"$.attributes[?(@.{name} && @.{name}[0] && @.{name}[0][2] {test})]"

    by_language = [excluding(f"{LANGUAGE}__{LANGUAGE}__en", f"< {LEAST_PROBABILITY}")] if LANGUAGE in taggers else []
    by_page = [excluding(f"{C4}__{C4}__{name}", "> 0.5") for name in ATTRIBUTES]
    stream = {
        "name": "pages",
        "documents": [str(documents)],
        "output": {"path": str(output), "max_size_in_bytes": 10**12, "discard_fields": ["attributes"]},
        "attributes": list(taggers),
        "filter": {"include": [], "exclude": [*by_language, *by_page]},
        "span_replacement": [
            {"span": f"$.attributes.{C4}__{C4}__{name}", "min_score": 0.5, "replacement": ""} for name in SPANS
        ],
    }
    work = {"input": str(output.parent / "work-in"), "output": str(output.parent / "work-out")}
    mixer({"streams": [stream], "work_dir": work, "processes": 1})


def tag_and_mix(pages: Iterable[str], folder: Path, taggers: Sequence[str] = (C4, LANGUAGE)) -> tuple[Path, Path]:
    """Runs taggers and mixer over the texts of pages; returns the folders of the attributes and of the documents."""
    documents, mixed = folder / "in" / "documents" / "pages.jsonl.gz", folder / "mixed"
    documents.parent.mkdir(parents=True)
    with gzip.open(documents, "wt", encoding="utf-8", compresslevel=1) as file:
        for place, text in enumerate(pages):
            file.write(json.dumps({"id": str(place), "text": text, "source": "pages"}) + "\n")
    create_and_run_tagger([str(documents)], list(taggers), debug=True)
    mix(documents, mixed, taggers)
    return folder / "in" / "attributes", mixed


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of packed JSON Lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def reason_of(c4: dict[str, Any], language: dict[str, Any]) -> str | None:
    """Returns the first of the mixer's filters that drops a page with these attributes."""
    if language["attributes"][f"{LANGUAGE}__{LANGUAGE}__en"][0][2] < LEAST_PROBABILITY:
        return "language"
    return next((name for name in ATTRIBUTES if c4["attributes"].get(f"{C4}__{C4}__{name}")), None)


def main() -> None:
    """Tags and mixes the pages."""
    pages, out = map(Path, sys.argv[1:])
    DetectorFactory.seed = 0
    texts = [json.loads(line)["text"] for line in pages.read_text(encoding="utf-8").splitlines()]
    with TemporaryDirectory() as name, out.open("w", encoding="utf-8") as rows:
        attributes, mixed = tag_and_mix(texts, Path(name))
        kept = {row["id"]: row["text"] for path in mixed.iterdir() for row in rows_of(path)}
        tagged = (rows_of(attributes / tagger / "pages.jsonl.gz") for tagger in (C4, LANGUAGE))
        for place, (text, c4, language) in enumerate(zip(texts, *tagged, strict=True)):
            reason, left = reason_of(c4, language), kept.get(str(place))
            if (reason is None) != (left is not None):
                raise SystemExit(f"page {place}: the mixer does not follow the attribute {reason}")
            if left == "":
                reason = "empty"
            shifted = len(text) != len(text.lower())
            shown = None if left is None or shifted else left.removesuffix("\n")
            rows.write(json.dumps({"reason": reason, "text": shown}) + "\n")


if __name__ == "__main__":
    main()
