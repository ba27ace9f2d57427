"""Decides between corpora: trains one small model on the same number of tokens of each, and compares held-out losses.

    pip install 'c4pipe[examples]' matplotlib      # JAX, Optax and SciPy; the picture
    python examples/ablation/ablate.py c4/en unfiltered/en --held-out texts.jsonl --output ablation
    python examples/ablation/ablate.py c4/en --repeats 1,4,16,64 --held-out texts.jsonl --output repeats
    python examples/ablation/ablate.py mix-*.toml --vocab vocab --held-out texts.jsonl --output mixes

The model is the decoder of examples/models, trained as examples/pretrain.py does it. Each training has a seed: it draws
the documents, their order and the first parameters. README.md beside this file says how to read the results.
"""

import argparse
import csv
import json
import logging
import math
import statistics
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import jax
import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # of pretrain and models

from models import decoder
from models.layers import Arrays, Size
from pretrain import train_step

from c4pipe import read
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives import Tokenizer
from c4pipe.read.mix_file import read_mix
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.tokens.count import plan_mix
from c4pipe.tokens.lists import domain_tokens
from c4pipe.tokens.tokenizer import open_tokenizer
from c4pipe.vocab import find_reading, parse_source, source_labels, train_vocabulary
from c4pipe.vocab.sources import read as read_texts

Rows = npt.NDArray[np.int32]
"""Ids of tokens, [rows, length]."""

CONFIDENCE = 0.95
BYTES_A_PIECE = 500
"""Bytes of text on which the vocabulary is trained, for each of its pieces."""

ONE_DEVICE = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("rows",)), PartitionSpec())


@dataclass(frozen=True)
class Variant:
    """What is compared: a part of a corpus, which is read several times over.

    Attributes:
        name: the name in the table.
        corpus: the folder of a corpus' language, or the file of a mix.
        repeats: how often each of its tokens is read.
    """

    name: str
    corpus: str
    repeats: int

    @property
    def is_mix(self) -> bool:
        """Whether this is a mix of several corpora."""
        return self.corpus.endswith(".toml")

    def texts(self, seed: int) -> Iterator[str]:
        """Yields the texts in the order of a seed; those of a mix without end."""
        documents = (read.mix if self.is_mix else read.documents)(self.corpus, seed=seed)
        return (page["text"] for page in documents)


# Text to rows of tokens


def rows_of(texts: Iterable[str], tokenizer: Tokenizer, length: int, count: int | None = None) -> Rows:
    """Returns texts one after the other, each with an end of sequence, cut into full rows, `count` at most."""
    parts, tokens = [np.zeros(0, np.int32)], 0
    for text in texts:
        if count is not None and tokens >= count * length:
            break
        parts.append(np.append(tokenizer.encode([text]).values, np.int32(tokenizer.ids.eos)))
        tokens += len(parts[-1])
    full = tokens // length if count is None else min(tokens // length, count)
    return np.concatenate(parts)[: full * length].reshape(full, length)


def held_out_texts(files: Iterable[Path]) -> Iterator[str]:
    """Yields the texts of files: those that `c4pipe vocab` reads, such as JSON Lines, or plain text line by line."""
    for file in files:
        reading = replace(find_reading(parse_source(str(file))), keys=(0, 1 << 64))
        for each in reading.files:
            for texts, _ in read_texts(each, reading):
                yield from texts


def batch_of(rows: Rows) -> Arrays:
    """Returns rows as batches of objectives are: one segment in a row."""
    positions = np.broadcast_to(np.arange(rows.shape[1], dtype=np.int32), rows.shape)
    return {"targets": rows, "targets_segment_ids": np.ones_like(rows), "targets_positions": positions}


# Training and held-out loss


def train(rows: Rows, repeats: int, ids: int, size: Size, seed: int) -> Arrays:
    """Returns the parameters after a training that reads all rows so often, each time in another order."""
    random = np.random.default_rng(seed)
    parameters = decoder.init(random, ids, size)
    order = np.concatenate([random.permutation(len(rows)) for _ in range(repeats)])
    trained = jax.device_put((parameters, decoder.optimizer_of(size).init(parameters)), ONE_DEVICE)
    for step, chosen in enumerate(order.reshape(-1, size.rows), 1):
        batch = jax.device_put(batch_of(rows[chosen]), ONE_DEVICE)
        trained, _ = train_step(decoder, size, ONE_DEVICE, trained, batch, np.int32(step))
    return trained[0]


def held_out_loss(parameters: Arrays, rows: Rows, size: Size) -> float:
    """Returns the mean loss of a held-out token, in nats."""
    loss_of = jax.jit(decoder.loss_of, static_argnums=3)
    batches = [rows[first : first + size.rows] for first in range(0, len(rows), size.rows)]
    losses = [float(loss_of(parameters, batch_of(batch), jax.random.key(0), size)) for batch in batches]
    return float(np.average(losses, weights=list(map(len, batches))))


# Results


