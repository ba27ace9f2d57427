"""The sections of a report, as data: what is shown of a manifest and of `report.json`, in which words and order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from c4pipe.display.excerpts import short
from c4pipe.recipes.wording import describe_step
from c4pipe.report import report_examples
from c4pipe.report.blocks import (
    Bar,
    Block,
    Lines,
    Paragraph,
    Row,
    Section,
    Table,
    TextTable,
    funnel_chart,
    share_bar,
    share_table,
)
from c4pipe.report.funnel import FunnelRow, funnel_rows, percent, unit_name
from c4pipe.report.report_input import ReportInput
from c4pipe.report.report_languages import dropped_languages, languages, lengths, tokens
from c4pipe.report.report_opt_outs import opt_outs
from c4pipe.wet.damage import DAMAGE
from c4pipe.wet.html_text import describe_extraction
from c4pipe.wet.warc_pages import SKIPPED

WORDING_SIZE = 600
"""Characters that are shown of a recipe's description and of a rule's."""

# Web pages decide how long these lists are. With at most so many rows of each, a report stays below 2 MB.
_DOMAINS, _MONTHS, _MISSING, _INPUTS_SIZE = 30, 60, 20, 300_000


def report_sections(report: ReportInput) -> list[Section]:
    """Returns the sections that have something to show, in their order."""
    recipe, examples = report.recipe, report.examples
    funnel = funnel_rows(recipe, report.manifest["counts"])
    by_rule = report_examples.examples_by_rule(recipe, report.manifest["counts"], examples)
    borderline = report_examples.borderline_examples(recipe, report.profile, examples)
    sections = [
        Section("pages", "Pages", [*_record_funnel(funnel), _page_funnel(report, funnel), _byte_funnel(funnel)]),
        Section("lines", "Lines and sentences", [_line_funnel(report, funnel), *_unit_funnel(report, funnel)]),
        Section("examples", "Examples for each rule", list(by_rule)),
        Section("passed", "Pages that just passed", list(borderline)),
        Section("languages", "Languages", list(languages(report))),
        Section("dropped-languages", "Languages that were dropped", list(dropped_languages(report))),
        Section("lengths", "Lengths", list(lengths(report))),
        Section("tokens", "Tokens", list(tokens(report))),
        Section("domains", "Domains", list(_domains(report))),
        Section("opt-outs", "Opt-outs", list(opt_outs(report))),
        Section("duplicates", "Duplicates", list(_duplicates(report))),
        Section("months", "Capture dates", list(_months(report))),
        Section("inputs", "Inputs", list(_inputs(report))),
        Section("recipe", "Recipe", [_rules(report)]),
        Section("sample", "Some pages", list(report_examples.corpus_pages(report.profile))),
    ]
    return [section for section in sections if section.blocks]


def _page_funnel(report: ReportInput, funnel: Iterable[FunnelRow]) -> Table:
    rows = [row for row in funnel if row.section == "pages" and row.kind != "part"]
    return funnel_chart("A page counts for the first rule that drops it.", "pages", rows, _rule_notes(report))


def _record_funnel(funnel: Iterable[FunnelRow]) -> Iterator[Table]:
    rows = [row for row in funnel if row.section == "records"]
    if rows:
        notes = {kind: (meaning, "") for kind, meaning in SKIPPED.items()}
        yield funnel_chart("The records of the WARC files", "records", rows, notes)


def _line_funnel(report: ReportInput, funnel: Iterable[FunnelRow]) -> Table:
    rows = [row for row in funnel if row.section == "lines"]
    return funnel_chart("Lines", "lines", rows, _rule_notes(report))


def _unit_funnel(report: ReportInput, funnel: Sequence[FunnelRow]) -> Iterator[Table]:
    if report.count("units.newest"):
        units = unit_name(report.recipe)
        yield funnel_chart(units.capitalize(), units, [row for row in funnel if row.section == "units"], {})
    if report.count("spans.repeated"):
        yield funnel_chart("Repeated spans", "spans", [row for row in funnel if row.section == "spans"], {})


def _byte_funnel(funnel: Iterable[FunnelRow]) -> Table:
    return funnel_chart("Bytes of text", "bytes", [row for row in funnel if row.section == "bytes"], {})


def _rule_notes(report: ReportInput) -> dict[str, tuple[str, str]]:
    """Returns what each rule does, and the link to its examples, if it has some."""
    return {
        step.rule: (
            short(describe_step(step), WORDING_SIZE),
            report_examples.link_to(step.rule) if report.examples.get(step.rule) else "",
        )
        for _, step in report.recipe.applied_steps()
    }


def _domains(report: ReportInput) -> Iterator[Block]:
    pages, sizes = report.profile["domain_pages"], report.profile["domain_bytes"]
    if not pages:
        return
    cut = report.profile["domains_cut"]
    yield Paragraph(
        f"The pages come from {'at least ' if cut else ''}{report.profile['domains']:,} hosts (without www.)."
    )
    kept, kept_bytes = report.count("pages.kept"), report.count("bytes.kept")
    largest_first = sorted(pages, key=lambda host: (-pages[host], host))[:_DOMAINS]
    rows = [
        Row(
            _host(host),
            (f"{pages[host]:,}", percent(pages[host], kept), percent(sizes[host], kept_bytes)),
            share_bar(pages[host], kept),
        )
        for host in largest_first
    ]
    total, total_bytes = sum(pages[host] for host in largest_first), sum(sizes[host] for host in largest_first)
    rows.append(
        Row("together", (f"{total:,}", percent(total, kept), percent(total_bytes, kept_bytes)), None, total=True)
    )
    caption = "The hosts with most pages" + ("; the numbers are lower bounds" if cut else "")
    yield Table(caption, ("host", "pages", "% of pages", "% of bytes"), rows, chart="share")


def _host(name: str) -> str:
    return short(name, 100) or "(none)"


def _duplicates(report: ReportInput) -> Iterator[Block]:
    units = unit_name(report.recipe)
    read, newest = report.count("pages.read"), report.count("units.newest")
    numbers = [("pages that are older captures of a URL", "pages.dropped.stale_capture", read, "pages read")]
    if report.recipe.find("near_duplicate"):
        numbers += [
            ("pages that are nearly the same as another", "pages.dropped.near_duplicate", read, "pages read"),
        ]
    if report.recipe.find("repeated_span"):
        numbers += [
            ("pages that lost repeated text", "pages.edited.repeated_span", read, "pages read"),
            (f"{units} that were removed", "units.dropped.repeated_span", newest, f"{units} (newest page of each URL)"),
        ]
    rows = [
        Row(
            name,
            (f"{report.count(counter):,}", percent(report.count(counter), whole)),
            Bar(report.count(counter) / whole if whole else 0.0, 0.0, "dropped"),
            note=f"of {of}",
        )
        for name, counter, whole, of in numbers
    ]
    yield Table("Duplicates that were removed", ("what", "number", "%"), rows, chart="share")
    yield from _clusters(report)
    if report.repeats:
        yield TextTable(
            f"The most repeated {units}, as written where they were removed",
            ("text", "times", "hosts it was removed from"),
            [(each["text"], f"{each['times']:,}", f"{each['domains']:,}") for each in report.repeats],
            numbers=True,
        )


def _clusters(report: ReportInput) -> Iterator[TextTable]:
    if report.near_duplicates:
        yield TextTable(
            "The largest clusters of pages that are nearly the same",
            ("page that stays", "pages"),
            [(short(each["url"], 200), f"{each['pages']:,}") for each in report.near_duplicates],
            numbers=True,
        )
    if report.copied_hosts:
        yield TextTable(
            "Hosts whose pages are dropped, and hosts whose pages stay in their place",
            ("dropped \u2192 stays", "pages"),
            [
                (f"{_host(each['host'])} \u2192 {_host(each['of'])}", f"{each['pages']:,}")
                for each in report.copied_hosts
            ],
            numbers=True,
        )


def _months(report: ReportInput) -> Iterator[Table]:
    of_report = report.profile["months"]
    if report.recipe.input_format == "text":  # a document without a timestamp has the first one that there is
        of_report = {"none or 1970-01" if name == "1970-01" else name: pages for name, pages in of_report.items()}
    months = sorted(of_report.items())
    shown = months[-_MONTHS:]
    if len(months) > len(shown):
        shown = [(f"before {shown[0][0]}", sum(n for _, n in months[:-_MONTHS])), *shown]
    if shown:
        yield share_table("Pages of the corpus by month", ("month", "pages"), shown, report.count("pages.kept"))


def _inputs(report: ReportInput) -> Iterator[Block]:
    inputs, missing = report.manifest["inputs"], report.manifest["missing"]
    kind = report.recipe.input_format
    yield Paragraph(f"{len(inputs):,} {kind} files of {sum(file['bytes'] for file in inputs):,} bytes in total.")
    if report.recipe.extraction:
        yield Paragraph(f"The text of a page is {describe_extraction(report.recipe.extraction)}.")
    yield from _input_list(inputs, kind)
    damage = [
        Row(kind, (f"{report.count(f'damage.{kind}'):,}",), note=meaning)
        for kind, meaning in DAMAGE.items()
        if report.count(f"damage.{kind}")
    ]
    if damage:
        yield Table("Damage in these files", ("damage", "times"), damage)
    else:
        yield Paragraph("These files have no damage.")
    if missing:
        first = f"; the first {_MISSING}" if len(missing) > _MISSING else ""
        yield TextTable(
            f"{len(missing):,} more {kind} files could not be fetched{first}",
            ("file", "error"),
            [(short(file["name"], 200), short(file["error"], 300)) for file in missing[:_MISSING]],
        )


def _input_list(inputs: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Lines]:
    """Yields the names of the inputs with their bytes: all of them, unless they are more than a page can have."""
    lines, size = [], 0
    for file in inputs:
        lines.append(f"{file['bytes']:>14,}  {file['name']}")
        size += len(lines[-1])
        if size > _INPUTS_SIZE:
            break
    left = len(inputs) - len(lines)
    if left:
        lines.append(f"and {left:,} more, which manifest.json lists")
    if lines:
        yield Lines(
            f"All {kind} files" if not left else f"The first {len(lines) - 1:,} {kind} files", "bytes, name", lines
        )


def _rules(report: ReportInput) -> TextTable:
    rows = [
        (step.rule, short(describe_step(step), WORDING_SIZE), step.definition.source)
        for _, step in report.recipe.steps()
    ]
    caption = f"The rules of {report.recipe.name} in their order (fingerprint {report.manifest['fingerprint']})"
    return TextTable(caption, ("rule", "what it does", "source"), rows)
