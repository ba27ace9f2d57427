"""The report of a corpus: one page in HTML that loads nothing from elsewhere, and its sections.

Its only script sorts the table of languages. Without scripts, the page shows the same.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Any

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
from c4pipe.corpus.labels import counts_by_label, sum_label_tokens
from c4pipe.corpus.manifest import Manifest, sum_inputs
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan, StaleCapture
from c4pipe.filters.rule import CorpusRule
from c4pipe.io.words import URL_SIZE, format_size, short, visible
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.data import TOGETHER, OptOuts, ReportData, reasons_to_show
from c4pipe.report.profile import Profile
from c4pipe.report.rendering import (
    Examples,
    LanguageCells,
    LanguageRow,
    LanguageTable,
    Paragraph,
    ReportBlock,
    ReportSection,
    StepCurve,
    Table,
    TableRow,
    funnel_chart,
    render,
    share_bar,
    sort_script_digest,
)
from c4pipe.text.languages import drops_by_language, language_name
from c4pipe.wet.damage import DAMAGE
from c4pipe.wet.extraction import describe_extraction
from c4pipe.wet.warc import SKIPPED

REPORT_PAGE = "report.html"

# Web pages decide how long these lists are. With these limits of rows, a report stays below 2 MB.
_DOMAINS, _MISSING, _LANGUAGES, _PAGES = 30, 20, 110, 30
_WORDING_SIZE = 600  # characters of a recipe's description, and of a rule's
_NAME_SIZE = 40  # characters of a language's code
_LANGUAGE_ROWS = 2000
_PLANS = 5
_SHARES = ("pages", "% of pages", "bytes of text", "% of bytes")  # the heads of `_share_row`
_COUNTERS = ("pages.dropped", "lines.dropped", "lines.edited", "pages.edited")
_CAPTIONS = {
    "records": "The records of the WARC files",
    "pages": "A page counts for the first rule that drops it.",
    "spans": "Repeated spans",
    "bytes": "Bytes of text",
}
_LOWER_BOUNDS = "; the numbers are lower bounds"


@dataclass(frozen=True)
class _Report:
    """The arguments of `render_report`, and the recipe of the corpus."""

    manifest: Manifest
    data: ReportData
    tokens: Mapping[str, Mapping[str, Mapping[str, int]]]
    opt_outs: OptOuts | None
    plans: Sequence[Mapping[str, Any]]
    recipe: Recipe

    @cached_property
    def drops(self) -> Mapping[str, Mapping[str, int]]:
        """The dropped pages by language and rule; empty if an earlier version made the corpus."""
        return drops_by_language(self.manifest["counts"])

    @cached_property
    def funnel(self) -> Sequence[FunnelRow]:
        """The rows of the funnel."""
        return funnel_rows(self.recipe, self.manifest["counts"])

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
    plans: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Returns the report of a corpus as HTML. The same manifest and data give the same text.

    Args:
        manifest: the corpus' manifest.
        data: the content of its `report.json`.
        tokens: the `totals` of its `tokens.json`, by language and split; empty if its tokens are not counted.
        opt_outs: the content of its `opt_outs.json`; None if its opt-outs are not counted.
        plans: the `plans` of its `tokens.json`, how often its documents are read; the last ones are shown.
    """
    recipe = Recipe.from_json(manifest["recipe"])
    report = _Report(manifest, data, tokens, opt_outs, plans, recipe)
    sections = [
        ReportSection(name, title, [block for block in make_blocks(report) if getattr(block, "rows", True)])
        for name, title, make_blocks in _SECTIONS
    ]
    return render(
        REPORT_PAGE,
        title=f"Report: C4 by recipe {recipe.name}",
        description=short(recipe.description, _WORDING_SIZE),
        facts=_facts(report),
        sections=[section for section in sections if section.blocks],
        **({"script": sort_script_digest()} if len(recipe.languages) > 1 else {}),
    )


def _facts(report: _Report) -> dict[str, str]:
    kept = report.count("pages.kept")
    return {
        "pages kept": f"{kept:,}",
        "of pages read": f"{percent(kept, report.count('pages.read'))} %",
        "text kept": format_size(report.count("bytes.kept")),
        "languages": f"{len({name.partition('/')[0] for name in report.profile['pages']}):,}",
        f"{report.recipe.input_format} files": f"{sum_inputs(report.manifest).files:,}",
    }


