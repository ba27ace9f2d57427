"""Trains T5 of one layer on a mixture, as examples/pretrain.py does; test_examples.py runs it.

    python train_mixture.py CORPUS VOCABULARY TASKS FOLDER

It prints a JSON object: what the trainings print, and what greedy decoding says, and the most likely tokens.
"""

import contextlib
import io
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pretrain
from models import t5

from c4pipe.objectives.tokenizer import Tokenizer

STEPS, LENGTH = 40, 8


def printed(*arguments: Any) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as found:
        pretrain.main([*map(str, arguments), "--steps", str(STEPS), "--every", "20"])
    return found.getvalue()


def decoded(vocabulary: Path) -> tuple[list[Any], list[Any], int]:
    """Returns what `greedy` says, what is most likely behind the same targets at each step, and the id of the end."""
    ids, size = Tokenizer(vocabulary / "spm.model").ids, t5.SIZES["tiny"]
    parameters = t5.init(np.random.default_rng(5), ids.size, size)
    parameters["words"] *= 0.1  # with the words alone, a token is most likely after itself
    inputs = np.random.default_rng(6).integers(3, ids.size, (8, LENGTH)) * (np.arange(LENGTH) < [[3]] * 4 + [[8]] * 4)
    without_end = np.array(t5.greedy(parameters, jnp.asarray(inputs, jnp.int32), size, -1))
    eos = int(np.bincount(without_end[:, 2]).argmax())  # so that some rows end
    said = np.array(t5.greedy(parameters, jnp.asarray(inputs, jnp.int32), size, eos))
    likely = np.zeros_like(said)
    for step in range(LENGTH):  # targets that come later are other ones, and change nothing
        before = np.where(np.arange(LENGTH) <= step, np.pad(said, [(0, 0), (1, 0)])[:, :-1], 7)
        likely[:, step] = likely_after(parameters, inputs, before, size)[:, step]
    return said.tolist(), likely.tolist(), eos


@partial(jax.jit, static_argnums=3)
def likely_after(parameters: Any, inputs: Any, before: Any, size: Any) -> Any:
    segments, one = inputs > 0, jnp.ones_like(before)
    memory = t5.encoded(parameters, inputs, segments, size)
    return t5.logits_of(parameters, t5.decoded(parameters, before, one, memory, segments, size), size).argmax(-1)


if __name__ == "__main__":
    corpus, vocabulary, folder, checkpoints = map(Path, sys.argv[1:])
    t5.SIZES["tiny"] = replace(t5.SIZES["tiny"], layers=1)
    data = [corpus, vocabulary, "--mixture", folder, "--limit", 20, "--temperature", 2]
    whole = printed(*data, "--checkpoints", checkpoints)
    (checkpoints / f"step-{STEPS:08}-host-0-of-1.pickle").unlink()
    resumed = printed(*data, "--checkpoints", checkpoints, "--resume", "--validation", folder)
    with contextlib.redirect_stderr(io.StringIO()) as refused:
        for wrong in ([*data, "--model", "bert"], [corpus, folder / "nowhere"]):
            with contextlib.suppress(SystemExit):
                pretrain.main([*map(str, wrong)])
    print(
        json.dumps({"refused": refused.getvalue(), "whole": whole, "resumed": resumed, "decoded": decoded(vocabulary)})
    )