def table(losses: dict[str, list[float]], repeats: dict[str, int], tokens: int) -> str:
    """Returns a row for each variant: what it read, and the mean and the standard deviation over seeds."""
    width = max(map(len, ["corpus", *losses]))
    lines = [f"{'corpus':{width}}  {'different tokens':>16}  read  {'tokens':>12}  held-out loss"]
    for name, found in losses.items():
        mean, spread = statistics.mean(found), statistics.stdev(found)
        different, times = f"{tokens // repeats[name]:,}", f"{repeats[name]}x"
        lines.append(f"{name:{width}}  {different:>16}  {times:>4}  {tokens:>12,}  {mean:.4f} ± {spread:.4f}")
    return "\n".join(lines)


def verdicts(losses: dict[str, list[float]]) -> Iterator[str]:
    """Yields a sentence for each pair: whether the difference of its means is larger than noise.

    It is, where Welch's interval of the difference (Welch 1947) leaves out 0. The share of wrong intervals that a run
    may have is divided among its pairs (Bonferroni), so all of them hold together with the probability `CONFIDENCE`.
    """
    pairs = list(combinations(losses, 2))
    for first, second in pairs:
        test = stats.ttest_ind(losses[second], losses[first], equal_var=False)
        low, high = map(float, test.confidence_interval(1 - (1 - CONFIDENCE) / len(pairs)))
        better, worse = (first, second) if low + high > 0 else (second, first)
        difference, low, high = abs(low + high) / 2, *sorted([low, high] if better == first else [-low, -high])
        interval = f"(between {low:.4f} and {high:.4f})"
        if low > 0:
            yield f"{better} is better than {worse}: its loss is {difference:.4f} lower {interval}. It is not noise."
        else:
            yield (
                f"{better} and {worse}: the loss of {better} is {difference:.4f} lower {interval}. The difference is "
                "noise: run more seeds or more tokens."
            )


def draw(losses: dict[str, list[float]], file: Path) -> None:
    """Writes a picture: a point for each seed, and the mean with one standard deviation to both sides."""
    mpl.use("svg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.hashsalt": "ablation", "svg.fonttype": "none"}):  # always the same bytes
        figure, axes = plt.subplots(figsize=(7, 1 + 0.45 * len(losses)), layout="constrained")
        for place, found in enumerate(losses.values()):
            axes.plot(found, [place] * len(found), "o", color="0.7", markersize=4)
            axes.errorbar(
                statistics.mean(found),
                place,
                xerr=statistics.stdev(found),
                fmt="D",
                color="C0",
                capsize=4,
                markersize=5,
            )
        axes.set_yticks(range(len(losses)), list(losses))
        axes.invert_yaxis()
        axes.margins(y=0.2)
        axes.grid(axis="x", color="0.9")
        axes.set_xlabel("held-out loss, nats a token: mean and standard deviation; a grey point is a seed")
        figure.savefig(file, metadata={"Date": None})
        plt.close(figure)


def mix_ratios(mixes: Iterable[Variant], vocabulary: Path) -> dict[str, dict[str, float]]:
    """Returns the share of each domain in the tokens of each mix, by the names of mix and domain."""
    tokenizer, ratios = open_tokenizer(str(vocabulary)), {}
    logging.getLogger("c4pipe").setLevel(logging.ERROR)  # for each source, that tokens.json is there already
    for mix in mixes:
        planned = plan_mix(read_mix(mix.corpus), tokenizer, RunnerOptions(), Progress(None))
        taken = {domain: tokens for domain, (_, tokens) in domain_tokens(planned).items()}
        ratios[mix.name] = {domain: tokens / sum(taken.values()) for domain, tokens in taken.items()}
    return ratios


def write_swarm(ratios: dict[str, dict[str, float]], losses: dict[str, list[float]], folder: Path) -> None:
    """Writes ratios.csv and metrics.csv, a row for each mix, as `olmix fit` reads them.

    Source: README.md and olmix/fit/loaders.py of https://github.com/allenai/olmix.
    """
    domains = sorted({domain for each in ratios.values() for domain in each})
    values = {name: [each.get(domain, 0.0) for domain in domains] for name, each in ratios.items()}
    metrics = {name: [statistics.mean(losses[name])] for name in ratios}
    for file, columns, rows in (("ratios", domains, values), ("metrics", ["held_out_loss"], metrics)):
        with (folder / f"{file}.csv").open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["run", "name", "index", *columns])
            writer.writerows([name, name, index, *row] for index, (name, row) in enumerate(rows.items()))