def _page_charts(report: _Report) -> Iterator[ReportBlock]:
    if warning := empty_warning(report.recipe, report.manifest["counts"]):
        yield Paragraph(f"Warning: {warning}.")
    yield from _funnel_charts(report, "records", "pages", "bytes")


def _funnel_charts(report: _Report, *sections: str) -> Iterator[Table]:
    """Yields a chart of each section of the funnel."""
    notes = {kind: (meaning, "") for kind, meaning in SKIPPED.items()}
    for _, rule in report.recipe.applied_rules():
        link = _examples_id(rule.name) if report.data["examples"].get(rule.name) else ""
        notes[rule.name] = short(report.recipe.sentence(rule), _WORDING_SIZE), link
    for section in sections:
        rows = [row for row in report.funnel if row.section == section and (section, row.kind) != ("pages", "part")]
        what = unit_name(report.recipe) if section == "units" else section
        yield funnel_chart(_CAPTIONS.get(section, what.capitalize()), what, rows, notes)


def _examples_id(rule: str) -> str:
    """Returns the `id` of a rule's examples."""
    return f"examples-{rule}"


def _rule_examples(report: _Report) -> Iterator[ReportBlock]:
    """Yields example pages that each rule dropped or changed, in the recipe's order."""
    examples = report.data["examples"]
    rules = dict.fromkeys(rule.name for _, rule in report.recipe.applied_rules() if examples.get(rule.name))
    if rules:
        yield Paragraph(
            "For each rule, excerpts of a random sample of its pages: a hash of the URL draws them, so each run shows "
            "the same ones. The text that decides is marked. The command below a page shows what each rule decides "
            "about it, in the folder of the corpus."
        )
    for rule in rules:
        counter = next((name for name in _COUNTERS if report.count(f"{name}.{rule}")), "")
        words = counter.replace(".", " ").replace("edited", "changed")
        count = f"{report.count(f'{counter}.{rule}'):,} {words}" if counter else ""
        yield _examples(_examples_id(rule), rule, examples[rule], count)


def _corpus_pages(report: _Report) -> Iterator[Examples]:
    """Yields some pages of the corpus."""
    pages = [{**page, "fact": page["language"]} for page in report.profile["sample"][:_PAGES]]
    if pages:
        yield _examples("pages-sample", "Pages of the corpus", pages, "a random sample of each language")


def _examples(name: str, title: str, pages: Sequence[Mapping[str, Any]], note: str) -> Examples:
    shown = [{**page, "command": _explain_command(page["url"])} for page in pages]
    return Examples(name, title, ", ".join(filter(None, (note, f"{len(pages)} shown"))), shown)


def _explain_command(url: str) -> str:
    """Returns the command that explains a page of the corpus; "" if the URL is empty, cut, or can't be shown."""
    if not url or len(url) >= URL_SIZE or visible(url) != url:
        return ""
    return f"c4pipe explain . --url {shlex.quote(url)}"


def _languages(report: _Report) -> Iterator[ReportBlock]:
    """Yields the table of languages, and why languages have no page."""
    counts, recipe = report.manifest["counts"], report.recipe
    funnels = language_funnels(recipe, counts)
    wanted = empty_languages(recipe, ())
    shown = [each for each in funnels if each.detected or each.language in wanted][:_LANGUAGE_ROWS]
    if not shown:
        return
    words = ["A click on a head sorts the table."] if len(recipe.languages) > 1 else []
    if report.drops:
        words.append(
            "A click on a language shows which rules took its pages. Detected are the pages that the detector took for "
            "the language; it never looked at the pages that were dropped before."
        )
    if words:
        yield Paragraph(" ".join(words))
    rows = [_language_row(report, each, number < _LANGUAGES) for number, each in enumerate(shown)]
    yield LanguageTable("Pages of the corpus by language", rows, list(_last_language_rows(report)))
    if len(shown) < sum(1 for each in funnels if each.detected):
        yield Paragraph(f"These are the {len(shown):,} languages with most pages; manifest.json has the others.")
    empty = [TableRow(name, (why,)) for name, why in empty_reasons(recipe, counts)[-_LANGUAGE_ROWS:]]
    yield Table("Languages without a page", ("language", "why"), empty, numbers=False)


