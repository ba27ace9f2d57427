"""Extracts text in a process of its own, so that no page can take too long, fill the memory or end the worker.

The libraries parse HTML in C or Rust, and nothing in the same process can stop them. A hostile page of 1 MB can keep
resiliparse busy for 15 seconds, a page of 10 MB for an hour.
"""

import codecs
import contextlib
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import IO, NamedTuple

from c4pipe.errors import C4pipeError
from c4pipe.wet.damage import RECORD_CAP
from c4pipe.wet.encodings import decode
from c4pipe.wet.extraction import find_extraction

CPU_SECONDS = 20.0
"""CPU seconds that the text of one page may take: more than a hundred times what resiliparse needs for a real page."""

MEMORY = 2 * 1024**3
"""Bytes of address space that the process may have, on Linux: four times what hostile pages of 5 MB need."""

_REQUEST = struct.Struct("<II")  # bytes of the charset's name, bytes of the page
_ANSWER = struct.Struct("<BI")  # status, bytes of the text
_DONE, _REPLACED, _FAILED = range(3)

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF_16 = re.compile(
    rb"(?:[\t\n\f\r ]\0)*<\0[!?a-zA-Z]\0|(?:\0[\t\n\f\r ])*\0<\0[!?a-zA-Z]"
)  # the start of HTML, without mark
_META = re.compile(rb"""<meta[\s/][^>]{0,999}?charset\s*=\s*["']?\s*([^\s"'/>;]{1,40})""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META_BYTES = 4096  # four times what the standard asks for: some pages have long scripts before it
_DETECT_BYTES = 65536
# Encodings whose labels stand for a larger one on the web: https://encoding.spec.whatwg.org/#names-and-labels
_WIDER = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}
_UNKNOWN = dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac_cyrillic")  # to resiliparse


class ExtractedText(NamedTuple):
    """The text of a page in UTF-8, and whether all bytes of the page were valid in its character encoding."""

    encoded: bytes
    is_valid: bool


class TextExtractor:
    """Extracts the text of pages, one after the other. The process starts with the first page."""

    def __init__(self, extraction: str, cpu_seconds: float = CPU_SECONDS, memory: int = MEMORY) -> None:
        """Takes an extraction (see `find_extraction`), the CPU seconds of a page, and the bytes of the process."""
        self._extraction = extraction
        self._limits = [str(cpu_seconds), str(memory)]
        self._process: subprocess.Popen[bytes] | None = None
        # Memory of both processes: HTML through a pipe would cost a third more CPU.
        self._file = _memory_file(RECORD_CAP)
        weakref.finalize(self, os.close, self._file)
        self._shared = mmap.mmap(self._file, RECORD_CAP)

    def extract(self, html: bytes, charset: str) -> ExtractedText | None:
        """Returns the text of a page; None if it can't be extracted within the limits.

        Args:
            html: the bytes of the page, at most RECORD_CAP.
            charset: the character encoding that the HTTP header names, or "".

        Raises C4pipeError if this machine does not have the libraries of the extraction.
        """
        label = charset.encode("ascii", "replace")
        request = _REQUEST.pack(len(label), len(html)) + label
        self._shared[: len(html)] = html
        for _ in range(2):
            process = self._process or self._start()
            answer = self._ask(process, request)
            if answer is not None:
                status, text = answer
                return None if status == _FAILED else ExtractedText(text, status == _DONE)
            self._process = None
            if process.wait() != -signal.SIGKILL:  # nothing here sends it: if memory was short, another try may succeed
                return None
        return None

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", __name__, self._extraction, *self._limits, str(self._file)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            pass_fds=[self._file],
        )
        assert process.stdout
        answer = _read_answer(process.stdout)
        if answer != (_DONE, b""):
            _stop(process)
            reason = answer[1].decode() if answer else f"its process ended with status {process.returncode}"
            raise C4pipeError(f"the text extraction {self._extraction!r} can't be used on this machine: {reason}")
        self._process = process
        weakref.finalize(self, _stop, process)
        return process

    def _ask(self, process: "subprocess.Popen[bytes]", request: bytes) -> tuple[int, bytes] | None:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            return None
        return _read_answer(process.stdout)


def _memory_file(size: int) -> int:
    """Returns the descriptor of a file without a name, which two processes can map."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("html")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _read_answer(stream: IO[bytes]) -> tuple[int, bytes] | None:
    """Returns status and text of an answer; None if the process ended before its end."""
    head = stream.read(_ANSWER.size)
    if len(head) < _ANSWER.size:
        return None
    status, size = _ANSWER.unpack(head)
    text = stream.read(size)
    return (status, text) if len(text) == size else None


def _stop(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()
    if process.stdout:
        process.stdout.close()
    process.wait()


def _main() -> None:
    """Answers the requests on standard input. The arguments are an extraction, two limits and a file."""
    wanted, cpu_seconds = sys.argv[1], float(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that no output of a library is taken for an answer
    try:
        name = wanted.partition(":")[0]
        if (installed := find_extraction(name)) != wanted:
            raise C4pipeError(f"it has {installed.partition(': ')[2]}")
        extract = load_extractor(name)
    except (C4pipeError, ImportError) as error:
        _answer(answers, _FAILED, str(error).encode())
        return
    _limit_memory(int(sys.argv[3]))
    shared = mmap.mmap(int(sys.argv[4]), RECORD_CAP, access=mmap.ACCESS_READ)
    _answer(answers, _DONE, b"")
    while len(head := sys.stdin.buffer.read(_REQUEST.size)) == _REQUEST.size:
        label_size, size = _REQUEST.unpack(head)
        label = sys.stdin.buffer.read(label_size).decode("ascii", "replace")
        data = shared[:size]
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its signal ends the process, also inside a library
        try:
            html, is_valid = decode_html(data, label)
            text = extract(html).encode("utf-8", "replace")
        except Exception:  # an error of a library on this page: the next page may work
            status, text = _FAILED, b""
        else:
            status = _DONE if is_valid else _REPLACED
        signal.setitimer(signal.ITIMER_PROF, 0)
        _answer(answers, status, text)


def _limit_memory(size: int) -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _answer(stream: IO[bytes], status: int, text: bytes) -> None:
    stream.write(_ANSWER.pack(status, len(text)) + text)
    stream.flush()


def load_extractor(name: str) -> Callable[[str], str]:
    """Imports an extractor, and returns the function from HTML to text. Raises ImportError."""
    if name == "trafilatura":
        return _trafilatura()
    from resiliparse.extract.html2text import extract_plain_text

    is_main = name == "main"

    def extract(html: str) -> str:
        # No list marks and no alternative texts: WET files have none, and rules on lines would take them for text.
        return str(extract_plain_text(html, main_content=is_main, list_bullets=False, alt_texts=False))

    return extract


def _trafilatura() -> Callable[[str], str]:
    import logging

    import trafilatura

    for library in ("trafilatura", "htmldate", "courlan", "justext"):  # their notes on pages are for nobody
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)

    def extract(html: str) -> str:
        # As FineWeb extracts, but for `deduplicate`: it compares with earlier pages, so their order would matter.
        return trafilatura.extract(html, favor_precision=True, include_comments=False) or ""

    return extract


def decode_html(data: bytes, charset: str) -> tuple[str, bool]:
    """Returns a page's HTML, and whether all bytes were valid in its encoding; other bytes become U+FFFD.

    The byte order mark names the encoding, else the first tag if it is in UTF-16, else `charset` (of the HTTP header,
    or ""), else the `meta` element. If they name no encoding that browsers know, resiliparse guesses.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return decode(data[len(mark) :], encoding)
    if match := _UTF_16.match(data):
        return decode(data, "utf-16-le" if match[0].endswith(b"\0") else "utf-16-be")
    return decode(data, _find_encoding(charset) or _find_declared(data) or _guess_encoding(data))


def _find_declared(data: bytes) -> str | None:
    """Returns the encoding of the `meta` element. As the element is read as ASCII, the encoding can't be UTF-16."""
    start = data[:_META_BYTES]
    match = _META.search(_COMMENT.sub(b"", start) if b"<!--" in start else start)
    encoding = _find_encoding(match[1].decode("ascii", "replace")) if match else None
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding


@lru_cache(maxsize=1024)
def _find_encoding(label: str) -> str | None:
    """Returns Python's name of the encoding that a label of the web stands for, or None for an unknown label."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(label, False) if label.isascii() and label else None
    name = name or _UNKNOWN.get(label.strip().lower())
    try:
        return codecs.lookup(_WIDER.get(name, name)).name if name else None
    except LookupError:
        return None


def _guess_encoding(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return _find_encoding(detect_encoding(data, _DETECT_BYTES) or "") or "utf-8"


if __name__ == "__main__":
    _main()
