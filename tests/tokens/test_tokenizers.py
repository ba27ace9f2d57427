"""Tokens by each kind of tokenizer, against its library in plain Python."""

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from c4pipe import read
from c4pipe.cli import main
from c4pipe.errors import C4pipeError
from c4pipe.tokens.folder import find_pages
from c4pipe.tokens.tokenizer import open_tokenizer
from tests.helpers.commands import run_tokens as run
from tests.helpers.crawls import files_of
from tests.helpers.hub import serve_hub
from tests.helpers.megatron import read_indexed
from tests.helpers.web_data import by_data

pytestmark = pytest.mark.consumers  # Transformers makes the files

END = "<|endoftext|>"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


@pytest.fixture(scope="module")
def texts(small_corpus: Path) -> list[str]:
    """The documents of the English train split, in order."""
    files = sorted((small_corpus / "en").glob("c4-train-*.parquet"))
    return [text for file in files for text in pq.read_table(file)["text"].to_pylist()]


@pytest.fixture(scope="module")
def bpe(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `tokenizer.json` of byte-level BPE as that of GPT-2, which cuts and pads as those of some models do."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet))
    tokenizer.add_special_tokens([END, "<s>"])
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=16)
    file = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    tokenizer.save(str(file))
    return file


@pytest.fixture(scope="module")
def ids(bpe: Path, texts: list[str]) -> list[list[int]]:
    """The ids of each document, with that of its end."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(bpe))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [[*tokenizer.encode(text).ids, *tokenizer.encode(END).ids] for text in texts]


@pytest.fixture(scope="module")
def folder(bpe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tokenizer as Transformers saves it, with a name for the end that no list knows."""
    folder = tmp_path_factory.mktemp("transformers")
    (folder / "tokenizer.json").write_text(bpe.read_text().replace(END, "<end>"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": None, "model_max_length": 8}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": "<end>"}}))
    return folder


