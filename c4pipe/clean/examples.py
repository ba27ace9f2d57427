"""Examples of what each rule took: for each the pages of the smallest keys, so that no run shows others. No Beam.

`clean` writes those of its rules beside each work file; job 2 adds its own, and takes all into the report.
"""

import hashlib
import json
import re
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from c4pipe.clean.cleaner import Verdict
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.trace import LineVerdict, PageVerdict, explain_page
from c4pipe.display.excerpt import URL_SIZE, Excerpt, excerpt, short
from c4pipe.filters.urls import url_key
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import StoragePath
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.page import Page

FILES = 64
"""Work files whose examples are taken into a report, at most."""

A_FILE = 5
"""Examples of a rule that a file gives."""

A_RULE = 15
"""Examples of a rule in a report."""

PASSED = "passed."
"""Before the name of a rule: examples of what it just let pass."""

_AT_ONCE = 16  # requests to a store
_FACT_SIZE = 200  # characters

Example = dict[str, Any]
"""`rule`, `key` (16 hexadecimal digits), `url`, `timestamp`, `fact` (why, in a few words), `text` (an Excerpt)."""


def example(rule: str, key: int, url: str, timestamp: str, fact: str, text: Excerpt) -> Example:
    """Returns an example, cut where it is long."""
    shown = {"url": short(url, URL_SIZE), "timestamp": short(timestamp, 40), "fact": short(fact, _FACT_SIZE)}
    return {"rule": rule, "key": f"{key:016x}", **shown, "text": text}


class Smallest:
    """Keeps, for each rule, the A_FILE things of the smallest keys."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[int, int, Any]]] = defaultdict(list)

    def wants(self, rule: str, key: int) -> bool:
        """Tells whether a thing with this key would be kept."""
        held = self._held[rule]
        return len(held) < A_FILE or key < held[-1][0]

    def add(self, rule: str, key: int, place: int, thing: Any) -> None:
        """Keeps a thing, unless there are enough with smaller keys; `place` is another number for each thing."""
        held = self._held[rule]
        insort(held, (key, place, thing), key=lambda each: each[:2])
        del held[A_FILE:]

    def things(self) -> list[Any]:
        """Returns what is kept."""
        return [thing for _, _, thing in self.items()]

    def items(self) -> Iterable[tuple[str, int, Any]]:
        """Yields (rule, key, thing)."""
        for rule, held in sorted(self._held.items()):
            for key, _, thing in held:
                yield rule, key, thing


class CleanExamples:
    """Examples of what the rules of job 1 took from the pages of a WET file."""

    def __init__(self, recipe: Recipe, tools: RuleResources) -> None:
        self._recipe, self._tools = recipe, tools
        self._pages = Smallest()

    def add(self, page: Page, verdict: Verdict, draft: PageFacts) -> None:
        """Looks at a page that was cleaned; keeps it where its key is one of the smallest of a rule."""
        key = url_key(draft.normalised_url)
        if verdict.reason and self._pages.wants(verdict.reason, key):
            self._pages.add(verdict.reason, key, page.position, page)
        for rule, taken in verdict.lines.items():
            if taken and self._pages.wants(rule, key):
                self._pages.add(rule, key, page.position, page)

    def write(self, work_file: StoragePath) -> None:
        """Writes the examples beside a work file, whole or not at all. Raises OSError."""
        explained: dict[int, PageVerdict] = {}  # a page can be an example of several rules
        found = []
        for rule, key, page in self._pages.items():
            if page.position not in explained:
                explained[page.position] = explain_page(page, self._recipe, self._tools, further=False)
            found.append(_of_clean(rule, key, explained[page.position]))
        lines = ",\n".join(json.dumps(each) for each in found)  # escaped: no terminal obeys a page
        write_text(examples_file(work_file), f"[\n{lines}\n]\n")


def examples_file(work_file: StoragePath) -> StoragePath:
    """Returns where the examples of a work file are."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + ".examples.json")


def _of_clean(rule: str, key: int, verdict: PageVerdict) -> Example:
    page = verdict.page
    if verdict.verdict.reason == rule:
        fact = next((each.fact for each in verdict.rules if each.rule == rule and each.dropped), "")
        return example(rule, key, page.url, page.timestamp, fact, _around(fact, verdict))
    lines = [(number, each) for number, each in enumerate(verdict.lines) if _took(rule, each)]
    number, line = min(lines, key=lambda each: each[1].rule not in (rule, None))  # one that no other rule took then
    before = f"{verdict.lines[number - 1].line}\n" if number else ""
    behind = "".join(f"\n{each.line}" for each in verdict.lines[number + 1 : number + 3])
    fact = f"the line becomes: {line.left}" if rule in line.edits and line.left else ""
    text = excerpt(before + line.line + behind, len(before), len(before) + len(line.line))
    return example(rule, key, page.url, page.timestamp, fact, text)


def _took(rule: str, line: LineVerdict) -> bool:
    return line.asked and (line.rule == rule or rule in line.edits)


def _around(fact: str, verdict: PageVerdict) -> Excerpt:
    """Returns the part of a page's text that decides: where it has what the fact quotes; or its beginning."""
    quoted = re.search(r""""(.+)"|'(.+)'""", fact)
    if quoted:
        words = re.escape(quoted[1] or quoted[2])
        for text in (verdict.text, verdict.page.body):
            for pattern in (rf"(?<!\w){words}(?!\w)", words):
                if match := re.search(pattern, text, re.IGNORECASE):
                    return excerpt(text, *match.span())
    return excerpt(verdict.text or verdict.page.body.strip())


def choose(work_files: Iterable[str]) -> set[str]:
    """Returns the paths of the work files whose examples are shown: those whose names have the smallest hashes."""
    return set(sorted(work_files, key=lambda path: (_hash(path.rpartition("/")[2]), path))[:FILES])


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def gather(work_files: Sequence[StoragePath]) -> list[Example]:
    """Returns the examples beside work files; those that an earlier c4pipe wrote have none."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [each for found in pool.map(_read, work_files) for each in found]


def _read(work_file: StoragePath) -> list[Example]:
    try:
        found: list[Example] = json.loads(examples_file(work_file).read_text("utf-8"))
    except FileNotFoundError:
        return []
    return found


def by_rule(found: Iterable[Example]) -> dict[str, list[Example]]:
    """Returns the A_RULE examples of the smallest keys of each rule, by key, in whatever order they are given."""
    rules: dict[str, dict[str, Example]] = defaultdict(dict)
    for each in found:
        values = {name: value for name, value in each.items() if name != "rule"}
        rules[each["rule"]][json.dumps([each["key"], values], sort_keys=True)] = values
    return {rule: [values for _, values in sorted(each.items())[:A_RULE]] for rule, each in sorted(rules.items())}
