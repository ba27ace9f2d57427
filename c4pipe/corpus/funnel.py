"""The funnel of a corpus: the numbers of things read, dropped or changed by each rule, and kept.

Pure rows, made only from a recipe and counts. The terminal, the dataset card and the report each show them.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from c4pipe.corpus.manifest import TAKEDOWN
from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.corpus_rules import KNOWN_URL, RepeatedSpan
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.page_size import Empty, FewSentences
from c4pipe.filters.rule import CorpusRule, LineRule, PageRule, Rule
from c4pipe.io.words import format_count
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.languages import drops_by_language, language_name
from c4pipe.text.scripts.facts import scripts_of
from c4pipe.wet.damage import DAMAGE
from c4pipe.wet.warc import SKIPPED

_MOST_LANGUAGES = 12  # rows of languages; the report and the dataset card have a table of all

FunnelSection = Literal["records", "pages", "lines", "units", "spans", "bytes", "damage"]
RowKind = Literal["read", "skipped", "dropped", "changed", "kept", "part", "damage"]


class FunnelRow(NamedTuple):
    """One row of a funnel.

    Attributes:
        section: the things that are counted, such as `records` of WARC files or `units` of repeated spans (sentences or
            lines).
        kind: `read` (the first row of a section), `skipped` (records that are no page), `dropped` or `changed` (by one
            rule), `kept` (the last row of a section), `part` (a part of the row above, such as the pages of one
            language), `damage`.
        name: the name of the rule, or words.
        number: how many; never negative.
        whole: the number of the section's first row, for the share of `number`; 0 for damage.
    """

    section: FunnelSection
    kind: RowKind
    name: str
    number: int
    whole: int = 0

    @property
    def is_rule(self) -> bool:
        """Whether the row has the name of a rule."""
        return self.kind in ("dropped", "changed")

    @property
    def label(self) -> str:
        """The name in a plain table: a rule that changes lines says so."""
        return f"{self.name} (changed)" if self.kind == "changed" else self.name

    @property
    def signed(self) -> str:
        """The number with thousands separators; negative for dropped things."""
        return f"{-self.number if self.kind in ('dropped', 'skipped') else self.number:,}"

    @property
    def percent(self) -> str:
        """The share in percent; nothing for damage."""
        return "" if self.kind == "damage" else percent(self.number, self.whole)


def funnel_rows(recipe: Recipe, counts: Mapping[str, int]) -> list[FunnelRow]:
    """Returns the rows of a funnel, section by section, in the recipe's order.

    Each rule has a row, even if its count is 0. Two kinds of rows need a count above 0: damage, and `empty` if the
    recipe does not list it.

    Args:
        recipe: the recipe of the job.
        counts: the counters of `clean`, or of a whole corpus (`counts` of its manifest).
    """
    rows, number_of = [], Counter(counts)
    for section, make_rows in _SECTIONS.items():
        whole = 0
        for kind, name, number in make_rows(recipe, number_of):
            whole = number if kind == "read" else whole
            rows.append(FunnelRow(section, kind, name, number, whole))
    return rows


def drops_pages(rule: Rule) -> bool:
    """Tells whether a rule drops whole pages."""
    return isinstance(rule, PageRule) or (isinstance(rule, CorpusRule) and rule.drops_pages)


def percent(part: int, whole: int) -> str:
    """Returns a share in percent with one digit after the point, or `-` if the whole is 0."""
    return f"{100 * part / whole:.1f}" if whole else "-"


def unit_name(recipe: Recipe) -> str:
    """Returns the units of repeated spans in the plural: `sentences` or `lines`."""
    return f"{recipe.need(RepeatedSpan).unit}s"


_Rows = Iterator[tuple[RowKind, str, int]]
"""The rows of a section: kind, name, number."""


def _count_records(recipe: Recipe, counts: Counter[str]) -> _Rows:
    if recipe.input_format != "WARC":
        return
    skipped = {kind: counts[f"records.skipped.{kind}"] for kind in SKIPPED}
    yield "read", "records read", counts["pages.read"] + sum(skipped.values())
    yield from (("skipped", kind, number) for kind, number in skipped.items() if number)
    yield "kept", "pages", counts["pages.read"]


def _count_pages(recipe: Recipe, counts: Counter[str]) -> _Rows:
    yield "read", "pages read", counts["pages.read"]
    finished = "pages.kept" in counts  # after `clean` alone, job 2's rules have no row
    dropped: dict[str, int] = {}  # of both jobs, for a rule of two stages
    for stage, rule in recipe.applied_rules():
        name = f"pages.dropped.{rule.name}"
        is_applied = finished or name in counts or stage not in ("corpus", "final")
        if drops_pages(rule) and is_applied and (recipe.find(type(rule)) or counts[name]):
            dropped[rule.name] = counts[name]
    left_out = {name: counts[f"pages.dropped.{name}"] for name in (KNOWN_URL, TAKEDOWN)}
    dropped |= {name: number for name, number in left_out.items() if number}
    yield from (("dropped", name, number) for name, number in dropped.items())
    if finished:
        yield "kept", "pages kept", counts["pages.kept"]
    else:
        yield "kept", "pages left for dedup", counts["pages.cleaned"]
    if len(recipe.languages) > 1 and finished:
        pages = languages_with_pages(counts)
        pages |= dict.fromkeys(empty_languages(recipe, pages), 0)
        largest_first = sorted(pages.items(), key=lambda item: (-item[1], item[0]))
        named = len(pages) if len(pages) <= _MOST_LANGUAGES else _MOST_LANGUAGES - 1
        yield from (("part", f"of these in {language}", number) for language, number in largest_first[:named])
        if others := largest_first[named:]:
            yield "part", f"of these in {len(others)} other languages", sum(number for _, number in others)
    if "pages.validation" in counts:
        yield "part", "of these in validation", counts["pages.validation"]


def _count_lines(recipe: Recipe, counts: Counter[str]) -> _Rows:
    yield "read", "lines read (pages that reached the line rules)", counts["lines.read"]
    for rule in (*recipe.read, *recipe.lines, *recipe.cleaned):
        if isinstance(rule, LineRule) and not isinstance(rule, BodyLines):
            if rule.edits:
                yield "changed", rule.name, counts[f"lines.edited.{rule.name}"]
            else:
                yield "dropped", rule.name, counts[f"lines.dropped.{rule.name}"]
    yield "kept", "lines left", counts["lines.left"]


def _count_units(recipe: Recipe, counts: Counter[str]) -> _Rows:
    if "units.newest" not in counts or not recipe.find(RepeatedSpan):
        return
    units = unit_name(recipe)
    yield "read", f"{units} (newest page of each URL)", counts["units.newest"]
    for rule in (RepeatedSpan.name, *(each.name for each in recipe.final if isinstance(each, PageRule))):
        yield "dropped", rule, counts[f"units.dropped.{rule}"]
    yield "kept", f"{units} kept", counts["units.kept"]


def _count_spans(_: Recipe, counts: Counter[str]) -> _Rows:
    """Yields the spans of known corpora, then the repeated spans and the exceptions from one copy of each."""
    if known := counts["spans.known"]:
        yield "read", "spans that a known corpus has (no copy stays)", known
    if repeated := counts["spans.repeated"]:
        yield "read", "repeated spans (one copy of each stays)", repeated
        yield "part", "copy on a page that was dropped", repeated - counts["spans.kept"]
        yield "part", "a second copy stays", counts["spans.doubled"]
        yield "part", "removal joined a second copy", counts["spans.joined"]


def _count_bytes(_: Recipe, counts: Counter[str]) -> _Rows:
    yield "read", "bytes of text read", counts["bytes.read"]
    yield "kept", "bytes of text kept", counts["bytes.kept" if "bytes.kept" in counts else "bytes.cleaned"]


def _count_damage(_: Recipe, counts: Counter[str]) -> _Rows:
    for kind in DAMAGE:
        if number := counts[f"damage.{kind}"]:
            yield "damage", f"damage: {kind}", number


_SECTIONS: dict[FunnelSection, Callable[[Recipe, Counter[str]], _Rows]] = {
    "records": _count_records,
    "pages": _count_pages,
    "lines": _count_lines,
    "units": _count_units,
    "spans": _count_spans,
    "bytes": _count_bytes,
    "damage": _count_damage,
}


class LanguageFunnel(NamedTuple):
    """The pages of one language.

    Attributes:
        language: its code.
        dropped: the pages that each rule dropped, from the first rule `language` on, in the recipe's order.
        kept: the pages of the corpus.
    """

    language: str
    dropped: Mapping[str, int]
    kept: int

    @property
    def title(self) -> str:
        """The name and the code of the language: `Thai (th)`."""
        name = language_name(self.language)
        return f"{name} ({self.language})" if name != self.language else name

    @property
    def detected(self) -> int:
        """The pages that the detector took for this language, when it was last asked."""
        return sum(self.dropped.values()) + self.kept

    @property
    def most(self) -> tuple[str, int] | None:
        """The rule that dropped the most pages, and their number; None if no page was dropped."""
        return max(self.dropped.items(), key=lambda item: item[1], default=None)

    @property
    def why_empty(self) -> str:
        """The reason why no page of a language with dropped pages was kept, in words."""
        rule, number = self.most or ("", 0)
        pages = f"all {self.detected:,} pages" if self.detected > 1 else "the only page"
        words = f"{pages} detected as {self.title} {'were' if self.detected > 1 else 'was'} dropped"
        return f"{words} by {rule}" if number == self.detected else f"{words}; {rule} took most, {number:,}"


def language_funnels(recipe: Recipe, counts: Mapping[str, int]) -> list[LanguageFunnel]:
    """Returns the pages of each language of the recipe, the most pages first.

    Args:
        recipe: the recipe of the job.
        counts: the counters of a whole corpus (`counts` of its manifest); earlier versions count no drops by language.
    """
    order = list(dict.fromkeys(rule.name for _, rule in recipe.applied_rules()))
    kept, dropped = languages_with_pages(counts), drops_by_language(counts)
    funnels = []
    for language in recipe.languages:
        of_rules = dropped.get(language, {})
        rules = [*(each for each in order if each in of_rules), *(each for each in of_rules if each not in order)]
        funnels.append(LanguageFunnel(language, {rule: of_rules[rule] for rule in rules}, kept.get(language, 0)))
    return sorted(funnels, key=lambda each: (-each.kept, -each.detected, each.language))


def empty_reasons(recipe: Recipe, counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Returns the languages of a recipe without a page, each with the reason; last, all that were not detected."""
    empty = [each for each in language_funnels(recipe, counts) if not each.kept]
    reasons = [(each.title, each.why_empty) for each in empty if each.most]
    unseen = [each.title for each in empty if not each.most]
    if unseen and drops_by_language(counts):  # an earlier version did not count what was detected
        reasons.append((", ".join(unseen), f"no page was detected as {'it' if len(unseen) == 1 else 'any of these'}"))
    return reasons


