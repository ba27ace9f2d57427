"""Trains SentencePiece on the sample, in a separate process, since it prints its log and can't be stopped from Python.

The process reads its task as JSON from standard input, and writes its answer as JSON to standard output.
"""

import hashlib
import io
import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4pipe.errors import C4pipeError, DamagedFileError, UsageError
from c4pipe.io.atomic import name_os_errors
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import StoragePath, read_file, storage_path
from c4pipe.runners.events import Status
from c4pipe.runners.worker import end_with
from c4pipe.vocab.model import SentencePieceModel, sentinel_names
from c4pipe.vocab.request import SENTENCE_BYTES

_TOO_MANY = re.compile(r"Vocabulary size too high .*<= (\d+)")
_TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


@dataclass(frozen=True)
class Portion:
    """The share of the sample that comes from one source.

    Attributes:
        label: the short name of the source.
        take: the bytes of its text in the sample.
        parts: (bins, bytes) for each part. A part is a file with the pages whose keys are in that number of bins.
    """

    label: str
    take: int
    parts: Sequence[Sequence[int]]


def part_name(source: int, part: int) -> str:
    """Returns the name of a part's file."""
    return f"part-{source:03}-{part:05}.txt"


def sentences(
    folder: StoragePath, source: int, portion: Portion, digests: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yields the sentences of a source (its number) for SentencePiece, from the parts in the folder of the sample.

    A sentence is a line; long lines are divided at spaces. The last line ends at the end of the portion. Raises
    DamagedFileError if a part differs from its SHA-256 in `digests`; None compares nothing.
    """
    left = portion.take
    while left > 0:
        for part, (_, size) in enumerate(portion.parts):
            for line in _lines(folder / part_name(source, part), digests) if size else ():
                yield from _pieces(line if len(line) <= left else line[: _cut(line, left)])
                left -= len(line) + 1
                if left <= 0:
                    return


def _lines(file: StoragePath, digests: Mapping[str, str] | None) -> list[bytes]:
    data = read_file(file, sys.maxsize)  # a part has a page whole, however long that is
    if digests is not None and hashlib.sha256(data).hexdigest() != digests.get(file.name):
        raise DamagedFileError(f"{file} is damaged: it was changed since it was written; run the same command again")
    return data.split(b"\n")[:-1]


def _pieces(line: bytes) -> Iterator[str]:
    while line:
        end = len(line) if len(line) <= SENTENCE_BYTES else _cut(line, SENTENCE_BYTES)
        if piece := line[:end].decode().strip():
            yield piece
        line = line[end:]


def _cut(line: bytes, size: int) -> int:
    """Returns the place to divide a line after at most `size` bytes: at a space, or between characters."""
    space = line.rfind(b" ", 1, size + 1)
    if space > 0:
        return space
    while size < len(line) and size and line[size] & 0xC0 == 0x80:
        size -= 1
    return size


def train(
    folder: StoragePath,
    portions: Sequence[Portion],
    parameters: Mapping[str, Any],
    sentinels: int,
    digests: Mapping[str, str] | None = None,
) -> tuple[bytes, dict[str, Any]]:
    """Trains a model on the parts in a folder, and adds a number of sentinels after the last piece.

    `parameters` are SentencePiece's; `digests` has the SHA-256 of each part by name, None compares nothing.

    Returns the bytes of the model, and `sentences`, the number of sentences of each source, with `sha256` of all.

    Raises RuntimeError in SentencePiece's words, DamagedFileError if a part of the sample was changed.
    """
    import sentencepiece

    counts = [0] * len(portions)
    digest = hashlib.sha256()
    errors: list[Exception] = []

    def read() -> Iterator[str]:
        try:  # to SentencePiece, an exception is the end of the text
            for source, portion in enumerate(portions):
                for sentence in sentences(folder, source, portion, digests):
                    counts[source] += 1
                    digest.update(f"{sentence}\n".encode())
                    yield sentence
        except Exception as error:
            errors.append(error)

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=read(), model_writer=model, **parameters)
    finally:
        if errors:
            raise errors[0]
    return with_sentinels(model.getvalue(), sentinels), {"sentences": counts, "sha256": digest.hexdigest()}


def with_sentinels(model: bytes, count: int) -> bytes:
    """Returns a model with `<extra_id_0>` as its last piece, `<extra_id_1>` before it, and so on."""
    # Two messages of Protocol Buffers, one after the other, are one message, with the repeated fields of both.
    pieces = sentinel_names(count)
    return model + b"".join(_field(_PIECES, _field(_PIECE, piece.encode()) + _USER_DEFINED) for piece in pieces)


_PIECES, _PIECE = 1, 1  # numbers of fields in sentencepiece_model.proto: ModelProto.pieces, and its .piece
_USER_DEFINED = b"\x15\0\0\0\0\x18\x04"  # .score = 0.0, .type = USER_DEFINED


def _field(number: int, value: bytes) -> bytes:
    assert len(value) < 128  # a longer value needs more than one byte for its length
    return bytes([number << 3 | 2, len(value)]) + value


def pieces_text(model: bytes) -> str:
    """Returns a line for each piece of a model, with its score, as SentencePiece writes them to `.vocab` files."""
    loaded = SentencePieceModel(model)
    return "".join(f"{piece}\t{score:g}\n" for piece, score in zip(loaded.pieces, loaded.scores, strict=True))


def run_trainer(task: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """Trains a model in a separate process.

    `task` has the arguments of `train` as JSON values, and `target`, the path for the model. SentencePiece writes its
    log to `log`. Returns the answer of `train`.

    Raises C4pipeError if the process ends without an answer, UsageError if there is too little text for the size.
    """
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    with log.open("wb") as errors:
        process = subprocess.run(command, input=json.dumps(task).encode(), stdout=subprocess.PIPE, stderr=errors)
    try:
        answer = parse_json(process.stdout)
    except ValueError:
        status = process.returncode
        why = f"it was killed by signal {-status}" if status < 0 else f"status {status}"
        raise C4pipeError(
            f"SentencePiece's trainer ended without a model ({why}): its log is {log}; "
            "if memory was short, give a smaller --sample-bytes"
        ) from None
    if "error" in answer:
        raise explained(answer["error"], int(task["parameters"]["vocab_size"]))
    if "damaged" in answer:
        raise DamagedFileError(answer["damaged"])
    return dict(answer)


_SEEDED = 0.48
"""The share of the time until the unigram trainer drops pieces, measured with 26 MB of text and 8,000 pieces."""


def status(log: Path, size: int) -> Status:
    """Returns the progress of the trainer by its log: an estimated share, and a few words."""
    try:
        text = log.read_text("utf-8", "replace")
    except FileNotFoundError:
        return Status(0.0, "")
    if pieces := re.findall(r"EM sub_iter=\d+ size=(\d+)", text):  # of unigram, which drops pieces
        first, now = (int(each) for each in (pieces[0], pieces[-1]))
        last = 1.1 * size  # this share of pieces is left at the end
        done = math.log(first / now) / max(1e-9, math.log(max(first, 2 * last) / last))
        return Status(_SEEDED + (1 - _SEEDED) * min(1.0, done), f"{now:,} pieces left of {first:,}")
    if pieces := re.findall(r"Added: .*size=(\d+)", text):  # of BPE, which adds pieces
        return Status(0.1 + 0.9 * int(pieces[-1]) / size, f"{int(pieces[-1]):,} pieces of {size:,}")
    if match := re.search(r"Loaded all (\d+) sentences", text):
        return Status(0.0, f"{int(match[1]):,} sentences read, looking for pieces")
    return Status(0.0, "reading the sample")


def explained(error: str, size: int) -> C4pipeError:
    """Returns an error with advice, given the message of SentencePiece's trainer."""
    if match := _TOO_MANY.search(error):
        return UsageError(f"--size {size}: the text has {match[1]} pieces at most; give that or less, or more text")
    if match := _TOO_FEW.search(error):
        return UsageError(
            f"--size {size}: the text's characters alone need {match[1]} pieces; give more, or a smaller --coverage"
        )
    return C4pipeError(f"SentencePiece: {error}")


def answer_task() -> None:
    """Does the task on standard input. The argument is the id of the parent process: this process ends with it."""
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), name="end with parent", daemon=True).start()
    task = parse_json(sys.stdin.buffer.read())
    try:
        portions = [Portion(**each) for each in task["portions"]]
        folder, digests = storage_path(task["folder"]), task.get("digests")
        model, answer = train(folder, portions, task["parameters"], task["sentinels"], digests)
        with name_os_errors(Path(task["target"])):
            Path(task["target"]).write_bytes(model)
    except DamagedFileError as error:
        answer = {"damaged": str(error)}
    except (OSError, RuntimeError) as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    answer_task()
