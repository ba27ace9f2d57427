"""One corpus from every engine, and one vocabulary: makes both on each, compares byte for byte, prints a row for each.

    python engines/matrix.py [--only NAME,...] [--input PATH ...] [--recipe c4] [--lists DIR]

The input is the sample crawl and the WET files of tests/data, or other files with `--input`.
Each engine is the real one, started here and ended here: see `clusters.py`. With `:s3` or `:gs` after its name, work
files and corpus are in a store: see `stores.py`. A row that fails has a reason in the table, and the rows after it run.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import clusters
import pyspark
from fetch import Engines
from stores import store

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from measuring import adopt_orphans, descendants, last_line, tree_bytes, tree_cpu, wait_for_all  # noqa: E402

from c4pipe.io.paths import StoragePath, storage_path  # noqa: E402

C4PIPE = [sys.executable, "-m", "c4pipe"]
LIMIT = 900.0
"""Seconds that all commands of a row may take together."""

SPECULATION = [
    "spark.speculation=true",
    "spark.speculation.interval=10ms",
    "spark.speculation.multiplier=1.01",
    "spark.speculation.quantile=0.1",
    "spark.speculation.minTaskRuntime=1ms",
    "spark.log.level=INFO",
]
"""Settings of Spark with which some tasks run twice at the same time, and its log says so."""


class Task(NamedTuple):
    """What a row builds: the options of `build` for input, recipe and shards; a folder for logs; the corpus."""

    given: list[str]
    folder: Path
    corpus: StoragePath


Commands = Callable[[Task, Sequence[str]], Iterator[list[str]]]


def build(task: Task, options: Sequence[str]) -> Iterator[list[str]]:
    """Yields the one command that builds the corpus by a runner that the options name."""
    log = ["--log", str(task.folder / "c4pipe.log")]
    yield [*C4PIPE, "build", *task.given, "--quiet", "--output", str(task.corpus), *log, *options]


def spark_submit(task: Task, options: Sequence[str]) -> Iterator[list[str]]:
    """Yields the same command as an argument of `spark-submit`: the first option says how."""
    for command in build(task, options[1:]):
        yield [*options[0].split(), *command[len(C4PIPE) :]]


def jars(task: Task, options: Sequence[str]) -> Iterator[list[str]]:
    """Yields commands that write each job to a jar and submit it: what a cluster takes that the client can't reach."""
    submit, *engine = options
    inputs, shards, work = task.given[:-2], task.given[-2:], str(task.folder / "work")
    clean = [*C4PIPE, "clean", *inputs, "--quiet", "--work", work]
    dedup = [*C4PIPE, "dedup", work, *shards, "--quiet", "--output", str(task.corpus)]
    for job, command in (("clean", clean), ("dedup", dedup)):
        jar = str(task.folder / f"{job}.jar")
        yield [*command, *engine, f"--output_executable_path={jar}"]
        # Beam needs a newer Guava than Spark has: its jar goes first.
        yield [*submit.split(), "--driver-class-path", jar, jar]
        yield command  # it is done: nothing is left to do here


@dataclass(frozen=True)
class Engine:
    """One row of the table.

    Attributes:
        start: starts the engine with a folder for its files; the context gives options for the commands, and ends it.
        vocabulary: whether the row trains a vocabulary, too.
        short: whether the row is part of `--short`.
        stores: stores in which the row also puts work files and corpus, as `NAME:s3`.
        commands: yields the commands that build the corpus, one after the other.
        killed: a regular expression for a word of the command line of the engine's worker processes: one of them is
            killed while it cleans a file.
        logged: words that must be in the log of c4pipe.
        limit: the seconds that all commands may take together.
    """

    start: Callable[[Path], AbstractContextManager[list[str]]]
    vocabulary: bool = True
    short: bool = False
    stores: tuple[str, ...] = ()
    commands: Commands = build
    killed: str = ""
    logged: str = ""
    limit: float = LIMIT


