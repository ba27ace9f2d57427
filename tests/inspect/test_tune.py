"""The chart of `c4pipe.inspect.tune`, and what `c4pipe tune` refuses."""

import socket
import sys
from pathlib import Path

import pytest

import c4pipe
from c4pipe.clean.annotated_folder import open_annotated
from c4pipe.errors import UsageError
from c4pipe.inspect import tune
from c4pipe.inspect.limits import Tuner
from c4pipe.inspect.options import TuneOptions
from c4pipe.inspect.tune_server import serve
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.documents import code_blocks, page


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    c4pipe.clean_files(str(SAMPLES[0]), work=folder / "work", annotate=folder / "annotated", lists=LISTS, workers=1)
    return folder / "annotated"


@pytest.mark.tune
def test_the_chart_of_a_notebook_has_the_numbers_of_the_tuner(annotated: Path) -> None:
    tuner, others = Tuner(open_annotated(annotated)), {"language.min_probability": 0.999996}
    chart = tune(annotated, "few_sentences.min_sentences", others)
    curve, histogram = chart.to_dict()["vconcat"]
    rows = curve["layer"][0]["data"]["values"] if "data" in curve["layer"][0] else curve["data"]["values"]
    (limit,) = (each for each in tuner.limits if each.key == "few_sentences.min_sentences")
    assert [row["limit"] for row in rows] == tuner.steps(limit)
    assert [row["pages"] for row in rows] == [tuner.kept({**others, limit.key: row["limit"]}).pages for row in rows]
    assert len({row["pages"] for row in rows}) > 3
    bars = [row for layer in histogram["layer"] for row in layer["data"]["values"] if row.get("fate") == "kept"]
    assert sum(bar["pages"] for bar in bars) == tuner.kept(others).pages < tuner.kept({}).pages
    assert set(chart._repr_mimebundle_()) == {"text/html"}


def test_the_recipe_of_the_tutorial_is_what_its_sliders_write(annotated: Path) -> None:
    changes = {"few_sentences.min_sentences": 5, "few_sentences_left.min_sentences": 5}
    (shown,) = code_blocks(page("docs/choose_limits.md"), "toml")
    assert Tuner(open_annotated(annotated)).recipe_toml(changes, Path("five.toml")) == shown


@pytest.mark.parametrize("name", ["few_sentence.min_sentences", "few_sentences"])
def test_an_unknown_limit(annotated: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"has no limit '{name}', but .*did you mean 'few_sentences.min_sentences'"):
        tune(annotated, changes={name: 5})


@pytest.mark.parametrize("package", ["marimo", "altair"])
def test_without_the_extra(annotated: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "c4pipe.inspect.tune_page", raising=False)
    monkeypatch.delattr("c4pipe.inspect.tune_page", raising=False)
    with pytest.raises(UsageError, match=r"^tune needs the package \w+: run pip install 'c4pipe\[tune\]'$"):
        serve(TuneOptions(annotated=annotated, output="no.toml"), print)


@pytest.mark.tune
def test_a_port_that_is_taken(annotated: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UsageError, match=f"^--port {port} can't be used: give another, or none for a free one$"):
            serve(TuneOptions(annotated=annotated, output="no.toml", port=port), print)


def test_a_recipe_without_limits(tmp_path: Path) -> None:
    c4pipe.clean_files(
        str(SAMPLES[0]), work=tmp_path / "work", annotate=tmp_path / "annotated", recipe="as-is", workers=1
    )
    with pytest.raises(UsageError, match=r"no page rule of .* has a limit: annotate with a recipe that has such rules"):
        tune(tmp_path / "annotated")
