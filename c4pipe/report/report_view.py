"""The report of a corpus as a page in HTML: one file, without scripts, that asks for nothing from anywhere. No Beam."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from c4pipe.display.excerpt import short
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.wording import parameter_text
from c4pipe.report import report_examples
from c4pipe.report.report_html import (
    Html,
    bar,
    funnel,
    paragraph,
    percent,
    row,
    section,
    shares,
    table,
    text,
    words_table,
)
from c4pipe.wet.records import DAMAGE

NAME = "report.html"

# Of what anyone on the web can make long, so many rows are shown: a report stays below 2 MB.
_DOMAINS, _LANGUAGES, _MONTHS, _MISSING = 30, 110, 60, 20
_WORDS = 600  # characters of a rule's wording


def page(made: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Returns the report of a corpus, given its manifest and its data (see `report_data.make`)."""
    view = _View(made, data)
    template = Template((files("c4pipe.report") / NAME).read_text("utf-8"))
    return template.substitute(title=text(view.title), body=view.body())


class _View:
    def __init__(self, made: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self._made = made
        self._counts: Mapping[str, int] = made["counts"]
        self._recipe = Recipe.from_json(made["recipe"])
        self._profile: Mapping[str, Any] = data["profile"]
        self._examples: Mapping[str, Sequence[Mapping[str, Any]]] = data["examples"]
        self._repeats: Sequence[Mapping[str, Any]] = data["repeats"]
        self._kept = self._count("pages.kept")

    @property
    def title(self) -> str:
        return f"Report: C4 by recipe {self._recipe.name}"

    def body(self) -> Html:
        sections = {
            "pages": ("Pages", self._pages(), self._bytes()),
            "lines": ("Lines and sentences", self._lines(), self._units()),
            "examples": ("What the rules took", *report_examples.took(self._recipe, self._counts, self._examples)),
            "passed": ("What just passed", *report_examples.passed(self._recipe, self._profile, self._examples)),
            "languages": ("Languages", self._languages()),
            "lengths": ("Lengths", *self._lengths()),
            "domains": ("Domains", *self._domains()),
            "duplicates": ("Duplicates", *self._duplicates()),
            "months": ("When pages were captured", self._months()),
            "inputs": ("Inputs", *self._inputs()),
            "recipe": ("Recipe", self._rules()),
            "first": ("Some pages", *report_examples.first(self._profile)),
        }
        there = {name: parts for name, parts in sections.items() if any(parts[1:])}
        links = "".join(f'<li><a href="#{name}">{text(parts[0])}</a></li>' for name, parts in there.items())
        nav = f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
        inside = "\n".join(section(name, *parts) for name, parts in there.items())
        return f"<header>\n<h1>{text(self.title)}</h1>\n{self._head()}\n{nav}\n</header>\n<main>\n{inside}\n</main>"

    def _count(self, name: str) -> int:
        return self._counts.get(name, 0)

    def _head(self) -> Html:
        facts = {
            "pages kept": f"{self._kept:,}",
            "of pages read": f"{percent(self._kept, self._count('pages.read'))} %",
            "text kept": f"{_bytes(self._count('bytes.kept'))}",
            "languages": f"{len({place.partition('/')[0] for place in self._profile['pages']}):,}",
            "WET files": f"{len(self._made['inputs']):,}",
        }
        shown = "".join(f"<div><dt>{text(name)}</dt><dd>{text(fact)}</dd></div>" for name, fact in facts.items())
        return f"{paragraph(short(self._recipe.description, _WORDS))}\n<dl>{shown}</dl>"

    def _pages(self) -> Html:
        rules = [
            (self._named(rule, says), self._count(f"pages.dropped.{rule}"), False) for rule, says in self._page_rules()
        ]
        ends = ("pages read", self._count("pages.read")), ("pages kept", self._kept)
        return funnel("A page counts for the first rule that drops it.", "pages", ends, rules)

    def _page_rules(self) -> Iterator[tuple[str, str]]:
        for _, step in self._recipe.steps():
            if step.definition.scope == "page" or step.rule == "stale_capture":
                yield step.rule, _wording(step)

    def _named(self, rule: str, says: str) -> Html:
        """A rule's name, which leads to its examples, and what it does."""
        name = f'<a href="#took-{rule}">{rule}</a>' if self._examples.get(rule) else rule
        return f"{name}<small>{text(says)}</small>"

    def _bytes(self) -> Html:
        read = self._count("bytes.read")
        rows = [
            row(text(name), (f"{size:,}", percent(size, read)), bar(size / read if read else 0.0))
            for name, size in (("text read", read), ("text kept", self._count("bytes.kept")))
        ]
        return table("Bytes of text", ("text", "bytes", "%"), rows, chart="of bytes read")

    def _lines(self) -> Html:
        rules = []
        for step in (*self._recipe.read, *self._recipe.lines):
            if step.definition.scope == "line" and step.rule != "body_lines":
                edits = step.definition.edits
                taken = self._count(f"lines.{'edited' if edits else 'dropped'}.{step.rule}")
                rules.append((self._named(step.rule, _wording(step)), taken, edits))
        ends = ("lines read", self._count("lines.read")), ("lines left", self._count("lines.left"))
        return funnel("Lines of the pages that came so far", "lines", ends, rules)

    @property
    def _unit(self) -> str:
        return f"{self._recipe.parameters('repeated_span').get('unit', 'sentence')}s"

    def _units(self) -> Html:
        if not self._count("units.newest") or not self._recipe.find("repeated_span"):
            return ""
        names = ("repeated_span", *(each.rule for each in self._recipe.final if each.definition.scope == "page"))
        rules = [(text(rule), self._count(f"units.dropped.{rule}"), False) for rule in names]
        ends = ("of the newest pages", self._count("units.newest")), ("kept", self._count("units.kept"))
        return funnel(self._unit.capitalize(), self._unit, ends, rules)

    def _languages(self) -> Html:
        by_language: dict[str, Counter[str]] = {}
        for name, pages in self._profile["pages"].items():
            language, _, split = name.partition("/")
            by_language.setdefault(language, Counter())[split] += pages
        order = sorted(by_language.items(), key=lambda item: (-item[1].total(), item[0]))[:_LANGUAGES]
        most = max((each.total() for _, each in order), default=0) or 1
        rows = [
            row(
                text(name),
                (f"{each.total():,}", percent(each.total(), self._kept), f"{each['validation']:,}"),
                bar(each.total() / most),
            )
            for name, each in order
        ]
        heads = ("language", "pages", "%", "validation")
        return (
            table("Pages of the corpus by language; of these, in the validation split", heads, rows, chart="share")
            if rows
            else ""
        )

    def _lengths(self) -> Iterator[Html]:
        tables = [
            ("Pages by their characters", ("characters", "pages"), self._profile["characters"]),
            ("Pages by their lines", ("lines", "pages"), self._profile["lines"]),
            ("Lines by their characters", ("characters", "lines"), self._profile["line_characters"]),
        ]
        if self._kept:
            yield '<div class="cols">'
            for caption, heads, counts in tables:
                yield shares(caption, heads, list(_ranges(counts)), sum(counts.values()))
            yield "</div>"

    def _domains(self) -> Iterator[Html]:
        pages, sizes = self._profile["domain_pages"], self._profile["domain_bytes"]
        if not pages:
            return
        least = "at least " if self._profile["domains_cut"] else ""
        yield paragraph(f"The pages come from {least}{self._profile['domains']:,} hosts (without www.).")
        whole = self._count("bytes.kept")
        order = sorted(pages, key=lambda host: (-pages[host], host))[:_DOMAINS]
        rows = [
            row(
                text(short(host, 100) or "(none)"),
                (f"{pages[host]:,}", percent(pages[host], self._kept), percent(sizes[host], whole)),
                bar(pages[host] / pages[order[0]]),
            )
            for host in order
        ]
        told = sum(pages[host] for host in order)
        rows.append(
            row(
                "these together",
                (f"{told:,}", percent(told, self._kept), percent(sum(sizes[h] for h in order), whole)),
                "",
                "sum",
            )
        )
        caption = "The largest" + (", with at least so many pages" if least else "")
        yield table(caption, ("host", "pages", "% of pages", "% of bytes"), rows, chart="share")

    def _duplicates(self) -> Iterator[Html]:
        newest = self._count("units.newest")
        removed = self._count("units.dropped.repeated_span")
        read = self._count("pages.read")
        facts = [
            ("pages that are older captures of a URL", self._count("pages.dropped.stale_capture"), read, "pages read")
        ]
        if self._recipe.find("repeated_span"):
            edited = self._count("pages.edited.repeated_span")
            facts += [
                ("pages that lost repeated text", edited, read, "pages read"),
                (f"{self._unit} that were cut out", removed, newest, f"{self._unit} of the newest pages"),
            ]
        rows = [
            row(
                f"{text(name)}<small>of the {text(of)}</small>",
                (f"{part:,}", percent(part, whole)),
                bar(part / whole if whole else 0.0, 0.0, "took"),
            )
            for name, part, whole, of in facts
        ]
        yield table("What was there more than once", ("what", "number", "%"), rows, chart="share")
        if repeats := self._repeats:
            yield words_table(
                f"The most repeated {self._unit}, as they stood where they were cut out",
                ("text", "times", "hosts that lost it"),
                ((each["text"], f"{each['times']:,}", f"{each['domains']:,}") for each in repeats),
            )

    def _months(self) -> Html:
        months = sorted(self._profile["months"].items())
        shown = months[-_MONTHS:]
        if len(months) > len(shown):
            shown = [(f"before {shown[0][0]}", sum(n for _, n in months[:-_MONTHS])), *shown]
        return shares("Pages of the corpus by month", ("month", "pages"), shown, self._kept) if shown else ""

    def _inputs(self) -> Iterator[Html]:
        inputs, missing = self._made["inputs"], self._made["missing"]
        yield paragraph(f"{len(inputs):,} WET files of {sum(each['bytes'] for each in inputs):,} bytes.")
        damage = [
            (kind, says, self._count(f"damage.{kind}"))
            for kind, says in DAMAGE.items()
            if self._count(f"damage.{kind}")
        ]
        if damage:
            rows = (row(f"{text(kind)}<small>{text(says)}</small>", (f"{count:,}",)) for kind, says, count in damage)
            yield table("Damage that was met", ("damage", "times"), rows)
        else:
            yield paragraph("No damage was met.")
        if missing:
            rest = len(missing) - _MISSING
            yield words_table(
                f"{len(missing):,} more could not be had" + (f"; the first {_MISSING}" if rest > 0 else ""),
                ("file", "why"),
                ((short(each["name"], 200), short(each["error"], 300)) for each in missing[:_MISSING]),
            )

    def _rules(self) -> Html:
        rows = [(step.rule, _wording(step), step.definition.source) for _, step in self._recipe.steps()]
        caption = f"{self._recipe.name}, fingerprint {self._made['fingerprint']}; in this order"
        return words_table(caption, ("rule", "what it does", "source"), rows)


def _wording(step: Any) -> str:
    told = step.definition.does.format(**{name: parameter_text(value) for name, value in step.parameters.items()})
    return short(told, _WORDS)


def _ranges(counts: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """Yields what a histogram counts, from its least power of two to its largest."""
    powers = sorted(map(int, counts))
    each = powers[0] if powers else 1
    while powers and each <= powers[-1]:
        name = f"{each:,}" if each <= 1 else f"{each:,} to {2 * each - 1:,}"
        yield name, counts.get(str(each), 0)
        each = max(1, 2 * each)


def _bytes(size: int) -> str:
    """Returns a size in words."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:,.1f} {unit}"
    return f"{size} bytes"
