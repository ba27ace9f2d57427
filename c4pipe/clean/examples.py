"""Examples of what each rule drops or changes. They are the pages of the smallest keys: each run shows the same pages.

`clean` writes the examples of its rules beside each work file. Job 2 adds its own and puts all into the report.
"""

import hashlib
import json
import re
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import LineVerdict, PageVerdict, explain_page
from c4pipe.io.atomic import FileBatch
from c4pipe.io.json_files import read_checked_json, write_checked_json
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import URL_SIZE, Excerpt, excerpt, short

EXAMPLE_FILES = 64
"""The number of work files whose examples go into a report, at most."""

EXAMPLES_PER_FILE = 5
"""The number of examples of a rule from one file, at most."""

A_RULE = 15
"""The number of examples of a rule in a report, at most."""

EXAMPLES_ENDING = ".examples.json"
"""The end of the name of a file of examples; the name of its WET file is before it."""

_PARALLEL_READS = 16  # requests to an object store
_ABOVE_KEYS = 1 << 64
_FACT_SIZE = 200  # characters

Example = dict[str, Any]
"""`rule`, `key` (16 hexadecimal digits), `url`, `timestamp`, `fact` (what decided, in words), `text` (an Excerpt)."""


def make_example(rule: str, key: int, url: str, timestamp: str, fact: str, text: Excerpt) -> Example:
    """Returns an example; long values are shortened."""
    shown = {"url": short(url, URL_SIZE), "timestamp": short(timestamp, 40), "fact": short(fact, _FACT_SIZE)}
    return {"rule": rule, "key": f"{key:016x}", **shown, "text": text}


class SmallestKeys:
    """Keeps the EXAMPLES_PER_FILE values of the smallest keys of each rule. Further keys are below `limits[rule]`."""

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[int, int, Any]]] = defaultdict(list)
        self.limits: dict[str, int] = defaultdict(lambda: _ABOVE_KEYS)

    def add(self, rule: str, key: int, place: int, value: Any) -> None:
        """Keeps a value unless enough keys are smaller. `place`, a unique number, decides between equal keys."""
        kept = self._kept[rule]
        insort(kept, (key, place, value), key=lambda each: each[:2])
        del kept[EXAMPLES_PER_FILE:]
        if len(kept) == EXAMPLES_PER_FILE:
            self.limits[rule] = kept[-1][0]

    def values(self) -> list[Any]:
        """Returns the kept values, by rule and key."""
        return [value for _, _, value in self.items()]

    def items(self) -> Iterable[tuple[str, int, Any]]:
        """Yields (rule, key, value)."""
        for rule, kept in sorted(self._kept.items()):
            for key, _, value in kept:
                yield rule, key, value


def write_examples(pages: SmallestKeys, evaluator: RecipeEvaluator, work_file: StoragePath, batch: FileBatch) -> None:
    """Writes pages (`wet.Page`) as examples beside a work file; they appear with the batch. Raises OSError."""
    explained: dict[int, PageVerdict] = {}  # a page can be an example of several rules
    examples = []
    for rule, key, page in pages.items():
        if page.position not in explained:
            explained[page.position] = explain_page(evaluator, page, to_the_end=False)
        examples.append(_describe_example(rule, key, explained[page.position]))
    write_checked_json(examples_file(work_file), {"examples": examples}, batch)


def examples_file(work_file: StoragePath) -> StoragePath:
    """Returns the path of the examples of a work file."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + EXAMPLES_ENDING)


def _describe_example(rule: str, key: int, verdict: PageVerdict) -> Example:
    page = verdict.page
    if verdict.verdict.reason == rule:
        fact = next((each.fact for each in verdict.rules if each.rule == rule and each.dropped), "")
        return make_example(rule, key, page.url, page.timestamp, fact, _quote_fact(fact, verdict))
    lines = [(number, each) for number, each in enumerate(verdict.lines) if _is_changed(rule, each)]
    number, line = min(lines, key=lambda each: each[1].rule not in (rule, None))  # not dropped later by another rule
    before = f"{verdict.lines[number - 1].line}\n" if number else ""
    after = "".join(f"\n{each.line}" for each in verdict.lines[number + 1 : number + 3])
    fact = f"the line becomes: {line.left}" if rule in line.edits and line.left else ""
    text = excerpt(before + line.line + after, len(before), len(before) + len(line.line))
    return make_example(rule, key, page.url, page.timestamp, fact, text)


def _is_changed(rule: str, line: LineVerdict) -> bool:
    return line.asked and (line.rule == rule or rule in line.edits)


def _quote_fact(fact: str, verdict: PageVerdict) -> Excerpt:
    """Returns the words of a page that the fact quotes, with the text around them; or the beginning of the page."""
    quoted = re.search(r""""(.+)"|'(.+)'""", fact)
    if quoted:
        words = re.escape(quoted[1] or quoted[2])
        for text in (verdict.text, verdict.page.body):
            for pattern in (rf"(?<!\w){words}(?!\w)", words):
                if match := re.search(pattern, text, re.IGNORECASE):
                    return excerpt(text, *match.span())
    return excerpt(verdict.text or verdict.page.body.strip())


def choose_files(work_files: Iterable[str]) -> set[str]:
    """Returns the work files whose examples go into the report: their names have the smallest hashes."""
    return set(sorted(work_files, key=lambda path: (hash_name(path.rpartition("/")[2]), path))[:EXAMPLE_FILES])


def find_last(names: Iterable[str]) -> str:
    """Returns the largest hash of a name that gets examples, given the names of all work files of a run of `clean`.

    No further file comes into the report of a corpus with all files of the run.
    """
    return sorted(map(hash_name, names))[: 4 * EXAMPLE_FILES][-1]  # more, as some can be missing


def hash_name(name: str) -> str:
    """Returns the hash of the name of a work file that decides whether its examples are shown."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def gather_examples(work_files: Sequence[StoragePath]) -> list[Example]:
    """Returns the examples beside work files. Raises as `stored_examples`."""
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        return [each for examples in pool.map(stored_examples, work_files) for each in examples]


def stored_examples(work_file: StoragePath) -> list[Example]:
    """Returns the examples beside a work file; an empty list without their file. Raises DamagedFileError."""
    examples: list[Example] = (read_checked_json(examples_file(work_file), dict) or {}).get("examples", [])
    return examples


def examples_by_rule(examples: Iterable[Example]) -> dict[str, list[Example]]:
    """Returns the A_RULE examples of each rule with the smallest keys, by key. The order of the input has no effect."""
    rules: dict[str, dict[str, Example]] = defaultdict(dict)
    for each in examples:
        values = {name: value for name, value in each.items() if name != "rule"}
        rules[each["rule"]][json.dumps([each["key"], values], sort_keys=True)] = values
    return {rule: [values for _, values in sorted(each.items())[:A_RULE]] for rule, each in sorted(rules.items())}
