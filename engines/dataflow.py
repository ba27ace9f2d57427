"""What can be checked of Dataflow without Google: the jobs that Beam would send there, and the workers' package.

    python engines/dataflow.py

`c4pipe build --runner DataflowRunner` runs as it would, with two things of Google's replaced: storage by
fake-gcs-server, and the Dataflow service by `dataflow_service.py`. That one is not Dataflow. It keeps the requests, and
gives each staged job graph to Prism, whose workers are started by Beam's own `boot`, the entry point of the
workers' image, in a clean environment that c4pipe's package was installed in.
"""

import base64
import bz2
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as graphs
from apache_beam.runners.pipeline_context import PipelineContext
from clusters import HOST, free_port, listens, started, wait
from dataflow_service import BUCKET, IMAGE, run_graph, served, staged, store, stored
from fetch import BOOT, PRISM, built, cache
from gcs import gcs

from c4pipe.clean.work_file import URL_ROW
from c4pipe.corpus.layout import Layout
from c4pipe.dedup.graph import dedup_work_files
from c4pipe.dedup.shuffle import SPAN_ROW, bucket_bits, group_size
from c4pipe.dedup.step import DedupPlan
from c4pipe.recipes.presets import find_recipe
from c4pipe.runners.beam_runner import BeamFlow

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
CRAWL = 72_000
"""Files of a crawl."""
LIMIT = 10_000_000
"""Bytes that a job's graph may have: https://cloud.google.com/dataflow/docs/request-quotas (20 MB for the request)."""
ENTRY = "apache_beam.runners.worker.sdk_worker_main"


class Checks:
    """Prints a line for each thing that was checked, and remembers whether one failed."""

    failed = False

    def say(self, good: object, what: str) -> None:
        """Prints a check and its result.

        Args:
            good: whether it succeeded.
            what: what was checked, with the values that were measured.
        """
        print(f"{'ok  ' if good else 'FAIL'}  {what}", flush=True)
        self.failed |= not good


def pip(python: Path, *given: object) -> None:
    """Installs packages, or ends with what pip says."""
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, given)]
    subprocess.run(command, check=True, cwd=python.parent)


