"""How fast text becomes pretraining batches: tokenised, corrupted, packed, and all of it, in million tokens a second.

    python benchmarks/objectives.py [TEXTS VOCABULARY] [--pages 4000] [--pieces 16000] [--seconds 20]

TEXTS is what `c4pipe.read.documents` reads, a corpus or a file of text; it is held in memory. Without it, a corpus and
a vocabulary of --pieces are made of 4 WET files with --pages pages of tests/data. One core, CPU time, best of three.
Then a training that uses so many tokens a second gets batches ahead, and its waits are measured: its steps sleep, as
the host does while a device computes.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from measuring import DATA, made_corpus

from c4pipe import read
from c4pipe.objectives import objective, prefetch
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.objective import Objective, for_decoder
from c4pipe.objectives.packing import Packer, batch_of, examples_of
from c4pipe.objectives.rows import Features, Rng, TokenRows, framed
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.objectives.ul2 import ul2

ROWS = 128  # of a batch
AT_ONCE = 32  # documents, as Batches takes them
RATES = (25_000, 1_000_000)  # tokens a second that a training uses

T = TypeVar("T")


def best(work: Callable[..., T], *given: Any) -> tuple[T, float]:
    """Returns what the work gives for its arguments, and the CPU seconds of the fastest of three times."""
    seconds = []
    for _ in range(3):
        started = time.process_time()
        made = work(*given)
        seconds.append(time.process_time() - started)
    return made, min(seconds)


def objectives(tokenizer: Tokenizer) -> list[Objective]:
    """Returns all of them, for 512 inputs."""
    ids = tokenizer.ids
    plain = (
        *(objective.span_corruption, objective.iid_corruption, objective.drop_corrupted, objective.bert_style),
        *(
            objective.mass_style,
            objective.deshuffling,
            objective.prefix_lm,
            objective.language_model,
            objective.electra,
        ),
    )
    words, ends = tokenizer.word_starts, tokenizer.sentence_ends
    return [
        *(make(ids) for make in plain),
        objective.albert(ids, words, ends),
        objective.masked_lm(ids, words),
        objective.next_sentence(ids, words, ends),
        ul2(ids, 384),  # 512 inputs need more than T5's 100 sentinels
        for_decoder(objective.span_corruption(ids)),
    ]


def corrupted(pieces: list[TokenRows], chosen: Objective) -> list[Features]:
    """Makes examples of pieces of text."""
    return [chosen.make(some, Rng(1)) for some in pieces]


def packed(examples: list[Features], chosen: Objective) -> int:
    """Puts examples into batches, and returns how many rows these have."""
    packer = Packer(chosen.lengths)
    bins = [each for some in examples for each in packer.add(examples_of(some))] + packer.flush()
    for start in range(0, len(bins), ROWS):
        batch_of(bins[start : start + ROWS], chosen.lengths, ROWS)
    return len(bins)


def composed(texts: str, tokenizer: Tokenizer, chosen: Objective) -> int:
    """Makes all batches of texts, read anew, and returns how many there are."""
    return sum(1 for _ in Batches(read.documents(texts), tokenizer, chosen, ROWS))


def waited(texts: str, tokenizer: Tokenizer, rate: int, seconds: float) -> float:
    """Returns the share of some seconds that a training waits for batches, if it uses so many tokens a second."""
    batches = Batches(read.mix([texts], seed=1), tokenizer, objective.span_corruption(tokenizer.ids), ROWS)
    with prefetch(batches) as ahead:
        next(ahead)
        begun, before = time.perf_counter(), ahead.waited
        while time.perf_counter() < begun + seconds:
            time.sleep(next(ahead)["inputs"].size / rate)
        return (ahead.waited - before) / (time.perf_counter() - begun)


def main() -> None:
    """Measures the texts that are given, or makes some."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("texts", nargs="?", help="a corpus, or a file of text")
    parser.add_argument("vocabulary", type=Path, nargs="?", help="folder of a vocabulary")
    parser.add_argument("--pages", type=int, default=4000, help="of each synthetic WET file, without TEXTS")
    parser.add_argument("--pieces", type=int, default=16_000, help="of the vocabulary, without VOCABULARY")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each training that waits for batches")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.vocabulary is None:
            corpus, options.vocabulary = made_corpus(Path(folder), options.pages, options.pieces, DATA)
            options.texts = options.texts or str(corpus)
        measure(options.texts, options.vocabulary, options.seconds)


def measure(given: str, vocabulary: Path, seconds: float) -> None:
    """Prints the figures of texts with a vocabulary."""
    tokenizer = Tokenizer(vocabulary / "spm.model")
    texts = [document["text"] for document in read.documents(given)]

    def tokenised() -> list[TokenRows]:
        return [tokenizer.encode(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE)]

    rows, seconds = best(tokenised)
    tokens = sum(len(some.values) for some in rows) / 1e6
    print(f"{len(texts):,} documents, {tokens:.2f} million tokens; tokenise {tokens / seconds:.2f} million a second")
    print(f"{'':45}{'corrupt':>9}{'pack':>9}{'all':>9}{'filled':>9}")
    for chosen in objectives(tokenizer):
        whole_texts = [framed(some, (), [tokenizer.ids.eos]) for some in rows] if chosen.adds_eos else rows
        pieces = [chosen.cut(some, Rng(1)) for some in whole_texts]
        examples, corrupt = best(corrupted, pieces, chosen)
        bins, pack = best(packed, examples, chosen)
        _, whole = best(composed, given, tokenizer, chosen)
        name, length = next(iter(chosen.lengths.items()))
        filled = sum(len(each[name].values) for each in examples) / (bins * length)
        rate = f"{tokens / corrupt:9.2f}" if corrupt > 1e-3 else f"{'-':>9}"  # a language model corrupts nothing
        print(
            f"{chosen.name.partition(', R ')[0]:45}{rate}{tokens / pack:9.2f}{tokens / whole:9.2f}{filled:9.1%}",
            flush=True,
        )
    for used in RATES:
        print(f"{used:,} tokens a second: {waited(given, tokenizer, used, seconds):.2%} of the time waits for batches")


if __name__ == "__main__":
    main()
