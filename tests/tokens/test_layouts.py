"""Token files as the programs that train on them open them: readers by the descriptions of these programs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import sentencepiece

from c4pipe.runners.events import Progress
from c4pipe.runners.scan import prepare_folder
from c4pipe.tokens import files, folder
from c4pipe.tokens.folder import TokenSet, dtype_of, find_pages
from c4pipe.tokens.options import TokenFileOptions
from c4pipe.tokens.parts import JoinParts, WriteParts
from tests.helpers.commands import run_tokens as run
from tests.helpers.crawls import files_of

Ids = npt.NDArray[Any]


@pytest.fixture(scope="module")
def ids(small_corpus: Path, vocabulary: Path) -> dict[str, list[int]]:
    """The English ids of each split, by SentencePiece alone."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary / "spm.model"))

    def of(split: str) -> list[int]:
        paths = sorted((small_corpus / "en").glob(f"c4-{split}-*.parquet"))
        texts = [text for path in paths for text in pq.read_table(path)["text"].to_pylist()]
        return [token for text in texts for token in processor.encode(text, add_eos=True)]

    return {split: ids for split in ("train", "validation") if (ids := of(split))}


def read_llmc(path: Path) -> Ids:
    """llm.c, dev/data/data_common.py (write_datafile) and llmc/dataloader.h (dataloader_load_shard_): a header of 256
    int32 with magic, version and number of tokens, then the tokens.
    """
    header = np.fromfile(path, np.int32, 256)
    dtype = {(20240520, 1): np.uint16, (20240801, 7): np.uint32}[int(header[0]), int(header[1])]
    tokens = np.fromfile(path, dtype, offset=1024)
    assert path.stat().st_size == 1024 + int(header[2]) * np.dtype(dtype).itemsize
    assert len(tokens) == header[2]
    assert not header[3:].any()
    return tokens


def test_llmc(small_corpus: Path, vocabulary: Path, ids: dict[str, list[int]], tmp_path: Path) -> None:
    output = tmp_path / "new"
    assert run(small_corpus, "--vocab", vocabulary, "--format", "llmc", "--output", output) == 0
    for split, wanted in ids.items():
        assert read_llmc(output / f"c4-en-{split}_000001.bin").tolist() == wanted
    (place,) = find_pages(output / "c4-en-train_000001.bin", 5)
    assert wanted_ids(ids["train"], 5) == (place.start, place.tokens)
    before = files_of(output)
    assert run(small_corpus, "--vocab", vocabulary, "--format", "llmc", "--output", output) == 0
    assert files_of(output) == before


def wanted_ids(ids: list[int], document: int) -> tuple[int, int]:
    """The first token and the number of tokens of a document: each ends with the id 1."""
    ends = np.flatnonzero(np.array(ids) == 1) + 1
    return int(ends[document - 1]), int(ends[document] - ends[document - 1])


@pytest.mark.parametrize("most", [100, 3001])
def test_llmc_has_several_files_of_about_one_size(
    small_corpus: Path,
    vocabulary: Path,
    ids: dict[str, list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr(folder, "LLMC_TOKENS", most)
    options = TokenFileOptions(small_corpus / "en", vocabulary, output=tmp_path / "new", format="llmc", workers=1)
    job = files._check_options(options)
    prepare_folder(job.parts, {**job.identity, **job.tokenizer.versions})
    step = WriteParts(job.tokenizer.copied(job.parts), job.identity["dtype"], job.parts)
    step.setup()
    for task in job.tasks:
        for part in task.parts:
            step.process((part.shard, str(part.note)))
        JoinParts().process((task, str(job.parts / task.note)))
    written = [read_llmc(path) for path in sorted((tmp_path / "new").glob("c4-en-train_*.bin"))]
    assert len(written) == -(-len(ids["train"]) // most) > 1
    assert max(map(len, written)) <= most
    assert max(map(len, written)) - min(map(len, written)) <= 1
    assert np.concatenate(written).tolist() == ids["train"]
    figures = JoinParts().read(job.parts / job.tasks[0].note, job.tasks[0])
    manifest = {"layout": "llmc", "dtype": "uint16", "totals": {"en": {"train": dict(figures)}}, **figures}
    folder._check(manifest)  # type: ignore[arg-type]
    assert files.write(options, Progress())["files"][0]["name"] == "c4-en-train_000001.bin"


def test_nanogpt(small_corpus: Path, vocabulary: Path, ids: dict[str, list[int]], tmp_path: Path, capsys: Any) -> None:
    # nanoGPT, train.py: np.memmap(os.path.join(data_dir, 'train.bin'), dtype=np.uint16, mode='r'), and 'val.bin'
    arguments = [small_corpus / "en", "--vocab", vocabulary, "--format", "nanogpt", "--output", tmp_path / "new"]
    assert run(*arguments) == 0
    for split, wanted in ids.items():
        name = {"train": "train.bin", "validation": "val.bin"}[split]
        assert np.memmap(tmp_path / "new" / name, dtype=np.uint16, mode="r").tolist() == wanted
    for path in ("train.bin", "c4-en-train_documents.parquet"):
        assert find_pages(tmp_path / "new" / path, 3) == find_pages(tmp_path / "new" / "train.bin", 3)
    assert run(small_corpus, *arguments[1:-1], tmp_path / "two") == 2
    assert "--format nanogpt has files of one language: give its folder" in capsys.readouterr().err


def test_olmo(small_corpus: Path, vocabulary: Path, ids: dict[str, list[int]], tmp_path: Path) -> None:
    assert run(small_corpus, "--vocab", vocabulary, "--format", "olmo", "--output", tmp_path / "new") == 0
    dtype = json.loads((tmp_path / "new" / "manifest.json").read_text())["dtype"]
    for split, wanted in ids.items():
        path = tmp_path / "new" / f"c4-en-{split}.npy"
        # OLMo-core, src/olmo_core/data/utils.py: load_array_slice takes bytes of the file from its beginning, and
        # write_document_indices finds the ends of documents by their id in np.memmap(path, mode="r", dtype=dtype)
        tokens = np.memmap(path, mode="r", dtype=dtype)
        assert tokens.tolist() == wanted
        assert np.frombuffer(path.read_bytes()[2 * 7 : 2 * 9], dtype).tolist() == wanted[7:9]
        assert int((tokens == 1).sum()) == len(np.flatnonzero(np.array(wanted) == 1))


def test_the_type_of_ids() -> None:
    for layout in ("llmc", "nanogpt", "olmo"):
        assert (dtype_of(layout, 65_536), dtype_of(layout, 65_537)) == ("uint16", "uint32")


def test_names_of_files() -> None:
    name = TokenSet("en", "train")
    assert name.id_files("llmc", 250_000_000) == [f"c4-en-train_00000{number}.bin" for number in (1, 2, 3)]
    assert name.files("megatron")[1] == "c4-en-train_text_document.idx"
    assert TokenSet("en", "validation").files("nanogpt") == ["val.bin", "c4-en-validation_documents.parquet"]
