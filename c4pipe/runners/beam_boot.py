"""Starts a Beam worker for a runner that runs a command for each worker (`--environment_type=PROCESS`).

    --environment_config='{"command": "/path/to/environment/bin/c4pipe-boot"}'

The command is a script that runs this module with the Python beside it. Beam's own Go program for this downloads and
installs packages; this one uses the environment that c4pipe is installed in.
"""

import argparse
import os
import sys
from collections.abc import Sequence


def start_worker(given: Sequence[str] | None = None) -> None:
    """Gets the pipeline's options from the runner, as Beam's container contract says, and works until the job ends."""
    parser = argparse.ArgumentParser(description="Starts a Beam worker in this environment, for PROCESS environments.")
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    for name in ("--control_endpoint", "--logging_endpoint", "--artifact_endpoint"):
        parser.add_argument(name, default="")
    options, _ = parser.parse_known_args(given)

    os.environ["WORKER_ID"] = options.id  # the runner's name of this worker
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
    from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
    from google.protobuf import json_format

    with grpc.insecure_channel(options.provision_endpoint) as channel:
        identified = grpc.intercept_channel(channel, WorkerIdInterceptor())
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(identified)
        info = stub.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest(), timeout=60).info
    os.environ["PIPELINE_OPTIONS"] = json_format.MessageToJson(info.pipeline_options)
    os.environ["RUNNER_CAPABILITIES"] = " ".join(info.runner_capabilities)
    for name, endpoint, url in (
        ("CONTROL_API_SERVICE_DESCRIPTOR", info.control_endpoint, options.control_endpoint),
        ("LOGGING_API_SERVICE_DESCRIPTOR", info.logging_endpoint, options.logging_endpoint),
    ):
        endpoint.url = endpoint.url or url
        os.environ[name] = str(endpoint)

    from apache_beam.runners.worker.sdk_worker_main import main as serve

    serve([sys.argv[0]])


if __name__ == "__main__":
    start_worker()
