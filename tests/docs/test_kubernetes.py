"""The manifests of examples/kubernetes: against strict schemas, and their commands as the pods run them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml

from tests.docs.test_arrays import INDICES, corpus_of_one_build, run
from tests.helpers.crawls import CRAWL, LISTS, ROOT, files_of, made_crawl
from tests.helpers.web import serve

MANIFESTS = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
SCHEMA = ROOT / "tests" / "data" / "kubernetes" / "manifests.json"


def manifest(name: str) -> Any:
    return ruamel.yaml.YAML(typ="safe").load(ROOT / "examples" / "kubernetes" / f"{name}.yaml")


def mistakes(*paths: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(SCHEMA), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_manifests_are_as_kubernetes_and_kuberay_want_them() -> None:
    assert [path.stem for path in MANIFESTS] == ["clean", "dedup", "prepare", "rayjob", "volume"]
    done = mistakes(*MANIFESTS)
    assert done.returncode == 0, done.stdout


def test_a_field_that_does_not_exist_is_a_mistake(tmp_path: Path) -> None:
    """At the top, in a Job, in a pod, and in what KubeRay has."""
    changed = {
        "clean": [("completions:", "completion:"), ("    spec:", "    specs:"), ("mountPath:", "path:")],
        "rayjob": [("rayClusterSpec:", "rayCluster:"), ("headGroupSpec:", "head:"), ("mountPath:", "path:")],
        "volume": [("accessModes:", "accessMode:")],
    }
    paths = []
    for name, changes in changed.items():
        text = (ROOT / "examples" / "kubernetes" / f"{name}.yaml").read_text()
        for number, (old, new) in enumerate(changes):
            assert old in text
            paths.append(tmp_path / f"{name}-{number}.yaml")
            paths[-1].write_text(text.replace(old, new))
    done = mistakes(*paths)
    assert done.returncode == 1
    assert [path.name for path in paths if f"{path}::" not in done.stdout] == []


def pod(folder: Path, manifest: Any, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs the container of a Job with the volume and the scripts where they are here, and two files for each task."""
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    places = {"/data/lists": str(LISTS), "/data/": f"{folder}/", "/scripts/": f"{ROOT}/examples/arrays/"}
    places["https://data.commoncrawl.org"] = variables.get("WEB", "")
    words = ["2" if word == "100" else word for word in (*container["command"], *container["args"])]
    for old, new in places.items():
        words = [word.replace(old, new) for word in words]
    return run(folder, *words, **variables)


@pytest.mark.slow
def test_an_indexed_job_and_dedup_give_the_corpus_of_one_build(tmp_path: Path) -> None:
    files = made_crawl(5)
    with serve({name.replace(CRAWL, "CC-MAIN-2019-18"): data for name, data in files.items()} | files) as web:
        prepared = pod(tmp_path, manifest("prepare"), WEB=web.url)
        assert (prepared.returncode, prepared.stdout) == (0, "5 files\n"), prepared.stderr
        clean = manifest("clean")
        assert clean["spec"]["completionMode"] == "Indexed"
        for index in (0, 1, 2):
            assert pod(tmp_path, clean, **{INDICES[3]: str(index)}).returncode == 0
        done = pod(tmp_path, manifest("dedup"))
        assert done.returncode == 0, done.stderr
        assert files_of(tmp_path / "corpus") == corpus_of_one_build(tmp_path)


def test_the_parts_agree_with_each_other() -> None:
    """The list has 72,000 files; both scripts get the same slices; both scripts are there."""
    clean, dedup = (manifest(name)["spec"] for name in ("clean", "dedup"))
    ((cleaning,), (deduplicating,)) = (each["template"]["spec"]["containers"] for each in (clean, dedup))
    assert cleaning["args"][:3] == deduplicating["args"][:3]
    assert clean["completions"] * int(cleaning["args"][1]) == 72_000
    for container in (cleaning, deduplicating):
        name = Path(container["command"][1]).name
        assert (ROOT / "examples" / "arrays" / name).exists()


def test_the_entrypoint_on_ray_is_a_command_of_c4pipe() -> None:
    words = manifest("rayjob")["spec"]["entrypoint"].split()
    assert words[:3] == ["c4pipe", "build", "@/data/files.txt"]
    options = (ROOT / "docs" / "options.md").read_text()
    assert [word for word in words if word.startswith("--") and f"`{word}" not in options] == []
