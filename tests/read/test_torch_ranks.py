"""Three processes of `torch.distributed` that train one model: all make as many steps, or they would wait for ever."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe import read
from tests.helpers.corpora import urls
from tests.helpers.pytorch import without_torch

pytestmark = pytest.mark.torch

pytest.importorskip("torch", reason=without_torch())

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
        urls = []
        for batch in loader:
            urls += batch["url"]
            if how:  # the gradients of all ranks are averaged: a rank without a batch would stop the others
                model(torch.tensor([[float(len(batch["text"][0]))]])).sum().backward()
        if how:
            steps = torch.tensor(len(urls))
            distributed.all_reduce(steps)
            assert steps == ranks * len(urls) == ranks * len(pages)
        found.append(urls)
distributed.barrier()
print(json.dumps(found))
"""


def test_three_ranks_make_as_many_steps(small_corpus: Path, tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path / "store"), str(small_corpus), str(rank), str(RANKS)],
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
    every_url = sorted(urls(read.documents(small_corpus)))
    runs = list(zip(*map(json.loads, outputs), strict=True))  # of each rank, the documents of a pass
    passes = [[url for rank in run for url in rank] for run in runs]
    none, drop, repeat = runs[:2], runs[2:4], runs[4:]
    assert all(len({len(rank) for rank in run}) > 1 for run in none)  # what equal steps are for
    assert all(len({len(rank) for rank in run}) == 1 for run in [*drop, *repeat])
    assert [sorted(urls) for urls in passes[:2]] == [every_url] * 2
    assert passes[0] != passes[1]
    for left in passes[2:4]:
        assert len(set(left)) == len(left) >= len(every_url) - 2 * RANKS  # at most one of each worker
    assert all({*given} == {*every_url} for given in passes[4:])
