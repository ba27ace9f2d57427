"""Each transform by itself: what it keeps, what it refuses, what it shows; and its example."""

import doctest
import importlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.transforms.environments import EmbeddedPythonEnvironment
from apache_beam.transforms.window import FixedWindows

import c4pipe
from c4pipe.beam import (
    BuildCorpus,
    CleanPages,
    KeepNewest,
    Page,
    ReadPages,
    RemoveRepeatedSpans,
    WriteCorpus,
    page_schema,
    stage_reports,
)
from c4pipe.errors import UsageError
from c4pipe.filters.column_rules import ColumnBelow
from c4pipe.recipes.presets import find_recipe
from c4pipe.text.hashes import normalise_url
from tests.helpers.beam_pipelines import IN_MEMORY, collect, run
from tests.helpers.crawls import LISTS, ROOT, sample_pages
from tests.helpers.language_models import SHA256, lid176

pytestmark = pytest.mark.beam

CRAWL = ROOT / "samples" / "crawl"
TRANSFORMS = [BuildCorpus, CleanPages, KeepNewest, ReadPages, RemoveRepeatedSpans, WriteCorpus]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda each: each.__name__)
def test_the_example_of_the_docstring(transform: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(transform.__module__)
    names = {**vars(module), "IN_MEMORY": IN_MEMORY, "FOLDER": str(tmp_path / "corpus")}
    (test,) = doctest.DocTestFinder(recurse=False).find(transform, transform.__name__, module=module, globs=names)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_pages_as_they_were_crawled() -> None:
    pages = collect(lambda pipeline: pipeline | ReadPages([CRAWL]))
    expected = sorted((page.url, page.timestamp, page.body) for page in sample_pages())
    assert sorted((page.url, page.timestamp, page.text) for page in pages) == expected
    assert len({page.source for page in pages}) > 1


def test_what_a_recipe_drops_and_why() -> None:
    cleaner = c4pipe.Cleaner("c4", lists=LISTS)
    pages = [Page(page.url, page.timestamp, page.body) for page in sample_pages()]
    dropped = collect(lambda pipeline: (pipeline | beam.Create(pages) | CleanPages("c4", lists=LISTS)).dropped)
    verdicts = [(page, cleaner(page.text, url=page.url, timestamp=page.timestamp)) for page in pages]
    expected = sorted((page, verdict.reason) for page, verdict in verdicts if verdict.reason)
    assert sorted((each.page, each.reason) for each in dropped) == expected
    assert len({each.reason for each in dropped}) > 4
    kept = collect(lambda pipeline: (pipeline | beam.Create(pages) | CleanPages("c4", lists=LISTS)).kept)
    texts = sorted((page.url, verdict.text, verdict.language) for page, verdict in verdicts if verdict.kept)
    assert sorted((page.url, page.text, page.language) for page in kept) == texts


def test_a_corpus_by_a_fasttext_model(tmp_path: Path) -> None:
    given: dict[str, Any] = {"lists": LISTS, "language_model": lid176()}
    run(lambda pipeline: pipeline | BuildCorpus(CRAWL, str(tmp_path / "corpus"), **given))
    built: Any = c4pipe.open_corpus(tmp_path / "corpus").manifest
    by_command: Any = c4pipe.build_corpus(CRAWL, output=tmp_path / "command", workers=1, **given).manifest
    assert built["language_model"] == SHA256
    names = ("recipe", "fingerprint", "language_model", "shards")
    assert {name: built[name] for name in names} == {name: by_command[name] for name in names}


def captures(seed: int) -> Iterator[Page]:
    """Captures of a few URLs, some of one moment, some equal."""
    rng = random.Random(seed)
    for _ in range(200):
        url = (
            rng.choice(["http://", "https://www."])
            + f"example.com/{rng.randrange(60)}"
            + rng.choice(["", "/", "?ref=a"])
        )
        timestamp = rng.choice(["", *(f"2019-01-0{rng.randrange(1, 5)}T00:00:00Z" for _ in range(9))])
        yield Page(url, timestamp, f"Text {rng.randrange(3)}.")


@pytest.mark.parametrize("seed", [1, 2])
def test_one_of_the_newest_captures_of_each_url_stays(seed: int) -> None:
    pages = list(captures(seed))
    newest: dict[str, str] = {}
    for page in pages:
        key = normalise_url(page.url)
        newest[key] = max(newest.get(key, ""), page.timestamp)
    kept = collect(lambda pipeline: pipeline | beam.Create(pages) | KeepNewest(buckets=8))
    assert {normalise_url(page.url): page.timestamp for page in kept} == newest
    assert len(kept) == len(newest)
    other_order = random.Random(seed).sample(pages, len(pages))
    assert {page.text for page in kept}
    again = collect(lambda pipeline: pipeline | beam.Create(other_order) | KeepNewest(buckets=64))
    assert sorted(page[1:3] for page in again) == sorted(page[1:3] for page in kept)


def test_a_dropped_capture_counts_as_a_capture_unless_it_is_not_readable() -> None:
    good = "One sentence of five words. " * 3
    new = "2019-02-02T00:00:00Z"
    pages = [Page(f"https://example.com/{n}", "2019-01-01T00:00:00Z", good) for n in range(3)]
    pages += [Page("https://example.com/0", new, "Too few words."), Page("https://example.com/1", new, "")]
    recipe = c4pipe.Recipe.from_json(c4pipe.Cleaner("noblocklist").recipe.to_json()).without("language")

    def cleaned(pipeline: beam.Pipeline) -> Any:
        return pipeline | beam.Create(pages) | CleanPages(recipe)

    with_dropped = collect(lambda pipeline: cleaned(pipeline) | KeepNewest())
    assert sorted(page.url[-1] for page in with_dropped) == ["1", "2"]
    only_kept = collect(lambda pipeline: cleaned(pipeline).kept | KeepNewest())
    assert sorted(page.url[-1] for page in only_kept) == ["0", "1", "2"]


def test_lines_are_removed_without_a_recipe() -> None:
    pages = [
        Page(f"https://example.com/{n}", "", f"Only on page {n}.\nOn every page.\non  every PAGE.") for n in range(9)
    ]
    left = collect(lambda pipeline: pipeline | beam.Create(pages) | RemoveRepeatedSpans(1, "line"))
    texts = sorted(page.text for page in left)
    assert sorted(len(text.split("\n")) for text in texts) == [1] * 8 + [2]
    assert all(page.language is None and page.source == "" for page in left)


def test_a_page_of_which_nothing_is_left_is_dropped() -> None:
    pages = [Page(f"https://example.com/{n}", "", "One. Two. Three.", "en", 1.0) for n in range(5)]
    metrics = run(lambda pipeline: pipeline | beam.Create(pages) | RemoveRepeatedSpans())
    assert metrics["pages_dropped/empty"] == 4
    assert metrics["units_dropped/repeated_span"] == 12


def test_two_pages_of_one_url_are_an_error() -> None:
    pages = [Page("https://example.com/a", "", "One.", "en", 1.0), Page("http://www.example.com/a/", "", "Two.")]
    with pytest.raises(Exception, match=r"two pages of the URL .*example\.com/a.*: put KeepNewest before it"):
        run(lambda pipeline: pipeline | beam.Create(pages) | RemoveRepeatedSpans())


def test_pages_of_own_without_rules(tmp_path: Path) -> None:
    pages = [Page(f"https://example.com/{n % 3}", "2019-01-01T00:00:00Z", f"Text {n}.") for n in range(9)]
    pages.append(Page("https://example.com/de", "2019-01-01T00:00:00Z", "Ein Text.", "de", 0.9))
    found = []
    for number, order in enumerate((pages, pages[::-1])):
        output = tmp_path / str(number)
        paths = collect(lambda pipeline: pipeline | beam.Create(order) | WriteCorpus(output, "json", shards=2))  # noqa: B023
        assert paths == [str(output / "manifest.json")]
        found.append(c4pipe.open_corpus(output))
    assert found[0].manifest == found[1].manifest
    assert found[0].languages == ("de", "und")
    assert found[0].counts["pages.read"] == found[0].pages == 10
    assert found[0].recipe.name == "own-pipeline"


def test_a_language_that_the_recipe_does_not_keep(tmp_path: Path) -> None:
    pages = [Page("https://example.com/", "2019-01-01T00:00:00Z", "Ein Text.", "de", 0.9)]
    with pytest.raises(Exception, match=r"pages of the language 'de', which recipe noblocklist does not keep"):
        run(lambda pipeline: pipeline | beam.Create(pages) | WriteCorpus(tmp_path / "c", recipe="noblocklist"))
    assert not (tmp_path / "c" / "manifest.json").exists()


def test_arguments_that_can_not_be_met(tmp_path: Path) -> None:
    for make in (
        lambda: CleanPages("c5"),
        lambda: RemoveRepeatedSpans(0),
        lambda: RemoveRepeatedSpans(3, "word"),
        lambda: KeepNewest(buckets=1000),
        lambda: WriteCorpus(tmp_path, "csv"),
        lambda: WriteCorpus(tmp_path, shards=0),
        lambda: WriteCorpus(tmp_path, lists=tmp_path),
    ):
        with pytest.raises(UsageError):
            make()
    with pytest.raises(UsageError, match="no such file"):
        run(lambda pipeline: pipeline | ReadPages(str(tmp_path / "none")))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"holds notes\.txt"):
        run(lambda pipeline: pipeline | beam.Create([Page("a", "b", "c")]) | WriteCorpus(tmp_path))


