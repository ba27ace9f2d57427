"""A stand-in for the Hugging Face Hub on loopback: it answers what `huggingface_hub` asks to read a data set.

The answers have the form of the Hub's own: https://huggingface.co/docs/hub/api and, for errors, the headers
`X-Error-Code` and `X-Error-Message` that `huggingface_hub.utils.hf_raise_for_status` reads. `HF_ENDPOINT` leads there.

    with hub_of({"org/name": {"data/a.parquet": b"..."}}, monkeypatch) as hub: ...
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha1
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.helpers.loopback import Handler, listen
from tests.helpers.web import Script

Files = Mapping[str, bytes]
PAGE = 3  # entries of a listing's page: the Hub has 1,000


class Hub:
    """Data sets, each with its commits; `asked` counts requests as `info`, `tree`, `resolve`, `cdn` and a path."""

    def __init__(self, script: Script) -> None:
        self.commits: dict[str, list[tuple[str, Files]]] = {}  # by data set: id of the commit and all its files
        self.script = script
        self.asked: Counter[str] = Counter()
        self.received: list[str] = []
        self.private: set[str] = set()
        self.gated: set[str] = set()
        self.token = "hf_right"
        self.url = ""
        self.lock = threading.Lock()

    def commit(self, name: str, files: Files) -> str:
        """Makes the next commit of a data set; returns its id."""
        commits = self.commits.setdefault(name, [])
        commits.append((sha1(f"{name} {len(commits)}".encode()).hexdigest(), dict(files)))
        return commits[-1][0]

    def find(self, name: str, revision: str) -> tuple[str, Files] | None:
        """Returns the commit of a revision: `main`, `v1`, `v2` (tags of the first and second commit), or an id."""
        commits = self.commits[name]
        if revision == "main":
            return commits[-1]
        tags = {f"v{number}": commit for number, commit in enumerate(commits, 1)}
        return tags.get(revision) or next((each for each in commits if each[0] == revision), None)


class _Handler(Handler):
    hub: Hub

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        what, name, revision, path = _parse(parts.path)
        with self.hub.lock:
            asked = f"{what} {path}".strip()
            fault = self.hub.script(asked, self.hub.asked[asked])
            self.hub.asked[asked] += 1
            self.hub.received.append(f"{self.requestline}\n{self.headers}")
        if what == "cdn":  # another server of the Hub: its URLs are signed, and it gets no token
            self._send_part(self.hub.commits[name][int(revision)][1][path], fault)
        elif fault and fault.isdigit():
            self._refuse(int(fault), "", "Too Many Requests" if fault == "429" else "Internal Error")
        else:
            self._answer(what, name, revision, path, parse_qs(parts.query))

    do_HEAD = do_GET

    def _answer(self, what: str, name: str, revision: str, path: str, query: Mapping[str, list[str]]) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token != self.hub.token:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif name not in self.hub.commits or (name in self.hub.private and not token):
            self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        elif (commit := self.hub.find(name, revision)) is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif what == "info":
            self._json({"_id": "0", "id": name, "sha": commit[0], "private": False, "gated": False, "siblings": []})
        elif what == "tree":
            self._tree(commit[1], path, query)
        elif name in self.hub.gated:
            self._refuse(403 if token else 401, "GatedRepo", f"Access to dataset {name} is restricted.")
        elif path not in commit[1]:
            self._refuse(404, "EntryNotFound", "Entry not found")
        else:
            number = self.hub.commits[name].index(commit)
            self.send_response(302)
            self.send_header("Location", f"{self.hub.url}/cdn/{name}/{number}/{path}?Signature=verysecret")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _tree(self, files: Files, folder: str, query: Mapping[str, list[str]]) -> None:
        start = f"{folder}/" if folder else ""
        entries: dict[str, dict[str, object]] = {}
        for path in sorted(path for path in files if path.startswith(start)):
            above = path.removeprefix(start).split("/")
            for depth in range(1, len(above)):
                inner = start + "/".join(above[:depth])
                entries[inner] = {
                    "type": "directory",
                    "oid": sha1(inner.encode()).hexdigest(),
                    "size": 0,
                    "path": inner,
                }
            oid = sha1(files[path]).hexdigest()
            entries[path] = {"type": "file", "oid": oid, "size": len(files[path]), "path": path}
        if folder and not entries:
            self._refuse(404, "EntryNotFound", "Entry not found")
            return
        is_deep = query["recursive"][0].lower() == "true"
        listed = [each for path, each in entries.items() if is_deep or "/" not in path.removeprefix(start)]
        first = int(query.get("cursor", ["0"])[0])
        link = ""
        if first + PAGE < len(listed):
            page = f"recursive={query['recursive'][0]}&expand=False&cursor={first + PAGE}"
            link = f'<{self.hub.url}{urlsplit(self.path).path}?{page}>; rel="next"'
        self._json(listed[first : first + PAGE], link)

    def _json(self, values: object, link: str = "") -> None:
        data = json.dumps(values).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if link:
            self.send_header("Link", link)
        self.end_headers()
        self.wfile.write(data)

    def _send_part(self, data: bytes, fault: str | None) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1 if last else None]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part[: len(part) // 2] if fault == "cut" else part)
        self.close_connection = fault == "cut"

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _parse(path: str) -> tuple[str, str, str, str]:
    """Returns what a path asks for, the data set, the revision and the path of the file."""
    first, *rest = path.strip("/").split("/")
    if first == "cdn":
        return "cdn", "/".join(rest[:2]), rest[2], unquote("/".join(rest[3:]))
    if first == "datasets":  # org, name, resolve, revision, file
        return "resolve", "/".join(rest[:2]), unquote(rest[3]), unquote("/".join(rest[4:]))
    assert first == "api" and rest[0] == "datasets", path  # noqa: PT018
    name, more = "/".join(rest[1:3]), rest[3:]
    if more[:1] == ["tree"]:
        return "tree", name, unquote(more[1]), unquote("/".join(more[2:]))
    return "info", name, unquote(more[1]) if more else "main", ""


@contextmanager
def hub_of(
    datasets: Mapping[str, Files], monkeypatch: pytest.MonkeyPatch, script: Script = lambda asked, number: None
) -> Iterator[Hub]:
    """Runs a Hub with one commit of each data set, and lets huggingface_hub find it, also in other processes."""
    from huggingface_hub import constants
    from huggingface_hub.hf_file_system import HfFileSystem

    hub = Hub(script)
    for name, files in datasets.items():
        hub.commit(name, files)
    with listen(type("Handler", (_Handler,), {"hub": hub})) as hub.url:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)  # made of the environment at import
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # another test may have imported the library offline
        HfFileSystem.clear_instance_cache()
        yield hub
        HfFileSystem.clear_instance_cache()