def _language_row(report: _Report, funnel: LanguageFunnel, has_chart: bool) -> LanguageRow:
    """Returns the row of a language; if some of its pages were dropped, with the chart that its name opens."""
    size = report.profile["language_bytes"].get(funnel.language, 0)
    cells = _language_cells(report, funnel, size, _count_tokens(report, funnel.language))
    chart = _language_chart(report, funnel) if has_chart and funnel.most else None
    return LanguageRow(language_name(funnel.language), funnel.language, cells, chart)


def _count_tokens(report: _Report, language: str, what: str = "tokens") -> int:
    return sum(split[what] for split in report.tokens.get(language, {}).values())


def _language_cells(report: _Report, funnel: LanguageFunnel, size: int, tokens: int) -> LanguageCells:
    """Returns the cells of a language by the head of their column, given its bytes of text and its tokens."""
    rule, most = funnel.most or ("", 0)
    dropped, share = funnel.detected - funnel.kept, most / funnel.detected if funnel.detected else 0
    cells: dict[str, tuple[str, float | None]] = {
        "pages": (f"{funnel.kept:,}", funnel.kept),
        "% of pages": (percent(funnel.kept, report.count("pages.kept")), funnel.kept),
    }
    if report.drops:
        cells["detected"] = f"{funnel.detected:,}", funnel.detected
        cells["dropped"] = f"{dropped:,}", dropped
        cells["rule that took most"] = rule, None
        cells["% of detected"] = percent(most, funnel.detected), share
    cells["text"] = format_size(size), size
    if report.tokens:
        cells["tokens"] = f"{tokens:,}", tokens
    return cells


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


def _last_language_rows(report: _Report) -> Iterator[LanguageRow]:
    """Yields the rows after the languages: pages in other languages and in none, and all pages together."""
    prefix = "pages.dropped."
    counts = report.manifest["counts"]
    dropped = Counter({name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)})
    others, known = Counter[str](), Counter[str]()
    for language, rules in report.drops.items():
        known.update(rules)
        if language not in report.recipe.languages:
            others.update(rules)
    for name, rules in {"other languages": others, "dropped before the language was known": dropped - known}.items():
        if report.drops and rules.total():
            yield LanguageRow(name, "", _language_cells(report, LanguageFunnel("", rules, 0), 0, 0))
    together = LanguageFunnel("", dropped, report.count("pages.kept"))
    tokens = sum(_count_tokens(report, language) for language in report.tokens)
    yield LanguageRow("together", "", _language_cells(report, together, report.count("bytes.kept"), tokens), total=True)


def _labels(report: _Report) -> Iterator[Table]:
    """Yields the pages of each label, a table for each column of labels, and its tokens if they are counted."""
    for column, labels in counts_by_label(report.manifest["counts"]).items():
        rows = [_share_row(report, _host(label), pages, size) for label, pages, size in labels]
        yield Table(f"Pages by {column}", ("label", *_SHARES), rows, chart="share")
    rows = [_count_row(_host(label), tokens) for label, tokens in sum_label_tokens(report.tokens).items()]
    yield Table("Tokens by label", ("label", "tokens"), rows)


def _tokens(report: _Report) -> Iterator[ReportBlock]:
    """Yields the tokens by language, or the command that counts them."""
    rows = []
    for language in list(report.tokens)[:_LANGUAGES]:
        documents, tokens = (_count_tokens(report, language, what) for what in ("documents", "tokens"))
        size = report.profile["language_bytes"].get(language, 0)
        means = f"{tokens / documents:,.0f}" if documents else "-", f"{size / tokens:.2f}" if tokens else "-"
        rows.append(TableRow(short(language, _NAME_SIZE), (f"{documents:,}", f"{tokens:,}", *means)))
    if rows:
        heads = ("language", "documents", "tokens", "tokens a document", "bytes a token")
        yield Table("Tokens, with one for the end of each document", heads, rows)
    elif report.count("pages.kept"):
        yield Paragraph(
            "Not counted. c4pipe tokens . --vocab VOCABULARY counts them, and then c4pipe report . shows them here, "
            "both in the folder of the corpus."
        )