def test_a_recipe_with_columns_is_refused() -> None:
    plain = find_recipe("as-is")
    for recipe in (plain.with_columns(["score:float"]), plain.with_rule(ColumnBelow(), stage="crawled")):
        for make in (CleanPages, RemoveRepeatedSpans.by_recipe, lambda each: WriteCorpus("corpus", recipe=each)):
            with pytest.raises(UsageError, match=r"pages of c4pipe\.beam have none: run c4pipe build or c4pipe import"):
                make(recipe)


def test_a_corpus_is_not_overwritten(small_corpus: Path) -> None:
    with pytest.raises(UsageError, match="already holds a corpus"):
        run(lambda pipeline: pipeline | beam.Create([Page("a", "b", "c")]) | WriteCorpus(small_corpus))


@pytest.mark.parametrize("transform", [KeepNewest(), RemoveRepeatedSpans()], ids=["KeepNewest", "RemoveRepeatedSpans"])
def test_windows_are_refused(transform: beam.PTransform) -> None:
    pages = beam.Pipeline(options=IN_MEMORY) | beam.Create([Page("a", "b", "c")]) | beam.WindowInto(FixedWindows(60))
    with pytest.raises(UsageError, match="bounded PCollection in the global window"):
        pages | transform


def test_types_of_elements() -> None:
    pages = beam.Pipeline(options=IN_MEMORY) | ReadPages(CRAWL)
    assert pages.element_type is Page
    assert (pages | CleanPages("noblocklist") | KeepNewest()).element_type is Page
    with pytest.raises(beam.typehints.TypeCheckError):
        beam.Pipeline(options=IN_MEMORY) | beam.Create(["a text"]) | RemoveRepeatedSpans()


