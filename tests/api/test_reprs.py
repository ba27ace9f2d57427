"""What a notebook shows of the public objects: one short line, and tables in which nothing of a page is HTML."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import c4pipe
from c4pipe import read
from c4pipe.objectives.batches import Batches, TextExamples
from c4pipe.objectives.objective import span_corruption
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.recipes.presets import RECIPES
from c4pipe.runners.events import ProgressEvent, show_bar
from c4pipe.vocab.quality import Vocabulary
from tests.helpers.crawls import LISTS, ROOT

CRAWL = ROOT / "samples" / "crawl"

HOSTILE = "<script>alert(1)</script> & a \x1b[31mcode, <b>bold</b>."


@pytest.fixture(scope="module")
def corpus(sample_corpus: Path) -> c4pipe.Corpus:
    return c4pipe.open_corpus(sample_corpus)


def made_of(corpus: c4pipe.Corpus, folder: Path) -> Iterator[object]:
    """An object of each kind that a user gets from a corpus."""
    path = str(corpus.path)
    yield corpus
    yield c4pipe.clean_files(CRAWL, work=folder / "work", lists=LISTS, workers=1)
    vocabulary = c4pipe.train_vocabulary([f"{path}/en"], output=folder / "vocab", size=300, workers=1)
    yield vocabulary
    yield Vocabulary("own", vocabulary.model)
    yield c4pipe.write_token_files(path, vocabulary=folder / "vocab", output=folder / "ids", workers=1)
    (folder / "examples.jsonl").write_text('{"text": "%s"}' % ("one two three four five six seven eight " * 2))
    yield c4pipe.find_overlap(path, against=folder / "examples.jsonl", workers=1)
    documents, tokenizer = read.documents(path), Tokenizer(vocabulary.model)
    objective = span_corruption(tokenizer.ids)
    yield from (documents, documents.source, read.mix([path, f"{path}/en"], seed=1), read.random_access(path))
    yield from (tokenizer, objective, TextExamples(documents, tokenizer, objective))
    yield Batches(documents.copy(), tokenizer, objective, size=2)


def test_an_object_is_one_short_line(corpus: c4pipe.Corpus, tmp_path: Path) -> None:
    cleaner = c4pipe.Cleaner("c4", lists=LISTS)
    text = "A long sentence of a page that says the same again and again. " * 500
    verdicts = [cleaner(text), cleaner.explain(text), cleaner(HOSTILE), cleaner.explain(HOSTILE)]
    for value in [*made_of(corpus, tmp_path), *RECIPES.values(), cleaner, *verdicts]:
        shown = repr(value).replace(str(tmp_path), "").replace(str(corpus.path), "")
        assert type(value).__name__ in shown
        assert len(shown) < 250, shown
        assert " at 0x" not in shown
        assert "\n" not in shown


@pytest.mark.consumers
def test_a_corpus_in_a_line_and_a_data_frame(corpus: c4pipe.Corpus) -> None:
    assert repr(corpus) == f"<Corpus: {corpus.path}, recipe c4, languages en, 38 pages, 2 shards, parquet>"
    import pandas

    frame = pandas.DataFrame(corpus.funnel)
    assert [*frame.columns] == ["section", "kind", "name", "number", "whole"]
    assert int(frame.set_index("name").number["pages kept"]) == corpus.pages


def test_progress_is_a_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    c4pipe.build_corpus(CRAWL, output=tmp_path / "corpus", lists=LISTS, workers=1, progress=True)
    shown = capsys.readouterr().err
    ends = [line.rpartition("\r")[2] for line in shown.split("\n")[:-1]]
    assert [line.split()[:3] for line in ends] == [[job, f"[{'#' * 20}]", "100%"] for job in ("clean", "dedup")]
    c4pipe.build_corpus(CRAWL, output=tmp_path / "other", lists=LISTS, workers=1, progress=False)
    assert capsys.readouterr().err == ""


def test_the_bar_fits_into_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show_bar(
        ProgressEvent("clean", "running", 0.5, "3 of 8 files, \x1b[31m" + "words " * 50, seconds=5, seconds_left=5)
    )
    shown = capsys.readouterr().err
    assert shown.startswith("\rclean    [##########..........]  50% ")
    assert len(shown) == 60
    assert "\x1b" not in shown


@pytest.mark.docs
def test_a_notebook_shows_the_bar_and_the_corpus(corpus: c4pipe.Corpus, tmp_path: Path) -> None:
    import nbclient
    import nbformat

    source = f"import c4pipe\ncorpus = c4pipe.build_corpus({str(CRAWL)!r}, output={str(tmp_path / 'c')!r}, "
    source += f"lists={str(LISTS)!r}, workers=1, progress=True)\ncorpus"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbclient.NotebookClient(notebook, timeout=120, startup_timeout=300, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    bar = "".join(output["text"] for output in outputs if output.get("name") == "stderr")
    assert "clean    [####################] 100%" in bar
    (result,) = [output["data"] for output in outputs if output["output_type"] == "execute_result"]
    assert result["text/plain"].startswith("<Corpus: ")
