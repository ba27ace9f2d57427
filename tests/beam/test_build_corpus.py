"""`BuildCorpus` and the transforms that it is made of give the corpus that `c4pipe build` gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import c4pipe
from c4pipe.beam import BuildCorpus, CleanPages, KeepNewest, ReadPages, RemoveRepeatedSpans, WriteCorpus
from c4pipe.beam.stage_reports import metric_name
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.reader import read_tables
from c4pipe.text.languages import LANGUAGES
from tests.helpers.bad_inputs import GOOD, write_bad
from tests.helpers.beam_pipelines import collect, run
from tests.helpers.corpora import contents, read_manifest
from tests.helpers.crawls import LISTS, ROOT
from tests.helpers.web import serve
from tests.helpers.web_data import by_data

CRAWL = ROOT / "samples" / "crawl"

pytestmark = pytest.mark.beam


def shards_of(corpus: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(corpus).items() if "/c4-" in name}


def test_all_formats_have_the_same_bytes_and_the_manifest_too(tmp_path: Path) -> None:
    given: dict[str, Any] = {"recipe": "noblocklist", "languages": ["en", "de"], "shards": 2}
    formats = ["parquet", "tfrecord", "json"]
    expected = c4pipe.build_corpus(CRAWL, output=tmp_path / "local", format=formats, workers=1, **given)
    run(lambda pipeline: pipeline | BuildCorpus(CRAWL, tmp_path / "beam", formats=formats, **given))
    assert shards_of(tmp_path / "beam") == shards_of(tmp_path / "local")
    assert len(shards_of(tmp_path / "beam")) == 2 * 3 * len(formats)
    assert read_manifest(tmp_path / "beam") == expected.manifest
    assert (tmp_path / "beam" / "README.md").read_text() == (tmp_path / "local" / "README.md").read_text()
    names = {path.name for path in (tmp_path / "beam").iterdir()}
    assert names == {"README.md", "dedup.json", "manifest.json", "report.html", "report.json", "en", "de"}


@pytest.mark.parametrize("recipe", ["c4", "tfds", "mc4", "unfiltered"])
def test_each_kind_of_recipe_gives_the_same_corpus(tmp_path: Path, recipe: str) -> None:
    """Spans of sentences, spans of lines with the language behind them, another detector, no spans."""
    given: dict[str, Any] = {"recipe": recipe, "lists": LISTS, "languages": ["en"]}  # mc4 has 107, with a list each
    expected = c4pipe.build_corpus(CRAWL, output=tmp_path / "local", workers=1, **given)
    metrics = run(lambda pipeline: pipeline | BuildCorpus(str(CRAWL), str(tmp_path / "beam"), **given))
    assert shards_of(tmp_path / "beam") == shards_of(tmp_path / "local")
    assert read_manifest(tmp_path / "beam") == expected.manifest
    counts = {metric_name(name): n for name, n in expected.counts.items() if n and not name.startswith(LANGUAGES)}
    assert {name: number for name, number in metrics.items() if number and name != "pages_cleaned"} == counts
    assert metrics["pages_dropped/incomplete"] == 3


def test_files_that_are_missing_or_have_no_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = write_bad(tmp_path)
    with serve({}) as web:
        inputs = [str(GOOD), *bad, f"{web.url}/a.warc.wet.gz"]
        metrics = run(lambda pipeline: pipeline | BuildCorpus(inputs, tmp_path / "beam", lists=LISTS))
    missing = read_manifest(tmp_path / "beam")["missing"]
    assert {each["path"] for each in missing} == {*inputs[1:]}
    assert metrics["files_missing"] == len(missing)
    assert all(f"missing: {each['error']}" in caplog.text for each in missing)
    expected = c4pipe.build_corpus(inputs[:-1], output=tmp_path / "local", workers=1, lists=LISTS)
    assert shards_of(tmp_path / "beam") == shards_of(tmp_path / "local")
    assert [each for each in missing if each["path"] in bad] == expected.manifest["missing"]
    with pytest.raises(Exception, match=r"no page was found in the \d+ input files: .* has no record"):
        run(lambda pipeline: pipeline | BuildCorpus([*bad], tmp_path / "none", lists=LISTS))


@pytest.mark.slow
def test_real_pages(tmp_path: Path, largest_data: Path) -> None:
    inputs = [largest_data / "wet", largest_data / "pages", largest_data / "broken"]
    given: dict[str, Any] = {"recipe": "c4", "lists": largest_data / "lists"}
    expected = c4pipe.build_corpus(inputs, output=tmp_path / "local", workers=1, **given)
    run(lambda pipeline: pipeline | BuildCorpus(inputs, tmp_path / "beam", **given))
    assert expected.pages > by_data(largest_data, shipped=90, real=500)
    assert shards_of(tmp_path / "beam") == shards_of(tmp_path / "local")
    assert read_manifest(tmp_path / "beam") == expected.manifest


def test_pages_without_a_corpus(tmp_path: Path) -> None:
    """The transforms before `WriteCorpus` give the pages as elements: the same URLs, times, texts and languages."""
    expected = c4pipe.build_corpus(CRAWL, output=tmp_path / "local", lists=LISTS, workers=1)

    def graph(pipeline: beam.Pipeline) -> beam.PCollection:
        cleaned = pipeline | ReadPages(CRAWL) | CleanPages("c4", lists=LISTS)
        return cleaned | KeepNewest() | RemoveRepeatedSpans.by_recipe("c4", lists=LISTS)

    pages = collect(graph)
    documents = [document for shard in expected.shards() for document in documents_of(shard)]
    assert sorted(page[:5] for page in pages) == sorted(documents)
    assert {page.source for page in pages} <= {path.name for path in CRAWL.iterdir()}


def documents_of(shard: Any) -> list[tuple[Any, ...]]:
    names = ["url", "timestamp", "text", "language", "language_probability"]
    rows = [row for table in read_tables(shard, CORPUS_SCHEMA.names) for row in table.to_pylist()]
    return [tuple(row[name] for name in names) for row in rows]


def mixed(edit: Callable[[beam.PCollection], beam.PCollection], output: Path) -> Callable[[beam.Pipeline], Any]:
    def graph(pipeline: beam.Pipeline) -> Any:
        cleaned = pipeline | ReadPages(CRAWL) | CleanPages("c4", lists=LISTS)
        kept = edit(cleaned.kept)
        newest = (kept, cleaned.dropped) | KeepNewest()
        spans = newest | RemoveRepeatedSpans.by_recipe("c4", lists=LISTS)
        return spans | WriteCorpus(output, recipe="c4", lists=LISTS)

    return graph


def test_own_transforms_drop_pages(tmp_path: Path) -> None:
    def only_some(pages: beam.PCollection) -> beam.PCollection:
        return pages | "Even" >> beam.Filter(lambda page: len(page.url) % 2 == 0)

    run(mixed(only_some, tmp_path / "corpus"))
    corpus = c4pipe.open_corpus(tmp_path / "corpus")
    documents = [each for shard in corpus.shards() for each in documents_of(shard)]
    assert documents
    assert all(len(url) % 2 == 0 for url, *_ in documents)
    counts = corpus.counts
    dropped = sum(number for name, number in counts.items() if name.startswith("pages.dropped."))
    assert counts["pages.dropped.own_transforms"] > 0
    assert counts["pages.read"] == 71 == dropped + counts["pages.kept"]


def test_own_transforms_add_and_edit_pages(tmp_path: Path) -> None:
    def twice(pages: beam.PCollection) -> beam.PCollection:
        doubled = beam.FlatMap(lambda page: [page, page._replace(url=f"{page.url}?copy", text=page.text.upper())])
        return pages | "Twice" >> doubled

    run(mixed(twice, tmp_path / "corpus"))
    corpus = c4pipe.open_corpus(tmp_path / "corpus")
    counts = corpus.counts
    dropped = sum(number for name, number in counts.items() if name.startswith("pages.dropped."))
    assert counts["pages.added"] > 0
    assert counts["pages.read"] == 71 + counts["pages.added"] == dropped + counts["pages.kept"]
    documents = [each for shard in corpus.shards() for each in documents_of(shard)]
    assert any(text.isupper() for _, _, text, *_ in documents)
