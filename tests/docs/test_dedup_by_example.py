"""docs/dedup_by_example.md: its tables have the rows that the steps of job 2 send for its four pages."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from c4pipe.dedup import shuffle
from c4pipe.dedup.occurrences import FindRepeats
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.shuffle import (
    CHANGES,
    MARK,
    OCCURRENCE,
    OPTIONS,
    PROPOSALS,
    REPEATED,
    REQUEST,
    REQUESTS,
    SPAN_ROW,
    SPANS,
)
from c4pipe.dedup.survivors import Occurrences, choose_survivors
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.recipes.presets import C4
from c4pipe.runners.flow import Step
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from c4pipe.text.hashes import span_hashes, unit_hashes
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.text.spans import cut, remove_spans
from tests.helpers.documents import code_blocks, page, section, table_rows

PAGE = page("docs/dedup_by_example.md")
SIZE = 3
Table = list[list[str]]


class RecordingFlow(LocalFlow):
    """Keeps the rows that each step sends, by the names of the step and of the shuffle."""

    def __init__(self) -> None:
        super().__init__(1)
        self.sent: dict[tuple[str, str], Table] = {}

    def map(self, name: str, elements: list[Any], step: Step) -> Mapping[str, Any]:
        outputs = super().map(name, elements, step)
        for output, dtype in (
            ("repeated_spans", REPEATED),
            ("marks", MARK),
            (PROPOSALS.name, REQUEST),
            (OPTIONS.name, REQUEST),
            (REQUESTS.name, REQUEST),
            (CHANGES.name, OCCURRENCE),
        ):
            if output in outputs:
                rows = shuffle.unpack((block for _, block in outputs[output]), dtype)
                self.sent[name, output] = [list(map(str, row)) for row in np.sort(rows).tolist()]
        return outputs


class Example:
    """The four pages, and what the steps make of them. Each page is a file, and a group."""

    def __init__(self) -> None:
        (text,) = code_blocks(PAGE, "text")
        self.texts = {int(line[0]): line[3:] for line in text.splitlines()}
        splitter, whitespace = SentenceSplitter("en"), C4.need(RepeatedSpan).whitespace
        self.starts = {key: splitter.starts([body]) for key, body in self.texts.items()}
        self.units = {key: cut(body, self.starts[key]) for key, body in self.texts.items()}
        hashes = {key: span_hashes(unit_hashes(units, whitespace), SIZE) for key, units in self.units.items()}
        self.spans = np.array(
            [(each, key, key, unit) for key, some in hashes.items() for unit, each in enumerate(some.tolist())],
            SPAN_ROW,
        )
        buckets = list(SPANS.to_buckets(np.sort(self.spans, order="hash"), 3).blocks)
        graph = Graph()
        found = graph.add("Find", FindRepeats("", 1, moves_survivors=True), graph.given(buckets, SPANS.name))
        marks, changes = choose_survivors(graph, [found["repeated_spans"]], "", SIZE)
        with (recorder := RecordingFlow()) as flow:
            first, *changed = graph.run(flow, [marks, *changes])
        self.sent = recorder.sent
        self.marks = shuffle.unpack((block for _, block in first), MARK)
        self.changes = shuffle.unpack((block for some in changed for _, block in some), OCCURRENCE)


EXAMPLE = Example()


def tables(heading: str) -> list[Table]:
    """The rows of each table of a section, without its head."""
    blocks = section(PAGE, heading).strip().split("\n\n")
    return [list(table_rows(block))[2:] for block in blocks if block.startswith("|")]


def place(row: Any) -> str:
    return f"{row['page']}:{row['unit']}"


def test_the_pages_are_split() -> None:
    longest = max(map(len, EXAMPLE.units.values()))
    rows = [[str(key), *map(str.strip, units)] for key, units in EXAMPLE.units.items()]
    assert tables("The pages") == [[[*row, *[""] * (1 + longest - len(row))] for row in rows]]


def test_the_spans_that_repeat() -> None:
    occurrences: dict[int, list[str]] = {}
    for row in np.sort(EXAMPLE.spans, order=("page", "unit")):
        occurrences.setdefault(int(row["hash"]), []).append(place(row))
    text = {place(row): EXAMPLE.units[int(row["page"])][row["unit"] : row["unit"] + SIZE] for row in EXAMPLE.spans}
    repeated = [found for found in occurrences.values() if len(found) > 1]
    assert tables("The spans") == [[["".join(text[found[0]]).strip(), ", ".join(found)] for found in repeated]]


def test_the_rows_of_repeated_spans_and_of_marks() -> None:
    assert tables("Repeated spans") == [EXAMPLE.sent["Find", "repeated_spans"]]
    marks, duplicates = tables("Marks")
    assert marks == EXAMPLE.sent["Mark first copies", "marks"]
    assert duplicates == needed_by(Occurrences(EXAMPLE.marks, SIZE))


def needed_by(occurrences: Occurrences) -> Table:
    """Each duplicate left, and the survivors that need its units."""
    rows = []
    for each in np.flatnonzero(occurrences.duplicates_left()).tolist():
        around = [near for near in occurrences.around(each, SIZE - 1).tolist() if occurrences.survives[near]]
        rows.append([place(occurrences.rows[each]), ", ".join(place(occurrences.rows[near]) for near in around)])
    return rows


def test_the_rows_of_proposals_and_requests() -> None:
    sent = EXAMPLE.sent
    assert tables("Proposals") == [sent["Mark first copies", "proposals"], sent["Grant proposals", "changes"]]
    first = [sent["Mark first copies", "options"], sent["Request moves 1", "requests"]]
    assert tables("Requests") == [*first, sent["Accept requests 1", "changes"]]
    assert sent["Request moves 2", "requests"] == []


def test_what_stays() -> None:
    removals = Removals(EXAMPLE.marks, EXAMPLE.changes, SIZE)
    occurrences = Occurrences(EXAMPLE.marks, SIZE)
    occurrences.change(EXAMPLE.changes)
    rows = []
    for key, body in EXAMPLE.texts.items():
        survivors = [place(row) for row in occurrences.rows[occurrences.survives] if row["page"] == key]
        lost, kept = removals.spans.get(key, ()), removals.kept.get(key, ())
        left, _ = remove_spans(body, EXAMPLE.starts[key], lost, SIZE, "sentence", kept)
        rows.append([str(key), ", ".join(survivors), left])
    assert tables("What stays") == [rows]
    assert removals.counts == {"spans.repeated": 5, "spans.doubled": 0}


def test_each_repeated_span_stays_once() -> None:
    (rows,) = tables("What stays")
    (spans,) = tables("The spans")
    assert [sum(left.count(span) for _, _, left in rows) for span, _ in spans] == [1] * len(spans)
