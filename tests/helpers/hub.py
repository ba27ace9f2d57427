"""A stand-in for the Hugging Face Hub on loopback: the requests of `huggingface_hub.snapshot_download`."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.helpers.loopback import Handler, listen

COMMIT = "c" * 40


class _Handler(Handler):
    repositories: Mapping[str, Mapping[str, bytes]]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        for name, files in self.repositories.items():
            tree = [{"type": "file", "path": file, "size": len(data), "oid": "0" * 40} for file, data in files.items()]
            answers = {
                f"/api/models/{name}/revision/main": json.dumps({"id": name, "sha": COMMIT}).encode(),
                f"/api/models/{name}/tree/{COMMIT}": json.dumps(tree).encode(),
                **{f"/{name}/resolve/{COMMIT}/{file}": data for file, data in files.items()},
            }
            if path in answers:
                self._answer(200, answers[path])
                return
        self._answer(404, b"")

    do_HEAD = do_GET

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


@contextmanager
def serve_hub(repositories: Mapping[str, Mapping[str, bytes]]) -> Iterator[str]:
    """Serves the files of repositories, by name, and gives the address for HF_ENDPOINT."""
    with listen(type("Handler", (_Handler,), {"repositories": repositories})) as url:
        yield url
