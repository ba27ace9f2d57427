"""The rules that need all pages together, with their parameters. Job 2 applies them (`dedup`)."""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from c4pipe.filters.rule import PAPER, TFDS_CODE, CorpusRule, Others, Positive, Scripts, Share
from c4pipe.text.hashes import WHOLE_QUERY, is_validation

MOST_MINIMA = 1024
"""The most numbers in a page's signature: bands times rows of the rule on near-duplicates."""

DEVIATIONS = 2.0, 3.0
"""Standard deviations of an estimate, below and above the least similarity, between which two texts are compared. Of
pairs just at the least similarity, one in 1,000 is above, and one in 40 below.
"""

KNOWN_URL = "known_url"
"""The name in counters for pages whose URL known corpora have. No recipe has such a rule: the corpora are an option."""


class NormalisedUrl(CorpusRule):
    """Says which URLs are the same. Each recipe has it. See `hashes.normalise_url`."""

    name = "normalised_url"
    does = "compares URLs without scheme, www., tracking query and trailing slash"
    source = TFDS_CODE
    scheme: Literal["start", "anywhere"] = "start"
    whole_query: bool = False
    added = ("whole_query",)

    @property
    def form(self) -> str:
        """How `hashes.normalise_url` changes a URL."""
        return f"{self.scheme}{WHOLE_QUERY if self.whole_query else ''}"

    def says(self, normalised_url: str) -> str:
        return normalised_url


class StaleCapture(CorpusRule):
    """Keeps the newest page of each URL. See `dedup.order.find_stale_captures`."""

    name = "stale_capture"
    does = "keeps the newest page of each URL; of equally new ones, the smallest hash of the text"
    source = TFDS_CODE
    drops_pages = True


class NearDuplicate(CorpusRule):
    """Keeps one of the pages that are nearly the same. See `minhash` and `dedup`."""

    name = "near_duplicate"
    does = (
        "keeps one page, the {keep}, of pages of one {within} that are nearly the same: "
        "MinHash of {ngram} words in a row, {bands} bands of {rows}, a similarity of at least {min_similarity}"
    )
    source = "FineWeb (Penedo et al. 2024), 3.4; signatures as in datatrove 0.10.1, minhash.py"
    stage = "corpus"
    drops_pages = True
    ngram: Positive = 5
    bands: Positive = 14
    rows: Positive = 8
    min_similarity: Share = 0.75
    within: Literal["corpus", "crawl", "language"] = "corpus"
    scripts: Scripts = ()
    compare: Literal["cluster", "survivor"] = "cluster"
    similarity: Literal["estimate", "exact"] = "estimate"
    keep: Literal["longest", "newest", "first"] = "longest"
    numbers: Literal["zero", "kept"] = "zero"
    short_pages: Literal["stay", "whole"] = "stay"
    added = ("scripts", "compare", "similarity", "keep", "numbers", "short_pages")
    scripts_do = "; tells words of the scripts {scripts} apart without blanks"

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Returns why a signature can't have this length, or why no text is compared."""
        if self.similarity == "exact" and self.compare != "survivor":
            return 'near_duplicate has similarity = "exact": set compare = "survivor", too, to compare two pages'
        if self.bands * self.rows <= MOST_MINIMA:
            return None
        return (
            f"near_duplicate has {self.bands:,} bands of {self.rows:,} rows: "
            f"give at most {MOST_MINIMA:,} together (bands times rows)"
        )

    @property
    def least_estimate(self) -> float:
        """The least share of equal minima of pages that may be similar enough."""
        return self._doubt[0]

    def leaves_in_doubt(self, estimates: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Tells whether the texts decide if pages are similar enough, given shares of equal minima."""
        least, most = self._doubt
        return (least <= estimates) & (estimates <= most) & (self.similarity == "exact")

    @property
    def _doubt(self) -> tuple[float, float]:
        """The least and the most share of equal minima for which the texts decide."""
        limit = self.min_similarity
        deviation = math.sqrt(limit * (1 - limit) / (self.bands * self.rows)) if self.similarity == "exact" else 0.0
        return limit - DEVIATIONS[0] * deviation, limit + DEVIATIONS[1] * deviation


class RepeatedSpan(CorpusRule):
    """Keeps one copy of each span of consecutive sentences or lines. See `spans` and `dedup`."""

    name = "repeated_span"
    does = "keeps one of each span of {size} consecutive {unit}s, in any case, and removes the others"
    source = PAPER + "; lines: " + TFDS_CODE
    unit: Literal["sentence", "line"] = "sentence"
    size: Positive = 3
    whitespace: Literal["collapsed", "stripped"] = "collapsed"
    keep_smallest: Literal["url hash", "url md5"] = "url hash"
    keep: Literal["one", "first"] = "one"

    @property
    def moves_survivors(self) -> bool:
        """Whether another copy than the first can stay: spans of one unit never overlap, so their first copy stays."""
        return self.size > 1 and self.keep == "one"


class Validation(CorpusRule):
    """Sets pages aside for validation, by the MD5 of their URL."""

    name = "validation"
    does = "sets a page aside for validation if the MD5 of its URL modulo {one_in} is 0"
    source = TFDS_CODE
    one_in: Positive = 1000

    def says(self, normalised_url: str) -> str:
        return split_of(is_validation(normalised_url, self.one_in))


def split_of(validation: bool) -> str:
    """Returns in words which split a page belongs to."""
    return "it belongs to validation" if validation else "it belongs to train"
