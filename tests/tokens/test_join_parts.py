"""Parts of token files, made by hand: the exact bytes of what they are joined to, and the way back from any row."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from c4pipe.cli import main
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.reader import Shard
from c4pipe.errors import C4pipeError
from c4pipe.io.json_files import write_checked_json
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.tokens import parts as parts_module
from c4pipe.tokens.folder import TOKEN_FILES_FORMAT, TokenSet, find_pages
from c4pipe.tokens.parts import JoinParts, JoinTask, TokenPart
from tests.helpers.crawls import files_of
from tests.helpers.megatron import read_indexed

TRAIN = TokenSet("en", "train")

Documents = Sequence[Sequence[int]]
"""The ids of each document of a part."""


def make_part(folder: Path, number: int, count: int, documents: Documents, dtype: str) -> Shard:
    """Writes a part, and returns its shard, which does not exist."""
    identity = ShardId("en", "train", number, count)
    name = f"c4-train-{number:05}-of-{count:05}.parquet"
    shard = Shard(Path("corpus/en", name), "parquet", identity, len(documents), 0, "")
    part = TokenPart(folder, shard)
    data = b"".join(np.array(ids, dtype).tobytes() for ids in documents)
    part.ids.write_bytes(data)
    lengths = [len(ids) for ids in documents]
    urls = [f"https://example.com/{number}/{row}" for row in range(len(documents))]
    pq.write_table(
        pa.table([pa.array(lengths, pa.int32()), range(len(documents)), urls], schema=parts_module._SCHEMA),
        part.documents,
    )
    sign_footer(part.documents)
    figures = {"path": shard.path, "rows": len(documents), "documents": len(documents), "tokens": sum(lengths)}
    write_checked_json(part.note, {**figures, "bytes": len(data), "crc32": isal_zlib.crc32(data)})
    return shard


def join(folder: Path, parts: Sequence[Documents], layout: str, dtype: str, length: int | None = None) -> Path:
    """Joins parts to token files in a folder, with a manifest, and returns the folder."""
    (folder / "_parts").mkdir(parents=True)
    shards = [make_part(folder / "_parts", number, len(parts), part, dtype) for number, part in enumerate(parts)]
    made = [TokenPart(folder / "_parts", shard) for shard in shards]
    task = JoinTask(TRAIN, made, layout, dtype, length, folder, (None, 1))
    note = folder / "_parts" / task.note
    assert list(JoinParts().process((task, str(note)))) == []
    figures = json.loads(note.read_text())
    del figures["sha256"]
    manifest = {
        **{
            "format": TOKEN_FILES_FORMAT,
            "version": 1,
            "layout": layout,
            "manifest": "0" * 64,
            "vocabulary": "0" * 64,
            "eos": 1,
        },
        **{"languages": ["en"], "dtype": dtype, "files": figures.pop("files"), "versions": {}},
        **({"length": length} if length else {}),
        "totals": {"en": {"train": figures}},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_exact_bytes_of_megatron(tmp_path: Path) -> None:
    parts = [[[5, 6, 1]], [], [[258, 1], [1]]]
    folder = join(tmp_path / "tokens", parts, "megatron", "uint16")
    prefix = folder / "c4-en-train_text_document"
    assert prefix.with_name(f"{prefix.name}.bin").read_bytes().hex(" ", 2) == "0500 0600 0100 0201 0100 0100"
    assert prefix.with_name(f"{prefix.name}.idx").read_bytes().hex() == (
        "4d4d49444944580000"  # MMIDIDX, NUL, NUL
        "0100000000000000"  # version
        "08"  # uint16
        "0300000000000000"  # sequences
        "0400000000000000"  # document indices
        "03000000" "02000000" "01000000"  # lengths
        "0000000000000000" "0600000000000000" "0a00000000000000"  # byte offsets
        "0000000000000000" "0100000000000000" "0200000000000000" "0300000000000000"  # document indices
    )  # fmt: skip
    assert pq.read_table(folder / "c4-en-train_documents.parquet").to_pylist() == [
        {"document": number, "start": start, "tokens": tokens, "shard": shard, "row": row, "url": url}
        for number, start, tokens, shard, row, url in [
            (0, 0, 3, "en/c4-train-00000-of-00003.parquet", 0, "https://example.com/0/0"),
            (1, 3, 2, "en/c4-train-00002-of-00003.parquet", 0, "https://example.com/2/0"),
            (2, 5, 1, "en/c4-train-00002-of-00003.parquet", 1, "https://example.com/2/1"),
        ]
    ]


def test_large_ids_take_four_bytes(tmp_path: Path) -> None:
    folder = join(tmp_path / "tokens", [[[70_000, 1]]], "megatron", "int32")
    indexed = read_indexed(folder / "c4-en-train_text_document")
    assert (indexed.dtype, indexed.rows) == ("int32", [[70_000, 1]])
    data = (folder / "c4-en-train_text_document.idx").read_bytes()
    assert data[17] == 4


def test_the_exact_bytes_of_an_array(tmp_path: Path) -> None:
    folder = join(tmp_path / "tokens", [[[5, 6, 1]], [[70_000, 1], [1]]], "npy", "uint32", 4)
    data = (folder / "c4-en-train.npy").read_bytes()
    header = b"{'descr': '<u4', 'fortran_order': False, 'shape': (1, 4), }"
    assert data[:10] == b"\x93NUMPY\x01\x00v\x00"
    assert data[10:128] == header.ljust(117) + b"\n"
    assert data[128:].hex(" ", 4) == "05000000 06000000 01000000 70110100"
    assert np.load(folder / "c4-en-train.npy", mmap_mode="r").tolist() == [[5, 6, 1, 70_000]]


@pytest.mark.parametrize("documents", [[[5, 1, 6, 1], [7, 1]], [[5], [7, 1]]])
def test_ends_are_counted_before_a_file_is_published(tmp_path: Path, documents: Documents) -> None:
    with pytest.raises(C4pipeError, match="is damaged: it has not one id 1 for each of its documents"):
        join(tmp_path, [[[3, 1]], documents], "olmo", "uint16")
    assert [path.name for path in tmp_path.iterdir()] == ["_parts"]


@given(
    parts=st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=4),
    length=st.integers(1, 12),
    rows=st.integers(1, 4),
)
@settings(max_examples=15)
def test_a_row_leads_to_the_documents_that_it_has(parts: list[list[int]], length: int, rows: int) -> None:
    documents = [[[7] * (size - 1) + [1] for size in sizes] for sizes in parts]
    owners = [number for number, size in enumerate(size for sizes in parts for size in sizes) for _ in range(size)]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module, "DOCUMENT_ROWS", rows)
        folder = join(Path(name) / "npy", documents, "npy", "uint16", length)
        for row in range(len(owners) // length):
            places = find_pages(folder, row)
            assert [place.document for place in places] == sorted(set(owners[row * length : (row + 1) * length]))
        folder = join(Path(name) / "megatron", documents, "megatron", "uint16")
        for number in range(sum(map(len, parts))):
            (place,) = find_pages(folder, number)
            assert owners[place.start : place.start + place.tokens] == [number] * place.tokens
            assert place.url == f"https://example.com/{int(place.shard[12:17])}/{place.row}"


def paths_in(folder: Path) -> set[str]:
    """All paths, while a run removes some of them."""
    return {f"{inside}/{name}" for inside, folders, names in os.walk(folder) for name in (*folders, *names)}


@pytest.mark.slow
@pytest.mark.parametrize("is_mix", [False, True])
def test_runs_that_are_killed_go_on(is_mix: bool, small_corpus: Path, tmp_path: Path) -> None:
    """A run is killed as soon as it has written one more file, again and again, until one ends."""
    vocabulary, output = tmp_path / "vocabulary", tmp_path / "killed"
    more = ["--size", "300", "--workers", "1", "--quiet"]
    assert main.main(["vocab", str(small_corpus / "en"), "--output", str(vocabulary), *more]) == 0
    (tmp_path / "mix.toml").write_text("".join(f"[[sources]]\npath='{small_corpus}/{name}'\n" for name in ("en", "de")))
    source = ["--weights", str(tmp_path / "mix.toml")] if is_mix else [str(small_corpus)]
    base = ["tokens", *source, "--vocab", str(vocabulary), "--format", "megatron", "--workers", "1", "--quiet"]
    assert main.main([*base, "--output", str(tmp_path / "whole")]) == 0
    kills = 0
    while True:
        before = paths_in(output)
        process = subprocess.Popen(
            [sys.executable, "-m", "c4pipe", *base, "--output", str(output)], start_new_session=True
        )
        while process.poll() is None and not paths_in(output) - before:
            time.sleep(0.001)
        if process.poll() is not None and kills:
            break
        os.killpg(process.pid, signal.SIGKILL)
        kills += process.wait(30) == -signal.SIGKILL
        if kills > 4:  # then to its end
            assert main.main([*base, "--output", str(output)]) == 0
            break
    assert kills
    assert files_of(output) == files_of(tmp_path / "whole")
