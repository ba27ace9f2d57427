"""Plans and token files of a mix of several sources."""

import hashlib
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pyarrow.parquet as pq
import pytest
import sentencepiece

import c4pipe
from c4pipe import read
from c4pipe.cli import main
from c4pipe.io.text import parse_toml
from c4pipe.tokens import find_pages, shuffle
from tests.helpers.crawls import files_of
from tests.helpers.megatron import read_indexed
from tests.read.test_mix_file import url_of

MIX = """
target_tokens = 20_000
[[sources]]
path = "first"
share = 0.7
column = "score"
by = "topic"
[[sources]]
path = "second/und"
share = 0.3
"""


@pytest.fixture
def folder(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `sources`, as the current one."""
    monkeypatch.chdir(sources)
    return sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two corpora, a vocabulary and a mix."""
    folder = tmp_path_factory.mktemp("mix")
    for name, size, columns in (("first", 300, ["score:float", "topic"]), ("second", 100, [])):
        rows: list[dict[str, Any]] = [
            {
                "text": " ".join(["the sea and the land", name] * (1 + number % 30)),
                "url": url_of(name, number),
            }
            | ({"score": number * 7 % 300, "topic": "art" if number % 4 else "science"} if columns else {})
            for number in range(size)
        ]
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        c4pipe.import_text(folder / "rows.jsonl", output=folder / name, columns=columns, shards=2, workers=1)
    c4pipe.train_vocabulary(str(folder / "first" / "und"), output=folder / "vocab", size=25, workers=1)
    (folder / "mix.toml").write_text(MIX)
    return folder


def run(*arguments: Any) -> int:
    return main.main(["tokens", *map(str, arguments), "--vocab", "vocab", "--workers", "1"])


def test_a_mix_is_planned_in_one_table_and_then_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan", "mix.toml") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    assert rows[0] == ["source", "label", "bucket", "tokens", "times", "taken"]
    assert [row[0] for row in rows[1:-2]] == ["first"] * (len(rows) - 3)
    processor = sentencepiece.SentencePieceProcessor(model_file="vocab/spm.model")
    size_of = {
        page["url"]: len(processor.encode(page["text"])) + 1
        for name in ("first", "second")
        for page in read.documents(name)
    }
    there = sum(size for url, size in size_of.items() if "second" in url)
    assert rows[-2] == ["und", "100.0%", f"{there:,}", f"{6000 / there:.3g}", "6,000"]
    assert rows[-1] == ["all", f"{sum(size_of.values()):,}", f"{20_000 / sum(size_of.values()):.3f}", "20,000"]
    mixture = read.mix("mix.toml", seed=1)
    epoch = sum(sum(source.rows) for source in mixture._sources)
    taken = [size_of[page["url"]] for page in islice(mixture, 20 * epoch)]
    assert sum(taken) == pytest.approx(20 * 20_000, rel=0.02)


def test_the_most_tokens_of_a_mix_can_be_reached(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan", "mix.toml", "--target-tokens", "10_000_000", "--quiet") == 2
    error = capsys.readouterr().err
    assert "mix.toml: target_tokens 10,000,000 can't be reached: at most " in error
    assert error.endswith("for the label 'science', of the source first; give a smaller target, or other limits\n")
    most = int(error.partition("at most ")[2].partition(" ")[0].replace(",", ""))
    assert run("--plan", "mix.toml", "--target-tokens", most + 2, "--quiet") == 2
    assert run("--plan", "mix.toml", "--target-tokens", most, "--quiet") == 0
    capsys.readouterr()
    assert run("--plan", "mix.toml", "--target-tokens", most, "--max-repeat", "3", "--quiet") == 2
    assert "with max_repeat 3 and drop 0.4" in capsys.readouterr().err
    Path("shares.toml").write_text(MIX.replace("0.7", "0.1").replace("0.3", "0.9"))
    assert run("--plan", "shares.toml", "--target-tokens", "10_000_000", "--quiet") == 2
    assert "drop 0.4, of the source second/und; give" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["first", "--plan", "mix.toml"], "a mix names its corpora: leave out first, or the mix"),
        (["--plan", "score@1:1"], "the following arguments are required: CORPUS"),
        (["--find", "1"], "the following arguments are required: CORPUS"),
        (["--plan", "mix.toml", "--best-first", "score"], "--best-first is not for a count of tokens"),
        (["--plan", "mix.toml", "--budget-subset", "9"], "--budget-subset is not for a mix"),
        (["--plan", "lost.toml"], "lost.toml, source lost: lost has no manifest.json"),
        (["--plan", "own.toml"], "own.toml, source first: target_tokens 10,000,000 can't be reached"),
    ],
)
def test_wrong_plans_are_one_sentence(
    arguments: list[str], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("lost.toml").write_text('[[sources]]\npath = "lost"\n')
    Path("own.toml").write_text('[[sources]]\npath = "first"\ntarget_tokens = 10_000_000\n')
    assert run(*arguments, "--quiet") == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_source_without_train_documents_reaches_no_target(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.jsonl").write_text(json.dumps({"text": "the sea and the land", "url": url_of("empty", 7)}))
    c4pipe.import_text("rows.jsonl", output="empty", workers=1)
    Path("mix-empty.toml").write_text(MIX.replace("second/und", "empty"))
    Path("all.toml").write_text("target_tokens = 9")
    more = "can't be reached: at most 0 tokens are there with max_repeat 7 and drop 0.4"
    for plan in (["empty", "--plan", "all.toml"], ["--plan", "mix-empty.toml"]):
        assert run(*plan) == 2
        assert more in capsys.readouterr().err.splitlines()[-1]


def test_the_current_folder_has_a_name_in_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("first")
    more = ["--vocab", str(folder / "vocab"), "--workers", "1"]
    assert main.main(["tokens", ".", "--plan", "score@0.5:0,1:2", *more]) == 0
    assert capsys.readouterr().out.splitlines()[-2].split()[0] == "first"


# Token files

WRITTEN = """
seed = 3
[[sources]]
path = "first"
column = "score"
by = "topic"
quantiles = [[0.5, 0], [0.9, 1.5], [1, 4]]
[[sources]]
path = "second/und"
quantiles = [[1, 2]]
"""


def write(output: str, text: str = WRITTEN, layout: str = "megatron", workers: int = 1) -> int:
    Path("written.toml").write_text(text)
    more = ["--vocab", "vocab", "--workers", str(workers), "--quiet"]
    return main.main(["tokens", "--weights", "written.toml", "--format", layout, "--output", output, *more])


def wanted_order() -> list[str]:
    """The URLs of the train documents in the order of their hashes, by plain Python."""
    weights = {"column": "score", "by": "topic", "seed": 3, "quantiles": [[0.5, 0], [0.9, 1.5], [1, 4]]}
    times = [Counter(page["url"] for page in read.documents("first", weights=weights))]
    times.append(Counter({page["url"]: 2 for page in read.documents("second")}))
    keys = dict[int, str]()
    for number, source in enumerate(times):
        for url, count in source.items():
            first, step = mmh3.hash64(f"{number} {url}", 3, signed=False)
            keys |= {(first + turn * step) % 2**64: url for turn in range(count)}
    return [keys[key] for key in sorted(keys)]


@pytest.mark.parametrize("documents", [1 << 16, 30])
def test_a_mix_is_written_in_the_order_of_the_hash(
    documents: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "_DOCUMENTS", documents)
    assert write(f"by-{documents}") == 0
    rows = pq.read_table(f"by-{documents}/c4-und-train_documents.parquet").to_pylist()
    assert [row["url"] for row in rows] == wanted_order()
    pages = {page["url"]: page["text"] for name in ("first", "second") for page in read.documents(name)}
    processor = sentencepiece.SentencePieceProcessor(model_file="vocab/spm.model")
    ids = read_indexed(Path(f"by-{documents}/c4-und-train_text_document")).rows
    assert ids == [processor.encode(pages[row["url"]], add_eos=True) for row in rows]
    assert [row["start"] for row in rows] == [0, *np.cumsum([row["tokens"] for row in rows])[:-1]]
    for number in (0, 99, len(rows) - 1):
        (place,) = find_pages(f"by-{documents}/c4-und-train_text_document", number)
        assert pq.read_table(place.shard)["url"][place.row].as_py() == place.url == rows[number]["url"]
    rows = pq.read_table(f"by-{documents}/c4-und-validation_documents.parquet").to_pylist()
    assert sorted(row["url"] for row in rows) == [url_of("first", 7), url_of("second", 7)]


def test_the_same_bytes_on_two_workers_in_windows_and_in_all_formats(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "_DOCUMENTS", 50)
    assert write("two", workers=2) == 0
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert write("one") == 0
    assert files_of(folder / "one") == files_of(folder / "two")
    written = c4pipe.write_token_files(None, "vocab", output="python", weights=parse_toml(WRITTEN), workers=1)
    assert files_of(folder / "python") == files_of(folder / "one")
    ids = (folder / "one" / "c4-und-train_text_document.bin").read_bytes()
    for layout, name in (("olmo", "c4-und-train.npy"), ("nanogpt", "train.bin")):
        assert write(layout, layout=layout) == 0
        assert (folder / layout / name).read_bytes() == ids
    manifest: Any = written.manifest
    digests = [c4pipe.open_corpus(name).digest for name in ("first", "second")]
    assert [(each["path"], each["manifest"], each["languages"]) for each in manifest["sources"]] == [
        ("first", digests[0], ["und"]),
        ("second/und", digests[1], ["und"]),
    ]
    assert manifest["manifest"] == hashlib.sha256("".join(digests).encode()).hexdigest()


def test_another_mix_is_refused_and_damage_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write("kept") == 0
    before = files_of(folder / "kept")
    assert write("kept") == 0
    assert files_of(folder / "kept") == before
    assert write("kept", WRITTEN.replace("[1, 2]", "[1, 3]")) == 2
    assert "kept has other token files (sources: [{" in capsys.readouterr().err
    assert write("kept", WRITTEN.replace("seed = 3", "seed = 4")) == 2
    assert "kept has other token files (seed: 3, and here 4)" in capsys.readouterr().err
    shard = next((folder / "second" / "und").glob("c4-train-*"))
    whole = shard.read_bytes()
    middle = 100  # of the first column, url
    shard.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    assert write("damaged") == 1
    shard.write_bytes(whole)
    part = next((folder / "damaged" / "_parts").glob("*.ids"))
    data = part.read_bytes()
    part.write_bytes(data[:900] + bytes([data[900] ^ 1]) + data[901:])
    capsys.readouterr()
    assert write("damaged") == 1
    assert f"{part} is damaged: its checksum is another one; delete it" in capsys.readouterr().err
    part.unlink()
    assert write("damaged") == 0
    assert files_of(folder / "damaged") == before


def test_several_languages_are_one_set(folder: Path, small_corpus: Path) -> None:
    text = "".join(f"[[sources]]\npath = '{small_corpus}/{name}'\n" for name in ("de", "en"))
    assert write("languages", text) == 0
    manifest = json.loads(Path("languages/manifest.json").read_text())
    assert (manifest["languages"], list(manifest["totals"])) == (["de", "en"], ["mul"])
    rows = pq.read_table("languages/c4-mul-train_documents.parquet")
    pages = [page["url"] for page in read.documents(small_corpus)]
    assert sorted(rows["url"].to_pylist()) == sorted(pages) != rows["url"].to_pylist()


def test_a_plan_is_of_one_tokenizer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = MIX.replace("20_000", "21_000")
    assert write("planned", target) == 2
    assert "first has no plan of these weights in tokens.json for its train split: write" in capsys.readouterr().err
    assert run("--plan", "written.toml", "--quiet") == 0
    assert write("planned", target) == 0
    rows = pq.read_table("planned/c4-und-train_documents.parquet")
    assert sum(rows["tokens"].to_pylist()) == pytest.approx(21_000, rel=0.02)
    c4pipe.train_vocabulary("second/und", output="other", size=20, workers=1)
    one = ["first", "--weights", "one.toml", "--format", "olmo", "--output", "other-files", "--quiet", "--workers", "1"]
    Path("one.toml").write_text('column = "score"\nby = "topic"\ntarget_tokens = 14_700\n')
    for more in ([*one], ["--weights", "written.toml", *one[3:]]):
        assert main.main(["tokens", *more, "--vocab", "other"]) == 2
        assert (
            "first has no plan of these weights in tokens.json for its train split by this" in capsys.readouterr().err
        )