def test_another_process_runs_the_pipeline(tmp_path: Path) -> None:
    """As a worker of a cluster does: it has the pipeline as bytes, and has imported nothing of c4pipe."""
    pipeline = beam.Pipeline(options=IN_MEMORY)
    pipeline | BuildCorpus(CRAWL, tmp_path / "corpus", recipe="noblocklist")
    here = EmbeddedPythonEnvironment.default()
    (tmp_path / "pipeline").write_bytes(pipeline.to_runner_api(default_environment=here).SerializeToString())
    program = (
        "import sys, pathlib; "
        "from apache_beam.portability.api import beam_runner_api_pb2; "
        "from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner; "
        "from apache_beam.options.pipeline_options import PipelineOptions; "
        "assert not [name for name in sys.modules if name.startswith('c4pipe')]; "
        "graph = beam_runner_api_pb2.Pipeline.FromString(pathlib.Path(sys.argv[1]).read_bytes()); "
        "FnApiRunner().run_via_runner_api(graph, PipelineOptions([]))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "pipeline")], check=True, cwd=ROOT)
    assert c4pipe.open_corpus(tmp_path / "corpus").pages > 30


def test_names_of_metrics() -> None:
    names = ["pages.read", "pages.dropped.few_sentences", "damage.gzip_cut", "pages.kept.zh-cn"]
    expected = ["pages_read", "pages_dropped/few_sentences", "damage/gzip_cut", "pages_kept/zh-cn"]
    assert [stage_reports.metric_name(name) for name in names] == expected


def test_numbers_of_buckets() -> None:
    assert [page_schema.bits_of_buckets(number) for number in (2, 1024, 65536)] == [1, 10, 16]