# The command


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the options of the command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "corpora",
        nargs="+",
        metavar="CORPUS",
        help="a language of a finished corpus, such as c4/en, or a mix that ends in .toml",
    )
    parser.add_argument(
        "--held-out",
        nargs="+",
        required=True,
        type=Path,
        metavar="FILE",
        help="neutral text that is in no corpus: JSON Lines with a `text`, Parquet, or a document on each line",
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for the results")
    parser.add_argument("--tokens", type=int, default=2**19, help="tokens of a training (default: 2^19)")
    parser.add_argument("--seeds", type=int, default=5, help="trainings for each corpus (default: 5)")
    parser.add_argument(
        "--repeats",
        default="1",
        metavar="N,...",
        help="also train on the N-th part of the tokens, N times over, as the T5 paper does in table 9 (default: 1)",
    )
    parser.add_argument("--size", choices=list(decoder.SIZES), default="tiny", help="tiny: for a CPU")
    parser.add_argument(
        "--vocab", type=Path, metavar="DIR", help="a vocabulary; by default one of all corpora; mixes need it"
    )
    parser.add_argument("--vocab-size", type=int, default=2000, metavar="N", help="its pieces (default: 2000)")
    options = parser.parse_args(arguments)
    try:
        options.repeats = sorted({int(number) for number in options.repeats.split(",")})
    except ValueError:
        parser.error(f"--repeats {options.repeats}: give numbers with commas between them, as in 1,4,16,64")
    if options.repeats[0] < 1:
        parser.error(f"--repeats {options.repeats[0]}: give 1 or more")
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: the noise shows with 2 or more; give 5")
    if len(options.corpora) * len(options.repeats) < 2:
        parser.error("there is nothing to compare: give two corpora, or several numbers of --repeats")
    if not options.vocab and any(corpus.endswith(".toml") for corpus in options.corpora):
        parser.error("--vocab: a mix needs the vocabulary of c4pipe tokens --plan")
    for file in options.held_out:
        if not file.exists():
            parser.error(f"--held-out {file}: there is no such file; give text that is in no corpus")
    return options


def compare(options: argparse.Namespace) -> None:
    """Trains, and writes table, sentences and picture."""
    began = time.perf_counter()
    sources = [parse_source(corpus) for corpus in options.corpora]
    if not options.vocab:
        some = BYTES_A_PIECE * options.vocab_size  # as much of each corpus
        # BPE, because the unigram trainer takes minutes where corpora have the same pages
        train_vocabulary(
            options.corpora,
            output=options.output / "vocab",
            size=options.vocab_size,
            sample_bytes=some,
            model="bpe",
        )
    tokenizer = Tokenizer(str(options.vocab or options.output / "vocab"))

    size: Size = decoder.SIZES[options.size]
    unit = math.lcm(size.rows, *options.repeats)  # so that all variants read exactly as many tokens
    rows = options.tokens // size.length // unit * unit
    if not rows:
        raise UsageError(f"--tokens {options.tokens}: give {unit * size.length} or more")
    tokens, steps = rows * size.length, rows // size.rows
    size = replace(size, steps=steps, warm_up=max(1, steps // 10))
    held_out = rows_of(held_out_texts(options.held_out), tokenizer, size.length)
    if not len(held_out):
        raise UsageError(f"the held-out text has fewer than {size.length} tokens: give more of it")

    variants = [
        Variant(name if times == 1 else f"{name} {times}x", corpus, times)
        for name, corpus in zip(source_labels(sources), options.corpora, strict=True)
        for times in options.repeats
    ]
    mixes = [variant for variant in variants if variant.is_mix]
    ratios = mix_ratios(mixes, options.vocab) if mixes else {}
    print(
        f"{len(variants) * options.seeds} trainings of {steps:,} steps; {held_out.size:,} held-out tokens", flush=True
    )
    losses: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for seed in range(1, options.seeds + 1):
        for variant in variants:
            needed = rows // variant.repeats
            chosen = rows_of(variant.texts(seed), tokenizer, size.length, needed)
            if len(chosen) < needed:
                raise UsageError(
                    f"{variant.corpus} has {len(chosen) * size.length:,} tokens, and {needed * size.length:,} are "
                    f"needed: give --tokens {len(chosen) * size.length * variant.repeats} or less"
                )
            parameters = train(chosen, variant.repeats, tokenizer.ids.size, size, seed)
            losses[variant.name].append(held_out_loss(parameters, held_out, size))
            print(f"seed {seed}: {variant.name}: {losses[variant.name][-1]:.4f}", flush=True)

    repeats = {variant.name: variant.repeats for variant in variants}
    results = {"tokens": tokens, "held_out_tokens": held_out.size, "repeats": repeats, "losses": losses}
    (options.output / "ablation.json").write_text(json.dumps(results, indent=1) + "\n")
    if ratios:
        write_swarm(ratios, losses, options.output)
    draw(losses, options.output / "ablation.svg")
    print(f"\n{table(losses, repeats, tokens)}\n")
    for sentence in verdicts(losses):
        print(textwrap.fill(sentence, 80, subsequent_indent="  "))
    print(f"\n{options.output / 'ablation.svg'} has the picture. {time.perf_counter() - began:.0f} seconds")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    options = options_of(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        compare(options)
    except C4pipeError as error:
        sys.exit(f"ablate.py: {error}")


if __name__ == "__main__":
    main()
