"""The report of a corpus: one page in HTML that loads nothing from elsewhere, and its sections.

Its only script sorts the table of languages. Without scripts, the page shows the same.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from c4pipe.clean.examples import PASSED
from c4pipe.corpus.funnel import (
    FunnelRow,
    LanguageFunnel,
    empty_languages,
    empty_reasons,
    empty_warning,
    funnel_rows,
    language_funnels,
    percent,
    unit_name,
)
from c4pipe.corpus.manifest import Input, Manifest, sum_inputs
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan, StaleCapture
from c4pipe.filters.language import Language
from c4pipe.io.words import URL_SIZE, format_size, short, visible
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.data import TOGETHER, OptOuts, ReportData
from c4pipe.report.profile import Profile, quantiles
from c4pipe.report.rendering import (
    Bar,
    Block,
    Columns,
    Examples,
    LanguageRow,
    LanguageTable,
    Lines,
    Paragraph,
    Row,
    Section,
    Table,
    TextTable,
    funnel_chart,
    render,
    share_bar,
    share_table,
    sort_script_digest,
)
from c4pipe.text.languages import UNKNOWN, drops_by_language, language_name
from c4pipe.wet.damage import DAMAGE
from c4pipe.wet.extraction import describe_extraction
from c4pipe.wet.warc import SKIPPED

NAME = "report.html"

# Web pages decide how long these lists are. With these limits of rows, a report stays below 2 MB.
_DOMAINS, _MONTHS, _MISSING, _LANGUAGES, _PAGES, _INPUTS_SIZE = 30, 60, 20, 110, 30, 300_000
_WORDING_SIZE = 600  # characters of a recipe's description, and of a rule's
_NAME_SIZE = 40  # characters of a language's code
_LANGUAGE_ROWS = 2000
_RULE_HEAD = "rule that took most"
_LANGUAGE_HEADS = ("pages", "% of pages"), ("detected", "dropped", _RULE_HEAD, "% of detected")
_SHARES = {"5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95}
_COUNTERS = {
    "pages.dropped": "pages dropped",
    "lines.dropped": "lines dropped",
    "lines.edited": "lines changed",
    "pages.edited": "pages changed",
}

Pages = Sequence[Mapping[str, Any]]
"""Pages as `report.json` has them."""


@dataclass(frozen=True)
class _Report:
    """The input of a report: the arguments of `render_report`, and the recipe of the corpus."""

    manifest: Manifest
    data: ReportData
    tokens: Mapping[str, Mapping[str, Mapping[str, int]]]
    opt_outs: OptOuts | None
    recipe: Recipe

    @cached_property
    def drops(self) -> Mapping[str, Mapping[str, int]]:
        """The dropped pages by language and rule; empty for a corpus of an earlier version, which has no such count."""
        return drops_by_language(self.manifest["counts"])

    @property
    def profile(self) -> Profile:
        """The counts and pages of the corpus."""
        return self.data["profile"]

    def count(self, name: str) -> int:
        """Returns a counter of the manifest; 0 if it has no counter of this name."""
        return self.manifest["counts"].get(name, 0)


def render_report(
    manifest: Manifest,
    data: ReportData,
    tokens: Mapping[str, Mapping[str, Mapping[str, int]]] = MappingProxyType({}),
    opt_outs: OptOuts | None = None,
) -> str:
    """Returns the report of a corpus as HTML. The same manifest and data give the same text.

    Args:
        manifest: the corpus' manifest.
        data: the content of its `report.json`.
        tokens: the `totals` of its `tokens.json`, by language and split; empty if its tokens are not counted.
        opt_outs: the content of its `opt_outs.json`; None where its opt-outs are not counted.
    """
    recipe = Recipe.from_json(manifest["recipe"])
    report = _Report(manifest, data, tokens, opt_outs, recipe)
    return render(
        NAME,
        title=f"Report: C4 by recipe {recipe.name}",
        description=short(recipe.description, _WORDING_SIZE),
        facts=_facts(report),
        sections=_sections(report),
        **({"script": sort_script_digest()} if len(recipe.languages) > 1 else {}),
    )


def _facts(report: _Report) -> dict[str, str]:
    kept = report.count("pages.kept")
    return {
        "pages kept": f"{kept:,}",
        "of pages read": f"{percent(kept, report.count('pages.read'))} %",
        "text kept": _size(report.count("bytes.kept")),
        "languages": f"{len({name.partition('/')[0] for name in report.profile['pages']}):,}",
        f"{report.recipe.input_format} files": f"{sum_inputs(report.manifest).files:,}",
    }


def _size(count: int) -> str:
    """Returns a number of bytes with its unit."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:,.1f} {unit}"
    return f"{count} bytes"


