"""The example of a Flex Template: the launcher runs on a local runner, and its metadata describe its parameters."""

import importlib.util
import json
import re
from argparse import Action
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import c4pipe
from tests.helpers.beam_pipelines import IN_MEMORY
from tests.helpers.crawls import LISTS, ROOT

FOLDER = ROOT / "examples" / "dataflow_template"


@pytest.fixture(scope="module")
def launcher() -> Any:
    spec = importlib.util.spec_from_file_location("launcher", FOLDER / "launcher.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parameters(launcher: Any) -> dict[str, Action]:
    return {action.dest: action for action in launcher.make_parser()._actions if action.dest != "help"}


def test_the_metadata_have_the_parameters_of_the_launcher(launcher: Any) -> None:
    metadata = json.loads((FOLDER / "metadata.json").read_text())
    described = {each["name"]: each for each in metadata["parameters"]}
    assert list(described) == list(parameters(launcher))
    for name, action in parameters(launcher).items():
        assert described[name].get("isOptional", False) == (not action.required)
        assert {"name", "label", "helpText"} <= described[name].keys()
        for pattern in described[name].get("regexes", ()):
            assert action.default is None or re.match(pattern, str(action.default))
    assert set(metadata) == {"name", "description", "streaming", "parameters"}


def test_the_commands_of_the_page_have_known_parameters(launcher: Any) -> None:
    text = (ROOT / "docs" / "beam.md").read_text()
    given = re.findall(r"--parameters (\S+)", text)
    names = [pair.partition("=")[0] for group in given for pair in group.split(",")]
    beam_options = set(beam.options.pipeline_options.PipelineOptions([]).get_all_options())
    assert {"inputs", "output"} < set(names) <= {*parameters(launcher), *beam_options}


def test_the_graph_is_built(launcher: Any, tmp_path: Path) -> None:
    options = launcher.make_parser().parse_args(
        ["--inputs", str(ROOT / "samples" / "crawl"), "--output", str(tmp_path / "c"), "--recipe", "noblocklist"]
    )
    pipeline = beam.Pipeline(options=IN_MEMORY)
    launcher.build(pipeline, options)
    names = {each.unique_name for each in pipeline.to_runner_api().components.transforms.values()}
    assert {"Read pages", "Clean pages", "Keep newest", "Remove repeated spans", "Write corpus"} <= names


@pytest.mark.beam
def test_the_launcher_runs_here(launcher: Any, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    inputs = ["--inputs", str(ROOT / "samples" / "crawl"), "--lists", str(LISTS), "--exclude_urls", "sample-5"]
    beam_options = ["--runner=FnApiRunner", "--direct_running_mode=in_memory"]
    launcher.main([*inputs, "--output", str(output), "--formats", "json", *beam_options])
    corpus = c4pipe.open_corpus(output)
    assert corpus.formats == ("json",)
    assert corpus.counts["pages.read"] == 71
