"""What the page of `c4pipe tune` shows about a rule, and what the command refuses."""

import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.clean.annotated_folder import open_annotated
from c4pipe.errors import UsageError
from c4pipe.inspect.limits import Tuner
from c4pipe.inspect.options import TuneOptions
from c4pipe.inspect.rule_drops import count_rule_drops
from c4pipe.inspect.tune_server import serve
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.documents import code_blocks, page


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    c4pipe.clean_files(str(SAMPLES[0]), work=folder / "work", annotate=folder / "annotated", lists=LISTS, workers=1)
    return folder / "annotated"


@pytest.mark.parametrize("key", ["few_sentences.min_sentences", "language.min_probability", "too_long.max_characters"])
def test_the_view_of_a_rule_has_the_numbers_of_a_plain_loop(annotated: Path, key: str) -> None:
    tuner = Tuner(open_annotated(annotated))
    (limit,) = (each for each in tuner.limits if each.key == key)
    fired = [
        f"{rule}_fired" for rule in count_rule_drops(open_annotated(annotated)).rules if rule != "few_sentences_left"
    ]
    rows = pq.read_table(annotated / f"{SAMPLES[0].name}.parquet").to_pylist()
    dropped = [row for row in rows if row[f"{limit.rule}_fired"]]
    alone = [row for row in dropped if sum(bool(row[name]) for name in fired) == 1]
    view = tuner.view(limit, {})
    assert (view.dropped, view.alone) == (len(dropped), len(alone))
    assert view.bars[:, 0].sum() == tuner.kept({}).pages
    assert view.bars.shape == (len(view.edges) - 1, 3)
    assert (np.diff(view.edges) > 0).all()
    kept_urls, dropped_urls = ([words.split(" · ")[1] for words in side] for side in view.near)
    passed = {row["url"] for row in rows if not any(row[name] for name in fired)}
    assert passed.issuperset(kept_urls)
    assert sorted(dropped_urls) == sorted(row["url"] for row in alone)[:20]
    numbers = [abs(float(words.split()[0]) - limit.value) for words in view.near[0]]
    assert numbers == sorted(numbers) != []


def test_the_recipe_of_the_tutorial_is_what_its_sliders_write(annotated: Path) -> None:
    changes = {"few_sentences.min_sentences": 5, "few_sentences_left.min_sentences": 5}
    (shown,) = code_blocks(page("docs/choose_limits.md"), "toml")
    assert Tuner(open_annotated(annotated)).recipe_toml(changes, Path("five.toml")) == shown


@pytest.mark.parametrize("package", ["marimo", "altair"])
def test_without_the_extra(annotated: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "c4pipe.inspect.tune_page", raising=False)
    monkeypatch.delattr("c4pipe.inspect.tune_page", raising=False)
    with pytest.raises(UsageError, match=r"^tune needs the package \w+: run pip install 'c4pipe\[tune\]'$"):
        serve(TuneOptions(annotated=annotated, output="no.toml"))


@pytest.mark.tune
def test_a_port_that_is_taken(annotated: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UsageError, match=f"^--port {port} can't be used: give another, or none for a free one$"):
            serve(TuneOptions(annotated=annotated, output="no.toml", port=port))


def test_a_recipe_without_limits(tmp_path: Path) -> None:
    c4pipe.clean_files(
        str(SAMPLES[0]), work=tmp_path / "work", annotate=tmp_path / "annotated", recipe="as-is", workers=1
    )
    with pytest.raises(UsageError, match=r"no page rule of .* has a limit: annotate with a recipe that has such rules"):
        serve(TuneOptions(annotated=tmp_path / "annotated", output=str(tmp_path / "no.toml")))
