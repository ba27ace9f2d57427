"""What keeps c4pipe fast, without a clock: how often the costly parts are called."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import punkt
import pytest

import c4pipe
from c4pipe.clean.examples import EXAMPLES_PER_FILE
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.filters import listed_words, phrases
from c4pipe.io import atomic
from c4pipe.jobs import clean_run as jobs
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import languages, sentences
from tests.helpers.web_data import by_data
from tests.helpers.wet import record

ROOT = Path(__file__).resolve().parents[2]


class Calls:
    """Counts the calls of functions, which do what they did."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts = Counter[str]()
        self._patch = patch

    def of(self, owner: Any, name: str) -> None:
        before: Callable[..., Any] = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return before(*given, **named)

        self._patch.setattr(owner, name, counted)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls(monkeypatch)
    found.of(languages.LanguageDetector, "guess")
    found.of(sentences.SentenceSplitter, "_library")
    found.of(punkt.PunktSentenceTokenizer, "_context_has_sentbreak")
    found.of(listed_words, "_has")
    found.of(phrases, "contains")
    return found


def clean(recipe: str, files: list[Path], lists: Path, target: Path) -> Counter[str]:
    """Cleans files in this process, and returns the counters."""
    made = find_recipe(recipe)
    cleaner = WetFileCleaner(made, gather_lists(made, lists, ()))
    counts = Counter[str]()
    for path in files:
        target.unlink(missing_ok=True)
        with path.open("rb") as stream:
            cleaner.clean(stream, path.name, target)
        counts.update(read_header(target).counts)
    return counts


@pytest.mark.needs("extensions")
@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_costly_parts_are_seldom_asked(recipe: str, calls: Calls, web_data: Path, tmp_path: Path) -> None:
    files = sorted((web_data / "pages").glob("*.gz"))
    counts = clean(recipe, files, web_data / "lists", tmp_path / "work.parquet")
    pages, left = counts["pages.read"], counts["lines.left"]
    assert pages > by_data(web_data, shipped=200, real=1900)
    assert left > by_data(web_data, shipped=2000, real=30_000)
    asked = calls.counts
    # Once for a page at most, and not for those that fall before; once more for an example of a rule, of which a small
    # crawl has many for its size.
    assert asked["guess"] < pages + by_data(web_data, shipped=30, real=0)
    assert asked["_library"] < left / 25  # Punkt's own way through a line
    assert asked["_context_has_sentbreak"] < left / 4  # the model's word on a mark
    assert asked["contains"] < counts["lines.read"] / 4  # phrases in a line
    assert asked["_has"] < 12 * pages  # bad words that may be there


@pytest.mark.needs("extensions")
def test_a_page_that_falls_early_costs_little(calls: Calls, tmp_path: Path) -> None:
    text = "\n".join(f"Menu {number}" for number in range(100))
    crawl = tmp_path / "menus.warc.wet"
    crawl.write_bytes(b"".join(record(text, f"http://a.example/{number}") for number in range(50)))
    counts = clean("c4", [crawl], ROOT / "samples" / "lists", tmp_path / "work.parquet")
    assert counts["lines.dropped.no_terminal_punctuation"] == 5000
    assert calls.counts == {"contains": 4 * EXAMPLES_PER_FILE}  # in whole pages: examples are explained


def test_a_small_file_is_written_with_two_syncs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A sync takes a millisecond, or ten on a busy disk: one of the work file, one of its examples."""
    syncs = Calls(monkeypatch)
    syncs.of(os, "fsync")
    crawl = [tmp_path / f"{number}.warc.wet" for number in range(5)]
    for path in crawl:
        path.write_bytes(record("A page.", f"http://a.example/{path.name}"))
    found = []
    for inputs, work in ((crawl[:1], "one"), (crawl, "five")):
        c4pipe.clean_files(inputs, work=tmp_path / work, lists=ROOT / "samples" / "lists", workers=1)
        found.append(syncs.counts.pop("fsync"))
    assert found[1] - found[0] == 2 * 4


def test_many_small_files_share_what_they_can(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread for a second, not for a file; one fingerprint for all; and files of one task are synced at once."""
    calls = Calls(monkeypatch)
    calls.of(os, "fsync")
    calls.of(threading.Thread, "start")
    calls.of(Recipe, "_fingerprint")
    calls.of(atomic, "_sync_disk")
    monkeypatch.setattr(jobs, "_SMALL_TASKS", 2)
    crawl = [tmp_path / f"{number}.warc.wet" for number in range(20)]
    for path in crawl:
        path.write_bytes(record("A page.", f"http://a.example/{path.name}"))
    c4pipe.clean_files(crawl, work=tmp_path / "work", lists=ROOT / "samples" / "lists", workers=1)
    assert sum(path.suffix == ".parquet" for path in (tmp_path / "work").iterdir()) == 20
    assert calls.counts["_sync_disk"] == 2
    if os.major(tmp_path.stat().st_dev):  # of a disk that can do it
        assert calls.counts["fsync"] < 20
    assert calls.counts["_fingerprint"] <= 3  # of the plan, of its worker, and of the recipe that headers have
    assert calls.counts["start"] < 10


def test_a_build_imports_nothing_heavy(tmp_path: Path) -> None:
    """Each of them would cost every process between a twentieth of a second and two seconds."""
    script = (
        "import sys; from c4pipe.cli.main import run; status = run(); "
        "heavy = ('apache_beam', 'pandas', 'pyarrow.dataset', 'langdetect', 'tensorflow'); "
        "print([name for name in heavy if name in sys.modules]); sys.exit(status)"
    )
    given = ["build", ROOT / "samples/crawl", "--lists", ROOT / "samples/lists", "--output", tmp_path / "corpus"]
    command = [sys.executable, "-c", script, *map(str, given), "--workers", "1", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
