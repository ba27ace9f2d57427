"""The base classes of rules. A rule is a frozen dataclass, and its fields are its parameters.

A page rule says whether a page is dropped, a line rule edits or drops lines, a corpus rule needs all pages together.
The rules of c4pipe are in the other modules of this room, one family a module; `rules` has all of them by name.
A user's rule is a class of the same kind in the user's module (docs/own_rules.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from string import Formatter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import ByLanguage, CheckedPage
from c4pipe.io.words import suggestion
from c4pipe.lists.lists import ListFolder
from c4pipe.text.scripts.facts import SCRIPTS

Scope = Literal["page", "line", "corpus"]
AnyRule = TypeVar("AnyRule", bound="Rule")

# Where rules come from: each rule names its source.
PAPER = "T5 paper (Raffel et al. 2020), 2.2"
PAPER_VARIANTS = "T5 paper, 3.4.1"
TFDS_CODE = "TensorFlow Datasets, c4 3.1.0"
MC4_PAPER = "mT5 paper (Xue et al. 2021), 3.1"
DOLMA = "Dolma 1.2.1, tagger c4_v2 (taggers/c4.py) and configs/c4-replication/mixer.yaml"

_MOST = 2**31 - 1  # of a whole number
_OWN_NAME = "[a-z][a-z0-9_]{0,63}"


class Between(NamedTuple):
    """The limits of a number, both included: `Annotated[float, Between(0, 1)]`."""

    least: float
    most: float = _MOST


class LowerCase:
    """Texts that are searched in lower case: `Annotated[tuple[str, ...], LowerCase]`."""


class ScriptCodes:
    """Codes of scripts that have a row in the table (`scripts.facts`): `Annotated[tuple[str, ...], ScriptCodes]`."""


Whole = Annotated[int, Between(0)]
Positive = Annotated[int, Between(1)]
Number = Annotated[float, Between(0)]
Share = Annotated[float, Between(0, 1)]
Texts = tuple[str, ...]
LowerTexts = Annotated[tuple[str, ...], LowerCase]
Scripts = Annotated[tuple[str, ...], ScriptCodes]


if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    dataclass_transform = partial(partial, lambda rule, **_: rule)  # it is for type checkers alone


@dataclass_transform(frozen_default=True)
class Rule:
    """One rule of a recipe. Its subclasses are frozen dataclasses; their fields are the parameters of the rule.

    A subclass without the decorator becomes one when it is first used: no recipe has all rules, and each takes a
    millisecond.

    The types of the fields say which values are allowed: `bool`, `int`, `float` (with `Between`), `Literal[...]`, or
    `tuple[str, ...]`. A list that is given for texts becomes a tuple.

    Attributes:
        name: the reason for which a page is dropped, the counter, and the row in each table: lower-case words.
        does: what the rule does, a sentence that starts with a verb, with parameters in braces. Readers see other
            parameters after the sentence if they differ from their defaults.
        source: the origin of the rule and its constants.
        scope: what the rule judges: a page, a line, or the corpus (all pages together).
        stage: the stage to which a recipe file's `on` adds the rule; "" for its stage in the first recipe that has it.
        needs: the names of the lists that it needs (fields of `Lists`).
        names_itself: whether `name` is a parameter, so that a recipe can have several rules of the class.
        file_parameters: the parameters that say where a file is. A recipe's fingerprint has the file's digest instead.
        added: the parameters that a rule got after corpora were made with it. A recipe's JSON, and so its fingerprint,
            has them only if they differ from their defaults.
        scripts_do: what the rule does about the scripts of its parameter `scripts`.

    Raises UsageError, with the allowed values, for a parameter with another value.
    """

    name: ClassVar[str]
    does: ClassVar[str]
    source: ClassVar[str]
    scope: ClassVar[Scope]
    stage: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    names_itself: ClassVar[bool] = False
    file_parameters: ClassVar[tuple[str, ...]] = ()
    added: ClassVar[tuple[str, ...]] = ()
    scripts_do: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        for base in cls.__bases__:
            if "name" in vars(base) and issubclass(base, Rule):  # its fields are inherited
                _complete_class(base)

    def __new__(cls, *_: Any, **__: Any) -> Any:
        _complete_class(cls)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name in _hints(type(self)):
            object.__setattr__(self, name, checked_value(self, name, getattr(self, name)))
        if self.names_itself and not re.fullmatch(_OWN_NAME, self.name):
            raise UsageError(f"the rule {type(self).name} has the name {self.name!r}: use small letters, digits and _")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and type(other) is type(self) and other.parameters == self.parameters

    def __hash__(self) -> int:
        return hash(type(self))  # the parameters would take as long as some rules

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in self.parameters.items())})"

    @property
    def made_columns(self) -> tuple[str, ...]:
        """The columns of pages that the rule makes, such as `score:float`."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters, by name, in the order of the fields."""
        return {name: getattr(self, name) for name in _hints(type(self))}

    @property
    def stored_parameters(self) -> dict[str, Any]:
        """The parameters, except parameters of `added` with their defaults."""
        unset = set(self.added) - self.changed
        return {name: value for name, value in self.parameters.items() if name not in unset}

    @property
    def changed(self) -> set[str]:
        """The parameters that differ from their defaults."""
        return {each.name for each in fields(cast(Any, self)) if getattr(self, each.name) != each.default}

    @property
    def sentence(self) -> str:
        """What the rule does, with the values of its parameters."""
        return sentence_of([self])

    def with_parameters(self: AnyRule, parameters: Mapping[str, Any]) -> AnyRule:
        """Returns the rule with other values of some parameters. Raises UsageError for an unknown parameter or a wrong
        value.
        """
        for name in parameters:
            check_parameter(type(self), name)
        return replace(cast(Any, self), **parameters)  # type: ignore[no-any-return]

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Returns why the rule can't stand beside the other rules of a recipe in its stage; None if it can."""
        return None

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        """Returns the lists of `needs` by name, from a user's folder. Raises UsageError if a list is missing."""
        return {}

    def pinned_lists(self, languages: Sequence[str]) -> Iterable[str]:
        """Returns the paths, in a lists folder, of the published lists that the rule needs for some languages."""
        return ()