@pytest.fixture(scope="module")
def ranks(bpe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tokens as a tiktoken file, with its pattern beside it."""
    data = json.loads(bpe.read_text())["model"]["vocab"]
    printable = [number for number in range(256) if chr(number).isprintable() and chr(number) != " "]
    other = [number for number in range(256) if number not in printable]
    byte_of = {chr(n): n for n in printable} | {chr(256 + place): n for place, n in enumerate(other)}
    tokens = {rank: bytes(byte_of[letter] for letter in token) for token, rank in data.items()}
    file = tmp_path_factory.mktemp("ranks") / "own.tiktoken"
    file.write_bytes(b"".join(b"%s %d\n" % (base64.b64encode(tokens[rank]), rank) for rank in sorted(tokens)))
    special = {END: len(tokens), "<s>": len(tokens) + 1}
    file.with_suffix(".json").write_text(json.dumps({"pat_str": GPT2, "special_tokens": special}))
    return file


def megatron_rows(corpus: Path, output: Path, *arguments: Any) -> list[list[int]]:
    assert run(corpus, "--format", "megatron", "--output", output, *arguments) == 0
    return read_indexed(output / "c4-en-train_text_document").rows


# The kinds of files


def test_a_tokenizer_json(small_corpus: Path, bpe: Path, ids: list[list[int]], tmp_path: Path) -> None:
    assert megatron_rows(small_corpus, tmp_path / "new", "--vocab", bpe) == ids
    manifest = json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert manifest["vocabulary"] == open_tokenizer(str(bpe)).sha256
    assert manifest["versions"].keys() == {"c4pipe", "tokenizers", "tiktoken"}
    (place,) = find_pages(tmp_path / "new" / "c4-en-train.bin", 3)
    assert place.tokens == len(ids[3])
    assert run(small_corpus, "--vocab", bpe, "--format", "npy", "--length", 50, "--output", tmp_path / "npy") == 0
    joined = [each for row in ids for each in row]
    assert np.load(tmp_path / "npy" / "c4-en-train.npy").ravel().tolist() == joined[: len(joined) // 50 * 50]


def test_a_folder_of_transformers(small_corpus: Path, folder: Path, ids: list[list[int]], tmp_path: Path) -> None:
    assert megatron_rows(small_corpus, tmp_path / "new", "--vocab", folder) == ids


def test_a_tiktoken_file(small_corpus: Path, ranks: Path, ids: list[list[int]], tmp_path: Path) -> None:
    assert megatron_rows(small_corpus, tmp_path / "new", "--vocab", ranks) == ids
    assert megatron_rows(small_corpus, tmp_path / "folder", "--vocab", ranks.parent) == ids
    again = shutil.copytree(ranks.parent, tmp_path / "other")
    beside = again / "own.json"
    beside.write_text(beside.read_text().replace("[sdmt]", "[sdt]"))
    assert open_tokenizer(str(again)).sha256 != open_tokenizer(str(ranks)).sha256


def test_a_slow_tokenizers_folder(small_corpus: Path, texts: list[str], tmp_path: Path) -> None:
    import sentencepiece

    options = ["--size", "300", "--workers", "1", "--quiet", "--output", str(tmp_path / "made")]
    assert main.main(["vocab", str(small_corpus / "en"), *options]) == 0
    (tmp_path / "slow").mkdir()
    shutil.copy(tmp_path / "made" / "spm.model", tmp_path / "slow" / "spiece.model")
    (tmp_path / "slow" / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "slow" / "spiece.model"))
    rows = megatron_rows(small_corpus, tmp_path / "new", "--vocab", tmp_path / "slow")
    assert rows == [processor.encode(text, add_eos=True) for text in texts]


def test_a_repository_of_the_hub(small_corpus: Path, folder: Path, ids: list[list[int]], tmp_path: Path) -> None:
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    repositories = {"org/tok": {**files, "model.safetensors": b"large"}, "org/none": {"README.md": b"none"}}
    with serve_hub(repositories) as url:

        def command(name: str) -> "subprocess.CompletedProcess[str]":
            environment = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home")}
            more = ["--format", "megatron", "--output", str(tmp_path / "new"), "--workers", "1", "--quiet"]
            start = [sys.executable, "-m", "c4pipe", "tokens", str(small_corpus), "--vocab", name]
            return subprocess.run([*start, *more], env=environment, cwd=tmp_path, capture_output=True, text=True)

        done = command("org/tok")
        assert (done.returncode, done.stderr) == (0, "")
        missing, without = command("org/no"), command("org/none")
    assert read_indexed(tmp_path / "new" / "c4-en-train_text_document").rows == ids
    assert not list((tmp_path / "home").rglob("*.safetensors"))
    (line,) = missing.stderr.splitlines()
    assert "--vocab org/no is neither a file nor a folder here, and the Hub has no such repository" in line
    assert missing.returncode == without.returncode == 2
    assert "has no tokenizer: neither spm.model, tokenizer.json" in without.stderr


HARD = [
    "",
    " ",
    "  both  ",
    "tab\tand\x00\x01\x1bcontrol\x85\x7f",
    "日本語 ไทย ᚠᚢᚦ 😀 \U0010ffff",
    "e\u0301 a\u0300\u0301",
    "</s><unk>",
]
"""Characters outside of a vocabulary, blanks at the ends, control characters, marks, names of special pieces."""


@pytest.mark.parametrize("more", [[], ["--model", "bpe", "--byte-fallback", "--user-symbols", "<|user|>"]])
def test_a_vocabulary_has_the_same_files_by_each_of_its_names(
    largest_data: Path, tmp_path: Path, more: list[str]
) -> None:
    pages = gzip.decompress((largest_data / "pages" / "multilingual-handbook.warc.wet.gz").read_bytes()).decode()
    texts = [record.partition("\r\n\r\n")[2][:5000] for record in pages.split("WARC/1.0\r\n")][::12]
    lines = [{"text": text} for text in [*texts, *(f"{text} {number}" for number, text in enumerate(HARD)), *HARD[2:]]]
    (tmp_path / "pages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    quiet = ["--workers", "1", "--quiet", "--output"]
    made = ["import", str(tmp_path / "pages.jsonl"), "--recipe", "unfiltered", *quiet, str(tmp_path / "corpus")]
    assert main.main(made) == 0
    vocabulary = tmp_path / "vocabulary"
    size = ["--size", "2000", *more]
    assert main.main(["vocab", str(tmp_path / "pages.jsonl"), *size, *quiet, str(vocabulary)]) == 0
    names = [vocabulary, vocabulary / "spm.model", vocabulary / "tokenizer.json"]
    for number, name in enumerate(names):
        arguments = ["--vocab", name, "--format", "megatron", "--output", tmp_path / str(number)]
        assert run(tmp_path / "corpus", *arguments) == 0
    assert files_of(tmp_path / "0") == files_of(tmp_path / "1") == files_of(tmp_path / "2")
    alone = Path(shutil.copy(vocabulary / "tokenizer.json", tmp_path))  # by tokenizers, as its users have it
    every = [*texts, *(text for text in HARD if "\u0301" not in text and "\x85" not in text)]
    rows, wanted = (open_tokenizer(str(name)).load().encode(every, every) for name in (alone, vocabulary))
    other = [
        number for number, pair in enumerate(zip(rows, wanted, strict=True)) if pair[0].tolist() != pair[1].tolist()
    ]
    assert len(every) > by_data(largest_data, shipped=15, real=30)
    assert len(other) <= (len(every) // 30 if not more else 0)  # unigram: other splits that are as good


# Counts and subsets


def test_counts_and_a_subset(small_corpus: Path, bpe: Path, ids: list[list[int]], tmp_path: Path, error: Any) -> None:
    corpus = Path(shutil.copytree(small_corpus, tmp_path / "corpus"))
    assert run(corpus / "en", "--vocab", bpe, "--budget-subset", 4000) == 0
    content = json.loads((corpus / "tokens.json").read_text())
    total = sum(map(len, ids))
    assert content["totals"]["en"]["train"] == {"documents": len(ids), "tokens": total}
    assert content["vocabulary"] == open_tokenizer(str(bpe)).sha256
    assert content["versions"].keys() == {"c4pipe", "tokenizers", "tiktoken"}
    ends = np.cumsum([len(row) for row in ids])
    wanted = int(np.searchsorted(ends, 4000)) + 1
    assert len(list(read.documents(corpus / "subset-en-4000.json"))) == wanted
    changed = tmp_path / "tokenizer.json"
    changed.write_text(bpe.read_text().replace('"<s>"', '"<S>"'))
    message = error(corpus, "--vocab", changed)
    assert content["vocabulary"] in message
    assert open_tokenizer(str(changed)).sha256 in message
    begin = ["--begin-of-document", "<s>"]
    assert "tokens.json has counts with another --begin-of-document" in error(corpus, "--vocab", bpe, *begin)
    (corpus / "tokens.json").unlink()
    assert run(corpus, "--vocab", bpe, *begin) == 0
    content = json.loads((corpus / "tokens.json").read_text())
    assert content["totals"]["en"]["train"]["tokens"] == total + len(ids)
    assert content["bos"] == 601


# The tokens around a document


def test_the_tokens_around_a_document_are_a_choice(
    small_corpus: Path, bpe: Path, ids: list[list[int]], tmp_path: Path, error: Any
) -> None:
    names = ["--end-of-document", "<s>", "--begin-of-document", END]
    rows = megatron_rows(small_corpus, tmp_path / "new", "--vocab", bpe, *names)
    assert rows == [[600, *row[:-1], 601] for row in ids]
    plain = [small_corpus, "--vocab", bpe, "--format", "megatron", "--output", tmp_path / "new"]
    assert "has other token files (eos: 601, and here 600)" in error(*plain)
    assert "(bos: 600, and here None)" in error(*plain, *names[:2])
    message = error(*plain, "--end-of-document", "<endoftext>")
    assert f"--end-of-document <endoftext>: {bpe} has no such special token" in message
    assert message.endswith(f"; its special tokens: '{END}', '<s>'")
    assert "--end-of-document is not for --find" in error(tmp_path / "new", "--find", 1, *names[:2])


def test_text_that_looks_like_a_special_token_is_text(bpe: Path, ranks: Path) -> None:
    for file in (bpe, ranks):
        rows = list(open_tokenizer(str(file)).load().encode([f"a{END}b", "", "c"], ["", "", ""]))
        assert [row.tolist().count(600) for row in rows] == [1, 1, 1]
        assert [row[-1] for row in rows] == [600, 600, 600]


def other_json(kind: str, texts: list[str]) -> dict[str, Any]:
    """Returns a tokenizer of another model, whose special tokens are pieces of the model, as those of T5 are."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    names = ["<pad>", "</s>", "<unk>"]
    model: Any = models.Unigram()
    trainer: Any = trainers.UnigramTrainer(vocab_size=300, special_tokens=names, unk_token="<unk>")
    if kind == "WordLevel":
        model, trainer = models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(special_tokens=names)
    elif kind != "Unigram":
        model, trainer = models.BPE(unk_token="<unk>"), trainers.BpeTrainer(vocab_size=500, special_tokens=names)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace() if kind != "WordLevel" else pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator([*texts, "</s>"], trainer)
    tokenizer.add_special_tokens(names)
    values: dict[str, Any] = json.loads(tokenizer.to_str())
    if kind == "ignore_merges":
        values["pre_tokenizer"] = {"type": "WhitespaceSplit"}
        values["model"]["ignore_merges"] = True
    if kind == "NFKC":
        values["model"]["ignore_merges"] = True
        values["pre_tokenizer"] = {"type": "WhitespaceSplit"}
        values["normalizer"] = {"type": "NFKC"}
    return values


HOSTILE = "One </s> text. \uff1c/s\uff1e </s></s> <pad> <</s>> a<unk>"


@pytest.mark.parametrize("kind", ["Unigram", "WordLevel", "BPE", "ignore_merges", "NFKC"])
def test_special_tokens_that_the_model_itself_finds_are_text(texts: list[str], tmp_path: Path, kind: str) -> None:
    from tokenizers import Tokenizer

    values = other_json(kind, texts)
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    lines = [{"text": HOSTILE, "url": "https://a.example/x"}, {"text": "Two."}, {"text": texts[0]}]
    (tmp_path / "pages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    made = ["import", str(tmp_path / "pages.jsonl"), "--quiet", "--workers", "1", "--output", str(tmp_path / "o")]
    assert main.main(made) == 0
    plain = ["--vocab", tmp_path / "tokenizer.json", "--format", "olmo", "--output", tmp_path / "new"]
    assert run(tmp_path / "o", *plain) == 0
    rows = np.fromfile(tmp_path / "new" / "c4-und-train.npy", np.uint16)
    library = Tokenizer.from_str(json.dumps(values))
    end = library.token_to_id("</s>")
    assert rows.tolist().count(end) == 3
    assert library.token_to_id("<pad>") not in rows
    library.encode_special_tokens = True
    other, hostile = open_tokenizer(str(tmp_path)).load().encode([texts[0], HOSTILE], ["", ""])
    assert other.tolist() == [*library.encode(texts[0]).ids, end]
    if kind != "WordLevel":  # which has no characters
        text = library.decode(hostile[:-1].tolist(), skip_special_tokens=False)
        assert text.replace(" ", "").count("</s>") == (5 if kind == "NFKC" else 4)


def test_a_page_with_the_id_that_ends_a_document_is_named(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "x": 1, "<unk>": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["x"])  # one character can't be divided
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    load = open_tokenizer(str(tmp_path), end="x").load()
    assert load.encode(["a ax xa a"], [""]).values.tolist() == [0, 2, 2, 0, 1]
    for url, name in (("https://a.example/2", "https://a.example/2"), ("", "'a x'")):
        with pytest.raises(C4pipeError, match=f"^{name} can't be tokenized: its text has the id of a token around"):
            load.encode(["a", "a x"], ["https://a.example/1", url])


def test_nothing_in_a_file_makes_runs_differ(bpe: Path, texts: list[str], tmp_path: Path) -> None:
    values = json.loads(bpe.read_text())
    values["model"]["dropout"] = 0.5
    part = {"Sequence": {"id": "A", "type_id": 0}}
    values["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [part] * 2,
        "pair": [part],
        "special_tokens": {},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    wanted = open_tokenizer(str(bpe)).load().encode(texts, texts).values
    assert open_tokenizer(str(tmp_path)).load().encode(texts, texts).values.tolist() == wanted.tolist()


@pytest.mark.parametrize("run", [" ", "\n", "\u3000", "^", "a", "\u4e2d"])
def test_a_million_characters_without_a_word(ranks: Path, run: str) -> None:
    from tiktoken import Encoding

    file = open_tokenizer(str(ranks))
    lines = [line.split() for line in ranks.read_bytes().splitlines()]
    tokens = {base64.b64decode(token): int(rank) for token, rank in lines}
    library = Encoding("", pat_str=GPT2, mergeable_ranks=tokens, special_tokens={})
    longest = f"x{run * 99_990}y"
    rows = list(file.load().encode([f"x{run * 1_000_000}y", longest], ["", ""]))
    assert library.decode(rows[0][:-1].tolist()) == f"x{run * 1_000_000}y"
    assert rows[1][:-1].tolist() == library.encode(longest)


def test_a_page_that_a_library_can_not_do_is_named(ranks: Path, tmp_path: Path, error: Any) -> None:
    again = shutil.copytree(ranks.parent, tmp_path / "own")
    (again / "own.json").write_text(json.dumps({"pat_str": r"(?:a|a)+(?=b)|\S+|\s+", "special_tokens": {END: 600}}))
    lines = [{"text": "good", "url": "https://a.example/1"}, {"text": "a" * 60, "url": "https://a.example/2"}]
    (tmp_path / "pages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    made = ["import", str(tmp_path / "pages.jsonl"), "--quiet", "--workers", "1", "--output", str(tmp_path / "o")]
    assert main.main(made) == 0
    for more in ([], ["--format", "olmo", "--output", tmp_path / "new"]):
        message = error(tmp_path / "o", "--vocab", again, *more, status=1)
        assert "https://a.example/2 can't be tokenized: Regex error while tokenizing" in message
        assert message.endswith(": leave the page out (c4pipe takedown), or change --vocab")


def test_ids_of_any_size(small_corpus: Path, bpe: Path, ranks: Path, tmp_path: Path, error: Any) -> None:
    again = shutil.copytree(ranks.parent, tmp_path / "own")
    (again / "own.json").write_text(json.dumps({"pat_str": GPT2, "special_tokens": {END: 3_000_000_000}}))
    count = [small_corpus, "--vocab", again, "--output", tmp_path / "new"]
    assert run(*count, "--format", "olmo") == 0
    rows = np.fromfile(tmp_path / "new" / "c4-en-train.npy", np.uint32)
    documents = json.loads((tmp_path / "new" / "manifest.json").read_text())["totals"]["en"]["train"]["documents"]
    assert rows.tolist().count(3_000_000_000) == documents
    message = error(*count[:3], "--output", tmp_path / "other", "--format", "megatron")
    assert "--format megatron has ids below 2,147,483,648" in message
    assert message.endswith("has 3,000,000,001: write olmo")


def test_large_vocabularies_have_larger_numbers(small_corpus: Path, bpe: Path, tmp_path: Path) -> None:
    values = json.loads(bpe.read_text())
    values["model"]["vocab"] |= {f"more{number}": number for number in range(600, 70_000)}
    large = tmp_path / "tokenizer.json"
    large.write_text(json.dumps(values))
    megatron_rows(small_corpus, tmp_path / "new", "--vocab", large)
    assert read_indexed(tmp_path / "new" / "c4-en-train_text_document").dtype == "int32"


# What can be wrong


def test_errors_are_one_sentence(small_corpus: Path, bpe: Path, ranks: Path, tmp_path: Path, error: Any) -> None:
    count = [small_corpus, "--vocab"]
    file = tmp_path / "tokenizer.json"
    file.write_text(bpe.read_text().replace('"version": "1.0"', '"version": "2.0"'))
    message = error(*count, file)
    assert f"{file} can't be read by the package tokenizers: " in message
    assert "Unknown tokenizer version '2.0'" in message
    assert "it may need a newer tokenizers" in message
    file.write_text(bpe.read_text().replace(END, "<a>").replace("<s>", "<b>"))
    assert (
        f"{file} names no token for the end of a document: give --end-of-document with one of its '<a>', '<b>'"
        in error(*count, file)
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty} has no tokenizer: neither spm.model, tokenizer.json" in error(*count, empty)
    alone = Path(shutil.copy(ranks, tmp_path / "own.tiktoken"))
    assert f"{alone} has only ranks: write {alone.parent / 'own.json'} with the members " in error(*count, alone)
    assert "no/such/file does not exist: give the folder" in error(*count, "no/such/file")


CHAIN = [{"type": "Replace", "pattern": {"String": a}, "content": b * 200} for a, b in ("ab", "bc", "cd", "de")]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"normalizer": {"type": "Sequence", "normalizers": CHAIN}}, "its normalizer makes more than 32 characters"),
        ({"normalizer": CHAIN[0]}, "its normalizer makes more than 32 characters of one, such as 'a'; give another"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 0, END: 1}, "unk_token": "no"}}, "Missing [UNK] token"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 1, END: 1, "u": 2}, "unk_token": "u"}}, "has the id of other"),
    ],
)
def test_wrong_members_of_a_tokenizer_json(
    small_corpus: Path, bpe: Path, tmp_path: Path, error: Any, more: dict[str, Any], reason: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({**json.loads(bpe.read_text()), "pre_tokenizer": None, **more}))
    assert reason in error(small_corpus, "--vocab", tmp_path)


