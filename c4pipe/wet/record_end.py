"""The end of the last record of a file, or of the last one before a gap."""

import base64
import hashlib

from c4pipe.wet.gzip_members import Gap
from c4pipe.wet.record_header import Header

_SEPARATOR = b"\r\n\r\n"
_SENTENCE_ENDS = tuple(mark.encode() for mark in '.!?"”’»。！？')


def is_whole(header: Header, rest: bytearray, gap: Gap | None) -> bool:
    """Tells whether the bytes up to the end are a whole body, though Content-Length is unknown or wrong.

    A file can end in the middle of a record. But some writers leave out the newlines behind the last record, and some
    change texts without their Content-Length, such as those who made the test files of TensorFlow Datasets.
    Where there are fewer bytes than Content-Length says, the digest or the end of a sentence tells that all are there.

    Args:
        header: of the record.
        rest: the bytes behind the header block.
        gap: the gap behind them; None at the end of the file.
    """
    if gap and gap.kind != "gzip_junk":  # the rest of the body may be lost in it
        return False
    if rest.endswith((_SEPARATOR, b"\n\n")):
        return True
    if header.length is not None and header.length < len(rest):
        return True
    return rest.rstrip(b"\r\n").endswith(_SENTENCE_ENDS) or _has_digest(header, rest)


def _has_digest(header: Header, rest: bytearray) -> bool:
    """Tells whether the header has the SHA-1 of these bytes, with or without some newlines at their end."""
    algorithm, _, digest = header.fields.get("warc-block-digest", "").partition(":")
    newlines = len(rest) - len(rest.rstrip(b"\r\n"))
    ends = (len(rest) - behind for behind in range(min(newlines, len(_SEPARATOR)) + 1))
    sha1s = (base64.b32encode(hashlib.sha1(rest[:end], usedforsecurity=False).digest()).decode() for end in ends)
    return algorithm.lower() == "sha1" and digest in sha1s
