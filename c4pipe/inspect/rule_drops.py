"""Which rules of a recipe earn their place: by an annotated folder, the pages that each rule drops, alone and together
with others.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.annotated_folder import AnnotatedPages, fired_column, lines_column
from c4pipe.clean.evaluate import operations_of
from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True)
class RuleDrops:
    """The pages that the page rules of a recipe drop, each applied to all pages, and the lines that line rules change.

    Attributes:
        pages: the number of pages.
        rules: the names of the page rules, in the order of evaluation.
        together: how many pages two rules both drop, a matrix of int64 in the order of `rules`; on its diagonal, how
            many pages a rule drops.
        alone: how many pages only this rule drops, by rule.
        first: of how many pages this rule is the first that drops them, by rule.
        lines_read: the number of lines that came to the line rules.
        lines: how many lines each line rule drops or changes, by rule, in the order of evaluation.
    """

    pages: int
    rules: Sequence[str]
    together: Any
    alone: Mapping[str, int]
    first: Mapping[str, int]
    lines_read: int
    lines: Mapping[str, int]

    @property
    def dropped(self) -> dict[str, int]:
        """How many pages each page rule drops."""
        return dict(zip(self.rules, self.together.diagonal().tolist(), strict=True))

    def overlap(self) -> dict[str, dict[str, int]]:
        """Returns, for each rule that drops pages, the others that drop some of these pages, and of how many of 100.

        The numbers are rounded; the largest is the first, and rules with 0 are left out.
        """
        shares = {}
        for place, (rule, dropped) in enumerate(self.dropped.items()):
            if dropped:
                row = np.rint(100 * self.together[place] / dropped).astype(int).tolist()
                others = {other: share for other, share in zip(self.rules, row, strict=True) if share and other != rule}
                shares[rule] = dict(sorted(others.items(), key=lambda item: -item[1]))
        return shares


def count_rule_drops(annotated: AnnotatedPages) -> RuleDrops:
    """Counts the pages of an annotated folder by the rules that drop them, batch by batch.

    Raises UsageError and DamagedFileError if a file can't be read.
    """
    rules = _rule_names(annotated.recipe, "page rule", "no lines")
    line_rules = _rule_names(annotated.recipe, "line rule")
    fired_columns, line_columns = list(map(fired_column, rules)), ["lines_read", *map(lines_column, line_rules)]
    together = np.zeros((len(rules), len(rules)), np.int64)
    alone, lines = np.zeros(len(rules), np.int64), np.zeros(len(line_columns), np.int64)
    first = Counter[str]()
    for batch in annotated.batches(["reason", *fired_columns, *line_columns]):
        fired = np.stack([_booleans(batch[name]) for name in fired_columns])
        numbers = fired.astype(np.float32)  # exact for the rows of a batch, and fast to multiply
        together += (numbers @ numbers.T).astype(np.int64)
        alone += fired[:, fired.sum(axis=0) == 1].sum(axis=1)
        lines += [pc.sum(batch[name]).as_py() or 0 for name in line_columns]
        for each in pc.value_counts(batch["reason"].drop_null()).to_pylist():
            first[each["values"]] += each["counts"]
    read, *changed = lines.tolist()
    return RuleDrops(
        pages=annotated.pages,
        rules=rules,
        together=together,
        alone=dict(zip(rules, alone.tolist(), strict=True)),
        first={rule: first[rule] for rule in rules},
        lines_read=read,
        lines=dict(zip(line_rules, changed, strict=True)),
    )


def _rule_names(recipe: Recipe, *kinds: str) -> list[str]:
    """Returns the names of the rules with operations of these kinds, in the order of evaluation, each once."""
    return list(dict.fromkeys(each.name for each in operations_of(recipe) if each.kind in kinds))


def _booleans(column: pa.Array) -> Any:
    """Returns a column of booleans for NumPy. A null counts as false: the rule was not applied to the page."""
    return pc.fill_null(column, False).to_numpy(zero_copy_only=False)