def engines_of(tools: Engines) -> dict[str, Engine]:
    """Returns the rows by name, in their order. A new engine needs a line here, and what starts it in `clusters.py`."""
    spark_4 = Path(pyspark.__file__).parent  # pip installs all of Spark
    executor, beam_worker = r"org\.apache\.spark\.executor\.CoarseGrainedExecutorBackend", r"c4pipe\.runners\.beam_boot"
    return {
        "local-1": Engine(lambda folder: clusters.local(1), short=True),
        "local-2": Engine(lambda folder: clusters.local(2), short=True, stores=("s3", "gs")),
        "spark-local": Engine(lambda folder: clusters.spark_local(spark_4), short=True),
        "spark": Engine(lambda folder: clusters.spark_cluster(spark_4, folder), stores=("s3",)),
        "spark-submit": Engine(
            lambda folder: clusters.spark_submit(spark_4, folder), vocabulary=False, commands=spark_submit
        ),
        "spark-killed": Engine(
            lambda folder: clusters.spark_cluster(spark_4, folder),
            vocabulary=False,
            killed=executor,
            logged="Spark tries ",  # a task of the executor that was lost, says c4pipe
        ),
        "spark-speculation": Engine(
            lambda folder: clusters.spark_cluster(spark_4, folder, SPECULATION),
            vocabulary=False,
            logged="TaskKilled",  # Spark stops the slower of two attempts
        ),
        "spark-connect": Engine(lambda folder: clusters.spark_connect(spark_4, folder)),
        "spark-connect-killed": Engine(
            lambda folder: clusters.spark_connect(spark_4, folder), vocabulary=False, killed=executor
        ),
        "spark-3.5-local": Engine(lambda folder: clusters.spark_local(tools.spark), vocabulary=False, short=True),
        "spark-3.5": Engine(lambda folder: clusters.spark_cluster(tools.spark, folder)),
        "slurm": Engine(clusters.slurm, vocabulary=False),
        "ray": Engine(clusters.ray),
        "ray-killed": Engine(clusters.ray, vocabulary=False, killed="ray::.+"),
        "ray-lost-node": Engine(clusters.ray, vocabulary=False, killed=".+/raylet"),
        "prism": Engine(lambda folder: clusters.prism(tools, folder), short=True),
        "beam-spark-local": Engine(lambda folder: clusters.beam_spark_local(tools, folder), short=True),
        "beam-spark": Engine(lambda folder: clusters.beam_spark_cluster(tools, folder)),
        "beam-spark-submit": Engine(
            lambda folder: clusters.beam_spark_submit(tools, folder), vocabulary=False, commands=jars
        ),
        "beam-spark-killed": Engine(
            lambda folder: clusters.beam_spark_cluster(tools, folder), vocabulary=False, killed=beam_worker
        ),
        "flink": Engine(lambda folder: clusters.flink_cluster(tools, folder), short=True, stores=("gs",)),
        "flink-killed": Engine(
            lambda folder: clusters.flink_cluster(tools, folder), vocabulary=False, killed=beam_worker
        ),
    }


class Result(NamedTuple):
    """The corpus and the vocabulary that an engine built, and the cost of the corpus."""

    pages: int
    size: int
    digest: str
    vocabulary: str
    seconds: float
    cpu: float
    memory: int