def submitter() -> Path:
    """Returns the Python of an environment with Beam's part for Google, which is large: it stays in the cache."""
    identity = CONSTRAINTS.read_bytes() + sys.version.encode()
    folder = cache() / f"gcp-{hashlib.sha256(identity).hexdigest()[:12]}"
    python, stamp = folder / "bin" / "python", folder / "made"
    if not stamp.exists():
        print("making the environment that submits", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip(python, "install", f"apache-beam[gcp]=={version('apache-beam')}", "setuptools>=77", "-c", CONSTRAINTS)
        stamp.touch()
    return python


def package(python: Path, folder: Path) -> tuple[Path, Path]:
    """Makes the sdist of the clone, and of that the wheel: so the sdist is complete."""
    build = [str(python), "-c", f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"]
    subprocess.run(build, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (sdist,) = folder.glob("c4pipe-*.tar.gz")
    pip(python, "wheel", "--no-deps", "--no-build-isolation", sdist, "-w", folder)
    (wheel,) = folder.glob("c4pipe-*.whl")
    return sdist, wheel


def worker(wheel: Path, folder: Path) -> Path:
    """Returns the command that starts a worker: Beam's `boot`, in a new environment that has the wheel.

    The `python` that it finds notes how it was called and what it imports, in `imports.log`.
    """
    home, shims, log = folder / "worker", folder / "shims", folder / "imports.log"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip(home / "bin" / "python", "install", wheel, "-c", CONSTRAINTS)
    shims.mkdir()
    for name in ("python", "python3"):
        _script(shims / name, f'echo "called: $*" >>{log}', f'exec {home}/bin/python -v "$@" 2>>{log}')
    environment = f"PATH={shims}:{home}/bin:$PATH RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1"
    boot = folder / "boot"
    # Prism puts quotes around the id, though no shell takes them away.
    unquoted = """for word; do shift; set -- "$@" "$(printf %s "$word" | tr -d "'")"; done"""
    # "python -m" looks for modules where it is started, too: that must not be the clone.
    _script(
        boot,
        f"cd {folder}",
        f"export {environment}",
        unquoted,
        f'exec {built(BOOT)} --semi_persist_dir={folder}/persist "$@"',
    )
    return boot


def _script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


@contextmanager
def prism(folder: Path) -> Iterator[str]:
    """Starts Prism; gives the address of its job service."""
    port, log = free_port(), folder / "prism.log"
    with started([str(built(PRISM)), f"--job_port={port}", "--serve_http=false"], log) as program:
        wait(lambda: listens(port), "Prism", log, program)
        yield f"{HOST}:{port}"


def c4pipe(python: Path, *given: object) -> "subprocess.CompletedProcess[str]":
    """Runs a command of c4pipe, in the environment of that Python and in no clone."""
    command = [str(python), "-m", "c4pipe", *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, cwd=python.parent)


def check_graph(checks: Checks, name: str, job: Mapping[str, Any], size: int) -> None:
    """Checks what is in a request and in the graph that it names."""
    data = staged(job)
    graph = graphs.Pipeline.FromString(data)
    parts = graph.components
    images = {
        graphs.DockerPayload.FromString(each.payload).container_image
        for each in parts.environments.values()
        if each.urn == common_urns.environments.DOCKER.urn
    }
    checks.say(images == {IMAGE}, f"{name}: the workers' image is {', '.join(images)}")
    checks.say(size < LIMIT, f"{name}: the request has {size:,} bytes, the staged graph {len(data):,}")
    groups = [each for each in parts.transforms.values() if each.spec.urn == "beam:transform:group_by_key:v1"]
    context = PipelineContext(parts)
    loose = [each.unique_name for each in groups if not _key_coder(context, parts, each).is_deterministic()]
    checks.say(not loose, f"{name}: {len(groups)} shuffles, with keys of no fixed form: {', '.join(loose) or 'none'}")
    urls = [
        graphs.ArtifactUrlPayload.FromString(d.type_payload).url
        for e in parts.environments.values()
        for d in e.dependencies
    ]
    checks.say(all(url.startswith(f"gs://{BUCKET}/tmp/") for url in urls), f"{name}: staged beside it: {_names(urls)}")
    local = sorted({path for text in _texts(graph) for path in _paths(text)})
    checks.say(not local, f"{name}: paths of this machine in the graph: {', '.join(local) or 'none'}")


def _names(urls: Sequence[str]) -> str:
    return ", ".join(url.rpartition("/")[2] for url in urls) or "nothing"


def _key_coder(context: Any, parts: graphs.Components, group: graphs.PTransform) -> Any:
    (source,) = group.inputs.values()
    return context.coders.get_by_id(parts.pcollections[source].coder_id).key_coder()


def _texts(graph: graphs.Pipeline) -> Iterator[bytes]:
    """Yields the graph's payloads, and what is packed in them: Beam compresses what it pickles."""
    for transform in graph.components.transforms.values():
        for packed in re.findall(rb"[A-Za-z0-9+/=]{40,}", transform.spec.payload):
            for unpack in (zlib.decompress, bz2.decompress):
                with suppress(OSError, ValueError, zlib.error):
                    yield unpack(base64.b64decode(packed))


def _paths(text: bytes) -> Iterator[str]:
    for match in re.findall(rb"(?<![\w:/.])/[\w.+-]+/[\w./+-]+", text):
        path = match.decode()
        with suppress(OSError):  # a name too long for a path is none
            if Path(path).parent.exists():  # what comes after it may have no mark between
                yield path


def check_size(checks: Checks, python: Path, folder: Path, lists: Path) -> None:
    """Measures the graphs of a whole crawl: a job's inputs are part of its graph."""
    listed = folder / "crawl.txt"
    listed.write_text("".join(f"https://data.commoncrawl.org/{_wet_path(number)}\n" for number in range(CRAWL)))
    with served(None) as (service, options):
        c4pipe(python, "clean", f"@{listed}", "--lists", lists, "--work", f"gs://{BUCKET}/crawl", "--quiet", *options)
        graph = len(staged(service.jobs[0]))
        checks.say(graph < LIMIT, f"clean of {CRAWL:,} files: request {service.sizes[0]:,} bytes, graph {graph:,}")
    graph = len(_dedup_graph())
    checks.say(graph < LIMIT, f"dedup of {CRAWL:,} files: graph {graph:,} bytes")


def _wet_path(number: int) -> str:
    """Returns a path like those of CC-MAIN-2019-18, which has 100 segments of 560 to 720 files."""
    segment = f"{1555578517000 + 7919 * (number // 720)}.{number // 720 % 100:02}"
    name = f"CC-MAIN-201904{18 + number % 9}{number * 61 % 240000:06}-201904{18 + number % 9}{number * 83 % 240000:06}"
    return f"crawl-data/CC-MAIN-2019-18/segments/{segment}/wet/{name}-{number % 720:05}.warc.wet.gz"


def _dedup_graph() -> bytes:
    """Returns the graph of job 2 as `c4pipe dedup` composes it, with the figures of docs/scale.md."""
    rows, spans = 40_000 * CRAWL, 100_000 * CRAWL
    group = group_size(CRAWL, rows + spans)
    paths = [f"gs://{BUCKET}/crawl/work/{_wet_path(number).rpartition('/')[2]}.parquet" for number in range(CRAWL)]
    files = [(number, path, True) for number, path in enumerate(paths)]
    groups = [(first // group, files[first : first + group]) for first in range(0, CRAWL, group)]
    plan = DedupPlan(
        recipe=find_recipe("c4").to_json(),
        lists={},
        work=(f"gs://{BUCKET}/crawl/work",),
        layout=Layout.plan(("en",), {"en": 12_000_000 * CRAWL}, None),
        url_bits=bucket_bits(rows, URL_ROW.itemsize),
        span_bits=bucket_bits(spans, SPAN_ROW.itemsize),
        group=group,
        output=f"gs://{BUCKET}/crawl/corpus",
        formats=("parquet",),
        publication_token="",
    )
    pipeline = beam.Pipeline(options=beam.options.pipeline_options.PipelineOptions(["--pickle_library=cloudpickle"]))
    dedup_work_files(BeamFlow(pipeline), groups, plan)
    data: bytes = pipeline.to_runner_api().SerializeToString()
    return data


def corpus_digest(read: Callable[[str], bytes]) -> tuple[int, str]:
    """Returns pages and hash of a corpus: of its manifest and all its shards."""
    manifest = json.loads(read("manifest.json"))
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode())
    for shard in manifest["shards"]:
        digest.update(read(shard["path"]))
    return manifest["counts"]["pages.kept"], digest.hexdigest()[:16]


def check_workers(checks: Checks, folder: Path) -> None:
    """Checks what the workers were started with, and where they had c4pipe from."""
    log = (folder / "imports.log").read_text(errors="replace")
    entries = set(re.findall(r"^called: (.*)$", log, re.MULTILINE))
    checks.say(any(ENTRY in entry for entry in entries), f"boot started: python {' | python '.join(sorted(entries))}")
    files = set(re.findall(r"(?:matches|code object from) '?(/\S+/c4pipe/\S+\.py)'?$", log, re.MULTILINE))
    own = [path for path in files if path.startswith(f"{folder}/worker/lib/")]
    checks.say(files and len(own) == len(files), f"{len(own)} of {len(files)} modules of c4pipe are the wheel's")


def check_jobs(checks: Checks, python: Path, boot: Path, folder: Path) -> None:
    """Builds the sample corpus by DataflowRunner, and compares it with a local one."""
    lists = ROOT / "samples" / "lists"
    for path in sorted((ROOT / "samples" / "crawl").iterdir()):
        store(f"gs://{BUCKET}/crawl/{path.name}", path.read_bytes())
    given = [f"gs://{BUCKET}/crawl/", "--lists", lists, "--shards", "4", "--quiet"]
    with served(None) as (_, options):
        ended = c4pipe(python, "build", *given, "--output", f"gs://{BUCKET}/lost", *options)
        lost = "the runner ended without" in ended.stderr
        checks.say(ended.returncode and lost, "a job that is reported as done and is not: c4pipe reports lost data")
    with prism(folder) as endpoint, served(lambda job: run_graph(job, endpoint, boot)) as (service, options):
        ended = c4pipe(python, "build", *given, "--output", f"gs://{BUCKET}/corpus", *options)
        checks.say(not ended.returncode, f"c4pipe build --runner DataflowRunner: exit status {ended.returncode}")
        if ended.returncode:
            print(ended.stderr[-2000:], (folder / "prism.log").read_text()[-3000:], sep="\n")
            return
        for name, job, size in zip(("clean", "dedup"), service.jobs, service.sizes, strict=True):
            check_graph(checks, name, job, size)
    here = c4pipe(python, "build", *given, "--output", folder / "corpus")
    pages, local = corpus_digest(lambda path: (folder / "corpus" / path).read_bytes())
    _, remote = corpus_digest(lambda path: stored(f"gs://{BUCKET}/corpus/{path}"))
    checks.say(not here.returncode and local == remote, f"corpus of {pages} pages: {remote}, and {local} locally")
    check_workers(checks, folder)


def main() -> None:
    """Prints what was checked; ends with status 1 where something is not as it should be."""
    checks = Checks()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="c4pipe-dataflow-")))
        python = submitter()
        sdist, wheel = package(python, folder)
        checks.say(True, f"{sdist.name} ({sdist.stat().st_size:,} bytes), and of it {wheel.name}")
        pip(python, "uninstall", "--yes", "c4pipe")
        pip(python, "install", wheel, "-c", CONSTRAINTS)
        boot = worker(wheel, folder)
        address = stack.enter_context(gcs(folder, [BUCKET]))
        os.environ["STORAGE_EMULATOR_HOST"] = f"http://{address}"
        check_jobs(checks, python, boot, folder)
        check_size(checks, python, folder, ROOT / "samples" / "lists")
    sys.exit(checks.failed)


if __name__ == "__main__":
    main()
