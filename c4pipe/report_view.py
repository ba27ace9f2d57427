"""The report of a corpus as a page in HTML: one file, without scripts, that asks for nothing from anywhere. No Beam."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from c4pipe.examples import PASSED
from c4pipe.excerpt import short
from c4pipe.filters.language import UNKNOWN
from c4pipe.recipe_table import say
from c4pipe.recipes import Recipe
from c4pipe.report_html import Html, bar, marked, paragraph, percent, row, section, shares, table, text, words_table
from c4pipe.shards import PROBABILITY
from c4pipe.wet import DAMAGE

NAME = "report.html"

# Of what anyone on the web can make long, so many rows are shown: a report stays below 2 MB.
_DOMAINS, _LANGUAGES, _MONTHS, _MISSING, _FIRST = 30, 110, 60, 20, 30
_WORDS = 600  # characters of a rule's wording


def page(made: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Returns the report of a corpus, given its manifest and its data (see `report_data.make`)."""
    view = _View(made, data)
    template = Template((files("c4pipe") / NAME).read_text("utf-8"))
    return template.substitute(title=text(view.title), body=view.body())


class _View:
    def __init__(self, made: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self._made = made
        self._counts: Mapping[str, int] = made["counts"]
        self._recipe = Recipe.from_json(made["recipe"])
        self._profile: Mapping[str, Any] = data["profile"]
        self._examples: Mapping[str, Sequence[Mapping[str, Any]]] = data["examples"]
        self._kept = self._count("pages.kept")

    @property
    def title(self) -> str:
        return f"Report: C4 by recipe {self._recipe.name}"

    def body(self) -> Html:
        sections = {
            "pages": ("Pages", self._pages(), self._bytes()),
            "lines": ("Lines and sentences", self._lines(), self._units()),
            "examples": ("What the rules took", self._took()),
            "passed": ("What just passed", *self._passed()),
            "languages": ("Languages", self._languages()),
            "lengths": ("Lengths", *self._lengths()),
            "domains": ("Domains", *self._domains()),
            "duplicates": ("Duplicates", self._duplicates()),
            "months": ("When pages were captured", self._months()),
            "inputs": ("Inputs", *self._inputs()),
            "recipe": ("Recipe", self._rules()),
            "first": ("Some pages", *self._first()),
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
        read = left = self._count("pages.read")
        rows = [row("pages read", (f"{read:,}", percent(read, read)), bar(1.0 if read else 0.0), "sum")]
        for rule, says in self._page_rules():
            taken = self._count(f"pages.dropped.{rule}")
            left -= taken
            chart = bar(taken / read, left / read, "took") if read else bar(0)
            rows.append(row(self._named(rule, says), (f"{-taken:,}", percent(taken, read)), chart))
        kept = (f"{self._kept:,}", percent(self._kept, read))
        rows.append(row("pages kept", kept, bar(self._kept / read if read else 0.0), "sum"))
        return table("A page counts for the first rule that drops it.", ("", "pages", "%"), rows, chart="of pages read")

    def _page_rules(self) -> Iterator[tuple[str, str]]:
        for _, step in self._recipe.steps():
            if step.definition.scope == "page" or step.rule == "older_copy":
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
        return table("Bytes of text (UTF-8)", ("", "bytes", "%"), rows, chart="of bytes read")

    def _lines(self) -> Html:
        read = left = self._count("lines.read")
        rows = [row("lines read", (f"{read:,}", percent(read, read)), bar(1.0 if read else 0.0), "sum")]
        for step in (*self._recipe.read, *self._recipe.lines):
            if step.definition.scope != "line" or step.rule == "body_lines":
                continue
            edits = step.definition.edits
            taken = self._count(f"lines.{'edited' if edits else 'dropped'}.{step.rule}")
            left -= 0 if edits else taken
            chart = (bar(0.0) if edits else bar(taken / read, left / read, "took")) if read else bar(0.0)
            told = f"{taken:,} changed" if edits else f"{-taken:,}"
            rows.append(row(self._named(step.rule, _wording(step)), (told, percent(taken, read)), chart))
        kept = self._count("lines.left")
        rows.append(row("lines left", (f"{kept:,}", percent(kept, read)), bar(kept / read if read else 0.0), "sum"))
        return table("Lines of the pages that came so far", ("", "lines", "%"), rows, chart="of lines read")

    @property
    def _unit(self) -> str:
        return f"{self._recipe.parameters('repeated_span').get('unit', 'sentence')}s"

    def _units(self) -> Html:
        newest = left = self._count("units.newest")
        if not newest or not self._recipe.find("repeated_span"):
            return ""
        rows = [row("of the newest pages", (f"{newest:,}", "100.0"), bar(1.0), "sum")]
        for rule in ("repeated_span", *(each.rule for each in self._recipe.final if each.definition.scope == "page")):
            taken = self._count(f"units.dropped.{rule}")
            left -= taken
            rows.append(
                row(text(rule), (f"{-taken:,}", percent(taken, newest)), bar(taken / newest, left / newest, "took"))
            )
        kept = self._count("units.kept")
        rows.append(row("kept", (f"{kept:,}", percent(kept, newest)), bar(kept / newest), "sum"))
        return table(f"{self._unit.capitalize()}", ("", self._unit, "%"), rows, chart=f"of these {self._unit}")

    def _took(self) -> Html:
        order = [step.rule for _, step in self._recipe.steps() if self._examples.get(step.rule)]
        found = [self._example_list(f"took-{rule}", rule, self._examples[rule], self._told(rule)) for rule in order]
        return "\n".join([_EXAMPLES, *found]) if found else ""

    def _told(self, rule: str) -> str:
        for name, words in (
            (f"pages.dropped.{rule}", "pages dropped"),
            (f"lines.dropped.{rule}", "lines dropped"),
            (f"lines.edited.{rule}", "lines changed"),
            (f"pages.edited.{rule}", "pages changed"),
        ):
            if self._count(name):
                return f"{self._count(name):,} {words}"
        return ""

    def _example_list(self, name: str, title: str, found: Sequence[Mapping[str, Any]], more: str) -> Html:
        told = ", ".join(filter(None, (more, f"{len(found)} shown")))
        head = f'<summary><h3>{text(title)}</h3> <span class="soft">{text(told)}</span></summary>'
        return f'<details id="{text(name)}">{head}\n' + "\n".join(map(_example, found)) + "\n</details>"

    def _passed(self) -> Iterator[Html]:
        unsure = [each for each in self._profile["unsure"] if each["language"] != UNKNOWN]
        if unsure and self._recipe.find("language"):
            facts = [
                {**each, "fact": f"{each['language']}, with a probability of {each[PROBABILITY]}"} for each in unsure
            ]
            yield self._example_list("passed-language", "language", facts, "the least probable")
        for name, found in self._examples.items():
            if name.startswith(PASSED):
                rule = name.removeprefix(PASSED)
                yield self._example_list(f"passed-{rule}", rule, found, "no more than it asks for")

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
        heads = ("language", "pages", "%", "of these in validation")
        return table("Pages of the corpus by language", heads, rows, chart="share") if rows else ""

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

    def _duplicates(self) -> Html:
        newest = self._count("units.newest")
        removed = self._count("units.dropped.repeated_span")
        read = self._count("pages.read")
        facts = [
            ("pages that are older captures of a URL", self._count("pages.dropped.older_copy"), read, "pages read")
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
        return table("What was there more than once", ("", "number", "%"), rows, chart="share")

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
            yield table("Damage that was met", ("", "times"), rows)
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

    def _first(self) -> Iterator[Html]:
        pages = self._profile["first"][:_FIRST]
        if pages:
            facts = [{**each, "fact": each["language"]} for each in pages]
            yield self._example_list("pages-first", "Pages of the corpus", facts, "those of the smallest keys")


_EXAMPLES = paragraph("Of each rule the pages with the smallest hashes of their URL, cut; what decides is marked.")


def _example(each: Mapping[str, Any]) -> Html:
    fact = f"<p>{text(each['fact'])}</p>" if each["fact"] else ""
    shown = f'<p class="text" dir="auto">{marked(each["text"])}</p>' if any(each["text"]) else ""
    head = f'<p class="url">{text(each["url"])} <span class="soft">{text(each["timestamp"])}</span></p>'
    return f"<article>{head}{fact}{shown}</article>"


def _wording(step: Any) -> str:
    told = step.definition.does.format(**{name: say(value) for name, value in step.parameters.items()})
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