def of_language(rule: AnyRule, by_language: ByLanguage, language: str) -> AnyRule:
    """Returns a rule with its parameters for the pages of a language."""
    parameters = by_language[language].get(rule.name) if language in by_language else None
    return rule.with_parameters(parameters) if parameters else rule


class PageRule(Rule):
    """A rule that drops pages.

    It finds a value of the page, and decides by the value. The evaluator asks for both parts one after the other;
    `explain`, the report and annotated files show the value.

    Attributes:
        looks_at_url: whether the value depends on the URL.
        searches: whether it looks at `page.searched`: before the line rules, the page as crawled.
        counts: whether the value, or a number in it, has a column in annotated files, and of which type.
        drops_if: how that number is compared with parameters, such as `< at_least`: a comparison that holds drops the
            page. `c4pipe tune` shows these parameters as limits.
    """

    scope = "page"
    looks_at_url: ClassVar[bool] = False
    searches: ClassVar[bool] = False
    counts: ClassVar[Literal["int", "float"] | None] = None
    drops_if: ClassVar[tuple[str, ...]] = ()

    def value(self, page: CheckedPage) -> Any:
        """Returns the value that the rule decides by: a number, a word, a guess. `drops` takes it."""
        raise NotImplementedError

    def drops(self, value: Any) -> bool:
        """Tells whether a page with this value is dropped."""
        raise NotImplementedError

    def may_drop(self, page: CheckedPage) -> bool:
        """Tells whether the rule may drop the page: a quick look, before `value` looks at all of it."""
        return True

    def says(self, value: Any, dropped: bool, page: CheckedPage) -> str:
        """Returns the value in words, for people who ask why a page is (not) dropped."""
        return str(value)

    def number(self, value: Any, page: CheckedPage) -> float | None:
        """Returns the number of the value, if the rule `counts`. If `value` stops counting early, this is the full
        number.
        """
        return cast(float, value) if self.counts else None

    def native(self, as_crawled: bool) -> NativeStep | None:
        """Returns the step in C that decides the same; None if Python must decide.

        Args:
            as_crawled: whether the rule sees the page as crawled, before the line rules.
        """
        return None


