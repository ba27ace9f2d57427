"""The funnel of a corpus: the numbers of things read, dropped or changed by each rule, and kept.

Pure rows, made only from a recipe and counts. The terminal, the dataset card and the report each show them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.rule import CorpusRule, LineRule, PageRule, Rule
from c4pipe.io.words import format_count
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.damage import DAMAGE
from c4pipe.wet.warc import SKIPPED

Section = Literal["records", "pages", "lines", "units", "spans", "bytes", "damage"]
Kind = Literal["read", "skipped", "dropped", "changed", "kept", "part", "damage"]


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

    section: Section
    kind: Kind
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
    if finished:
        yield FunnelRow("pages", "kept", "pages kept", counts["pages.kept"], read)
    else:
        yield FunnelRow("pages", "kept", "pages left for dedup", counts.get("pages.cleaned", 0), read)
    if len(recipe.languages) > 1:
        prefix = "pages.kept."
        by_language = [(name.removeprefix(prefix), n) for name, n in counts.items() if name.startswith(prefix) and n]
        for language, number in sorted(by_language, key=lambda item: (-item[1], item[0])):
            yield FunnelRow("pages", "part", f"of these in {language}", number, read)
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
    """Yields the rows of repeated spans, if the recipe keeps exactly one copy of each span: all spans, and the
    exceptions.
    """
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


def nothing_kept(recipe: Recipe, counts: Mapping[str, int]) -> str:
    """Returns a warning that names the rule that dropped the most pages and the rule that dropped the last; "" if any
    stay.

    Args:
        recipe: the recipe of the job.
        counts: the counters of `clean`, or of a whole corpus (`counts` of its manifest).
    """
    rows = [row for row in funnel_rows(recipe, counts) if row.section == "pages"]
    read, kept = rows[0].number, next(row.number for row in rows if row.kind == "kept")
    dropped = [row for row in rows if row.kind == "dropped" and row.number]
    if kept or not dropped:
        return ""
    most, last = max(dropped, key=lambda row: row.number), dropped[-1]
    words = f"no page was kept: of {format_count(read, 'page')}, the rule {most.name} dropped most, {most.number:,}"
    if last is not most:
        words += f", and {last.name} the last {last.number:,}"
    return f"{words}; see what the rules ask for with: c4pipe recipes {recipe.name}"
