"""All domains of a corpus, by simple means, with any size of the runs, on any number of workers, and in a store."""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tldextract
from hypothesis import given
from hypothesis import strategies as st

import c4pipe
from c4pipe.cli import main
from c4pipe.inspect import domains
from tests.helpers.corpora import contents, rows_of
from tests.helpers.s3 import store_of

SNAPSHOT = Path(tldextract.__file__).with_name(".tld_set_snapshot")
URLS = {
    "https://www.example.co.uk/a": "example.co.uk",
    "http://Example.CO.UK:80/b?c=//d.org": "example.co.uk",
    "https://user@shop.example.co.uk\\c": "example.co.uk",
    "https://münchen.de/": "xn--mnchen-3ya.de",
    "https://www.xn--mnchen-3ya.de/": "xn--mnchen-3ya.de",
    "https://someone.github.io/": "github.io",
    "https://co.uk/": "co.uk",
    "http://192.0.2.7/x": "192.0.2.7",
    "http://[2001:db8::1]/x": "",
    "https://intranet/": "intranet",
    "doc-7": "",
    "urn:isbn:1": "",
}
ROWS = st.lists(
    st.tuples(st.sampled_from(["", "a.com", "b.com", "é.com", "😀.com", "z.com"]), *[st.integers(0, 9)] * 3)
)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A lists folder with the list of public suffixes."""
    (tmp_path / "lists" / "blocked").mkdir(parents=True)
    (tmp_path / "lists" / "blocked" / "public_suffix_list.dat").write_bytes(SNAPSHOT.read_bytes())
    return tmp_path / "lists"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus with texts of different sizes for URLS."""
    rows = [{"url": url, "text": "the sea and the land " * (1 + n % 5)} for n, url in enumerate(URLS)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    c4pipe.import_text(tmp_path / "rows.jsonl", output=tmp_path / "corpus", shards=3, workers=1)
    return tmp_path / "corpus"


def write(corpus: object, target: object, lists: Path, *more: object) -> list[dict[str, object]]:
    """Runs the command, and returns the rows of its file."""
    command = ["report", corpus, "--domains", target, "--lists", lists, "--quiet", *more]
    assert main.main([*map(str, command)]) == 0
    rows: list[dict[str, object]] = pq.read_table(target).to_pylist() if isinstance(target, Path) else []
    return rows


@given(parts=st.lists(ROWS), rows_of_run=st.integers(1, 9), rows_of_table=st.integers(1, 5))
def test_any_runs_give_the_sums_in_their_order(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[tuple[str, int, int, int]]],
    rows_of_run: int,
    rows_of_table: int,
) -> None:
    sums = defaultdict[str, list[int]](lambda: [0, 0, 0])
    for domain, *counts in (row for part in parts for row in part):
        sums[domain] = [a + b for a, b in zip(sums[domain], counts, strict=True)]
    folder = tmp_path_factory.mktemp("runs")
    names = domains._NAMES
    rows = (row for part in parts for row in part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domains, "_ROWS_OF_RUN", rows_of_run)
        patch.setattr(domains, "_ROWS_OF_TABLE", rows_of_table)
        totals = domains.sort_domains(rows, folder, folder / "out", names)
    right = sorted(
        ((domain, *counts) for domain, counts in sums.items()), key=lambda row: (-sums[str(row[0])][1], str(row[0]))
    )
    assert pq.read_table(folder / "out").to_pylist() == [dict(zip(names, row, strict=True)) for row in right]
    assert totals.largest == [domain for domain, *_ in right if domain]
    assert totals.domains == len(totals.largest)


def test_each_page_counts_for_its_registered_domain(corpus: Path, lists: Path, tmp_path: Path) -> None:
    sums = defaultdict[str, list[int]](lambda: [0, 0])
    pages = rows_of(corpus)
    assert {page["url"] for page in pages} == set(URLS)
    for page in pages:
        count = sums[URLS[page["url"]]]
        count[:] = count[0] + 1, count[1] + len(page["text"].encode())
    found = write(corpus, tmp_path / "d.parquet", lists, "--workers", "1")
    order = sorted(sums, key=lambda domain: (-sums[domain][1], domain))
    assert found == [{"domain": name, "pages": sums[name][0], "bytes": sums[name][1]} for name in order]
    write(corpus, tmp_path / "two.PARQUET", lists, "--workers", "2")
    assert (tmp_path / "two.PARQUET").read_bytes() == (tmp_path / "d.parquet").read_bytes()


def test_tokens_are_those_of_the_command_tokens(corpus: Path, lists: Path, tmp_path: Path) -> None:
    c4pipe.train_vocabulary(str(corpus / "und"), output=tmp_path / "vocab", size=16, workers=1)
    vocab = str(tmp_path / "vocab")
    found = write(corpus, tmp_path / "d.parquet", lists, "--workers", "1", "--vocab", vocab)
    assert main.main(["tokens", str(corpus), "--vocab", vocab, "--workers", "1", "--quiet"]) == 0
    shards = json.loads((corpus / "tokens.json").read_text())["shards"]
    assert sum(int(str(row["tokens"])) for row in found) == sum(shard["tokens"] for shard in shards)
    assert all(int(str(row["tokens"])) > 0 for row in found)


def test_corpus_and_files_can_be_in_a_store(
    moto: str, corpus: Path, lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(corpus, tmp_path / "d.parquet", lists, "--eu-summary", tmp_path / "eu.md", "--workers", "1")
    objects = {f"bucket/{name}": data for name, data in contents(corpus, "corpus/").items()}
    with store_of(moto, objects, monkeypatch) as store:
        write("s3://bucket/corpus", "s3://bucket/d.parquet", lists, "--eu-summary", "s3://bucket/eu.md")
        assert store.get("/bucket/d.parquet") == (tmp_path / "d.parquet").read_bytes()
        assert store.get("/bucket/eu.md") == (tmp_path / "eu.md").read_bytes()
        command = ["report", "s3://bucket/corpus", "--domains", "s3://bucket/d.parquet", "--lists", str(lists)]
        assert main.main(command) == 2


def test_a_damaged_shard_leaves_no_file(
    corpus: Path, lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = max(corpus.glob("und/*.parquet"), key=lambda path: path.stat().st_size)
    shard.write_bytes(b"x" * shard.stat().st_size)
    (tmp_path / "out").mkdir()
    files = ["--domains", str(tmp_path / "out" / "d.parquet"), "--eu-summary", str(tmp_path / "out" / "eu.md")]
    assert main.main(["report", str(corpus), *files, "--lists", str(lists), "--workers", "1"]) == 1
    assert f"{shard} can't be read" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