def _sections(report: _Report) -> list[Section]:
    """Returns the sections that have something to show, in their order."""
    funnel = funnel_rows(report.recipe, report.manifest["counts"])
    warning = empty_warning(report.recipe, report.manifest["counts"])
    warnings = [Paragraph(f"Warning: {warning}.")] if warning else []
    sections = [
        Section(
            "pages", "Pages", [*warnings, *_record_funnel(funnel), _page_funnel(report, funnel), _byte_funnel(funnel)]
        ),
        Section("lines", "Lines and sentences", [_line_funnel(report, funnel), *_unit_funnel(report, funnel)]),
        Section("examples", "Examples for each rule", list(_examples_by_rule(report))),
        Section("passed", "Pages that just passed", list(_borderline_examples(report))),
        Section("languages", "Languages", list(_languages(report))),
        Section("dropped-languages", "Languages that were dropped", list(_dropped_languages(report))),
        Section("lengths", "Lengths", list(_lengths(report))),
        Section("tokens", "Tokens", list(_tokens(report))),
        Section("domains", "Domains", list(_domains(report))),
        Section("opt-outs", "Opt-outs", list(_opt_outs(report))),
        Section("duplicates", "Duplicates", list(_duplicates(report))),
        Section("months", "Capture dates", list(_months(report))),
        Section("inputs", "Inputs", list(_inputs(report))),
        Section("recipe", "Recipe", [_rules(report)]),
        Section("sample", "Some pages", list(_corpus_pages(report))),
    ]
    return [section for section in sections if section.blocks]


def _page_funnel(report: _Report, funnel: Iterable[FunnelRow]) -> Table:
    rows = [row for row in funnel if row.section == "pages" and row.kind != "part"]
    return funnel_chart("A page counts for the first rule that drops it.", "pages", rows, _rule_notes(report))


def _record_funnel(funnel: Iterable[FunnelRow]) -> Iterator[Table]:
    rows = [row for row in funnel if row.section == "records"]
    if rows:
        notes = {kind: (meaning, "") for kind, meaning in SKIPPED.items()}
        yield funnel_chart("The records of the WARC files", "records", rows, notes)


def _line_funnel(report: _Report, funnel: Iterable[FunnelRow]) -> Table:
    rows = [row for row in funnel if row.section == "lines"]
    return funnel_chart("Lines", "lines", rows, _rule_notes(report))


def _unit_funnel(report: _Report, funnel: Sequence[FunnelRow]) -> Iterator[Table]:
    if report.count("units.newest"):
        units = unit_name(report.recipe)
        yield funnel_chart(units.capitalize(), units, [row for row in funnel if row.section == "units"], {})
    if report.count("spans.repeated") or report.count("spans.known"):
        yield funnel_chart("Repeated spans", "spans", [row for row in funnel if row.section == "spans"], {})


def _byte_funnel(funnel: Iterable[FunnelRow]) -> Table:
    return funnel_chart("Bytes of text", "bytes", [row for row in funnel if row.section == "bytes"], {})


def _rule_notes(report: _Report) -> dict[str, tuple[str, str]]:
    """Returns for each rule a sentence about it, and the link to its examples (if it has examples)."""
    return {
        rule.name: (
            short(report.recipe.sentence(rule), _WORDING_SIZE),
            _examples_id(rule.name) if report.data["examples"].get(rule.name) else "",
        )
        for _, rule in report.recipe.applied_rules()
    }


def _domains(report: _Report) -> Iterator[Block]:
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


