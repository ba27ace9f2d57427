"""The funnel of a corpus: the numbers of things read, dropped or changed by each rule, and kept.

Pure rows, made only from a recipe and counts. The terminal, the dataset card and the report each show them.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class FunnelRow:
    """One row of a funnel.

    Attributes:
        section: the things that are counted. `records`: the records of WARC files. `units`: the units of repeated spans
            (sentences or lines). `spans`: repeated spans.
        kind: `read` (the first row of a section), `skipped` (records that are no page), `dropped` or `changed` (by one
            rule), `kept` (the last row of a section), `part` (a part of the row above, such as the pages of one
            language), `damage`.
        name: the rule, or the words for any other row.
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
        """Whether the row belongs to one rule, whose name it has."""
        return self.kind in ("dropped", "changed")

    @property
    def label(self) -> str:
        """The name in a table without other marks: a rule that changes lines says so."""
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
    return [
        *_records(recipe, counts),
        *_pages(recipe, counts),
        *_lines(recipe, counts),
        *_units(recipe, counts),
        *_spans(counts),
        *_bytes(counts),
        *_damage(counts),
    ]


def drops_pages(rule: Rule) -> bool:
    """Tells whether a rule drops whole pages."""
    return isinstance(rule, PageRule) or (isinstance(rule, CorpusRule) and rule.drops_pages)


def percent(part: int, whole: int) -> str:
    """Returns a share in percent with one digit after the point, or `-` where the whole is 0."""
    return f"{100 * part / whole:.1f}" if whole else "-"


def unit_name(recipe: Recipe) -> str:
    """Returns the units of repeated spans in the plural: `sentences` or `lines`."""
    return f"{recipe.need(RepeatedSpan).unit}s"


