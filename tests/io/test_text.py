"""The one reader of text files: all parts of a compressed file, no mark, and no list that is read in part."""

import bz2
import codecs
import gzip
import io
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.io.gzip_members import Gap
from c4pipe.io.text import decode_text, decompress, entries, lines_of, parse_row, read_content, read_pieces, read_text
from tests.helpers.streams import Trickle

Parts = tuple[str, list[bytes], list[bytes]]
"""An ending, the contents of the parts of a file, and the parts as they are stored."""


def frame(content: bytes, with_size: bool) -> bytes:
    """A Zstandard frame, in whose header is the size of its content or not."""
    if with_size:
        return bytes(pa.compress(content, "zstd", asbytes=True))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


def skippable(content: bytes, number: int = 0) -> bytes:
    """A frame that decoders skip (RFC 8878, 3.1.2); pzstd begins files with one."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=100).map(str.encode)


@st.composite
def compressed_parts(draw: st.DrawFn) -> Parts:
    contents = draw(st.lists(TEXTS | st.just(codecs.BOM_UTF8[:1]), min_size=1, max_size=6))
    if draw(st.booleans()):
        return ".gz", contents, [gzip.compress(each) for each in contents]
    stored = []
    for content in contents:
        part = frame(content, draw(st.booleans()))
        if draw(st.booleans()):
            part = skippable(draw(st.binary(max_size=20)), draw(st.integers(0, 15))) + part
        stored.append(part + (skippable(b"end") if draw(st.booleans()) else b""))
    return ".zst", contents, stored


def content_of(data: bytes, name: str, size: int = 1 << 20) -> bytes:
    return b"".join(decompress(Trickle(data, size), name))


@settings(deadline=None)
@given(compressed_parts(), st.sampled_from([1, 7, 1 << 20]))
def test_any_parts_are_one_content(parts: Parts, size: int) -> None:
    ending, contents, stored = parts
    expected = b"".join(contents).removeprefix(codecs.BOM_UTF8)
    assert content_of(b"".join(stored), f"a{ending}", size) == expected
    assert content_of(b"".join(stored), "a", size) == expected


@settings(deadline=None)
@given(compressed_parts(), st.data())
def test_a_cut_is_an_error_unless_it_is_between_parts(parts: Parts, data: st.DataObject) -> None:
    ending, _, stored = parts
    whole = b"".join(stored)
    last = stored[-1]
    cut = data.draw(st.integers(1, len(last) - 1))
    if ending == ".zst":  # between a frame and a skippable frame, the file is whole
        try:
            pa.CompressedInputStream(pa.BufferReader(last[:cut]), "zstd").read()
            return
        except OSError:
            pass
    with pytest.raises(ValueError, match=r"after [0-9,]+ bytes of content"):
        content_of(whole[: len(whole) - len(last) + cut], f"a{ending}")


@settings(deadline=None)
@given(compressed_parts(), st.binary(min_size=1, max_size=30).filter(lambda junk: junk.strip(b"\0")))
def test_junk_behind_the_end_is_an_error(parts: Parts, junk: bytes) -> None:
    ending, _, stored = parts
    with pytest.raises(ValueError, match=r"after [0-9,]+ bytes of content"):
        content_of(b"".join(stored) + junk, f"a{ending}")


def test_zeros_behind_gzip_are_padding() -> None:
    assert content_of(gzip.compress(b"a") + bytes(1000) + gzip.compress(b"b") + bytes(5), "a.gz") == b"ab"


@pytest.mark.parametrize("name", ["a.gz", "a.zst"])
def test_a_name_of_a_compressed_file_is_a_promise(name: str) -> None:
    assert content_of(b"", name) == b""
    with pytest.raises(ValueError, match=r"it is plain text \(x/a\.warc\.wet\.gz\), and not compressed as its name"):
        content_of(b"x/a.warc.wet.gz\n", name)


@pytest.mark.parametrize("at", [2, 3])
def test_a_damaged_header_of_gzip_is_no_text(at: int) -> None:
    data = bytearray(gzip.compress(b"http://example.com/\n"))
    data[at] = 0xFF
    with pytest.raises(ValueError, match=r"not compressed|damaged"):
        content_of(bytes(data), "links")


def test_a_list_is_not_larger_than_allowed() -> None:
    bomb = gzip.compress(b"\n" * 1_000_000)
    with pytest.raises(ValueError, match="larger than 100,000 bytes"):
        read_content(io.BytesIO(bomb), "a.gz", 100_000)


def test_a_damaged_place_is_told_by_what_was_read() -> None:
    data = gzip.compress(b"a" * 1234) + zlib.compress(b"b")
    with pytest.raises(ValueError, match="bytes that are not compressed follow after 1,234 bytes of content"):
        content_of(data, "a.gz")


ENTRIES = ["a.wet.gz", "http://h/b.wet.gz#c", "d e.wet.gz"]
LINES = ["# all", ENTRIES[0], "", "  # more", f"{ENTRIES[1]}  # first", f"\t{ENTRIES[2]} \t"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_how_users_write_a_list(tmp_path: Path, mark: str, end: str, last: bool) -> None:
    data = (mark + end.join(LINES) + (end if last else "")).encode()
    data += data if last else b""  # parts that were put together may each begin with a mark
    packed = {"a.gz": gzip.compress(data), "a.zst": frame(data, False)}
    packed |= {"a.bz2": bz2.compress(data), "A.XZ": lzma.compress(data)}
    for name, stored in {"a": data, **packed}.items():
        path = tmp_path / name
        path.write_bytes(stored)
        assert list(entries(lines_of(path))) == ENTRIES * (1 + last)
        assert list(entries(read_text(path, 1000).split("\n"))) == ENTRIES * (1 + last)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_list_of_powershell_is_a_list(encoding: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    text = "".join(f"http://h/\U0001f600/{n}\r\n" for n in range(60_000))
    (tmp_path / "list").write_bytes(pack(f"\ufeff{text}".encode(encoding)))
    assert "".join(lines_of(tmp_path / "list")) == text.replace("\r\n", "\n") == read_text(tmp_path / "list", 1 << 24)
    assert list(lines_of(tmp_path / "list"))[-1].endswith("/59999\n")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("http://h/a\n".encode("utf-16-be"), "a binary file, or text in UTF-16"),
        (b"PK\x03\x04...", "a zip archive"),
        (b"7z\xbc\xaf...", "compressed by 7z"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS instead of the file"),
        (gzip.compress(gzip.compress(b"a")), "compressed by gzip"),
        (bz2.compress(lzma.compress(b"a")), "compressed by xz"),
    ],
)
def test_what_is_no_text_is_no_list(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(data)
    for read in (lambda: list(lines_of(path)), lambda: read_text(path, 1000)):
        with pytest.raises(ValueError, match=f"it is {kind}, not text in UTF-8"):
            read()


def test_gaps_are_told_where_damage_is_counted() -> None:
    data = gzip.compress(b"a") + b"junk" + gzip.compress(b"b")
    assert list(read_pieces(io.BytesIO(data), "a.gz")) == [b"a", Gap("gzip_junk", 4, b"junk"), b"b"]


def test_text_in_another_encoding_has_a_place() -> None:
    with pytest.raises(UnicodeDecodeError, match="position 2"):
        decode_text(b"Fl\xfcche")


@pytest.mark.parametrize(
    "data", ["a text\n".encode("utf-16"), "a text, and more\n".encode("utf-16-le"), b"PAR1\x15" + bytes(9)]
)
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.txt.gz", "a.txt.zst"])
def test_documents_in_another_format_are_one_damage(data: bytes, name: str) -> None:
    stored = gzip.compress(data) if name.endswith(".gz") else frame(data, True) if name.endswith(".zst") else data
    assert list(read_pieces(io.BytesIO(stored), name)) == [Gap("other_format", 0, data[:64])]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rb'{"text": "A \ud835 b."}', "A \ufffd b."),
        (rb'{"text": "A \uDC00\ud835 b."}', "A \ufffd\ufffd b."),
        (rb'{"text": "A \ud835\udc00 b."}', "A \U0001d400 b."),
        (rb'{"text": "A \\ud835 b."}', r"A \ud835 b."),
    ],
)
def test_half_of_a_surrogate_pair_is_replaced(line: bytes, text: str) -> None:
    assert parse_row(line) == {"text": text}
