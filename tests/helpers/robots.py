"""WARC files of robots.txt files as crawlers write them, and lists made of robots.txt files."""

import gzip
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from c4pipe.lists.robots import encode_rules, parse_robots
from c4pipe.lists.robots_list import RobotsWriter, read_robots_list
from c4pipe.text.hashes import U64, url_key

DATE = "2024-05-18T10:12:43Z"


def response(
    url: str, body: str | bytes = b"", status: int = 200, date: str = DATE, fields: Mapping[str, str] | None = None
) -> bytes:
    """A gzip member with the answer to a request for a robots.txt, with these fields of HTTP."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Status", "Content-Type: text/plain", *(f"{n}: {v}" for n, v in (fields or {}).items())]
    http = "\r\n".join([*lines, "", ""]).encode() + data
    return member("response", url, http, date)


def member(kind: str, url: str, block: bytes, date: str = DATE) -> bytes:
    """A gzip member with one record."""
    fields = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Date: {date}",
        f"WARC-Target-URI: {url}",
        "Content-Type: application/http",
        f"Content-Length: {len(block)}",
    ]
    return gzip.compress("\r\n".join([*fields, "", ""]).encode() + block + b"\r\n\r\n", mtime=0)


def robots_words(bodies: Mapping[str, str], agents: Sequence[str]) -> U64:
    """The list of the rule `robots_refused`, from robots.txt files by their URLs."""
    names = [agent.lower() for agent in agents]
    rules = {
        url_key(url): encode_rules(parse_robots(body.encode(), names, Counter())).encode()
        for url, body in bodies.items()
    }
    kept = sorted(key for key, text in rules.items() if text)
    sizes = np.array([len(rules[key]) for key in kept], np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robots.npy"
        writer = RobotsWriter(path, names, np.array(kept, np.uint64), np.arange(len(kept), dtype=np.uint64), sizes)
        for number, key in enumerate(kept):
            writer.add(number, rules[key])
        writer.close()
        return np.array(read_robots_list(path))
