"""How fast a corpus becomes batches for training, beside seqio with t5, Transformers, datasets and tf.data.

    python benchmarks/training_peers.py [--corpus DIR --vocabulary DIR | --pages 4000 --pieces 16000 --data DIR]
        [--rounds 5] [--epochs 1] [--only NAME,...] [--write]

CORPUS is the folder of a language, with Parquet and TFRecord shards. Without it, a corpus is built of 4 synthetic WET
files with --pages pages each, made of those in --data (tests/data), and a vocabulary of --pieces. Each trial is a
process of its own, which counts from its first call to the last batch, after its imports. Trials are in turn; a peer
that makes batches has one, in the first round. Peers get an environment of their own, as in peers.py. The exit status
is 1 where one was not measured, or the goal is missed by more than 15 %. `--write` also puts the table into results.md.
Measure on an idle machine.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# c4pipe is imported where it is used: the process that measures counts as a floor of memory.
from measuring import (
    DATA,
    NotMeasured,
    compile_clone,
    environment,
    last_line,
    machine,
    made_corpus,
    measure,
    of_data,
    required,
)
from results import Goal, publish, spread, written_by
from trainers import PAIRS, PEERS, START, Trainer

HEAD = "Batches for training"

NOTES = """
- A trial is a process; its imports and start-up are not counted. CPU is that of all its threads. Documents are those of
  the training split, in all epochs. Of several trials, the best, with the lowest and the highest.
- `c4pipe-spans`, `seqio-spans`: T5's span corruption, 512 inputs and 114 targets, packed, 128 rows. t5 joins documents
  before it divides them, and takes at most 65,536 tokens of one. It reads TFRecord, c4pipe Parquet.
- `c4pipe-masked`, `transformers-masked`: single tokens masked (BERT), 512 tokens, 128 rows. Transformers' collator gets
  documents joined by its examples' rule, which leaves out the last tokens of each 1,000 documents. Transformers'
  collator for T5 is a script and in no package.
- `c4pipe-read`, `datasets-read`, `tensorflow-read`: documents with all five columns as Python strings, shuffled among
  10,000. c4pipe also compares the checksum of each page of Parquet.
- datasets 5.2 sleeps for seconds at the end of each shuffled pass over streamed Parquet
  (`SLEEP_TIME_ON_THREADS_SHUTDOWN` in its config.py): that is in its documents a second, and not in its CPU.
