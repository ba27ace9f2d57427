"""Stores on this machine, each as a context: servers that speak what S3 and Google's storage speak."""

import os
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusters import HOST, answers, free_port, started, wait
from gcs import gcs

from c4pipe.io.object_store import _store

_BUCKET = "c4pipe"


@contextmanager
def store(kind: str, folder: Path) -> Iterator[str]:
    """Starts a store, `s3` or `gs`; gives the URL of a bucket, and meanwhile the environment to find it by."""
    before = dict(os.environ)
    try:
        with (s3 if kind == "s3" else gs)(folder) as url:
            yield url
    finally:
        os.environ.clear()
        os.environ.update(before)
        _store.cache_clear()  # the next one is somewhere else


@contextmanager
def s3(folder: Path) -> Iterator[str]:
    """Moto: an S3 server that keeps all in memory."""
    address, log = f"http://{HOST}:{(port := free_port())}", folder / "s3.log"
    with started([sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)], log) as program:
        os.environ.update(
            AWS_ENDPOINT_URL=address,
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
            AWS_EC2_METADATA_DISABLED="true",
            AWS_REGION="us-east-1",
        )
        request = urllib.request.Request(f"{address}/{_BUCKET}", method="PUT")
        # moto knows by a signature, of whatever worth, that it is S3 that is asked
        signed = "AWS4-HMAC-SHA256 Credential=key/20990101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        request.add_header("Authorization", signed)
        wait(lambda: answers(request), "moto", log, program)
        yield f"s3://{_BUCKET}"


@contextmanager
def gs(folder: Path) -> Iterator[str]:
    """fake-gcs-server, which keeps all in memory."""
    with gcs(folder, [_BUCKET]) as address:
        os.environ["STORAGE_EMULATOR_HOST"] = f"http://{address}"
        yield f"gs://{_BUCKET}"
