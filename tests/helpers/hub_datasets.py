"""A stand-in for the Hugging Face Hub on loopback: it answers what `huggingface_hub` asks to read data and buckets.

The answers have the form of the Hub's own: https://huggingface.co/docs/hub/api and, for errors, the headers
`X-Error-Code` and `X-Error-Message` that `huggingface_hub.utils.hf_raise_for_status` reads; for buckets, the form that
`HfApi.bucket_info`, `HfApi.list_bucket_tree` and `HfFileSystem.url` of huggingface_hub 1.6 to 2.4 expect.
`HF_ENDPOINT` leads there.

    with hub_of({"org/name": {"data/a.parquet": b"..."}, "buckets/org/name": {"a.gz": b"..."}}, monkeypatch) as hub: ...
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha1, sha256
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.helpers.loopback import Handler, listen
from tests.helpers.web import Script

Files = Mapping[str, bytes]
PAGE = 3  # entries of a listing's page: the Hub has 1,000
DAY = "2026-06-10T00:00:00.000Z"


class Hub:
    """Data sets and buckets, each with its commits (of a bucket, only the last counts); `asked` counts requests as
    `info`, `tree`, `resolve`, `cdn` and a path.
    """

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
        """Returns the commit of a revision: `main`, `v1`, `v2` (tags of the first and second commit), an id, or "" for
        the content of a bucket.
        """
        commits = self.commits[name]
        if revision in ("main", ""):
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
        elif fault and fault[:3].isdigit():  # `429 7`: with 7 as Retry-After
            self._refuse(int(fault[:3]), "", "Too Many Requests" if fault[:3] == "429" else "Internal Error", fault[4:])
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
        elif what == "info" and name.startswith("buckets/"):
            size = sum(map(len, commit[1].values()))
            facts = {"id": name[8:], "private": False, "createdAt": DAY, "size": size, "totalFiles": len(commit[1])}
            self._json(facts)
        elif what == "info":
            self._json({"_id": "0", "id": name, "sha": commit[0], "private": False, "gated": False, "siblings": []})
        elif what == "tree" and name.startswith("buckets/"):
            self._bucket_tree(commit[1], path, query)
        elif what == "tree":
            self._tree(commit[1], path, query)
        elif name in self.hub.gated:
            self._refuse(403 if token else 401, "GatedRepo", f"Access to dataset {name} is restricted.")
        elif path not in commit[1]:
            self._refuse(404, "EntryNotFound", "Entry not found")
        else:
            number = self.hub.commits[name].index(commit)
            self.send_response(302)
            other = self.hub.url.replace("127.0.0.1", "localhost")  # another server, for a client
            self.send_header("Location", f"{other}/cdn/{name}/{number}/{path}?Signature=verysecret")
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
        self._page(listed, query)

    def _bucket_tree(self, files: Files, prefix: str, query: Mapping[str, list[str]]) -> None:
        """Sends files whose paths begin with a prefix, also of other folders, and folders only if not recursive."""
        is_deep = query["recursive"][0].lower() == "true"
        entries: dict[str, dict[str, object]] = {}
        for path in sorted(path for path in files if path.startswith(prefix)):
            inner, slash, _ = path[len(prefix) + 1 :].partition("/")
            if slash and not is_deep:
                folder = f"{path[: len(prefix) + 1]}{inner}"
                entries[folder] = {"type": "directory", "path": folder, "uploadedAt": DAY}
            else:
                digest = sha256(files[path]).hexdigest()
                facts = {"type": "file", "path": path, "size": len(files[path]), "xetHash": digest}
                entries[path] = {**facts, "mtime": DAY, "uploadedAt": DAY}
        self._page(list(entries.values()), query)

    def _page(self, listed: list[dict[str, object]], query: Mapping[str, list[str]]) -> None:
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
        asked = self.headers.get("Range")
        first, _, last = (asked or "bytes=0-").removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1 if last else None]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
        self.send_header("ETag", f'"{sha256(data).hexdigest()}"')
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part[: len(part) // 2] if fault == "cut" else part)
        self.close_connection = fault == "cut"

    def _refuse(self, status: int, code: str, message: str, retry_after: str = "") -> None:
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        elif status == 429:
            self.send_header("RateLimit", '"resolvers";r=0;t=7')
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _parse(path: str) -> tuple[str, str, str, str]:
    """Returns what a path asks for, the data set, the revision and the path of the file."""
    first, *rest = path.strip("/").split("/")
    if first == "cdn":
        length = 3 if rest[0] == "buckets" else 2
        return "cdn", "/".join(rest[:length]), rest[length], unquote("/".join(rest[length + 1 :]))
    if first == "buckets":  # org, name, resolve, file
        return "resolve", "/".join([first, *rest[:2]]), "", unquote("/".join(rest[3:]))
    if first == "api" and rest[0] == "buckets":
        return ("tree" if rest[3:] else "info"), "/".join(rest[:3]), "", unquote("/".join(rest[4:]))
    if first == "datasets":  # org, name, resolve, revision, file
        return "resolve", "/".join(rest[:2]), unquote(rest[3]), unquote("/".join(rest[4:]))
    assert first == "api" and rest[0] == "datasets", path  # noqa: PT018
    name, more = "/".join(rest[1:3]), rest[3:]
    if more[:1] == ["tree"]:
        return "tree", name, unquote(more[1]), unquote("/".join(more[2:]))
    return "info", name, unquote(more[1]) if more else "main", ""


@contextmanager
def hub_of(
    repositories: Mapping[str, Files], monkeypatch: pytest.MonkeyPatch, script: Script = lambda asked, number: None
) -> Iterator[Hub]:
    """Runs a Hub with one commit of each data set and bucket; lets huggingface_hub find it, also in other processes."""
    from huggingface_hub import constants
    from huggingface_hub.hf_file_system import HfFileSystem

    hub = Hub(script)
    for name, files in repositories.items():
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