class LineRule(Rule):
    """A rule that drops or edits lines, each by itself.

    Attributes:
        edits: whether it changes lines instead of dropping them.
    """

    scope = "line"
    edits: ClassVar[bool] = False

    def edit(self, lines: list[str]) -> list[str]:
        """Returns the lines that stay, in their order, or all lines edited. Equal lines are treated alike."""
        raise NotImplementedError

    def may_change(self, page: CheckedPage) -> bool:
        """Tells whether the rule may drop or edit a line of the page: a quick look, before `edit` sees each line."""
        return True

    def native(self) -> NativeStep | None:
        """Returns the step in C that does the same; None if Python must do it."""
        return None


class CorpusRule(Rule):
    """A rule that needs more than one page: job 2 applies it."""

    scope = "corpus"
    drops_pages: ClassVar[bool] = False

    def says(self, normalised_url: str) -> str:
        """Returns in words what a single page tells about the rule."""
        return "all pages together decide"


class Others(Protocol):
    """The rules of a recipe, for a rule that checks whether it fits to them."""

    def find(self, rule: type[AnyRule]) -> AnyRule | None:
        """Returns the first rule of a class, or None."""


def sentence_of(rules: Sequence[Rule]) -> str:
    """Returns what a rule does, with the values of its parameters, given the rule of each language."""
    rule, changed = rules[0], set[str]().union(*(each.changed for each in rules))
    does = rule.does + (rule.scripts_do if "scripts" in changed else "")
    texts = {name: _format_values([each.parameters[name] for each in rules]) for name in rule.parameters}
    more = [f"{name.replace('_', ' ')}: {texts[name]}" for name in texts if name in changed - _find_parameters(does)]
    return does.format(**texts) + (f" ({'; '.join(more)})" if more else "")


def _find_parameters(does: str) -> set[str]:
    return {name or "" for _, name, _, _ in Formatter().parse(does)} | {"name"}


def _format_values(values: Sequence[Any]) -> str:
    """Returns a parameter's values for all languages, in a sentence."""
    first = values[0]
    if all(each == first for each in values):
        *most, last = _quote_all(first) if isinstance(first, tuple) and first else [parameter_text(first)]
        return f"{', '.join(most)} or {last}" if most else last
    if isinstance(first, tuple):
        return "of the language"
    return f"{parameter_text(min(values))} to {parameter_text(max(values))} (by language)"


