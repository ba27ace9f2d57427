"""Trains each model of examples/pretrain.py with one layer, on one device and on all; test_examples.py runs it.

    python train_models.py CORPUS VOCABULARY FOLDER

It prints a JSON object: for each model the losses of its trainings by step, its loss for examples that are packed and
for the same ones in rows of their own, and its number of parameters by size.
"""

import contextlib
import io
import json
import re
import sys
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pretrain

from c4pipe import read
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.packing import Batch
from c4pipe.objectives.tokenizer import Tokenizer

STEPS = 20
PARAMETERS = {
    "t5": {"small": 32_128, "base": 32_128},
    "bert": {"small": 30_522, "base": 30_522},
    "electra": {"small": 30_522, "base": 30_522},
    "albert": {"base": 30_000},
    "decoder": {"base": 50_257},
}
"""The sizes whose numbers of parameters a paper has, with its number of ids."""

DIVIDED = ("t5", "electra")  # the step is the same for all; a packed T5 has three attentions, and ELECTRA draws tokens


class Zeros:
    """Random numbers that take no time."""

    def standard_normal(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        return np.zeros(shape, dtype)


def losses(*arguments: Any) -> dict[str, float]:
    """Trains, and returns the printed losses."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        pretrain.main([*map(str, arguments), "--steps", str(STEPS), "--every", "10"])
    return {step: float(loss) for step, loss in re.findall(r"^step (\d+): loss (.+)$", printed.getvalue(), re.M)}


def apart(batch: Batch, rows: int) -> Batch:
    """Returns the examples of a batch in rows of their own."""
    found = {name: np.zeros((rows, values.shape[1]), np.int32) for name, values in batch.items()}
    segments = {name: values for name, values in batch.items() if name.endswith("_segment_ids")}
    first = next(iter(segments.values()))
    examples = [(row, number) for row in range(len(first)) for number in range(1, first[row].max() + 1)]
    for new, (row, number) in enumerate(examples):
        for name, values in batch.items():
            stream = name.removesuffix("_segment_ids").removesuffix("_positions")
            tokens = values[row][segments.get(f"{stream}_segment_ids", first)[row] == number]
            found[name][new, : len(tokens)] = tokens
    return found


def examples_in(batch: Batch) -> int:
    """Returns the number of examples of a batch."""
    return max(int(values.max(1).sum()) for name, values in batch.items() if name.endswith("_segment_ids"))


def packed(model: Any, corpus: str, vocabulary: Path) -> list[float]:
    """Returns the loss of examples that are packed, and that of the same ones in rows of their own."""
    tokenizer, size = Tokenizer(vocabulary / "spm.model"), model.SIZES["tiny"]
    batches = Batches(read.documents(corpus, seed=1), tokenizer, model.objective_of(tokenizer, size), 4, shuffle=20)
    rows, batch = max(((examples_in(batch), batch) for batch in batches), key=itemgetter(0))
    assert rows > 4  # some share a row
    parameters = jax.device_put(model.init(np.random.default_rng(1), tokenizer.ids.size, size))
    loss = jax.jit(lambda batch: model.loss_of(parameters, batch, jax.random.key(1), size))
    filled = {name: np.pad(values, [(0, rows - len(values)), (0, 0)]) for name, values in batch.items()}
    return [float(loss(filled)), float(loss(apart(batch, rows)))]


def tried(name: str, corpus: str, vocabulary: Path, checkpoints: Path) -> dict[str, Any]:
    """Returns what is printed for a model."""
    model: Any = pretrain.MODELS[name]
    counts = {}
    for size, ids in PARAMETERS[name].items():
        made = model.init(Zeros(), ids, model.SIZES[size])
        if name == "electra":
            del made["generator"], made["masked"]  # the paper counts the discriminator
        counts[size] = sum(each.size for each in jax.tree.leaves(made))
    model.SIZES["tiny"] = replace(model.SIZES["tiny"], layers=1)
    data = [corpus, vocabulary, "--model", name]
    whole = losses(*data, "--checkpoints", checkpoints)
    (checkpoints / f"step-{STEPS:08}-host-0-of-1.pickle").unlink()
    resumed = losses(*data, "--checkpoints", checkpoints, "--resume")
    found = {"whole": whole, "resumed": resumed, "parameters": counts}
    if name in DIVIDED:
        found["divided"] = losses(*data, "--data-parallel")
    if name == "electra":
        model.WEIGHT = 0  # the draws of the generator are others at other places
    return {**found, "packed": packed(model, corpus, vocabulary)}


if __name__ == "__main__":
    corpus, vocabulary, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    assert jax.device_count() == 8
    print(json.dumps({name: tried(name, corpus, vocabulary, folder / name) for name in PARAMETERS}))