def _plans(report: _Report) -> Iterator[Table]:
    """Yields how often documents are read by the last plans: a row and a curve for each label."""
    for plan in report.plans[-_PLANS:]:
        curve, labels = plan["curve"], plan["times"]["labels"]
        words = [f"By {curve['column']}" if curve["column"] else "All alike"]
        words += [f"in each {curve['by']}"] if curve["by"] else []
        words += [f"for a target of {curve['target_tokens']:,} tokens"] if curve["target_tokens"] else []
        heads = (curve["by"] or "label", "tokens", "taken", "most times")
        most = max((times for each in labels for times in each["times"]), default=0)
        rows = [
            _plan_row(_host(each["label"] or "") if curve["by"] else "all", each, most) for each in labels[:_LANGUAGES]
        ]
        caption = f"{', '.join(words)}; each curve is from the smallest values to the largest"
        yield Table(caption, heads, rows, chart="times")


def _plan_row(name: str, label: Mapping[str, Any], most: float) -> TableRow:
    """Returns the row of a label: the width of a step is the bucket's share of the tokens, its height the times of
    `most`.
    """
    sizes, times = label["tokens"], label["times"]
    whole = max(1, sum(sizes))
    steps = [
        ((end - size) / whole, size / whole, each / (most or 1))
        for end, size, each in zip(accumulate(sizes), sizes, times, strict=True)
    ]
    taken = sum(size * each for size, each in zip(sizes, times, strict=True))
    cells = f"{sum(sizes):,}", f"{taken:,.0f}", f"{max(times):.4g}"
    return TableRow(name, cells, StepCurve(steps))


def _domains(report: _Report) -> Iterator[ReportBlock]:
    pages, sizes = report.profile["domain_pages"], report.profile["domain_bytes"]
    if not pages:
        return
    cut = report.profile["domains_cut"]
    yield Paragraph(
        f"The pages come from {'at least ' if cut else ''}{report.profile['domains']:,} hosts (without www.)."
    )
    largest_first = sorted(pages, key=lambda host: (-pages[host], host))[:_DOMAINS]
    rows = [_share_row(report, _host(host), pages[host], sizes[host]) for host in largest_first]
    total, total_size = (sum(counts[host] for host in largest_first) for counts in (pages, sizes))
    rows.append(_share_row(report, "together", total, total_size, total=True))
    caption = f"The hosts with most pages{_LOWER_BOUNDS if cut else ''}"
    yield Table(caption, ("host", *_SHARES), rows, chart="share")


def _host(name: str) -> str:
    return short(name, 100) or "(none)"


def _opt_outs(report: _Report) -> Iterator[ReportBlock]:
    """Yields the refused pages and bytes, and the hosts with the most refused pages, if opt-outs are counted."""
    if not (found := report.opt_outs):
        return
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(found["lists"].items()))
    yield Paragraph(
        "Pages of the corpus that are refused by the lists given to `c4pipe report --opt-outs`, or by what their "
        f"servers state (column usage). A page can count for several reasons. Lists, by SHA-256: {digests}."
    )
    rows = [
        _share_row(report, name, each["pages"], each["bytes"], total=name == TOGETHER)
        for name, each in reasons_to_show(found).items()
    ]
    yield Table("Pages that would be refused", ("reason", *_SHARES), rows, chart="share")
    hosts = [_share_row(report, each["host"], each["pages"], each["bytes"]) for each in found["hosts"]]
    caption = f"The hosts with most of these pages{_LOWER_BOUNDS if found['hosts_cut'] else ''}"
    yield Table(caption, ("host", *_SHARES), hosts, chart="share")


def _share_row(report: _Report, name: str, pages: int, size: int, total: bool = False) -> TableRow:
    """Returns pages and bytes of text, and their shares of the corpus."""
    kept, kept_bytes = report.count("pages.kept"), report.count("bytes.kept")
    cells = f"{pages:,}", percent(pages, kept), f"{size:,}", percent(size, kept_bytes)
    return TableRow(name, cells, share_bar(pages, kept), total=total)


def _count_row(name: str, *counts: int, note: str = "") -> TableRow:
    return TableRow(name, tuple(f"{count:,}" for count in counts), note=note)


