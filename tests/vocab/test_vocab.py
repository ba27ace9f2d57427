"""Vocabularies end to end: corpus to vocabulary to ids to text, the same however it is made, and what can go wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c4pipe.errors import DamagedFileError
from c4pipe.io import paths
from c4pipe.objectives import Tokenizer
from c4pipe.tokens.tokenizer import open_tokenizer
from c4pipe.vocab import job, load_model, model, sample, train
from c4pipe.vocab.request import Settings
from tests.helpers.commands import heed_interrupts, run
from tests.helpers.web_data import by_data

WORDS = (
    "the of and a to in is that it was for on are as with his they at be this from have or by one had not but what all"
)


def pages(start: int, count: int) -> list[str]:
    """Made-up pages of several lines; each is another one."""
    words = WORDS.split()

    def line(seed: int) -> str:
        return " ".join(words[(seed * (n + 3) + n * n) % len(words)] + "ing" * (seed * n % 3 == 1) for n in range(12))

    return [
        f"Page {number} of some.\n{line(number)}.\n{line(number * 7 + 1)}." for number in range(start, start + count)
    ]


def write(path: Path, texts: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def made(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / model.VOCAB_FILE).read_text())
    return values


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != job.TRAINER_LOG}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two sources: a file, and a folder of several files and kinds, with half as much text."""
    folder = tmp_path_factory.mktemp("text")
    one = write(folder / "one.jsonl", pages(0, 400))
    write(folder / "two" / "a.jsonl", pages(400, 120))
    (folder / "two" / "b.txt").write_text("".join(text.replace("\n", " ") + "\n" for text in pages(520, 80)))
    return f"{one}:3", f"{folder / 'two'}:1"