@dataclass
class Commander:
    """Runs the commands of a row until their time is over, and kills a worker once where the row says so.

    Attributes:
        log: the file to which all commands write.
        limit: the seconds that all commands may take together.
        killed: a regular expression for a word of the command line of the process to kill, or nothing.
        files: files and folders; a worker that has one of their files open is at work.
        memory: the most bytes that all processes took at a time.
        kills: the number of killed workers.
        cpu: the CPU seconds of each process, when it was last seen.
    """

    log: Path
    limit: float
    killed: str = ""
    files: Sequence[Path] = ()
    memory: int = 0
    kills: int = 0
    cpu: dict[tuple[int, str], float] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def run(self, command: list[str]) -> None:
        """Runs a command.

        Raises:
            SystemExit: the command failed, or the time is over; the message is a sentence.
        """
        with self.log.open("a") as log:
            program = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        measured = 0.0
        try:
            while (status := program.poll()) is None:
                if time.monotonic() - self.started > self.limit:
                    sys.exit(f"not done after {self.limit:g} s")
                if self.killed and not self.kills:
                    self.kills += kill_a_busy_worker(self.killed, self.files)
                elif time.monotonic() - measured > 0.2:
                    self.memory, measured = max(self.memory, tree_bytes(os.getpid())), time.monotonic()
                    self.cpu |= tree_cpu(os.getpid())
                time.sleep(0.02)
        finally:
            clusters.end(program)
        if status:
            sys.exit(f"a command ended with status {status}: {last_line(self.log.read_text())}")


def kill_a_busy_worker(word: str, files: Sequence[Path]) -> bool:
    """Kills one worker that is at work: it, or a process that it started, has one of the files open.

    Args:
        word: a regular expression for a whole word of the command line of the workers. Only what this process started
            is looked at.
        files: files, and folders with files.

    Returns:
        whether a worker was killed.
    """
    for worker in descendants(os.getpid()):
        if any(re.fullmatch(word, each) for each in _words(worker)) and any(
            _has_open(process, files) for process in descendants(worker)
        ):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                return True
    return False