def languages_with_pages(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns the number of pages of each language that has pages, given the counters of a corpus."""
    prefix = "pages.kept."
    return {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix) and n}


def empty_languages(recipe: Recipe, filled: Container[str]) -> list[str]:
    """Returns the wanted languages that are not in `filled`, in the order of the recipe.

    Languages that come from a preset are never reported as missing.
    """
    if any(recipe.languages == preset.languages for preset in RECIPES.values()):
        return []
    return [each for each in recipe.languages if each not in filled]


def empty_warning(recipe: Recipe, counts: Mapping[str, int]) -> str:
    """Returns a warning if no page was kept, or no page of a wanted language; else "".

    Args:
        recipe: the recipe of the job.
        counts: the counters of `clean`, or of a whole corpus (`counts` of its manifest).
    """
    rows = funnel_rows(recipe, counts)
    finished = "pages.kept" in counts
    missed = empty_languages(recipe, languages_with_pages(counts)) if finished else recipe.languages
    funnels = [each for each in language_funnels(recipe, counts) if each.language in missed] if finished else []
    words = _why_lost(funnels)
    if not counts.get("pages.kept" if finished else "pages.cleaned"):
        words = [_all_dropped(rows), *words]
    elif funnels:
        words = [_why_missed(funnels, drops_by_language(counts), missed), *words]
    if not any(words):
        return ""
    line_rule = recipe.find(NoTerminalPunctuation) or recipe.find(FewWords)
    most = _largest_drop(rows, "lines")
    lost_lines = most is not None and most.number > 0.9 * most.whole
    fits = (
        "; text with other sentence marks, or without blanks between words, needs the recipe c4 with its language in "
        "--languages, or mc4"
    )
    other = line_rule and ({*scripts_of(missed)}.difference(line_rule.scripts) or lost_lines)
    reasons = "; ".join(filter(None, words))
    return f"{reasons}{fits if other else ''}; see what the rules ask for with: c4pipe recipes {recipe.name}"


_MOST_NAMED = 8  # languages in a sentence
_MOST_REASONS = 3


def _why_missed(
    funnels: Sequence[LanguageFunnel], drops: Mapping[str, Mapping[str, int]], missed: Sequence[str]
) -> str:
    """Returns a sentence on the wanted languages without a page, and the languages that were not detected."""
    unseen = [each.language for each in funnels if not each.most]
    words = f"no page was kept in {_list_names(missed)}"
    if not unseen or not drops:  # without drops: of an earlier version, which did not count them
        return words
    return f"{words}: no page was detected as {'it' if len(missed) == 1 else _list_names(unseen, 'or')}"


def _why_lost(funnels: Iterable[LanguageFunnel]) -> list[str]:
    """Returns a few sentences on languages whose pages were all dropped."""
    lost = [each.why_empty for each in funnels if each.most and not each.kept]
    named = lost if len(lost) <= _MOST_REASONS else lost[: _MOST_REASONS - 1]
    others = len(lost) - len(named)
    return [*named, *([f"all pages of {others} other languages were dropped, as report.html says"] if others else [])]


def _list_names(languages: Sequence[str], last: str = "and") -> str:
    """Returns the names of languages with their codes, in a sentence: the first names of many, and how many more."""
    names = [LanguageFunnel(each, {}, 0).title for each in languages]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} other languages"]
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def _all_dropped(rows: Sequence[FunnelRow]) -> str:
    """Returns the rules that dropped the most pages and the last page; "" if no page was read.

    If pages had too few sentences, it also names the line rule that dropped the most lines.
    """
    dropped = [row for row in rows if row.section == "pages" and row.kind == "dropped" and row.number]
    most = _largest_drop(rows, "pages")
    if not most:
        return ""
    last = dropped[-1]
    words = (
        f"no page was kept: of {format_count(most.whole, 'page')}, the rule {most.name} dropped most, {most.number:,}"
    )
    if most.name in (FewSentences.name, Empty.name) and (cause := _largest_drop(rows, "lines")):
        words += f", after {cause.name} dropped {cause.number:,} of {format_count(cause.whole, 'line')}"
    return words if last is most else f"{words}, and {last.name} the last {last.number:,}"


def _largest_drop(rows: Iterable[FunnelRow], section: FunnelSection) -> FunnelRow | None:
    """Returns the row of the rule that dropped the most of a section, or None."""
    dropped = [row for row in rows if row.section == section and row.kind == "dropped" and row.number]
    return max(dropped, key=lambda row: row.number, default=None)
