"""Reads WET files for the tests of the reader, and checks what it reports."""

import io
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from c4pipe.io.gzip_members import FIRST_BYTES, inflate
from c4pipe.wet.damage import DAMAGE, Damage
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet import head, record


class Outcome(NamedTuple):
    pages: list[Page]
    damage: dict[str, int]
    losses: list[Damage]

    @property
    def texts(self) -> list[str]:
        return [page.body for page in self.pages]

    @property
    def urls(self) -> list[str]:
        return [page.url for page in self.pages]


def outcome(items: Iterable[Page | Damage]) -> Outcome:
    pages: list[Page] = []
    damage: Counter[str] = Counter()
    last = 0
    losses: list[Damage] = []
    for item in items:
        if isinstance(item, Page):
            assert item.position == len(pages)
            pages.append(item)
        else:
            assert item.offset >= last, "damage is reported in the order of the file"
            last = item.offset
            damage[item.kind] += 1
            losses.append(item)
    assert damage.keys() <= DAMAGE.keys()
    return Outcome(pages, dict(damage), losses)


def read(*parts: bytes) -> Outcome:
    data = b"".join(parts)
    got = outcome(read_pages(io.BytesIO(data)))
    check_losses(got.losses, data)
    return got


def check_losses(losses: list[Damage], data: bytes) -> None:
    """Losses are bytes of the file, each reported once. Gaps and single header lines are checked elsewhere."""
    plain = b"".join(piece for piece in inflate(io.BytesIO(data)) if isinstance(piece, bytes))
    end = 0
    for kind, offset, length, first, _ in losses:
        assert len(first) == min(length, FIRST_BYTES) or kind in LINES
        if not kind.startswith(("gzip_", "zstd_")) and kind not in LINES and length:
            assert end <= offset
            end = offset + length
            assert end <= len(plain)
            assert plain[offset:end][:FIRST_BYTES] == first
        elif kind in LINES:
            assert first in plain[offset:]


LINES = ("bad_header", "doubled_header")
INFO = head("WARC-Type: warcinfo", "Content-Length: 14") + b"robots: none\r\n" + b"\r\n\r\n"
A, B, C = (record(f"{name} page.\n", f"http://{name}.example/") for name in ("first", "second", "third"))
ALL = ["first page.\n", "second page.\n", "third page.\n"]
FIRST, SECOND, THIRD = ([text] for text in ALL)


LONG = record("".join(f"line {number * 7919 % 10007}\n" for number in range(3000)), "http://long.example/")


def read_damage(damage: dict[str, int], texts: list[str], *parts: bytes) -> Outcome:
    """Reads the parts, and checks damage and texts."""
    got = read(*parts)
    assert got.damage == damage
    assert got.texts == texts
    return got


def same(one: Outcome, other: Outcome) -> bool:
    return one.losses == other.losses and list(map(_values, one.pages)) == list(map(_values, other.pages))


def _values(page: Page) -> tuple[object, ...]:
    return page.url, page.timestamp, page.body, page.position, page.size, page.encoded


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
