"""Packed batches in trainers of PyTorch: the lines of docs/training.md, and the same losses after a restart.

They need packages for a current PyTorch: `scripts/torch --current` has them.
"""

import pickle
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.doc_examples import expected_lines, python_blocks
from tests.helpers.documents import ROOT

pytestmark = [
    pytest.mark.torch_current,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

BLOCKS = python_blocks(ROOT / "docs" / "training.md")


@pytest.fixture
def folder(small_corpus: Path, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, with a corpus and its vocabulary, as the current one."""
    (tmp_path / "corpus").symlink_to(small_corpus)
    (tmp_path / "corpus-vocab").mkdir()
    (tmp_path / "corpus-vocab" / "spm.model").symlink_to(model_file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(library: str, printed: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    """Runs the block of the page with a library, and returns it, and its names."""
    (block,) = (each for each in BLOCKS if f"from {library}" in each)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(block, "training.md", "exec"), names)
    assert [line for line in printed.readouterr().out.splitlines() if line in expected_lines(block)]
    return block, names


@pytest.mark.usefixtures("folder")
def test_trainer_goes_on_with_the_same_losses(capsys: pytest.CaptureFixture[str]) -> None:
    _, names = run("transformers", capsys)
    whole = names["trainer"]

    def losses(trainer: Any) -> dict[int, float]:
        return {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}

    other = names["AutoModelForCausalLM"].from_config(names["config"])  # its first weights are other ones
    again = names["Trainer"](other, names["arguments"], names["collate"], names["data"])
    again.train(resume_from_checkpoint=str(Path("run", "checkpoint-3")))
    assert sorted(losses(whole)) == [1, 2, 3, 4, 5, 6]
    assert losses(again) == losses(whole)
    assert len(set(losses(whole).values())) == 6


@pytest.mark.usefixtures("folder")
def test_tokens_attend_to_their_own_document(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    _, names = run("transformers", capsys)
    row = next(row for row in names["data"] if (row["targets_segment_ids"] == 2).sum() > 1)
    batch = names["collate"]([row])
    other = {**batch, "input_ids": batch["input_ids"].clone()}
    other["input_ids"][0, 0] = (other["input_ids"][0, 0] + 5) % 400  # in the first document
    one, changed = (names["trainer"].model.eval()(**{**given, "labels": None}).logits[0] for given in (batch, other))
    second = row["targets_segment_ids"] == 2
    assert torch.equal(one[second], changed[second])
    assert not torch.equal(one[~second], changed[~second])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [0, 2])
def test_torchtitan_goes_on_with_the_same_batches(capsys: pytest.CaptureFixture[str], workers: int) -> None:
    from torchtitan.components import dataloader as titan

    _, names = run("torchtitan", capsys)

    def loader(rank: int) -> Any:
        config = names["Corpus"].Config(dataset_path="corpus", num_workers=workers)
        sizes = {"seq_len": 64, "local_batch_size": 2}
        built = config.build(dp_world_size=2, dp_rank=rank, tokenizer=None, snapshot_every_n_steps=2, **sizes)
        assert isinstance(built, titan.BaseDataLoader)
        return built

    def lists(batches: Any) -> list[Any]:
        return [(inputs["input"].tolist(), inputs["positions"].tolist(), labels.tolist()) for inputs, labels in batches]

    whole = [lists(islice(loader(rank), 7)) for rank in range(2)]
    assert whole[0] != whole[1]
    for rank in range(2):
        stopped, again = loader(rank), loader(rank)
        list(islice(stopped, 4))
        again.load_state_dict(pickle.loads(pickle.dumps(stopped.state_dict())))
        assert lists(islice(again, 3)) == whole[rank][4:]
    tokens, positions, labels = whole[0][0]
    for row, place, wanted in zip(tokens, positions, labels, strict=True):
        for number in range(63):
            next_one = place[number + 1]
            assert wanted[number] == (row[number + 1] if next_one else -100)
