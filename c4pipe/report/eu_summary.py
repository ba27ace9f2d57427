"""A draft of the EU's public summary of training content: what a corpus knows of it, with marked gaps for the rest.

The text, and the fields of the Commission's template C(2025) 8311 final in their order, are in templates/eu_summary.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from c4pipe.corpus.manifest import OTHER_NAMES, sum_inputs
from c4pipe.corpus.opened import Corpus
from c4pipe.filters.listed_words import BadWords
from c4pipe.filters.rules import BLOCKED_URL_RULES, RESERVATION_RULES
from c4pipe.report.data import OptOuts, reasons_to_show
from c4pipe.report.profile import Profile
from c4pipe.report.rendering import render

MOST_OF_SME = 1_000
"""The most domains that the template asks small and medium-sized enterprises for; the draft names no more."""


class DomainTotals(NamedTuple):
    """The number of domains of a corpus, the largest ones, and times of pages, sorted: the first and the last one."""

    domains: int
    largest: Sequence[str]
    times: Sequence[str] = ()


def render_summary(
    corpus: Corpus, profile: Profile, totals: DomainTotals, tokens: Mapping[str, Any], opt_outs: OptOuts | None
) -> str:
    """Returns the draft, in Markdown.

    Args:
        corpus: an open corpus.
        profile: of its `report.json`.
        totals: of its domains.
        tokens: the totals of its `tokens.json`; empty if no tokens are counted.
        opt_outs: the content of its `opt_outs.json`; None if its opt-outs are not counted.
    """

    def sentences(kinds: Any) -> Sequence[tuple[str, int]]:
        """Returns what each rule of these kinds does, and how many pages it dropped."""
        rules = [rule for _, rule in corpus.recipe.rules() if isinstance(rule, kinds)]
        return [(corpus.recipe.sentence(rule), corpus.counts.get(f"pages.dropped.{rule.name}", 0)) for rule in rules]

    return render(
        "eu_summary.md",
        corpus=corpus,
        inputs=sum_inputs(corpus.manifest),
        other_names=OTHER_NAMES,
        language_bytes=profile["language_bytes"],
        tokens=sum(split["tokens"] for splits in tokens.values() for split in splits.values()) if tokens else None,
        totals=totals,
        reservation_rules=sentences(RESERVATION_RULES),
        refused=reasons_to_show(opt_outs) if opt_outs else {},
        content_rules=sentences((*BLOCKED_URL_RULES, BadWords)),
    )
