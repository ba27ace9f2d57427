"""What peers.py measures, by name: c4pipe, decoding alone, TensorFlow Datasets, datatrove and Dolma."""

import gzip
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

# c4pipe is imported where it is used: the process that measures imports this too, and its memory counts as a floor.
from measuring import HERE, NotMeasured, environment, last_line
from rounds import Peer, Trial

DECODE = """
import sys
from c4pipe.wet.records import read_pages
pages = size = 0
for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for item in read_pages(stream):
            pages, size = pages + 1, size + getattr(item, "size", 0)  # damage has none
            getattr(item, "body", "")  # it is decoded when it is used
print(pages, size)
"""
"""Decompresses the files with isal, splits them into records and decodes their text, by c4pipe's own reader."""

TRAIN = """
import json
import sys
import fasttext
from warcio.archiveiterator import ArchiveIterator

file, model, size = sys.argv[1:]
with open(file, "rb") as stream:
    records = (each for each in ArchiveIterator(stream) if each.rec_type == "conversion")
    texts = [" ".join(each.content_stream().read().decode("utf-8", "replace").split()) for each in records]
shares = [text.count("the ") / (len(text) + 1) for text in texts]
middle = sorted(shares)[len(shares) // 2]
with open(f"{model}.txt", "w", encoding="utf-8") as lines:
    for text, share in zip(texts, shares):
        print("__label__hq" if share > middle else "__label__cc", text, file=lines)
options = json.loads(size)
fasttext.train_supervised(f"{model}.txt", wordNgrams=2, epoch=1, thread=11, verbose=0, **options).save_model(model)
"""
"""Trains a classifier on the pages of a WET file: whether a page has much of the word `the`."""

SIZES = {"classifier": {"dim": 100, "bucket": 2_000_000}, "small-classifier": {"dim": 16, "bucket": 50_000}}
"""The numbers of a vector, and the buckets for bigrams, of the models in the section on classifiers."""

DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import (
    C4BadWordsFilter,
    C4QualityFilter,
    FastTextClassifierFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    c4_filters,
    fasttext_filter,
)
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import JsonlWriter
from langdetect import DetectorFactory, LangDetectException, detect_langs

class English(BaseFilter):
    name = "langdetect"

    def __init__(self, least):
        super().__init__()
        self.least = least

    def filter(self, doc):
        try:
            best = detect_langs(doc.text)[0]
        except LangDetectException:
            return False, "unknown"
        return best.lang == "en" and best.prob >= self.least

crawl, bad_words, out, recipe, *model = sys.argv[1:]
DetectorFactory.seed = 0
c4_filters.cached_asset_path_or_download = lambda *given, **named: bad_words  # the same list, not its download
fasttext_filter.cached_asset_path_or_download = lambda path, **named: path  # the file itself, not a copy
gopher = [GopherRepetitionFilter(), GopherQualityFilter()]
filters = {
    "c4": lambda: [C4QualityFilter(), English(0.99), C4BadWordsFilter()],
    "gopher": lambda: gopher,
    "fineweb": lambda: [
        English(0.65), *gopher, C4QualityFilter(filter_no_terminal_punct=False), FineWebQualityFilter(), PIIFormatter()
    ],
    "datatrove-c4": lambda: [C4QualityFilter()],
    "classifier": lambda: [FastTextClassifierFilter(*model, keep_labels=("hq", 0.5), newline_replacement=" ")],
}[recipe]()
steps = [WarcReader(crawl, glob_pattern="*.wet.gz", recursive=False), *filters, JsonlWriter(out, compression=None)]
LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=f"{out}/logs").run()
"""
"""datatrove's own steps. In `c4`, langdetect is in the order of TensorFlow Datasets: after the lines, before the bad
words."""

MINHASH = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig

pages, out = sys.argv[1:]
config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1", precision=64))  # of FineWeb
signatures, buckets, clusters = (f"{out}/{name}" for name in ("signatures", "buckets", "clusters"))
reader = JsonlReader(pages, glob_pattern="*.jsonl", recursive=False)
for name, tasks, steps in (
    ("1", 1, [reader, MinhashDedupSignature(signatures, config)]),
    ("2", config.num_buckets, [MinhashDedupBuckets(signatures, buckets, config=config)]),
    ("3", 1, [MinhashDedupCluster(buckets, clusters, config)]),
    ("4", 1, [reader, MinhashDedupFilter(clusters), JsonlWriter(f"{out}/kept", compression=None)]),
):
    LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=f"{out}/logs/{name}").run()
"""
"""datatrove's four steps, as in its examples/minhash_deduplication.py."""