@pytest.mark.parametrize(
    ("line", "pattern", "special", "reason"),
    [
        ("", GPT2, "x", 'own.json with the members "pat_str" (the pattern that divides a text into words) and '),
        ("", GPT2, True, "(an object: names with ids below 2^32)"),
        ("", GPT2, -1, "(an object: names with ids below 2^32)"),
        ("", GPT2, 1 << 40, "(an object: names with ids below 2^32)"),
        ("", "", 600, "(an object: names with ids below 2^32)"),
        ("", GPT2, 72, f"can't be used: its special token '{END}' has the id of other text; give another --vocab"),
        ("enp6cXE= -1\n", GPT2, 600, "each of its lines needs another rank below 2^32"),
        (f"enp6cXE= {1 << 40}\n", GPT2, 600, "each of its lines needs another rank below 2^32"),
        ("enp6cXE= 5\n", GPT2, 600, "each of its lines needs another rank below 2^32"),
        ("enp6cXE=\n", GPT2, 600, "can't be read by the package tiktoken"),
        ("", "(", 600, "can't be read by the package tiktoken"),
    ],
)
def test_wrong_tiktoken_files(
    small_corpus: Path, ranks: Path, tmp_path: Path, error: Any, line: str, pattern: str, special: Any, reason: str
) -> None:
    (tmp_path / "own.tiktoken").write_bytes(ranks.read_bytes() + line.encode())
    (tmp_path / "own.json").write_text(json.dumps({"pat_str": pattern, "special_tokens": {END: special}}))
    assert reason in error(small_corpus, "--vocab", tmp_path)


def test_a_library_that_is_missing_is_one_sentence(
    small_corpus: Path, bpe: Path, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    message = error(small_corpus, "--vocab", bpe)
    assert "needs the package tokenizers: run pip install 'c4pipe[tokenizers]'" in message
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "the Hub needs a package: run pip install 'c4pipe[tokenizers]'" in error(small_corpus, "--vocab", "org/tok")