"""


class Figures(NamedTuple):
    """What a trial took: seconds of CPU and of the clock, megabytes, and how full the batches were."""

    cpu: float
    wall: float
    peak: float
    filled: float


Row = list[Figures] | str
"""The trials of a peer, or why there are none."""


def trial(peer: Trainer, corpus: Path, vocabulary: Path, epochs: int, log: Path) -> Figures:
    """Runs one trial. Raises NotMeasured where it fails."""
    python = str(environment("training-peers")) if peer.is_peer else sys.executable
    command = [python, "-c", START + peer.program, str(corpus), str(vocabulary), str(epochs)]
    cost = measure(["sh", "-c", 'HF_HUB_OFFLINE=1 exec "$@" 2>"$0"', str(log), *command])
    if cost.status:
        raise NotMeasured(f"it ended with status {cost.status}: {last_line(log.read_text(errors='replace'))}")
    made = json.loads(cost.output.splitlines()[-1])
    return Figures(made["cpu"], made["wall"], cost.peak, made["tokens"] / made["places"])


def measured(names: Sequence[str], corpus: Path, vocabulary: Path, options: argparse.Namespace) -> dict[str, Row]:
    """Measures in turn, round by round; peers that make batches in the first round only."""
    rows: dict[str, Row] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for name, row in rows.items():
                if isinstance(row, str) or (number and PEERS[name].is_peer and not name.endswith("-read")):
                    continue
                print(f"measuring {name}, round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                try:
                    row.append(trial(PEERS[name], corpus, vocabulary, options.epochs, Path(folder, "log")))
                except NotMeasured as reason:
                    rows[name] = f"not measured: {reason}"
    return rows


def table(rows: dict[str, Row], documents: int) -> list[str]:
    """Returns the rows as a table of Markdown; `documents` is their number in a trial."""
    lines = [
        "| name | what | documents a CPU second | documents a second | CPU of c4pipe | filled | peak MB |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in rows.items():
        values = [row, "", "", "", ""] if isinstance(row, str) else figures(name, row, rows, documents)
        lines.append(f"| {' | '.join([name, PEERS[name].title, *values])} |")
    return lines


def figures(name: str, row: list[Figures], rows: dict[str, Row], documents: int) -> list[str]:
    """Returns the cells of a row."""
    cpu, wall, peak, filled = zip(*row, strict=True)
    base = rows.get(PAIRS.get(name, ""))
    ours = min(each.cpu for each in base) if isinstance(base, list) and base else None
    ratio = f"{min(cpu) / ours:.1f} times" if ours else ""
    share = "" if name.endswith("-read") else f"{statistics.median(filled):.1%}"
    rates = [spread([documents / each for each in seconds], 0, is_rate=True) for seconds in (cpu, wall)]
    return [*rates, ratio, share, f"{max(peak):,.0f}"]


def goals(rows: dict[str, Row]) -> list[Goal]:
    """Returns the goal, where both of its rows were measured."""
    ours, theirs = rows.get("c4pipe-read"), rows.get("datasets-read")
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return []
    ratio = min(each.cpu for each in theirs) / min(each.cpu for each in ours)
    return [Goal("documents a CPU second of c4pipe.read in those of datasets", ratio, "at least", 1.5)]


def versions(rows: dict[str, Row]) -> str:
    """Returns what ran."""
    line = f"- Python {sys.version.split()[0]}"
    has_peers = any(isinstance(row, list) and PEERS[name].is_peer for name, row in rows.items())
    return f"{line}, {required('training-peers')}" if has_peers else line


def parse() -> argparse.Namespace:
    """Returns the options, or ends with what is wrong with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--corpus", type=Path, help="folder of a language, with Parquet and TFRecord shards")
    parser.add_argument("--vocabulary", type=Path, help="folder of a vocabulary, with its tokenizer.json")
    parser.add_argument("--pages", type=int, default=4000, help="of each of four synthetic WET files")
    parser.add_argument("--pieces", type=int, default=16_000, help="of the vocabulary of their corpus")
    parser.add_argument("--data", type=Path, default=DATA, help="pages and lists of which the files are made")
    parser.add_argument("--rounds", type=int, default=5, help="trials; peers that make batches have one")
    parser.add_argument("--epochs", type=int, default=1, help="how often a trial reads the corpus")
    parser.add_argument("--only", default=",".join(PEERS), help="some of: %(default)s")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    if unknown := [name for name in options.only.split(",") if name not in PEERS]:
        parser.error(f"--only has {unknown[0]!r}: the names are {', '.join(PEERS)}")
    if (options.corpus is None) != (options.vocabulary is None):
        parser.error("give --corpus and --vocabulary together, or none of them")
    if min(options.rounds, options.epochs) < 1:
        parser.error("there must be at least one round and one epoch")
    return options


def main() -> int:
    """Measures, prints what was taken, and returns the exit status: 1 where something was not measured or missed."""
    from c4pipe import read
    from c4pipe.io.words import format_count

    options, title = parse(), machine()
    compile_clone()
    with tempfile.TemporaryDirectory() as name:
        corpus, vocabulary = options.corpus, options.vocabulary
        if not corpus:
            folder, vocabulary = made_corpus(Path(name), options.pages, options.pieces, options.data)
            corpus = folder / "en"
            title += f"; pages of {of_data(options.data)}"
        count = len(read.documents(str(corpus))) * options.epochs
        rows = measured(options.only.split(","), corpus.resolve(), vocabulary.resolve(), options)
    title += f"; {count:,} documents in {format_count(options.epochs, 'epoch')}"
    given = f"--corpus {options.corpus.name}" if options.corpus else f"--pages {options.pages}"
    page = [written_by(f"training_peers.py {given}"), "", title, "", *table(rows, count), ""]
    page += [*(goal.line() for goal in goals(rows)), *NOTES.strip().splitlines(), versions(rows)]
    status = publish(HEAD, page, options.write, goals(rows))
    return int(any(isinstance(row, str) for row in rows.values()) or status)


if __name__ == "__main__":
    sys.exit(main())
