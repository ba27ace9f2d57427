"""What a report is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from c4pipe.recipes.recipe import Recipe


@dataclass(frozen=True)
class ReportInput:
    """What a report is made of.

    Attributes:
        manifest: the manifest of the corpus.
        recipe: its recipe.
        profile: counts and pages of the corpus (see `profile.Profile`).
        examples: pages by rule (see `examples.examples_by_rule`).
        repeats: the most repeated spans: `text`, `times`, `domains` of each.
        dropped_languages: pages that the rule `language` dropped, by language.
        tokens: `documents` and `tokens` by language and split, as `tokens.json` has them; empty where none are counted.
        opt_outs: the content of `opt_outs.json`; empty where opt-outs were not counted.
        near_duplicates: the largest clusters of pages that are nearly the same: `pages`, and the `url` that stays.
        copied_hosts: pairs of hosts: `pages` of the `host` are nearly the same as one `of` the other that stays.
    """

    manifest: Mapping[str, Any]
    recipe: Recipe
    profile: Mapping[str, Any]
    examples: Mapping[str, Sequence[Mapping[str, Any]]]
    repeats: Sequence[Mapping[str, Any]]
    dropped_languages: Mapping[str, int]
    tokens: Mapping[str, Mapping[str, Mapping[str, int]]]
    opt_outs: Mapping[str, Any]
    near_duplicates: Sequence[Mapping[str, Any]] = ()
    copied_hosts: Sequence[Mapping[str, Any]] = ()

    def count(self, name: str) -> int:
        """Returns a counter of the manifest; 0 where it has none of this name."""
        return int(self.manifest["counts"].get(name, 0))
