"""The row of the rule table for overlap with evaluation sets, which are the user's. A recipe file switches it on."""

from c4pipe.filters import pages
from c4pipe.recipes.rule import Fact, Rule

_SOURCE = "n-grams of 13 words: GPT-3 (Brown et al. 2020), appendix C; shares: PaLM (Chowdhery et al. 2022), section 8"

OVERLAP_RULES = (
    Rule(
        "evaluation_overlap", "page",
        "drops a page that has at least {min_ngrams} of the n-grams of {ngram} words of an evaluation example, and at "
        "least the share {min_share} of them",
        _SOURCE, pages.is_contaminated, {"ngram": 13, "min_ngrams": 1, "min_share": 0.0}, Fact.SHARED_NGRAMS,
        elsewhere=("ngram", "min_ngrams", "min_share"), stage="cleaned",
    ),
)  # fmt: skip
"""The rule on evaluation examples that no recipe has."""