def _duplicates(report: _Report) -> Iterator[Block]:
    units = unit_name(report.recipe)
    read, newest = report.count("pages.read"), report.count("units.newest")
    numbers = [("pages that are older captures of a URL", f"pages.dropped.{StaleCapture.name}", read, "pages read")]
    if report.recipe.find(NearDuplicate):
        numbers += [
            ("pages that are nearly the same as another", f"pages.dropped.{NearDuplicate.name}", read, "pages read"),
        ]
    if report.recipe.find(RepeatedSpan):
        numbers += [
            ("pages that lost repeated text", f"pages.edited.{RepeatedSpan.name}", read, "pages read"),
            (
                f"{units} that were removed",
                f"units.dropped.{RepeatedSpan.name}",
                newest,
                f"{units} (newest page of each URL)",
            ),
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
    if report.data["repeats"]:
        yield TextTable(
            f"The most repeated {units}, as written where they were removed",
            ("text", "times", "hosts it was removed from"),
            [(each["text"], f"{each['times']:,}", f"{each['domains']:,}") for each in report.data["repeats"]],
            numbers=True,
        )


def _clusters(report: _Report) -> Iterator[TextTable]:
    near, hosts = report.data.get("near_duplicates"), report.data.get("copied_hosts")
    if near:
        yield TextTable(
            "The largest clusters of pages that are nearly the same",
            ("page that stays", "pages"),
            [(short(each["url"], 200), f"{each['pages']:,}") for each in near],
            numbers=True,
        )
    if hosts:
        yield TextTable(
            "Hosts whose pages are dropped, and hosts whose pages stay in their place",
            ("dropped \u2192 stays", "pages"),
            [(f"{_host(each['host'])} \u2192 {_host(each['of'])}", f"{each['pages']:,}") for each in hosts],
            numbers=True,
        )


def _months(report: _Report) -> Iterator[Table]:
    of_report = report.profile["months"]
    if report.recipe.input_format == "text":  # a document without a timestamp has the earliest possible timestamp
        of_report = {"none or 1970-01" if name == "1970-01" else name: pages for name, pages in of_report.items()}
    months = sorted(of_report.items())
    shown = months[-_MONTHS:]
    if len(months) > len(shown):
        shown = [(f"before {shown[0][0]}", sum(n for _, n in months[:-_MONTHS])), *shown]
    if shown:
        yield share_table("Pages of the corpus by month", ("month", "pages"), shown, report.count("pages.kept"))


def _inputs(report: _Report) -> Iterator[Block]:
    inputs, missing = report.manifest["inputs"], report.manifest["missing"]
    kind, sums = report.recipe.input_format, sum_inputs(report.manifest)
    yield Paragraph(f"{sums.files:,} {kind} files of {sums.bytes:,} bytes in total.")
    if parts := report.manifest.get("parts"):
        yield TextTable(
            "The parts of the corpus, each beside the earlier ones; _parts/*/manifest.json list their files",
            ("part", f"{kind} files", "bytes of these files", "pages of the part"),
            [
                (str(number), *(f"{count:,}" for count in (part["inputs"], part["input_bytes"], part["pages"])))
                for number, part in enumerate(parts, 1)
            ],
        )
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
            f"{len(missing):,} more {kind} files could not be fetched, or have no record{first}",
            ("file", "error"),
            [(short(file["name"], 200), short(file["error"], 300)) for file in missing[:_MISSING]],
        )


def _input_list(inputs: Sequence[Input], kind: str) -> Iterator[Lines]:
    """Yields the names of the inputs with their bytes: all inputs, unless there are too many for the page."""
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


def _rules(report: _Report) -> TextTable:
    recipe = report.recipe
    rows = [(rule.name, short(recipe.sentence(rule), _WORDING_SIZE), rule.source) for _, rule in recipe.rules()]
    caption = f"The rules of {recipe.name} in their order (fingerprint {report.manifest['fingerprint']})"
    return TextTable(caption, ("rule", "what it does", "source"), rows)


def _examples_id(rule: str) -> str:
    """Returns the `id` of a rule's examples."""
    return f"examples-{rule}"


