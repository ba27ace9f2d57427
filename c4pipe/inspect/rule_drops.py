"""Counts the pages of an annotated folder that each rule drops, alone and together with other rules."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from c4pipe.clean.annotated_folder import AnnotatedPages, fired_column, lines_column
from c4pipe.clean.evaluate import operations_of
from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True)
class RuleDrops:
    """The pages that page rules drop, each applied to all pages, and the lines that line rules change.

    Attributes:
        pages: the number of pages.
        rules: the names of the page rules, in the order of evaluation.
        together: int64 of shape (rules, rules): how many pages both rules drop; on the diagonal, one rule.
        alone: how many pages only this rule drops, by rule.
        first: how many pages this rule drops before all others, by rule.
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
        """Returns, for each rule that drops pages, which per cent of these other rules drop: whole numbers from 1 on,
        largest first.
        """
        shares = {}
        for place, (rule, dropped) in enumerate(self.dropped.items()):
            if dropped:
                row = np.rint(100 * self.together[place] / dropped).astype(int).tolist()
                others = {other: share for other, share in zip(self.rules, row, strict=True) if share and other != rule}
                shares[rule] = dict(sorted(others.items(), key=lambda item: -item[1]))
        return shares


def count_rule_drops(annotated: AnnotatedPages) -> RuleDrops:
    """Counts the pages of an annotated folder by rule. Raises UsageError, DamagedFileError if a file can't be read."""
    rules = _find_rules(annotated.recipe, "page rule", "no lines")
    line_rules = _find_rules(annotated.recipe, "line rule")
    fired_columns, line_columns = list(map(fired_column, rules)), ["lines_read", *map(lines_column, line_rules)]
    together = np.zeros((len(rules), len(rules)), np.int64)
    alone, lines = np.zeros(len(rules), np.int64), np.zeros(len(line_columns), np.int64)
    first = Counter[str]()
    for batch in annotated.batches(["reason", *fired_columns, *line_columns]):
        # A null counts as false: the rule did not judge the page.
        fired = np.stack([pc.fill_null(batch[name], False).to_numpy(zero_copy_only=False) for name in fired_columns])
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


def _find_rules(recipe: Recipe, *kinds: str) -> list[str]:
    """Returns the names of the rules with these kinds of operations, in the order of evaluation."""
    return list(dict.fromkeys(each.name for each in operations_of(recipe) if each.kind in kinds))