def _records(recipe: Recipe, counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    """Yields the rows of the records of WARC files. Kinds that are no page have a row if their count is above 0."""
    if recipe.input_format != "WARC":
        return
    pages = counts.get("pages.read", 0)
    skipped = {kind: counts.get(f"records.skipped.{kind}", 0) for kind in SKIPPED}
    records = pages + sum(skipped.values())
    yield FunnelRow("records", "read", "records read", records, records)
    for kind, number in skipped.items():
        if number:
            yield FunnelRow("records", "skipped", kind, number, records)
    yield FunnelRow("records", "kept", "pages", pages, records)


def _pages(recipe: Recipe, counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    read = counts.get("pages.read", 0)
    finished = "pages.kept" in counts  # after `clean` alone, job 2's rules have no row
    yield FunnelRow("pages", "read", "pages read", read, read)
    shown = set()
    for stage, rule in recipe.applied_rules():
        if drops_pages(rule) and rule.name not in shown:
            name = f"pages.dropped.{rule.name}"  # of both jobs, for a rule of two stages
            if not recipe.find(type(rule)) and not counts.get(name):
                continue
            if finished or name in counts or stage not in ("corpus", "final"):
                shown.add(rule.name)
                yield FunnelRow("pages", "dropped", rule.name, counts.get(name, 0), read)
    for name in (KNOWN_URL, TAKEDOWN):
        if left_out := counts.get(f"pages.dropped.{name}"):
            yield FunnelRow("pages", "dropped", name, left_out, read)
    if finished:
        yield FunnelRow("pages", "kept", "pages kept", counts["pages.kept"], read)
    else:
        yield FunnelRow("pages", "kept", "pages left for dedup", counts.get("pages.cleaned", 0), read)
    if len(recipe.languages) > 1 and finished:
        pages = languages_with_pages(counts)
        pages |= dict.fromkeys(empty_languages(recipe, pages), 0)
        largest_first = sorted(pages.items(), key=lambda item: (-item[1], item[0]))
        named = len(pages) if len(pages) <= _MOST_LANGUAGES else _MOST_LANGUAGES - 1
        for language, number in largest_first[:named]:
            yield FunnelRow("pages", "part", f"of these in {language}", number, read)
        if others := largest_first[named:]:
            number = sum(number for _, number in others)
            yield FunnelRow("pages", "part", f"of these in {len(others)} other languages", number, read)
    if "pages.validation" in counts:
        yield FunnelRow("pages", "part", "of these in validation", counts["pages.validation"], read)


def _lines(recipe: Recipe, counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    read = counts.get("lines.read", 0)
    yield FunnelRow("lines", "read", "lines read (pages that reached the line rules)", read, read)
    for rule in (*recipe.read, *recipe.lines, *recipe.cleaned):
        if not isinstance(rule, LineRule) or isinstance(rule, BodyLines):
            continue
        if rule.edits:
            yield FunnelRow("lines", "changed", rule.name, counts.get(f"lines.edited.{rule.name}", 0), read)
        else:
            yield FunnelRow("lines", "dropped", rule.name, counts.get(f"lines.dropped.{rule.name}", 0), read)
    yield FunnelRow("lines", "kept", "lines left", counts.get("lines.left", 0), read)


def _units(recipe: Recipe, counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    if "units.newest" not in counts or not recipe.find(RepeatedSpan):
        return
    newest, units = counts["units.newest"], unit_name(recipe)
    yield FunnelRow("units", "read", f"{units} (newest page of each URL)", newest, newest)
    for rule in (RepeatedSpan.name, *(each.name for each in recipe.final if isinstance(each, PageRule))):
        yield FunnelRow("units", "dropped", rule, counts.get(f"units.dropped.{rule}", 0), newest)
    yield FunnelRow("units", "kept", f"{units} kept", counts.get("units.kept", 0), newest)


def _spans(counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    """Yields the rows of spans that known corpora have, and of repeated spans, if the recipe keeps exactly one copy of
    each span: all spans, and the exceptions.
    """
    if known := counts.get("spans.known", 0):
        yield FunnelRow("spans", "read", "spans that a known corpus has (no copy stays)", known, known)
    repeated = counts.get("spans.repeated", 0)
    if not repeated:
        return
    yield FunnelRow("spans", "read", "repeated spans (one copy of each stays)", repeated, repeated)
    exceptions = {
        "copy on a page that was dropped": repeated - counts.get("spans.kept", 0),
        "a second copy stays": counts.get("spans.doubled", 0),
        "removal joined a second copy": counts.get("spans.joined", 0),
    }
    for name, number in exceptions.items():
        yield FunnelRow("spans", "part", name, number, repeated)


def _bytes(counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    read, kept = counts.get("bytes.read", 0), counts.get("bytes.kept", counts.get("bytes.cleaned", 0))
    yield FunnelRow("bytes", "read", "bytes of text read", read, read)
    yield FunnelRow("bytes", "kept", "bytes of text kept", kept, read)


def _damage(counts: Mapping[str, int]) -> Iterator[FunnelRow]:
    for kind in DAMAGE:
        if number := counts.get(f"damage.{kind}"):
            yield FunnelRow("damage", "damage", f"damage: {kind}", number)


@dataclass(frozen=True)
class LanguageFunnel:
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
        """The rule that dropped the most pages, and their number; None where no page was dropped."""
        return max(self.dropped.items(), key=lambda item: item[1], default=None)

    @property
    def why_empty(self) -> str:
        """The reason why no page of the language was kept, in words."""
        if not self.most:
            return f"no page was detected as {self.title}"
        rule, number = self.most
        pages = f"all {self.detected:,} pages" if self.detected > 1 else "the only page"
        words = f"{pages} detected as {self.title} {'were' if self.detected > 1 else 'was'} dropped"
        return f"{words} by {rule}" if number == self.detected else f"{words}; {rule} took most, {number:,}"


def language_funnels(recipe: Recipe, counts: Mapping[str, int]) -> list[LanguageFunnel]:
    """Returns the pages of each language that the recipe keeps, those with the most pages first.

    Args:
        recipe: the recipe of the job.
        counts: the counters of a whole corpus (`counts` of its manifest). Those of earlier versions have no drops by
            language.
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
    """Returns the languages of a recipe without a page, each with the reason; last, all that were not detected.

    Takes the arguments of `language_funnels`.
    """
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

    The languages of a preset, such as all that `mc4` has, were not asked for one by one: none of them is missed.
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
    if not counts.get("pages.kept" if finished else "pages.cleaned"):
        words = _all_dropped(rows)
        lost = _why_lost(each for each in language_funnels(recipe, counts) if each.language in missed)
        words = "; ".join(filter(None, [words, *(lost if finished else ())]))
    else:
        words = _why_missed(recipe, counts, missed) if finished and missed else ""
    if not words:
        return ""
    line_rule = recipe.find(NoTerminalPunctuation) or recipe.find(FewWords)
    other = line_rule and ({*scripts_of(missed)}.difference(line_rule.scripts) or _lost_lines(rows))
    fits = (
        "; text with other sentence marks, or without blanks between words, needs the recipe c4 with its language in "
        "--languages, or mc4"
    )
    return f"{words}{fits if other else ''}; see what the rules ask for with: c4pipe recipes {recipe.name}"


_MOST_NAMED = 8  # languages in a sentence
_MOST_REASONS = 3


def _why_missed(recipe: Recipe, counts: Mapping[str, int], missed: Sequence[str]) -> str:
    """Returns which wanted languages have no page, and why."""
    funnels = [each for each in language_funnels(recipe, counts) if each.language in missed]
    unseen = [each.language for each in funnels if not each.most]
    words = f"no page was kept in {_several(missed)}"
    if unseen and drops_by_language(counts):  # else of an earlier version, which did not count these drops
        words += f": no page was detected as {'it' if len(missed) == 1 else _several(unseen, 'or')}"
    return "; ".join([words, *_why_lost(funnels)])


def _why_lost(funnels: Iterable[LanguageFunnel]) -> list[str]:
    """Returns why languages have no page though some were detected, in a few sentences."""
    lost = [each.why_empty for each in funnels if each.most and not each.kept]
    named = lost if len(lost) <= _MOST_REASONS else lost[: _MOST_REASONS - 1]
    others = len(lost) - len(named)
    return [*named, *([f"all pages of {others} other languages were dropped, as report.html says"] if others else [])]


def _several(languages: Sequence[str], last: str = "and") -> str:
    """Returns the names of languages in a sentence, with their codes: the first ones of many, and how many more."""
    names = [LanguageFunnel(each, {}, 0).title for each in languages]
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} other languages"]
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def _all_dropped(rows: Sequence[FunnelRow]) -> str:
    """Returns which rules dropped the most pages and the last page; "" where no page was read.

    Where the pages had too few sentences, the line rule that dropped the most of their lines is named, too.
    """
    dropped = [row for row in rows if row.section == "pages" and row.kind == "dropped" and row.number]
    if not dropped:
        return ""
    most, last = max(dropped, key=lambda row: row.number), dropped[-1]
    read = format_count(rows[0].whole, "page")
    words = f"no page was kept: of {read}, the rule {most.name} dropped most, {most.number:,}"
    if most.name in (FewSentences.name, Empty.name) and (cause := _most_lines(rows)):
        words += f", after {cause.name} dropped {cause.number:,} of {format_count(cause.whole, 'line')}"
    return words if last is most else f"{words}, and {last.name} the last {last.number:,}"


def _most_lines(rows: Iterable[FunnelRow]) -> FunnelRow | None:
    """Returns the row of the rule that dropped the most lines, or None."""
    dropped = [row for row in rows if row.section == "lines" and row.kind == "dropped" and row.number]
    return max(dropped, key=lambda row: row.number, default=None)


def _lost_lines(rows: Sequence[FunnelRow]) -> bool:
    """Tells whether one rule dropped nearly all lines."""
    most = _most_lines(rows)
    return most is not None and most.number > 0.9 * most.whole