def _examples_by_rule(report: _Report) -> Iterator[Block]:
    """Yields example pages that each rule dropped or changed, in the recipe's order; nothing if there are none."""
    examples = report.data["examples"]
    rules = dict.fromkeys(rule.name for _, rule in report.recipe.applied_rules() if examples.get(rule.name))
    if rules:
        yield Paragraph(
            "For each rule, excerpts of a random sample of its pages: a hash of the URL draws them, so each run shows "
            "the same ones. The text that decides is marked. The command below a page shows what each rule decides "
            "about it, in the folder of the corpus."
        )
    for rule in rules:
        numbers = ((report.count(f"{name}.{rule}"), words) for name, words in _COUNTERS.items())
        count = next((f"{number:,} {words}" for number, words in numbers if number), "")
        yield _examples(_examples_id(rule), rule, examples[rule], count)


def _borderline_examples(report: _Report) -> Iterator[Examples]:
    """Yields, for some rules, the pages that the rule kept but came closest to dropping."""
    unsure = [page for page in report.profile["unsure"] if page["language"] != UNKNOWN]
    if unsure and report.recipe.find(Language):
        pages = [
            _with_fact(page, f"{page['language']}, with probability {page['language_probability']}") for page in unsure
        ]
        yield _examples("passed-language", Language.name, pages, "the lowest probabilities")
    for name, pages_of_rule in report.data["examples"].items():
        if name.startswith(PASSED):
            rule = name.removeprefix(PASSED)
            yield _examples(f"passed-{rule}", rule, pages_of_rule, "exactly at the limit")


def _corpus_pages(report: _Report) -> Iterator[Examples]:
    """Yields some pages of the corpus."""
    pages = [_with_fact(page, page["language"]) for page in report.profile["sample"][:_PAGES]]
    if pages:
        yield _examples("pages-sample", "Pages of the corpus", pages, "a random sample of each language")


def _with_fact(page: Mapping[str, Any], fact: str) -> dict[str, Any]:
    return {**page, "fact": fact}


def _examples(name: str, title: str, pages: Pages, note: str) -> Examples:
    shown = [{**page, "command": _explain_command(page["url"])} for page in pages]
    return Examples(name, title, ", ".join(filter(None, (note, f"{len(pages)} shown"))), shown)


def _explain_command(url: str) -> str:
    """Returns the command that explains a page of the corpus; "" where the URL is empty, cut, or can't be shown."""
    if not url or len(url) >= URL_SIZE or visible(url) != url:
        return ""
    return f"c4pipe explain . --url {shlex.quote(url)}"


def _languages(report: _Report) -> Iterator[Block]:
    """Yields the table of languages, and why languages have no page."""
    counts, recipe = report.manifest["counts"], report.recipe
    funnels = language_funnels(recipe, counts)
    wanted = empty_languages(recipe, ())
    shown = [each for each in funnels if each.detected or each.language in wanted][:_LANGUAGE_ROWS]
    if not shown:
        return
    rows = [_language_row(report, each, number < _LANGUAGES) for number, each in enumerate(shown)]
    sorts = "A click on a head sorts the table. " if len(recipe.languages) > 1 else ""
    opens = (
        "A click on a language shows which rules took its pages. Detected are the pages that the detector took for the "
        "language; it never looked at the pages that were dropped before."
    )
    if words := sorts + (opens if report.drops else ""):
        yield Paragraph(words)
    heads = "language", *_LANGUAGE_HEADS[0], *(_LANGUAGE_HEADS[1] if report.drops else ()), "text"
    heads = (*heads, *(["tokens"] if report.tokens else ()))
    yield LanguageTable(
        "Pages of the corpus by language", heads, ("language", _RULE_HEAD), rows, list(_language_ends(report))
    )
    if len(shown) < sum(1 for each in funnels if each.detected):
        yield Paragraph(f"These are the {len(shown):,} languages with most pages; manifest.json has the others.")
    if reasons := empty_reasons(recipe, counts):
        yield TextTable("Languages without a page", ("language", "why"), reasons[-_LANGUAGE_ROWS:])


