"""A stand-in for the Dataflow service, which is not Dataflow: it keeps requests, and has their graphs run by Prism."""

import hashlib
import json
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_job_api_pb2 as jobs
from apache_beam.portability.api import beam_job_api_pb2_grpc
from apache_beam.portability.api import beam_runner_api_pb2 as graphs
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from clusters import HOST

IMAGE = f"us-docker.pkg.dev/my-project/c4pipe/worker:{version('c4pipe')}"
BUCKET = "my-bucket"


class Service(ThreadingHTTPServer):
    """Stands in for the Dataflow service: keeps each request to make a job, and has its staged graph run, or not."""

    def __init__(self, run: Callable[[dict[str, Any]], bool] | None) -> None:
        """Takes what runs a job and tells whether it succeeded; without it, jobs are said to be done."""
        super().__init__((HOST, 0), _Handler)
        self.run = run
        self.jobs: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self.states: dict[str, str] = {}

    def start(self, job: dict[str, Any], size: int) -> dict[str, Any]:
        """Takes a job as it was sent; returns it with its id."""
        self.jobs.append(job)
        self.sizes.append(size)
        identity = f"job-{len(self.jobs)}"
        self.states[identity] = "JOB_STATE_RUNNING" if self.run else "JOB_STATE_DONE"
        if self.run:
            threading.Thread(target=self._work, args=(identity, job, self.run), daemon=True).start()
        return {**job, "id": identity, "currentState": self.states[identity]}

    def _work(self, identity: str, job: dict[str, Any], run: Callable[[dict[str, Any]], bool]) -> None:
        good = False
        try:
            good = run(job)
        finally:
            self.states[identity] = "JOB_STATE_DONE" if good else "JOB_STATE_FAILED"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.server.start(json.loads(body), len(body)))

    def do_GET(self) -> None:
        identity = urllib.parse.urlsplit(self.path).path.rpartition("/")[2]
        known = self.server.states.get(identity)
        self._answer({"id": identity, "currentState": known} if known else {})

    def _answer(self, values: Mapping[str, Any]) -> None:
        body = json.dumps(values).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def served(run: Callable[[dict[str, Any]], bool] | None) -> Iterator[tuple[Service, list[str]]]:
    """Serves jobs; gives the server, and the options for Beam that send jobs there, as docs/beam.md has them."""
    with Service(run) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        # "localhost" tells Beam to use HTTP; nobody asks for credentials with --no_auth.
        replaced = [f"--dataflow_endpoint=http://localhost:{service.server_port}", "--no_auth"]
        options = ["--runner=DataflowRunner", "--", "--project=my-project", "--region=us-east1"]
        options += [f"--temp_location=gs://{BUCKET}/tmp", "--sdk_location=container", f"--sdk_container_image={IMAGE}"]
        yield service, [*options, *replaced]
        service.shutdown()


def staged(job: Mapping[str, Any]) -> bytes:
    """Returns the graph of a job, from where its request says that it is."""
    options = job["environment"]["sdkPipelineOptions"]["options"]
    data = stored(options["pipelineUrl"])
    assert hashlib.sha256(data).hexdigest() == options["pipelineProtoHash"]
    return data


def stored(url: str) -> bytes:
    """Returns an object's bytes, by plain HTTP."""
    bucket, _, name = url.removeprefix("gs://").partition("/")
    place = f"{os.environ['STORAGE_EMULATOR_HOST']}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"
    with urllib.request.urlopen(f"{place}?alt=media", timeout=60) as response:
        data: bytes = response.read()
    return data


def store(url: str, data: bytes) -> None:
    """Makes an object."""
    bucket, _, name = url.removeprefix("gs://").partition("/")
    query = urllib.parse.urlencode({"uploadType": "media", "name": name})
    place = f"{os.environ['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/{bucket}/o?{query}"
    with urllib.request.urlopen(urllib.request.Request(place, data), timeout=60):
        pass


def run_graph(job: Mapping[str, Any], endpoint: str, boot: Path) -> bool:
    """Runs a staged graph on Prism with the job's own options; the command takes the place of the workers' image."""
    graph = graphs.Pipeline.FromString(staged(job))
    for environment in graph.components.environments.values():
        environment.urn = common_urns.environments.PROCESS.urn
        environment.payload = graphs.ProcessPayload(command=str(boot)).SerializeToString()
        del environment.dependencies[:]  # a list of the client's packages, for the log
    options = dict(job["environment"]["sdkPipelineOptions"]["options"])
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        encoded = JobServiceHandle.encode_pipeline_options(options)
        request = jobs.PrepareJobRequest(job_name=job["name"], pipeline=graph, pipeline_options=encoded)
        prepared = service.Prepare(request, timeout=60)
        ran = service.Run(jobs.RunJobRequest(preparation_id=prepared.preparation_id), timeout=60)
        states = service.GetStateStream(jobs.GetJobStateRequest(job_id=ran.job_id), timeout=120)
        final = {jobs.JobState.DONE: True, jobs.JobState.FAILED: False, jobs.JobState.CANCELLED: False}
        return next((final[event.state] for event in states if event.state in final), False)
