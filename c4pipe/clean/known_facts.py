"""What the columns of an annotated file say about its pages that also holds for another recipe.

What takes long to find out is taken from the columns where it must be the same: the guessed language, the numbers that
are counted in the text, and the number of sentences. A rule of the other recipe then compares it with its own limit.
For that, the same operations must have made the text that the rule sees, and the value must not depend on anything
else. All other rules look at the text again.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from c4pipe.clean.annotated_file import AnnotatedHeader
from c4pipe.clean.annotation_columns import fired_column, number_column
from c4pipe.clean.operations import Apply, LineCounts, Operation, operations_of, page_rule
from c4pipe.clean.page_facts import PageFacts
from c4pipe.filters import body_lines
from c4pipe.filters.language import Guess
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.rule import Fact

State = tuple[str, ...]
"""What has been done to the lines of a page, in words."""

_READS_LANGUAGE = (Fact.SENTENCE_COUNT, Fact.SENTENCES_LEFT, Fact.BAD_WORD)
_LANGUAGE_COLUMNS = ("language", "language_probability")


class KnownFacts:
    """Applies the operations of a recipe to annotated pages, with what is known of them.

    Attributes:
        columns: the columns of the annotated file that are used.
        operations: the operations of the recipe, for `RecipeEvaluator.clean`.
        row: the values of these columns of the page that is evaluated; to be set before each page.
    """

    def __init__(self, recipe: Recipe, lists: Mapping[str, str], annotated: AnnotatedHeader) -> None:
        """Compares a recipe, with the digests of its lists, with that of an annotated file."""
        self.row: Mapping[str, Any] = {}
        self.columns: tuple[str, ...] = ()
        self._sources = _sources(recipe, lists, annotated)
        self.operations = tuple(
            operation._replace(apply=self._known(operation, state)) for operation, state in _text_states(recipe)
        )

    def _known(self, operation: Operation, state: State) -> Apply:
        """Returns how an operation is applied: with what the columns say where they say it."""
        key = _value_key(operation, state)
        rule = self._sources.get(key) if key else None
        if rule is None:
            return operation.apply
        assert operation.step
        _, drops = page_rule(operation.step, operation.stage)
        if operation.step.definition.fact is Fact.LANGUAGE_GUESS:
            self._use(fired_column(rule), *_LANGUAGE_COLUMNS)
            return partial(self._apply_guess, fired_column(rule), drops, operation.apply)
        self._use(number_column(rule))
        return partial(self._apply_number, number_column(rule), drops, operation.apply)

    def _use(self, *columns: str) -> None:
        self.columns = tuple(dict.fromkeys((*self.columns, *columns)))

    def _apply_number(
        self, column: str, drops: Callable[[Any], bool], otherwise: Apply, facts: PageFacts, counts: LineCounts
    ) -> bool:
        number = self.row[column]
        return otherwise(facts, counts) if number is None else drops(number)

    def _apply_guess(
        self, column: str, drops: Callable[[Any], bool], otherwise: Apply, facts: PageFacts, counts: LineCounts
    ) -> bool:
        # Without a decision, the rule was not applied to the page. A guess that was made before stays.
        if self.row[column] is None or "guess" in vars(facts):
            return otherwise(facts, counts)
        language, probability = (self.row[each] for each in _LANGUAGE_COLUMNS)
        facts.guess = None if language is None else Guess(language, probability)
        return drops(facts.guess)


def _sources(recipe: Recipe, lists: Mapping[str, str], annotated: AnnotatedHeader) -> dict[str, str]:
    """Returns the rules of an annotated file whose values can be used, by what the values depend on."""
    from importlib.metadata import version

    if annotated.c4pipe != version("c4pipe"):  # another release may count in another way
        return {}
    sources: dict[str, str] = {}
    seen: set[str] = set()
    is_guess_of_text = True
    for operation, state in _text_states(annotated.recipe):
        if operation.kind != "page rule" or operation.rule in seen:  # the columns are those of a rule's first place
            continue
        seen.add(operation.rule)
        assert operation.step
        fact = operation.step.definition.fact
        if fact is Fact.LANGUAGE_GUESS and not (
            is_guess_of_text and _detector(annotated.recipe, annotated.lists) == _detector(recipe, lists)
        ):
            continue
        if fact in _READS_LANGUAGE:  # the guess may be one of an earlier text
            is_guess_of_text = False
        if key := _value_key(operation, state):
            sources.setdefault(key, operation.rule)
    return sources


def _value_key(operation: Operation, state: State) -> str | None:
    """Returns what the value of a page rule depends on; None where it is always found out again."""
    if operation.kind != "page rule":
        return None
    step = operation.step
    assert step
    rule = step.definition
    if rule.fact is Fact.LANGUAGE_GUESS:
        depends: tuple[Any, ...] = ()
    elif rule.measure:
        depends = (operation.rule, {name: step.parameters[name] for name in rule.elsewhere})
    elif rule.fact is Fact.SENTENCE_COUNT and step.parameters["model"] != "language":
        depends = (operation.rule, step.parameters["model"])
    else:
        return None
    assert rule.fact
    return json.dumps([rule.fact.name, *depends, *state], sort_keys=True)


def _detector(recipe: Recipe, lists: Mapping[str, str]) -> tuple[Any, ...]:
    """Returns what the guessed language of a text depends on."""
    parameters = recipe.parameters("language")
    detector = parameters.get("detector")
    return detector, parameters.get("min_probability") if detector == "cld3" else None, lists.get("language_model")


def _text_states(recipe: Recipe) -> Iterator[tuple[Operation, State]]:
    """Yields the operations of a recipe, each with what has been done to the lines before it."""
    separators: str = recipe.parameters("body_lines")["line_separators"]
    state: State = (body_lines.FIRST_CUTS.get(separators, separators),)
    for operation in operations_of(recipe):
        if operation.kind == "corpus rule":
            continue
        yield operation, state
        if operation.kind in ("line rule", "second cut", "trim"):
            parameters = dict(operation.step.parameters) if operation.step else {"line_separators": separators}
            state = (*state, f"{operation.kind} {operation.rule} {json.dumps(parameters, sort_keys=True)}")