def _words(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").split("\0")
    except OSError:  # it has ended
        return []


def _has_open(process: int, files: Sequence[Path]) -> bool:
    with contextlib.suppress(OSError):  # it has ended, or closes a file
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                path = link.readlink()
                if any(path.is_relative_to(file) for file in files):
                    return True
    return False


def run_row(name: str, engine: Engine, given: list[str], inputs: Sequence[str], folder: Path) -> Result:
    """Starts an engine, builds a corpus and perhaps a vocabulary on it, and ends all processes that it left.

    Args:
        name: the name of the row; what comes after `:` is a store.
        engine: the engine.
        given: the options of `build` for input, recipe and shards.
        inputs: the files and folders of the input.
        folder: a new folder, for logs and, unless they are in a store, for work files, corpus and vocabulary.

    Returns:
        the result.

    Raises:
        SystemExit: the row failed; the message is a sentence, perhaps with the end of a log after it.
    """
    folder.mkdir()
    kind = name.partition(":")[2]
    try:
        with store(kind, folder) if kind else nullcontext(str(folder)) as base, engine.start(folder) as options:
            corpus, vocabulary = (storage_path(f"{base}/{each}") for each in ("corpus", "vocabulary"))
            files = [*map(Path, inputs), folder / "corpus"]
            commander = Commander(folder / "build.log", engine.limit, engine.killed, files)
            for command in engine.commands(Task(given, folder, corpus), options):
                commander.run(command)
            seconds, memory = time.monotonic() - commander.started, commander.memory
            sampled = sum(commander.cpu.values())
            if engine.killed and not commander.kills:
                sys.exit("no worker was killed: none was seen with an open file")
            if engine.logged and engine.logged not in (folder / "c4pipe.log").read_text():
                sys.exit(f'the log of c4pipe does not say "{engine.logged}"')
            if engine.vocabulary:
                command = [*C4PIPE, "vocab", f"{corpus}/en", "--size", "250", "--quiet"]
                commander.run([*command, "--output", str(vocabulary), *options])
            return _result(corpus, vocabulary if engine.vocabulary else None, seconds, sampled, memory)
    finally:
        for process in descendants(os.getpid()) - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        wait_for_all()


def _result(corpus: StoragePath, vocabulary: StoragePath | None, seconds: float, cpu: float, memory: int) -> Result:
    manifest = json.loads((corpus / "manifest.json").read_bytes())
    digest = hashlib.sha256((corpus / "manifest.json").read_bytes())
    for shard in manifest["shards"]:
        digest.update((corpus / shard["path"]).read_bytes())
    size = sum(shard["bytes"] for shard in manifest["shards"])
    pieces = hashlib.sha256((vocabulary / "spm.model").read_bytes()).hexdigest()[:16] if vocabulary else ""
    return Result(manifest["counts"]["pages.kept"], size, digest.hexdigest()[:16], pieces, seconds, cpu, memory)


def run_rows(rows: dict[str, Engine], given: list[str], inputs: Sequence[str], folder: Path) -> list[str]:
    """Runs the rows one after the other and prints the table.

    In it, seconds are for the corpus alone; the CPU seconds are those of all processes, with the start of the engine.

    Args:
        rows: the engines by the names of the rows.
        given: the options of `build` for input, recipe and shards.
        inputs: the files and folders of the input.
        folder: a folder; each row gets a folder in it.

    Returns:
        what is wrong: a text for each row that failed, and a sentence if two rows differ.
    """
    results, wrong = list[Result](), list[str]()
    print(
        f"{'engine':18}{'pages':>7}{'bytes':>11}  {'corpus':18}{'vocabulary':16}{'s':>8}{'CPU s':>8}{'peak MB':>9}",
        flush=True,
    )
    for name, engine in rows.items():
        try:
            row = run_row(name, engine, given, inputs, folder / name.replace(":", "-"))
        except (Exception, SystemExit) as error:  # whatever it is, the other rows have their results
            text = str(error) if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
            wrong.append(f"{name}: {text}")
            print(f"{name:18}FAILED  {text.splitlines()[0]}", flush=True)
            continue
        results.append(row)
        digests = f"{row.digest}  {row.vocabulary:16}"
        cost = f"{row.seconds:8.1f}{row.cpu:8.1f}{row.memory / 1e6:9,.0f}"
        print(f"{name:18}{row.pages:7,}{row.size:11,}  {digests}{cost}", flush=True)
    if len({row.digest for row in results}) > 1 or len({row.vocabulary for row in results} - {""}) > 1:
        wrong.append("the corpora or the vocabularies differ")
    return wrong


def main() -> None:
    """Prints the table; ends with status 1 where a row failed or two rows differ."""
    known = engines_of(Engines())
    rows = known | {f"{name}:{kind}": known[name] for name in known for kind in known[name].stores}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,...", help="these rows alone")
    parser.add_argument("--input", nargs="+", default=[])
    parser.add_argument("--recipe", default="c4")
    parser.add_argument("--lists", default=str(ROOT / "samples" / "lists"))
    parser.add_argument("--short", action="store_true", help="one way of each engine, where its tools are installed")
    options = parser.parse_args()
    if options.short and (wanting := [tool for tool in ("java", "mvn", "go") if not shutil.which(tool)]):
        sentence = f"engines: not tried, this machine has no {', '.join(wanting)}"
        if os.environ.get("C4PIPE_ALL") == "1":
            sys.exit(sentence)
        print(sentence)
        return
    names = options.only.split(",") if options.only else list(rows)
    if unknown := [name for name in names if name not in rows]:
        sys.exit(f"--only {','.join(unknown)}: the rows are {', '.join(rows)}")
    chosen = {name: rows[name] for name in names}
    if options.short:
        # A vocabulary where it takes least: the client of a cluster waits for half a minute before anything is done.
        vocabularies = ("local-1", "prism")
        short = {name: engine for name, engine in known.items() if engine.short}
        chosen = {name: replace(engine, vocabulary=name in vocabularies) for name, engine in short.items()}
    if not options.input:
        print("engines: no real pages, only those of the project; --input PATH names others", flush=True)
    inputs = options.input or [str(ROOT / "samples" / "crawl"), str(ROOT / "tests" / "data" / "wet")]
    given = [*inputs, "--recipe", options.recipe, "--lists", options.lists, "--shards", "4"]
    adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends, too
    folder = Path(tempfile.mkdtemp(prefix="c4pipe-engines-"))
    wrong = run_rows(chosen, given, inputs, folder)
    if wrong:
        sys.exit("\n".join(["", *wrong, f"the logs are in {folder}"]))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
