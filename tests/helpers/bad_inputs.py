"""Files that are no WET, WARC or text files, and what they are."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.helpers.crawls import ROOT

GOOD = min((ROOT / "samples" / "crawl").iterdir())
PLAIN = gzip.decompress(GOOD.read_bytes())
S3_ERROR = b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
NOT_FOUND = b"<!DOCTYPE html>\n<html><head><title>404 Not\nFound</title></head></html>"


def archive(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("a.wet", PLAIN)
    elif kind == "parquet":
        pq.write_table(pa.table({"text": ["A text."]}), file)
    else:
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return file.getvalue()


BAD: dict[str, tuple[bytes, str]] = {
    "xml": (S3_ERROR, "an XML document (AccessDenied)"),
    "html": (NOT_FOUND, "an HTML page (404 Not Found)"),
    "gzipped": (gzip.compress(NOT_FOUND), "an HTML page (404 Not Found), in gzip"),
    "json": (b'{"message": "no"}', 'JSON ({"message": "no"})'),
    "text": (b"hello\n", "plain text (hello)"),
    "colour": (b"\x1b[31mred", "plain text (\N{REPLACEMENT CHARACTER}[31mred)"),
    "empty": (b"", "empty"),
    "gzipped nothing": (gzip.compress(b""), "empty"),
    "zeros": (bytes(1000), "a file of zeros"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
    "zstd": (pa.Codec("zstd").compress(NOT_FOUND, asbytes=True), "an HTML page (404 Not Found), in Zstandard"),
    "bzip2": (bz2.compress(bz2.compress(PLAIN)), "compressed by bzip2: unpack it first, in bzip2"),
    "xz": (gzip.compress(lzma.compress(PLAIN)), "compressed by xz: unpack it first, in gzip"),
    "zip": (archive("zip"), "a zip archive"),
    "parquet": (archive("parquet"), "a Parquet file: c4pipe import reads Parquet"),
    "tar": (archive("tar"), "a tar archive"),
    "binary": (bytes(range(128, 256)), "binary data"),
}


def write_bad(folder: Path) -> dict[str, str]:
    """Writes a file of each kind into a folder, and returns what each is, by its path; some end in `.wet.zst`."""
    paths = {kind: folder / f"{kind}.wet{'.zst' if kind == 'text' else '.gz'}" for kind in BAD}
    for kind, path in paths.items():
        path.write_bytes(BAD[kind][0])
    return {str(path): BAD[kind][1] for kind, path in paths.items()}
