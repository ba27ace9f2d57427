"""One WET file to one work file: reads, cleans, counts. No Beam."""

from collections import Counter
from pathlib import Path

import numpy as np

from c4pipe.dedup.units import cut, span_hashes, unit_hashes
from c4pipe.filters.clean import Cleaner, Draft, Verdict
from c4pipe.page import Page, is_validation, page_key
from c4pipe.recipes import Recipe
from c4pipe.rules import RULES
from c4pipe.wet import Damage, read_pages
from c4pipe.work import KeptPage, WorkWriter


class WetFileCleaner:
    """Cleans WET files by one recipe; made once in a worker, since loading the tools takes a while."""

    def __init__(self, recipe: Recipe, fingerprint: str, cleaner: Cleaner) -> None:
        self._recipe = recipe
        self._fingerprint = fingerprint
        self._cleaner = cleaner
        span, validation = recipe.find("repeated_span"), recipe.find("validation")
        self._span_size: int = span.parameters["size"] if span else 0
        self._one_in: int = validation.parameters["one_in"] if validation else 0

    def clean(self, source: Path, target: Path) -> None:
        """Writes the work file `target` of the WET file `source`; it appears when it is complete.

        Raises OSError where either can't be read or written; nothing is left of `target` then.
        """
        counts: Counter[str] = Counter()
        writer = WorkWriter(target)
        try:
            with source.open("rb") as stream:
                for item in read_pages(stream):
                    if isinstance(item, Damage):
                        counts[f"damage.{item.kind}"] += 1
                    else:
                        self._add(item, writer, counts)
            writer.finish(source.name, source.stat().st_size, self._recipe, self._fingerprint, counts)
        except BaseException:
            writer.discard()
            raise

    def _add(self, page: Page, writer: WorkWriter, counts: Counter[str]) -> None:
        verdict, draft = self._cleaner.clean(page)
        count(page, verdict, draft, counts)
        if verdict.readable:
            assert page.captured is not None  # a page without a timestamp is not readable
            kept = None if verdict.reason else self._kept(page, draft)
            writer.add(page_key(page.normalised_url), page.captured, kept)

    def _kept(self, page: Page, draft: Draft) -> KeptPage:
        assert draft.guess is not None
        starts = draft.sentence_starts if self._span_size else []
        hashes = unit_hashes(cut(draft.text, starts)) if starts else np.empty(0, dtype=np.uint64)
        return KeptPage(
            url=page.url,
            text=draft.text,
            timestamp=page.timestamp,
            language=draft.guess.language,
            language_probability=draft.guess.probability,
            validation=bool(self._one_in) and is_validation(page.normalised_url, self._one_in),
            sentence_starts=starts,
            span_hashes=span_hashes(hashes, self._span_size) if starts else hashes,
        )


def count(page: Page, verdict: Verdict, draft: Draft, counts: Counter[str]) -> None:
    """Adds one page to the counters of the funnel.

    pages.read = pages.dropped.* + pages.cleaned; lines.read = lines.dropped.* + lines.left, over the pages that
    came to the line rules; bytes.read are the bodies' bytes.
    """
    counts["pages.read"] += 1
    counts["bytes.read"] += page.size
    if verdict.lines:
        counts["lines.read"] += len(page.lines)
        counts["lines.left"] += len(draft.lines)
        for rule, number in verdict.lines.items():
            counts[f"lines.{'edited' if RULES[rule].edits else 'dropped'}.{rule}"] += number
    if verdict.reason:
        counts[f"pages.dropped.{verdict.reason}"] += 1
        return
    counts["pages.cleaned"] += 1
    counts["sentences.cleaned"] += draft.sentence_count
    counts["bytes.cleaned"] += len(draft.text.encode())
