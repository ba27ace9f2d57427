"""Trains a model on a corpus of c4pipe, on one host or several, and goes on exactly where it was killed.

    pip install 'c4pipe[examples]'      # JAX and optax
    c4pipe build samples/crawl --lists samples/lists --output demo-corpus
    c4pipe vocab demo-corpus/en --size 300 --output demo-vocab
    python examples/pretrain.py demo-corpus demo-vocab --checkpoints demo-checkpoints

It is a T5, or with --model another one of examples/models; --size is `tiny`, for a CPU, or one of its paper.
After a kill, the same with --resume, also with another number of hosts. On two hosts, or in two processes of one:

    python examples/pretrain.py ... --coordinator HOST0:7000 --hosts 2 --host 0
    python examples/pretrain.py ... --coordinator HOST0:7000 --hosts 2 --host 1

T5 also learns supervised tasks beside the corpus (section 3.5 of its paper), and is then evaluated. A folder has their
records, in files with the names of T5's tasks, or own files with `inputs` and `targets`:

    python examples/pretrain.py demo-corpus demo-vocab --mixture tasks --validation validation --limit 524288

examples/models/README.md says what the models have of their papers.
"""

import argparse
import pickle
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from models import albert, bert, decoder, electra, evaluate, t5
from models.layers import Size

from c4pipe import C4pipeError, read
from c4pipe.objectives import prefetch
from c4pipe.objectives.batches import Batches, ExampleBatches
from c4pipe.objectives.task_mixture import MixedBatches, MixtureOptions, MixturePart, Unsupervised
from c4pipe.objectives.tokenizer import Tokenizer

MODELS = {"albert": albert, "bert": bert, "decoder": decoder, "electra": electra, "t5": t5}
SEED = 1


@partial(jax.jit, static_argnums=(0, 1, 2))
def train_step(
    model: ModuleType, size: Size, everywhere: NamedSharding, trained: Any, batch: Any, step: Any
) -> tuple[Any, jax.Array]:
    """Returns parameters and the memory of the optimizer after a step, and the loss before it.

    JAX computes what the whole batch gives, whichever devices have its rows; all devices get the results.
    """
    parameters, memory = trained
    key = jax.random.fold_in(jax.random.key(SEED), step)
    loss, gradients = jax.value_and_grad(model.loss_of)(parameters, batch, key, size)
    updates, memory = model.optimizer_of(size).update(gradients, memory, parameters)
    trained = optax.apply_updates(parameters, updates), memory
    return jax.lax.with_sharding_constraint(trained, everywhere), jax.lax.with_sharding_constraint(loss, everywhere)


# Checkpoints: model, optimizer and data of the same step; complete when all hosts have written theirs


def save(folder: Path, step: int, host: int, hosts: int, values: Any) -> None:
    """Writes a host's part of a checkpoint, whole or not at all."""
    file = folder / f"step-{step:08}-host-{host}-of-{hosts}.pickle"
    part = file.with_suffix(".tmp")
    part.write_bytes(pickle.dumps(values))
    part.replace(file)


def latest(folder: Path) -> tuple[int, list[Any]]:
    """Returns the last step that all hosts of a run have written, 0 where there is none, and what they wrote."""
    for file in sorted(folder.glob("step-*-host-0-of-*.pickle"), reverse=True):
        step, hosts = file.stem.split("-")[1], int(file.stem.split("-")[-1])
        parts = [folder / f"step-{step}-host-{host}-of-{hosts}.pickle" for host in range(hosts)]
        if all(part.exists() for part in parts):
            return int(step), [pickle.loads(part.read_bytes()) for part in parts]
    return 0, []


def batches_of(options: argparse.Namespace, tokenizer: Tokenizer, size: Size, rows: int) -> ExampleBatches:
    """Returns the batches of this host: of the corpus, or of the corpus and the tasks of a mixture."""
    made = MODELS[options.model].objective_of(tokenizer, size)
    if options.mixture:
        parts: list[MixturePart] = [Unsupervised("corpus", options.corpus, made), *evaluate.parts_in(options.mixture)]
        lengths = {"inputs": size.length, "targets": size.length}
        more: MixtureOptions = {
            "limit": options.limit,
            "temperature": options.temperature,
            "shard_index": options.host,
            "num_shards": options.hosts,
        }
        return MixedBatches(parts, tokenizer, lengths, rows, SEED, **more)
    # a mixture, also of one corpus, has no end: each epoch has another order, and other tokens corrupted
    documents = read.mix([options.corpus], seed=SEED, shard_index=options.host, num_shards=options.hosts)
    return Batches(documents, tokenizer, made, rows, SEED)


