"""The record reader on gzip bombs: it needs little memory, and reads on behind them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.wet import head
from tests.helpers.wet_reading import ALL, A
from tests.helpers.wet_writer import gzip_member as member

BOMB = """
import io, re, sys, time, zlib
from pathlib import Path
from c4pipe.wet.damage import Damage
from c4pipe.wet.records import read_pages

def peak():  # in kB; getrusage's would be the parent's
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def bomb(head, filler, size):
    chunk = filler * (2**20 // len(filler))
    flushed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = flushed.compress(chunk) + flushed.flush(zlib.Z_FULL_FLUSH)
    first = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = first.compress(head) + first.flush(zlib.Z_FULL_FLUSH)
    crc, count = zlib.crc32(head), size // len(chunk)
    for _ in range(count):
        crc = zlib.crc32(chunk, crc)
    length = len(head) + count * len(chunk)
    tail = crc.to_bytes(4, "little") + (length % 2**32).to_bytes(4, "little")
    return b"\\x1f\\x8b\\x08" + b"\\0" * 6 + b"\\xff" + start + body * count + b"\\x03\\0" + tail

head, filler, good = (bytes.fromhex(word) for word in sys.argv[2:])
data = bomb(head, filler, int(sys.argv[1]) * 2**20)
stream = io.BytesIO(data + good)
before, began = peak(), time.process_time()
items = [(item.kind if isinstance(item, Damage) else item.body) for item in read_pages(stream)]
growth = peak() - before
print(len(data), growth // 1024, round(time.process_time() - began, 2), items)
"""
CLAIM = head("WARC-Type: conversion", f"Content-Length: {2**63}")
NO_LENGTH = head("WARC-Type: conversion", "Content-Length: ?")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "filler", "megabytes", "damage"),
    [
        pytest.param(b"", b"\0", 256, ["junk"], id="zeros"),
        pytest.param(b"", b"\r\n", 128, [], id="newlines"),
        pytest.param(CLAIM, b"\0", 256, ["record_too_large"], id="record of 2^63 bytes"),
        pytest.param(CLAIM, b"\n", 256, ["record_too_large"], id="record of newlines"),
        pytest.param(NO_LENGTH, b"x\n", 256, ["bad_length", "record_too_large"], id="record without a length"),
        pytest.param(CLAIM[:-2], b"X: y\n", 256, ["header_too_large"], id="header block"),
        pytest.param(CLAIM[:-2] + b"X:", b" ", 256, ["header_too_large"], id="header line"),
        pytest.param(b"", b"WARC/1.0\r\n", 128, ["header_too_large"], id="version lines"),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_a_gzip_bomb_fills_no_memory(start: bytes, filler: bytes, megabytes: int, damage: list[str]) -> None:
    words = [str(megabytes), *(word.hex() for word in (start, filler, member(A)))]
    run = subprocess.run([sys.executable, "-c", BOMB, *words], capture_output=True, text=True, check=True)
    size, growth, seconds, items = run.stdout.split(maxsplit=3)
    assert int(size) < 6_000_000
    assert int(growth) < 150, "MB"
    assert float(seconds) < 20, "CPU; a few on a fast machine"
    assert items.strip() == str([*damage, ALL[0]])
    print(growth, seconds)
