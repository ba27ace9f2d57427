"""The rule on overlap with evaluation sets, which are the user's. A recipe file switches it on.

The examples are files in the folder `evaluation` of the lists folder, or in folders in it. A file of JSON Lines has an
example on each line, and so has one of plain text; a Parquet file has one in each row. c4pipe ships none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.evaluation_examples import KNOWN_ENDINGS, read_examples
from c4pipe.filters.example_ngrams import ExampleNgrams, SharedNgrams
from c4pipe.filters.lists import ListFolder
from c4pipe.filters.rule import PageRule, Positive, Share, number_of, parameter_text
from c4pipe.filters.word_ngrams import ngram_words

FOLDER = "evaluation"
"""The folder of the examples, in a lists folder."""


@dataclass(frozen=True)
class EvaluationOverlap(PageRule):
    """Drops pages that share n-grams of words with an evaluation example."""

    name = "evaluation_overlap"
    does = (
        "drops a page that has at least {min_ngrams} of the n-grams of {ngram} words of an evaluation example, and at "
        "least the share {min_share} of them"
    )
    source = (
        "n-grams of 13 words: GPT-3 (Brown et al. 2020), appendix C; shares: PaLM (Chowdhery et al. 2022), section 8"
    )
    stage = "cleaned"
    needs = ("evaluation_examples",)
    ngram: Positive = 13
    min_ngrams: Positive = 1
    min_share: Share = 0.0

    def value(self, page: CheckedPage) -> SharedNgrams | None:
        """Returns what the kept lines share with an evaluation example, if it is enough."""
        known = page.tools.once(ExampleNgrams, lambda: self._ngrams(page.tools.lists.evaluation_examples))
        return known.most_shared(ngram_words(page.text), self.min_ngrams, self.min_share)

    def drops(self, value: SharedNgrams | None) -> bool:
        """Tells whether it is enough."""
        return value is not None

    def says(self, value: SharedNgrams | None, dropped: bool, page: CheckedPage) -> str:
        """Returns how many n-grams are shared, and the first one."""
        if value is None:
            return "it shares too little with each evaluation example"
        places = f"{value.shared:,} of {number_of(value.total, 'n-gram')} of an evaluation example"
        return f"it has {places}; the first: {parameter_text([value.text])}"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        r"""Returns the examples, each once, sorted: words, with `\n` between two fields.

        Raises UsageError where there is no example that is long enough, or a file can't be read.
        """
        needs = f"recipe {lists.recipe} has the rule {self.name}, which needs evaluation examples of yours"
        folder = lists.path / FOLDER
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        if not paths:
            raise UsageError(
                f"{needs}: put files of JSON Lines, plain text or Parquet, one example a line, into {folder}, "
                "name another lists folder with --lists DIR, or leave out the rule"
            )
        if other := [path for path in paths if not path.name.removesuffix(".gz").endswith(KNOWN_ENDINGS)]:
            raise UsageError(
                f"{needs}: {other[0]} ends in none of {', '.join(KNOWN_ENDINGS)}: rename it, or move it away"
            )
        examples = {b"\n".join(words).decode() for path in paths for _, words in read_examples(path)}
        fields = (field for example in examples for field in example.split("\n") if field)
        if not any(field.count(" ") >= self.ngram - 1 for field in fields):
            raise UsageError(f"{needs}: no text of {folder} has {self.ngram} words; give longer ones or lower ngram")
        return {"evaluation_examples": tuple(sorted(examples - {""}))}

    def _ngrams(self, examples: Any) -> ExampleNgrams:
        return ExampleNgrams([example.encode().split(b"\n") for example in examples], self.ngram)