DOLMA = """
import sys
from pathlib import Path
from warcio.archiveiterator import ArchiveIterator

parity, out, *files = sys.argv[1:]
sys.path.insert(0, parity)
from dolma_reference import C4, tag_and_mix

def texts():
    for file in files:
        with open(file, "rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "conversion":
                    yield record.content_stream().read().decode("utf-8", "replace")

tag_and_mix(texts(), Path(out), [C4])
"""
"""Pages of WET files as Dolma's documents, and its own tagger and mixer."""


def c4pipe(job: str, recipe: str, workers: int) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of a job of c4pipe."""

    def command(trial: Trial) -> list[str]:
        base = [sys.executable, "-m", "c4pipe", job, *trial.files, "--recipe", recipe, "--lists", str(trial.lists)]
        target = ["--work" if job == "clean" else "--output", str(trial.folder / "out")]
        return [*base, *target, "--workers", str(workers), "--quiet"]

    return command


def clean_without(recipe: str, *off: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of `clean` with a recipe without some of its rules."""

    def command(trial: Trial) -> list[str]:
        file = trial.folder / "recipe.toml"
        file.write_text(f"base = {json.dumps(recipe)}\noff = {json.dumps(off)}\n")
        return c4pipe("clean", str(file), 1)(trial)

    return command