def _language_row(report: _Report, funnel: LanguageFunnel, has_funnel: bool) -> LanguageRow:
    """Returns the row of a language, and with it the table that its name opens, if some of its pages were dropped."""
    name = language_name(funnel.language)
    size = report.profile["language_bytes"].get(funnel.language, 0)
    tokens = sum(each["tokens"] for each in report.tokens.get(funnel.language, {}).values())
    chart = _language_chart(report, funnel) if has_funnel and funnel.most else None
    return LanguageRow(name, funnel.language, _language_cells(report, funnel, size, tokens), chart)


def _language_cells(
    report: _Report, funnel: LanguageFunnel, size: int, tokens: int
) -> tuple[tuple[str, float | None], ...]:
    kept, dropped = report.count("pages.kept"), funnel.detected - funnel.kept
    rule, most = funnel.most or ("", 0)
    of_drops: tuple[tuple[str, float | None], ...] = (
        (f"{funnel.detected:,}", funnel.detected),
        (f"{dropped:,}", dropped),
        (rule, None),
        (percent(most, funnel.detected), most / funnel.detected if funnel.detected else 0),
    )
    return (
        (f"{funnel.kept:,}", funnel.kept),
        (percent(funnel.kept, kept), funnel.kept),
        *(of_drops if report.drops else ()),
        (format_size(size), size),
        *([(f"{tokens:,}", tokens)] if report.tokens else ()),
    )


def _language_chart(report: _Report, funnel: LanguageFunnel) -> Table:
    """Returns the funnel of one language: the pages that are left after each rule."""
    whole = left = funnel.detected
    rows, notes = [FunnelRow("pages", "read", "detected", whole, whole)], {}
    for rule, number in funnel.dropped.items():
        left -= number
        rows.append(FunnelRow("pages", "dropped", rule, number, whole))
        notes[rule] = f"{left:,} left", ""
    rows.append(FunnelRow("pages", "kept", "kept", funnel.kept, whole))
    validation = report.profile["pages"].get(f"{funnel.language}/validation", 0)
    notes["kept"] = f"{validation:,} of these in validation", ""
    return funnel_chart(funnel.title, "pages", rows, notes)


def _language_ends(report: _Report) -> Iterator[LanguageRow]:
    """Yields the rows behind the languages: pages in other languages and in none, and all pages together."""
    counts, wanted = report.manifest["counts"], report.recipe.languages
    prefix = "pages.dropped."
    dropped = Counter({name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)})
    others, known = Counter[str](), Counter[str]()
    for language, rules in report.drops.items():
        known.update(rules)
        if language not in wanted:
            others.update(rules)
    parts = {"other languages": others, "dropped before the language was known": dropped - known}
    for name, rules in parts.items() if report.drops else ():
        if rules.total():
            yield LanguageRow(name, "", _language_cells(report, LanguageFunnel("", rules, 0), 0, 0))
    together = LanguageFunnel("", dropped, report.count("pages.kept"))
    tokens = sum(each["tokens"] for splits in report.tokens.values() for each in splits.values())
    cells = _language_cells(report, together, report.count("bytes.kept"), tokens)
    yield LanguageRow("together", "", cells, total=True)


def _lengths(report: _Report) -> Iterator[Block]:
    """Yields bytes and quantiles of lengths by language, and histograms."""
    yield from _quantiles(report)
    tables = [
        ("Pages by number of characters", ("characters", "pages"), report.profile["characters"]),
        ("Pages by number of lines", ("lines", "pages"), report.profile["lines"]),
        ("Lines by number of characters", ("characters", "lines"), report.profile["line_characters"]),
    ]
    if report.count("pages.kept"):
        yield Columns(
            [share_table(caption, heads, _ranges(counts), sum(counts.values())) for caption, heads, counts in tables]
        )


