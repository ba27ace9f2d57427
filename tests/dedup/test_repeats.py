"""The most repeated spans of a report: as plain Python counts them, in any grouping."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.cli.main import main
from c4pipe.dedup.removals import LocatedOccurrences, Repeat, most_repeated
from c4pipe.dedup.shuffle import OCCURRENCE, REMOVED, bucketed
from c4pipe.io.rows import Rows
from c4pipe.report.data import MOST_SHOWN
from c4pipe.text.spans import cut

hosts = st.sampled_from(["a.example", "b.example", "www.c.example"])
pages = st.dictionaries(st.integers(0, 2**64 - 1), st.tuples(hosts, st.integers(0, 3)), max_size=8)


@given(pages, st.data())
def test_counts_are_exact(known: dict[int, tuple[str, int]], data: st.DataObject) -> None:
    span = st.integers(0, 2**64 - 1) | st.integers(0, 5)
    spans = {page: data.draw(st.lists(span, max_size=9)) for page in sorted(known)}
    places = [(page, unit) for page, hashes in spans.items() for unit in range(len(hashes))]
    drops = sorted(data.draw(st.sets(st.sampled_from(places)))) if places else []
    found: list[Repeat] = []
    rows = rows_of(known, spans, drops)
    for _, packed in bucketed(rows, 3):
        found += most_repeated(np.frombuffer(packed, REMOVED))
    told = sorted(found, key=lambda each: (-each["times"], each["hash"]))[:MOST_SHOWN]
    times = Counter(spans[page][unit] for page, unit in drops)
    where: dict[int, set[str]] = defaultdict(set)
    for page, unit in drops:
        where[spans[page][unit]].add(known[page][0].removeprefix("www."))
    expected = sorted(((-lost - 1, span) for span, lost in times.items()))[:MOST_SHOWN]
    assert [(-each["times"], each["hash"]) for each in told] == expected
    for each in told:
        assert each["domains"] == len(where[each["hash"]])
        assert (each["page"], each["unit"]) in drops
        assert spans[each["page"]][each["unit"]] == each["hash"]
        assert each["file"] == known[each["page"]][1]


def rows_of(known: dict[int, tuple[str, int]], spans: dict[int, list[int]], drops: Sequence[tuple[int, int]]) -> Rows:
    removed = LocatedOccurrences(np.array(drops, OCCURRENCE))
    for file in range(4):
        keys = sorted(page for page, (_, of) in known.items() if of == file)
        keys.append(7) if 7 not in known else None  # a page that loses nothing
        urls = [f"http://{known[key][0] if key in known else 'other.example'}/{key}" for key in keys]
        hashes = pa.array([spans.get(key, []) for key in keys], pa.list_(pa.uint64()))
        removed.add(pa.table({"page_key": pa.array(keys, pa.uint64()), "url": urls, "span_hashes": hashes}), file)
    return removed.rows()


def test_no_drops() -> None:
    assert len(rows_of({}, {}, [])) == 0
    assert most_repeated(np.empty(0, REMOVED)) == []


def test_the_report_of_real_pages(web_data: Path, tmp_path: Path) -> None:
    lists = str(web_data / "lists")
    inputs = [str(web_data / "pages"), "--recipe", "c4", "--languages", "en,de", "--lists", lists, "--quiet"]
    assert main(["build", *inputs, "--output", str(tmp_path / "out"), "--workers", "1"]) == 0
    repeats = json.loads((tmp_path / "out" / "report.json").read_text())["repeats"]
    times: Counter[int] = Counter()
    texts: dict[int, set[str]] = defaultdict(set)
    newest: dict[int, int] = {}
    tables = [pq.read_table(path).to_pylist() for path in sorted((tmp_path / "out" / "_work").glob("*.parquet"))]
    for row in (row for rows in tables for row in rows):
        newest[row["url_key"]] = max(row["captured"], newest.get(row["url_key"], row["captured"]))
    for rows in tables:
        for row in rows:
            if row["page_key"] is None or row["captured"] != newest[row["url_key"]]:
                continue
            units = cut(row["text"], row["unit_starts"])
            for first, span in enumerate(row["span_hashes"]):
                times[span] += 1
                texts[span].add("".join(units[first : first + 3]).strip())
    expected = sorted((-number, span) for span, number in times.items() if number > 1)[:MOST_SHOWN]
    assert len(repeats) == MOST_SHOWN
    assert [(-each["times"], int(each["hash"], 16)) for each in repeats] == expected
    for each in repeats:
        assert each["text"].removesuffix("…") in {text[:300] for text in texts[int(each["hash"], 16)]}
        assert 1 <= each["domains"] < each["times"]