def report(batches: MixedBatches, options: argparse.Namespace, parameters: Any, end: int, size: Size) -> None:
    """Prints the rates, what was trimmed, and the metrics. All hosts compute them, as none waits for another."""
    show = print if options.host == 0 else lambda _: None
    mixture = batches.mixture
    show("rates: " + ", ".join(f"{name} {rate:.2%}" for name, rate in mixture.rates.items()))
    for name, counts in mixture.counts.items():
        trimmed = [counts.get(f"trimmed_{each}", 0) for each in ("inputs", "targets")]
        if any(trimmed):
            show(f"{name}: {trimmed[0]:,} inputs and {trimmed[1]:,} targets were longer than {size.length} tokens")
    if not options.validation:
        show("evaluated on the records of the training:")
    say = evaluate.speaker(parameters, options.vocabulary / "spm.model", end, size)
    for line in evaluate.evaluate(options.validation or options.mixture, say):
        show(line)


def parser_of() -> argparse.ArgumentParser:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a finished corpus, or a take of it")
    parser.add_argument("vocabulary", type=Path, help="folder of a vocabulary")
    parser.add_argument("--model", choices=sorted(MODELS), default="t5")
    parser.add_argument("--size", choices=["tiny", "small", "base"], default="tiny", help="tiny: for a CPU")
    parser.add_argument("--rows", type=int, help="rows of a batch, of all hosts together; by default those of the size")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--checkpoints", type=Path, help="folder that all hosts see")
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint, if there is one")
    parser.add_argument("--data-parallel", action="store_true", help="divide a batch among all devices of this host")
    parser.add_argument("--coordinator", help="address of host 0, where there are several; they use all their devices")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--host", type=int, default=0, help="number of this one, from 0")
    parser.add_argument("--mixture", type=Path, help="folder of the records of supervised tasks, such as cola.jsonl")
    parser.add_argument("--validation", type=Path, help="the same for evaluation; by default the folder of --mixture")
    parser.add_argument("--limit", type=float, help="K: a task, or the corpus, counts for so many examples at most")
    parser.add_argument("--temperature", type=float, default=1.0, help="T: rates to the power of 1/T; inf: equal ones")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and prints a loss every ten steps; with a mixture, evaluates."""
    parser = parser_of()
    options = parser.parse_args(arguments)
    if options.mixture and options.model != "t5":
        parser.error(f"--mixture is for text to text, and {options.model} writes none: give --model t5")
    if not options.mixture and (options.validation or options.limit or options.temperature != 1):
        parser.error("--validation, --limit and --temperature are for tasks: give their folder as --mixture")
    model, host, hosts = MODELS[options.model], options.host, options.hosts
    size = model.SIZES[options.size]
    rows = options.rows or size.rows
    if rows % hosts:
        parser.error(f"--hosts {hosts}: they divide the {rows} rows of a batch: give a multiple of {hosts} as --rows")
    if options.validation:
        evaluate.files_in(options.validation)  # a mistake is told before the training
    if hosts > 1:
        jax.distributed.initialize(options.coordinator, hosts, host)
    devices = jax.devices() if hosts > 1 or options.data_parallel else jax.devices()[:1]
    if rows % len(devices):
        parser.error(f"{len(devices)} devices divide the {rows} rows of a batch: give a multiple as --rows")

    # rows of the batch are divided among the devices; each has the whole model
    mesh = Mesh(np.array(devices), ("rows",))
    by_row, everywhere = NamedSharding(mesh, PartitionSpec("rows")), NamedSharding(mesh, PartitionSpec())

    try:
        tokenizer = Tokenizer(options.vocabulary / "spm.model")
        batches = batches_of(options, tokenizer, size, rows // hosts)
    except C4pipeError as error:
        parser.error(str(error))
    data = prefetch(batches, to=by_row)
    parameters = model.init(np.random.default_rng(SEED), tokenizer.ids.size, size)
    trained = parameters, jax.device_get(jax.jit(model.optimizer_of(size).init)(parameters))

    name = f"{options.model} {options.size}" + (" with a mixture" if options.mixture else "")
    done, written = latest(options.checkpoints) if options.resume and options.checkpoints else (0, [])
    if done:
        of, trained, _ = written[0]  # all hosts have the same
        if of != name:
            parser.error(f"{options.checkpoints} has checkpoints of {of}, not of {name}: give another folder")
        data.reshard([state for *_, state in written])  # also where there were more or fewer hosts
    elif options.checkpoints:
        options.checkpoints.mkdir(parents=True, exist_ok=True)

    trained = jax.device_put(trained, everywhere)
    begun = time.perf_counter()
    for step in range(done + 1, options.steps + 1):
        trained, loss = train_step(model, size, everywhere, trained, next(data), np.int32(step))
        if step % 10 == 0 and host == 0:
            print(f"step {step}: loss {loss:.6f}", flush=True)
        if options.checkpoints and step % options.every == 0:
            save(options.checkpoints, step, host, hosts, (name, jax.device_get(trained), data.state()))
        jax.block_until_ready(loss)  # so that what is waited for is the batch, which a thread makes meanwhile
    data.close()
    if host == 0:
        seconds = time.perf_counter() - begun
        print(f"{seconds:.1f} seconds, of which {data.waited / seconds:.1%} waited for data")
    if isinstance(batches, MixedBatches):
        report(batches, options, jax.device_get(trained[0]), tokenizer.ids.eos, size)


if __name__ == "__main__":
    main()