@pytest.fixture(scope="module")
def vocabulary(sources: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary") / "v"
    assert run("vocab", *sources, "--size", 100, "--output", folder, "--workers", 1, "--quiet") == 0
    return folder


def test_a_vocabulary_says_what_it_is_made_of(vocabulary: Path) -> None:
    tokenizer = ["tokenizer.json", "tokenizer_config.json"]
    assert sorted(bytes_of(vocabulary)) == ["quality.json", "spm.model", "spm.vocab", *tokenizer, "vocab.json"]
    values = made(vocabulary)
    one, two = values["training_data"]
    assert one["bytes"] == pytest.approx(3 * two["bytes"], abs=3)
    assert one["sentences"] > two["sentences"] > 50
    assert values["sources"][1]["content"][0]["name"] == "a.jsonl"
    assert values["parameters"]["num_threads"] == 16
    pieces = (vocabulary / "spm.vocab").read_text().splitlines()
    assert [piece.partition("\t")[0] for piece in pieces[:3]] == ["<pad>", "</s>", "<unk>"]
    assert len(pieces) == 100


def test_a_vocabulary_of_all_languages_of_a_corpus(small_corpus: Path, tmp_path: Path) -> None:
    arguments = ["--temperature", 2, "--byte-fallback", "--coverage", 0.99999, "--workers", 1, "--quiet"]
    size = ["--size", 400]
    assert run("vocab", small_corpus, *arguments, *size, "--output", tmp_path / "v") == 0
    sources = made(tmp_path / "v")["sources"]
    assert [source["name"] for source in sources] == ["de", "en"]
    rows = [
        sum(pq.read_metadata(path).num_rows for path in (small_corpus / language).glob("c4-train-*.parquet"))
        for language in ("de", "en")
    ]
    assert sources[1]["weight"] / sources[0]["weight"] == pytest.approx(sqrt(rows[1] / rows[0]), rel=1e-4)


@pytest.mark.slow
def test_the_same_bytes_however_it_is_run(sources: tuple[str, str], vocabulary: Path, tmp_path: Path) -> None:
    # Another folder, two processes, and the pages of a source in other files of the same names.
    assert run("vocab", *sources, "--size", 100, "--output", tmp_path / "v", "--workers", 2, "--quiet") == 0
    names = ("spm.model", "spm.vocab", "tokenizer.json", "tokenizer_config.json", "vocab.json")
    assert [(tmp_path / "v" / name).read_bytes() for name in names] == [
        (vocabulary / name).read_bytes() for name in names
    ]
    texts = pages(0, 400)
    split = tmp_path / "one"
    write(split / "x.jsonl", texts[300:])
    write(split / "y.jsonl", texts[:300])
    more = [f"{split}:3", sources[1]]
    assert run("vocab", *more, "--size", 100, "--output", tmp_path / "w", "--workers", 1, "--quiet") == 0
    assert (tmp_path / "w" / "spm.model").read_bytes() == (vocabulary / "spm.model").read_bytes()
    assert made(tmp_path / "w")["sample_sha256"] == made(vocabulary)["sample_sha256"]


def test_a_complete_vocabulary_is_left_as_it_is(
    sources: tuple[str, str], vocabulary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in vocabulary.glob("spm.*")}
    assert run("vocab", *sources, "--size", 100, "--output", vocabulary) == 0
    assert {path: path.stat().st_mtime_ns for path in vocabulary.glob("spm.*")} == before
    assert run("vocab", *sources, "--size", 110, "--output", vocabulary) == 2
    assert (
        "holds a vocabulary of other text or settings (settings.size: 100 there, 110 now): " in capsys.readouterr().err
    )
    assert run("vocab", *sources, "--size", 100, "--repeat", "--output", vocabulary) == 2
    assert "(repeat: False there, True now)" in capsys.readouterr().err
    assert run("vocab", sources[0], "--size", 100, "--output", vocabulary) == 2
    assert "(sources[" in capsys.readouterr().err


def test_symbols_and_digits_are_settings(
    sources: tuple[str, str], vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(vocabulary)["settings"].keys().isdisjoint({"split_digits", "user_symbols"})
    base = ["vocab", *sources, "--size", 90, "--output"]
    more = ["--split-digits", "--user-symbols", "<|user|>", "--user-symbols", "=="]
    assert run(*base, tmp_path / "v", *more, "--quiet") == 0
    description = made(tmp_path / "v")
    assert description["settings"]["user_symbols"] == ["<|user|>", "=="]
    assert description["settings"]["split_digits"] is True
    assert description["parameters"]["user_defined_symbols"] == ["<|user|>", "=="]
    assert load_model(tmp_path / "v" / "spm.model").pieces[3:5] == ["<|user|>", "=="]
    assert run(*base, tmp_path / "v", *more) == 0
    capsys.readouterr()
    assert run(*base, tmp_path / "v") == 2
    assert "(settings.split_digits: True there, None now)" in capsys.readouterr().err
    assert run("vocab", *sources, "--size", 100, "--output", vocabulary, *more[1:]) == 2
    assert "(settings.user_symbols: None there, a list now)" in capsys.readouterr().err
    for symbol in ("", "a b", "</s>", "<extra_id_3>", "ﬁ"):
        assert run(*base, tmp_path / "w", "--user-symbols", symbol) == 2
        assert f"--user-symbols {symbol!r}: give a text without blanks" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["spm.model", "spm.vocab", "tokenizer.json", "tokenizer_config.json"])
def test_a_vocabulary_whose_files_were_changed(
    sources: tuple[str, str], vocabulary: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(vocabulary, tmp_path / "v"))
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    assert run("vocab", *sources, "--size", 100, "--output", folder) == 2
    assert f"{folder / name} was changed: its SHA-256 is not that in vocab.json; " in capsys.readouterr().err
    if name == "spm.model":
        with pytest.raises(DamagedFileError, match="was changed"):
            load_model(folder / name)
    (folder / name).unlink()
    assert run("vocab", *sources, "--size", 100, "--output", folder) == 2
    assert f"{folder / name} is missing, and vocab.json names it: " in capsys.readouterr().err


@pytest.mark.parametrize("content", [{"!": 0, '"': 1}, {"format": "other", "files": 3}])
def test_a_vocab_json_of_another_tool(vocabulary: Path, tmp_path: Path, content: object) -> None:
    shutil.copy(vocabulary / "spm.model", tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps(content))
    assert load_model(tmp_path / "spm.model").size == 100


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on(
    sources: tuple[str, str], vocabulary: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    output = tmp_path / "v"
    arguments = [*sources, "--size", "100", "--output", str(output), "--workers", "1", "--quiet"]
    command = [sys.executable, "-m", "c4pipe", "vocab", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=heed_interrupts)
    ends = time.monotonic() + 120
    while not any(output.glob(".spm.log*")) and process.poll() is None and time.monotonic() < ends:
        time.sleep(0.005)
    assert process.poll() is None
    (process.kill if sent == signal.SIGKILL else lambda: os.killpg(process.pid, sent))()
    assert process.wait(30) in (-signal.SIGKILL, 130)
    parts = {path: path.stat().st_mtime_ns for path in (output / job.SAMPLE_FOLDER).glob("part-*")}
    assert len(parts) == 2
    assert not (output / model.VOCAB_FILE).exists()
    time.sleep(1.5)  # the trainer looks once a second whether its run is there
    assert run("vocab", *arguments) == 0
    assert bytes_of(output).keys() == bytes_of(vocabulary).keys()
    assert (output / "spm.model").read_bytes() == (vocabulary / "spm.model").read_bytes()


def test_a_part_that_was_lost_is_an_error(
    sources: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = paths.file_sizes
    monkeypatch.setattr(job, "file_sizes", lambda *given: dict(list(before(*given).items())[1:]))
    assert run("vocab", *sources, "--size", 100, "--output", tmp_path, "--workers", 1, "--quiet") == 1
    assert re.search(r"the sample is not what was counted: part-00\d-00000.txt should have", capsys.readouterr().err)


@pytest.mark.parametrize("file", ["part-000-00000.txt", "count-000-00000.json", "of.json", "parts.json"])
def test_a_sample_that_was_changed_is_not_trained_on(
    file: str, sources: tuple[str, str], vocabulary: Path, tmp_path: Path
) -> None:
    output = tmp_path / "v"
    assert run("vocab", *sources, "--size", 30_000, "--output", output, "--workers", 1, "--quiet") == 2  # leaves it
    changed = output / job.SAMPLE_FOLDER / file
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(data)
    assert run("vocab", *sources, "--size", 100, "--output", output, "--workers", 1, "--quiet") == 0
    assert (output / "spm.model").read_bytes() == (vocabulary / "spm.model").read_bytes()
    assert made(output)["sample_sha256"] == made(vocabulary)["sample_sha256"]


def test_the_trainer_compares_the_sample_with_its_digests(tmp_path: Path) -> None:
    (tmp_path / "part-000-00000.txt").write_text("A line.\n" * 50)
    settings, portion = Settings(size=8), train.Portion("a", 400, ((sample.BINS, 400),))
    task = {
        "folder": str(tmp_path),
        "portions": [asdict(portion)],
        "parameters": settings.parameters(),
        "sentinels": 0,
        "digests": {"part-000-00000.txt": "0" * 64},
        "target": str(tmp_path / "spm.model"),
    }
    with pytest.raises(DamagedFileError, match=r"part-000-00000\.txt is damaged: it was changed"):
        train.run_trainer(task, tmp_path / "log")
    assert not (tmp_path / "spm.model").exists()


def test_too_little_text_is_said_with_numbers(
    sources: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (source.rpartition(":")[0] for source in sources)
    shrunk, repeated = tmp_path / "a", tmp_path / "b"
    few = ["--size", 100, "--sample-bytes", 60_000, "--workers", 1]
    assert run("vocab", f"{one}:1", f"{two}:1", *few, "--output", shrunk) == 0
    says = capsys.readouterr().err
    assert re.search(r"two has [\d,]+ bytes of text, its weight asks for 30,000: the sample has [\d,]+ bytes", says)
    first, second = (each["bytes"] for each in made(shrunk)["training_data"])
    assert first == second < 30_000
    assert run("vocab", f"{one}:1", f"{two}:1", *few, "--output", repeated, "--repeat") == 0
    assert re.search(
        r"two has [\d,]+ bytes of text, its weight asks for 30,000: taken 1\.\d times", capsys.readouterr().err
    )
    assert [each["bytes"] for each in made(repeated)["training_data"]] == [30_000, 30_000]


def test_baked_sentinels_are_the_last_pieces(sources: tuple[str, str], vocabulary: Path, tmp_path: Path) -> None:
    more = ["--bake-sentinels", "--output", tmp_path, "--workers", 1, "--quiet"]
    assert run("vocab", *sources, "--size", 100, *more) == 0
    pieces = (tmp_path / "spm.vocab").read_text().splitlines()
    assert pieces[:100] == (vocabulary / "spm.vocab").read_text().splitlines()
    assert pieces[100:] == [f"<extra_id_{number}>\t0" for number in reversed(range(100))]
    texts = ["so <extra_id_0> is text", "<extra_id_99>", "a<extra_id_5>"]  # of pages: the ids of their characters
    plain, baked = (Tokenizer(folder).encode(texts).values.tolist() for folder in (vocabulary, tmp_path))
    assert baked == plain
    assert max(baked) < 100
    assert open_tokenizer(str(tmp_path)).load().encode(texts, texts).values.max() < 100


@pytest.mark.parametrize("baked", [False, True])
def test_the_number_of_sentinels_is_a_choice(sources: tuple[str, str], tmp_path: Path, baked: bool) -> None:
    more = ["--bake-sentinels"] if baked else []
    assert run("vocab", *sources, "--size", 100, "--sentinels", 250, *more, "--output", tmp_path, "--quiet") == 0
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    names = [f"<extra_id_{number}>" for number in reversed(range(250))]
    assert [piece for piece, _ in tokenizer["model"]["vocab"][100:]] == names
    added = {each["content"]: each["id"] for each in tokenizer["added_tokens"]}
    assert (added["<extra_id_0>"], added["<extra_id_249>"], len(added)) == (349, 100, 253)
    assert load_model(tmp_path / "spm.model").size == (350 if baked else 100)
    ids = Tokenizer(tmp_path / "spm.model").ids
    assert (ids.size, ids.sentinels) == (350, 250)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["empty.txt"], "empty.txt has no page to train on: leave it out"),
        (["one.jsonl", "--size", "90000"], r"--size 90000: the text has \d+ pieces at most; give that or less"),
        (["one.jsonl", "--size", "20"], r"--size 20: the text's characters alone need \d+ pieces"),
        (["one.jsonl", "--normalization", "x"], "--normalization x: give one of nmt_nfkc"),
        (["one.jsonl", "--coverage", "1.5"], "--coverage 1.5: give a share"),
        (["one.jsonl", "--sentinels", "-1"], "--sentinels -1: give 0 to 100,000; T5 has 100"),
        (["one.jsonl", "--sample-bytes", "3"], "--sample-bytes 3: give at least"),
        (["one.jsonl", "--runner=FlinkRunner", "--", "--output_executable_path=x"], "writes one job to a file"),
        (["one.jsonl", "--output", "corpus"], "--output corpus is a corpus: give another folder, such as corpus-vocab"),
        (["bad.jsonl"], r"bad.jsonl, line 2: 'no' is no JSON object with a \"text\""),
    ],
)
def test_every_mistake_is_one_sentence(
    arguments: list[str],
    says: str,
    sources: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "one.jsonl", pages(0, 40))
    (tmp_path / "empty.txt").touch()
    (tmp_path / "bad.jsonl").write_text('{"text": "so"}\nno\n')
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "manifest.json").touch()
    workers = [] if "--runner=FlinkRunner" in arguments else ["--workers", 1]  # which would be another mistake there
    output = [] if "--output" in arguments else ["--output", "v"]
    assert run("vocab", "--quiet", *output, *workers, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(says, line)
    assert not (tmp_path / "v" / model.VOCAB_FILE).exists()


# Real pages


@pytest.fixture(scope="module")
def real(largest_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of web pages, `web`, and one of a handbook in many languages, `book`."""
    folder = tmp_path_factory.mktemp("real")
    for name, file in (("web", "web-articles"), ("book", "multilingual-handbook")):
        pages = largest_data / "pages" / f"{file}.warc.wet.gz"
        more = ["--languages", "en,de,fr,ro", "--lists", largest_data / "lists", "--quiet"]
        assert run("build", pages, *more, "--output", folder / name) == 0
    return folder


@pytest.mark.slow
def test_the_mix_takes_fewer_tokens(real: Path, largest_data: Path, tmp_path: Path) -> None:
    # The paper's mix, and English alone. The handbook's English pages are no part of either: many hold French.
    french, romanian = (largest_data / "text" / f"{language}.jsonl" for language in ("fr", "ro"))
    # The project's own pages have little text: they get a smaller vocabulary, and more of the other languages.
    german = by_data(largest_data, shipped=largest_data / "text" / "de.jsonl", real=real / "web" / "de")
    size, weights = by_data(largest_data, shipped=(2000, (10, 4.0, 3.0, 4.0, 1)), real=(4000, (10, 1.0, 0.5, 0.5, 1)))
    text = [f"{real}/web/en", german, f"{real}/book/fr", french, romanian]
    weighted = [f"{path}:{weight}" for path, weight in zip(text, weights, strict=True)]
    assert run("vocab", *weighted, "--size", size, "--output", tmp_path / "mix", "--quiet") == 0
    assert run("vocab", text[0], "--size", size, "--output", tmp_path / "alone", "--quiet") == 0
    more = ["--compare", tmp_path / "mix", "--output", tmp_path / "report", "--quiet"]
    assert run("vocab-report", tmp_path / "alone", *text, *more) == 0
    figures = json.loads((tmp_path / "report" / "quality.json").read_text())
    tokens = {(each["source"], each["vocabulary"]): each["tokens"] for each in figures}
    for source in (f"{german.parent.name}/{german.stem}", "book/fr", "text/fr", "text/ro"):
        (name,) = {name for name, _ in tokens if name.endswith(source)}
        assert tokens[name, "mix"] < 0.8 * tokens[name, "alone"]
    assert all(each["pages"] and each["used_share"] < 1 for each in figures)


@pytest.mark.slow
def test_ids_become_text_again(largest_data: Path, tmp_path: Path) -> None:
    import sentencepiece

    french, romanian = (largest_data / "text" / f"{language}.jsonl" for language in ("fr", "ro"))
    more = ["--byte-fallback", "--normalization", "identity", "--output", tmp_path, "--quiet"]
    assert run("vocab", french, romanian, "--size", 2000, *more) == 0
    loaded = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    lines = [line for row in french.read_text().splitlines() for line in json.loads(row)["text"].split("\n")]
    lines = [" ".join(line.split()) for line in lines]
    assert len(lines) > by_data(largest_data, shipped=250, real=500)
    assert loaded.decode(loaded.encode(lines)) == lines