def _ranges(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns the name and count of each range of a histogram, from its least power of two to its largest."""
    powers = sorted(map(int, counts))
    ranges, power = [], powers[0] if powers else 1
    while powers and power <= powers[-1]:
        name = f"{power:,}" if power <= 1 else f"{power:,} to {2 * power - 1:,}"
        ranges.append((name, counts.get(str(power), 0)))
        power = max(1, 2 * power)
    return ranges


def _dropped_languages(report: _Report) -> Iterator[Block]:
    """Yields the languages of the pages that the rule `language` dropped."""
    dropped = list(report.data["dropped_languages"].items())[:_LANGUAGES]
    if not dropped:
        return
    total = sum(report.data["dropped_languages"].values())
    kept = set(report.recipe.languages)
    rows = [
        Row(
            short(language, _NAME_SIZE),
            (f"{number:,}", percent(number, total)),
            share_bar(number, total, "dropped"),
            note="the detector was not sure enough" if language in kept else "",
        )
        for language, number in dropped
    ]
    caption = "Pages that the rule language dropped, by the language that the detector took them for"
    yield Table(caption, ("language", "pages", "%"), rows, chart=f"of {total:,} pages")


def _quantiles(report: _Report) -> Iterator[Table]:
    """Yields bytes, and quantiles of the number of characters, by language."""
    by_language: dict[str, Counter[int]] = {}
    for name, pages in report.profile["lengths"].items():
        language, _, first = name.rpartition("/")
        by_language.setdefault(language, Counter())[int(first)] += pages
    largest_first = sorted(by_language.items(), key=lambda item: (-item[1].total(), item[0]))
    named = {short(language, _NAME_SIZE): counts for language, counts in largest_first[:_LANGUAGES]}
    if len(by_language) > 1:
        named["together"] = sum(by_language.values(), Counter())
    sizes = report.profile["language_bytes"]
    rows = []
    for language, counts in named.items():
        size = sum(sizes.values()) if language == "together" else sizes.get(language, 0)
        found = [f"{length:,}" for length in quantiles(counts, list(_SHARES.values()))]
        rows.append(Row(language, (format_size(size), *found), total=language == "together"))
    if rows:
        caption = "Bytes of text, and characters of a page: 5 %, 25 %, ... of the pages have at most that many (± 3 %)"
        yield Table(caption, ("language", "text", *_SHARES), rows)


def _tokens(report: _Report) -> Iterator[Block]:
    """Yields the tokens by language, where they are counted."""
    rows = []
    for language, splits in list(report.tokens.items())[:_LANGUAGES]:
        documents = sum(each["documents"] for each in splits.values())
        count = sum(each["tokens"] for each in splits.values())
        size = report.profile["language_bytes"].get(language, 0)
        a_document, a_token = (
            (f"{count / documents:,.0f}" if documents else "-"),
            (f"{size / count:.2f}" if count else "-"),
        )
        rows.append(Row(short(language, _NAME_SIZE), (f"{documents:,}", f"{count:,}", a_document, a_token)))
    if rows:
        heads = ("language", "documents", "tokens", "tokens a document", "bytes a token")
        yield Table("Tokens, with one for the end of each document", heads, rows)
    elif report.count("pages.kept"):
        yield Paragraph(
            "Not counted. c4pipe tokens . --vocab VOCABULARY counts them, and then c4pipe report . shows them here, "
            "both in the folder of the corpus."
        )


def _opt_outs(report: _Report) -> Iterator[Block]:
    """Yields the refused pages and bytes, and the hosts with the most refused pages; nothing if opt-outs are not
    counted.
    """
    if not (found := report.opt_outs):
        return
    refused, hosts = found["refused"], found["hosts"]
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(found["lists"].items()))
    yield Paragraph(
        "Pages of the corpus that the lists given to `c4pipe report --opt-outs` would refuse. A page can count for "
        f"several reasons. Lists, by SHA-256: {digests}."
    )
    heads = ("pages", "% of pages", "bytes of text", "% of bytes")
    rows = [_row(report, name, each["pages"], each["bytes"], name == TOGETHER) for name, each in refused.items()]
    yield Table("Pages that would be refused", ("reason", *heads), rows)
    if hosts:
        cut = "; the numbers are lower bounds" if found["hosts_cut"] else ""
        of_hosts = [_row(report, each["host"], each["pages"], each["bytes"]) for each in hosts]
        yield Table(f"The hosts with most of these pages{cut}", ("host", *heads), of_hosts)


def _row(report: _Report, name: str, pages: int, size: int, total: bool = False) -> Row:
    kept, kept_bytes = report.count("pages.kept"), report.count("bytes.kept")
    cells = f"{pages:,}", percent(pages, kept), f"{size:,}", percent(size, kept_bytes)
    return Row(name, cells, total=total)