def _duplicates(report: _Report) -> Iterator[Table]:
    units = unit_name(report.recipe)
    pages = report.count("pages.read"), "pages read"
    newest = report.count("units.newest"), f"{units} (newest page of each URL)"
    numbers: list[tuple[type[CorpusRule], str, str, tuple[int, str]]] = [
        (StaleCapture, "pages that are older captures of a URL", "pages.dropped", pages),
        (NearDuplicate, "pages that are nearly the same as another", "pages.dropped", pages),
        (RepeatedSpan, "pages that lost repeated text", "pages.edited", pages),
        (RepeatedSpan, f"{units} that were removed", "units.dropped", newest),
    ]
    rows = []
    for rule, what, counter, (whole, of) in numbers:
        number = report.count(f"{counter}.{rule.name}")
        if rule is StaleCapture or report.recipe.find(rule):
            cells = f"{number:,}", percent(number, whole)
            rows.append(TableRow(what, cells, share_bar(number, whole, "dropped"), note=f"of {of}"))
    yield Table("Duplicates that were removed", ("what", "number", "%"), rows, chart="share")
    rows = []
    for each in report.data.get("near_duplicates", ()):
        beside = each.get("alone", ""), short(each.get("other_url", ""), URL_SIZE), each.get("other_alone", "")
        rows.append(TableRow(short(each["url"], URL_SIZE), (f"{each['pages']:,}", *beside)))
    heads = "page that stays", "pages", "which has alone", "a dropped page", "which has alone"
    yield Table("The largest clusters of pages that are nearly the same", heads, rows, numbers=False)
    rows = [_count_row(each["text"], each["times"], each["domains"]) for each in report.data["repeats"]]
    caption = f"The most repeated {units}, as written where they were removed"
    yield Table(caption, ("text", "times", "hosts it was removed from"), rows)


def _inputs(report: _Report) -> Iterator[ReportBlock]:
    missing = report.manifest["missing"]
    kind, sums = report.recipe.input_format, sum_inputs(report.manifest)
    yield Paragraph(f"{sums.files:,} {kind} files of {sums.bytes:,} bytes in total. manifest.json lists them.")
    rows = [
        _count_row(str(number), part["inputs"], part["input_bytes"], part["pages"])
        for number, part in enumerate(report.manifest.get("parts", ()), 1)
    ]
    caption = "The parts of the corpus, each beside the earlier ones; _parts/*/manifest.json list their files"
    yield Table(caption, ("part", f"{kind} files", "bytes of these files", "pages of the part"), rows)
    if report.recipe.extraction:
        yield Paragraph(f"The text of a page is {describe_extraction(report.recipe.extraction)}.")
    damage = {damage: report.count(f"damage.{damage}") for damage in DAMAGE}
    rows = [_count_row(name, count, note=DAMAGE[name]) for name, count in damage.items() if count]
    yield Table("Damage in these files", ("damage", "times"), rows)
    if not rows:
        yield Paragraph("These files have no damage.")
    first = f"; the first {_MISSING}" if len(missing) > _MISSING else ""
    caption = f"{len(missing):,} more {kind} files could not be fetched, or have no record{first}"
    rows = [TableRow(short(file["name"], 200), (short(file["error"], 300),)) for file in missing[:_MISSING]]
    yield Table(caption, ("file", "error"), rows, numbers=False)


def _rules(report: _Report) -> Iterator[Table]:
    recipe = report.recipe
    rows = [
        TableRow(rule.name, (short(recipe.sentence(rule), _WORDING_SIZE), rule.source)) for _, rule in recipe.rules()
    ]
    caption = f"The rules of {recipe.name} in their order (fingerprint {report.manifest['fingerprint']})"
    yield Table(caption, ("rule", "what it does", "source"), rows, numbers=False)


_SECTIONS: tuple[tuple[str, str, Callable[[_Report], Iterable[ReportBlock]]], ...] = (
    ("pages", "Pages", _page_charts),
    ("lines", "Lines and sentences", lambda report: _funnel_charts(report, "lines", "units", "spans")),
    ("examples", "Examples for each rule", _rule_examples),
    ("languages", "Languages", _languages),
    ("labels", "Labels", _labels),
    ("tokens", "Tokens", _tokens),
    ("plans", "How often documents are read", _plans),
    ("domains", "Domains", _domains),
    ("opt-outs", "Opt-outs", _opt_outs),
    ("duplicates", "Duplicates", _duplicates),
    ("inputs", "Inputs", _inputs),
    ("recipe", "Recipe", _rules),
    ("sample", "Some pages", _corpus_pages),
)
"""The sections in their order: the `id` that links lead to, the title, and the blocks.

A table without rows is left out, and so is a section without blocks.
"""