def trained(trial: Trial, size: str) -> str:
    """Returns the path of a fastText classifier, which datatrove's environment trains before the first measurement."""
    model = trial.folder.with_name(f"{size}.bin")
    if not model.exists():
        command = [str(environment("datatrove")), "-c", TRAIN, trial.files[0], str(model), json.dumps(SIZES[size])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotMeasured(f"no classifier can be trained: {last_line(done.stderr)}")
    return str(model)


def clean_classifier(size: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of `clean` with one rule, the score of a classifier."""

    def command(trial: Trial) -> list[str]:
        file = trial.folder / "recipe.toml"
        rule = f"[classifier_score]\nmodel = {json.dumps(trained(trial, size))}\nmin_score = 0.5\n"
        file.write_text(f'base = "as-is"\nrules = ["classifier_score"]\n{rule}')
        return c4pipe("clean", str(file), 1)(trial)

    return command


def datatrove_classifier(size: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of datatrove with its filter by a classifier."""
    return lambda trial: [*datatrove("classifier")(trial), trained(trial, size)]


def decode(trial: Trial) -> list[str]:
    """Returns the command that merely decompresses and decodes."""
    return [sys.executable, "-c", DECODE, *trial.files]


def tfds(trial: Trial) -> list[str]:
    """Returns the command of TensorFlow Datasets, whose package is the parity extra's."""
    if not find_spec("tensorflow_datasets"):
        raise NotMeasured("tensorflow_datasets is not installed here: `make parity` installs it")
    reference = HERE.parent / "parity" / "reference.py"
    return [sys.executable, str(reference), "en", str(trial.folder / "out.jsonl"), str(trial.lists), *trial.files]


def datatrove(recipe: str) -> Callable[[Trial], list[str]]:
    """Returns how to make the command of datatrove in its environment, with the filters of a recipe."""

    def command(trial: Trial) -> list[str]:
        from c4pipe.lists.pinned_lists import bad_words_file

        given = [str(Path(trial.files[0]).parent), str(trial.lists / str(bad_words_file("en")))]
        return [str(environment("datatrove")), "-c", DATATROVE, *given, str(trial.folder / "out"), recipe]

    return command


def datatrove_fineweb(trial: Trial) -> list[str]:
    """Returns the command of datatrove in its environment, with all of FineWeb's recipe: near-duplicates, too."""
    out = trial.folder / "out"
    filters, near = (
        [*datatrove("fineweb")(trial)],
        [str(environment("datatrove")), "-c", MINHASH, str(out), str(out / "near")],
    )
    return ["sh", "-c", f"{shlex.join(filters)} && {shlex.join(near)}"]


def dolma(trial: Trial) -> list[str]:
    """Returns the command of Dolma in its environment."""
    parity = str(HERE.parent / "parity")
    return [str(environment("dolma")), "-c", DOLMA, parity, str(trial.folder / "out"), *trial.files]


def corpus_pages(folder: Path, output: str) -> int:
    """Counts the pages of a corpus."""
    return int(json.loads((folder / "out" / "manifest.json").read_text())["counts"]["pages.kept"])


def work_pages(folder: Path, output: str) -> int:
    """Counts the pages that job 1 leaves for dedup."""
    from c4pipe.clean.work_file import read_header

    return sum(read_header(path).counts["pages.cleaned"] for path in (folder / "out").glob("*.parquet"))


def json_pages(folder: Path, output: str) -> int:
    """Counts the lines of JSON Lines."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))


def mixed_pages(folder: Path, output: str) -> int:
    """Counts the lines of packed JSON Lines that Dolma's mixer wrote."""
    return sum(gzip.decompress(path.read_bytes()).count(b"\n") for path in folder.rglob("mixed/*.gz"))


PEERS = {
    "decode": Peer("decompress and decode", decode, lambda folder, output: int(output.split()[0])),
    "build-tfds": Peer("c4pipe build --recipe tfds, 1 worker", c4pipe("build", "tfds", 1), corpus_pages),
    "build-tfds-2": Peer("c4pipe build --recipe tfds, 2 workers", c4pipe("build", "tfds", 2), corpus_pages),
    "build-c4": Peer("c4pipe build, 1 worker", c4pipe("build", "c4", 1), corpus_pages),
    "clean-tfds": Peer("c4pipe clean --recipe tfds, 1 worker", c4pipe("clean", "tfds", 1), work_pages),
    "clean-c4": Peer("c4pipe clean, 1 worker", c4pipe("clean", "c4", 1), work_pages),
    "tfds": Peer("TensorFlow Datasets", tfds, json_pages, True),
    "datatrove": Peer("datatrove, without dedup", datatrove("c4"), json_pages, True),
    "clean-gopher": Peer("c4pipe clean --recipe gopher", clean_without("gopher", "language"), work_pages),
    "gopher": Peer("datatrove, Gopher's filters", datatrove("gopher"), json_pages, True),
    "build-fineweb": Peer("c4pipe build --recipe fineweb, 1 worker", c4pipe("build", "fineweb", 1), corpus_pages),
    "fineweb": Peer(
        "datatrove, FineWeb's filters and MinHash",
        datatrove_fineweb,
        lambda folder, output: json_pages(folder / "out" / "near", output),
        True,
    ),
    "clean-datatrove-c4": Peer(
        "c4pipe clean --recipe datatrove-c4", clean_without("datatrove-c4", "language", "bad_words"), work_pages
    ),
    "datatrove-c4": Peer("datatrove, C4QualityFilter", datatrove("datatrove-c4"), json_pages, True),
    "clean-dolma-c4": Peer("c4pipe clean --recipe dolma-c4", clean_without("dolma-c4", "language"), work_pages),
    "clean-classifier": Peer("c4pipe clean, only classifier_score", clean_classifier("classifier"), work_pages),
    "classifier": Peer("datatrove, FastTextClassifierFilter", datatrove_classifier("classifier"), json_pages, True),
    "clean-small-classifier": Peer(
        "c4pipe clean, only classifier_score", clean_classifier("small-classifier"), work_pages
    ),
    "small-classifier": Peer(
        "datatrove, FastTextClassifierFilter", datatrove_classifier("small-classifier"), json_pages, True
    ),
    "dolma-c4": Peer("Dolma, c4_v2 and its mixer", dolma, mixed_pages, True),
}
