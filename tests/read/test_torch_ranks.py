"""Three processes of `torch.distributed` that train one model: all make as many steps, or they would wait for ever."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

RANKS = 3
RANK = """
import json, sys
from datetime import timedelta
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from c4pipe import read
from c4pipe.read.torch import Documents

store, corpus, rank, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
distributed.init_process_group("gloo", f"file://{store}", timedelta(minutes=5), rank=rank, world_size=ranks)
model = DistributedDataParallel(torch.nn.Linear(1, 1))
found = []
for how in (None, "drop", "repeat"):
    pages = Documents(read.documents(corpus, seed=1, shard_index=rank, num_shards=ranks), how)
    loader = DataLoader(pages, batch_size=1, num_workers=2, persistent_workers=True)
    for epoch in range(2):
        pages.set_epoch(epoch)
        texts = []
        for batch in loader:
            texts += batch["text"]
            if how:  # the gradients of all ranks are averaged: a rank without a batch would stop the others
                model(torch.tensor([[float(len(batch["text"][0]))]])).sum().backward()
        if how:
            steps = torch.tensor(len(texts))
            distributed.all_reduce(steps)
            assert steps == ranks * len(texts)
        found.append(texts)
distributed.barrier()
print(json.dumps(found))
"""


def test_three_ranks_make_as_many_steps(tmp_path: Path) -> None:
    every = sorted(f"document {number}" for number in range(40))
    (tmp_path / "some.txt").write_text("".join(f"{text}\n" for text in every))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path / "store"), str(tmp_path / "some.txt"), str(rank), str(RANKS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        outputs = [process.communicate(timeout=600)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * RANKS
    runs = list(zip(*map(json.loads, outputs), strict=True))  # each pass: the documents of each rank
    none, drop, repeat = runs[:2], runs[2:4], runs[4:]
    assert [[len(rank) for rank in run] for run in none] == [[13, 13, 14]] * 2  # what equal steps are for
    assert all(len({len(rank) for rank in run}) == 1 for run in [*drop, *repeat])
    together = [[text for rank in run for text in rank] for run in runs]
    assert [sorted(texts) for texts in together[:2]] == [every] * 2
    assert together[0] != together[1]
    for texts in together[2:4]:
        assert len(set(texts)) == len(texts) >= len(every) - 2 * RANKS  # at most one of each worker
    assert all({*texts} == {*every} for texts in together[4:])