def parameter_text(value: Any) -> str:
    """Returns a parameter's value for readers: `yes`, `1,000`, `"a", "b"`, `none` for an empty list."""
    if isinstance(value, (tuple, list)):
        return ", ".join(_quote_all(value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _quote_all(values: Sequence[Any]) -> list[str]:
    """Returns quoted values; of a named set of crawlers, which is longer than any list of languages, the first ones."""
    quoted = [*map(_quote, values)]
    return quoted if len(quoted) <= 120 else [*quoted[:5], f"one of {len(quoted) - 5} more"]


def _quote(value: Any) -> str:
    return f"'{value}'" if '"' in str(value) else f'"{value}"'


def _complete_class(rule: type[Rule]) -> None:
    if "__dataclass_fields__" not in vars(rule):
        dataclass(frozen=True, eq=False, repr=False)(rule)  # as `Rule` compares and shows them: half the time


def _find_hints(rule: Any) -> dict[str, Any]:
    """Returns the types of a rule's parameters by name, in the order of the fields."""
    _complete_class(rule)
    types = {each.name: each.type for each in fields(rule)}
    if any(isinstance(each, str) for each in types.values()):  # to evaluate the texts of all hints takes longer
        hints = get_type_hints(rule, include_extras=True)
        types = {name: hints[name] for name in types}
    return types


_hints: Callable[[Any], dict[str, Any]] = cache(_find_hints)


def parameter_names(rule: type[Rule]) -> tuple[str, ...]:
    """Returns the names of a rule's parameters."""
    return tuple(_hints(rule))


def choices(rule: type[Rule], name: str) -> tuple[str, ...]:
    """Returns the allowed values of a parameter if they are listed; else ()."""
    hint = _hints(rule)[name]
    return get_args(hint) if get_origin(hint) is Literal else ()


def check_parameter(rule: type[Rule], name: str) -> None:
    """Raises UsageError, with the nearest name, if a rule has no such parameter."""
    known = parameter_names(rule)
    if name not in known:
        raise UsageError(
            f"rule {rule.name} has no parameter {name!r}; it has {', '.join(known) or 'none'}" + suggestion(name, known)
        )


def checked_value(rule: Rule, name: str, value: Any) -> Any:
    """Returns the value of a parameter in its type. Raises UsageError, with the allowed values, for another value."""
    hint = _hints(type(rule))[name]
    named = type(rule).name if name == "name" else rule.name
    entry = f"[{named}] {name} = {list(value) if isinstance(value, tuple) else value!r}"
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    kind = get_args(hint)[0] if marks else hint
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            raise UsageError(f"{entry}: choose from {', '.join(map(repr, get_args(kind)))}")
        return value
    if kind is bool:
        return _require(isinstance(value, bool), value, f"{entry}: write true or false")
    if kind in (int, float):
        limits = next((each for each in marks if isinstance(each, Between)), Between(-_MOST))
        return _check_number(value, kind, limits, entry)
    if kind is str:
        return _require(isinstance(value, str) and value.strip() != "", value, f"{entry}: give a text")
    if get_origin(kind) is tuple:
        texts = _check_texts(value, entry, getattr(type(rule), name), LowerCase in marks)
        known = ScriptCodes not in marks or SCRIPTS.keys() >= set(texts)
        return _require(known, texts, f"{entry}: choose from {', '.join(SCRIPTS)}")
    return value


def _check_number(value: Any, kind: type, limits: Between, entry: str) -> float:
    is_number = isinstance(value, kind if kind is int else (int, float)) and not isinstance(value, bool)
    if kind is float:
        fits = is_number and limits.least <= value <= limits.most
        return float(_require(fits, value, f"{entry}: give a number from {limits.least:,} to {limits.most:,}"))
    _require(is_number and value >= limits.least, value, f"{entry}: give a whole number of at least {limits.least}")
    return cast(int, _require(value <= limits.most, value, f"{entry}: give a whole number of at most {limits.most}"))


def _check_texts(value: Any, entry: str, default: Texts, lower: bool) -> Texts:
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) and each for each in value):
        raise UsageError(f"{entry}: give a list of texts, such as {list(default)!r}")
    if any("\ud800" <= character <= "\udfff" for each in value for character in each):
        raise UsageError(f"{entry}: a text has half of a surrogate pair, which no page can have")
    if lower and any(each != each.lower() for each in value):
        raise UsageError(f"{entry}: the search ignores case, so write it in lower case")
    return tuple(value)


def _require(holds: bool, value: Any, message: str) -> Any:
    if not holds:
        raise UsageError(message)
    return value


NativeStep = tuple[object, ...]
"""A step of a program in C: its name and its arguments."""


_MOST_TEXTS = 64  # phrases or endings that the C extension supports


def native_step(name: str, *arguments: int | Texts) -> NativeStep | None:
    """Returns a step with the parameters of a rule; None if the C extension does not support them."""
    return (name, *arguments) if all(map(_is_supported, arguments)) else None


def _is_supported(value: int | Texts) -> bool:
    if isinstance(value, tuple):
        return len(value) <= _MOST_TEXTS and all(text and text.isprintable() for text in value)
    return 0 <= value <= _MOST
