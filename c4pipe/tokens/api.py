"""Token files as a function, for Python: `c4pipe.write_token_files`. Its arguments are the options of the command."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from c4pipe.io.paths import storage_path
from c4pipe.runners.progress import Progress, ProgressEvent
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.tokens.token_files import TokenFileOptions, write
from c4pipe.tokens.token_manifest import TokenManifest
from c4pipe.vocab.model import MODEL


@dataclass(frozen=True)
class TokenFiles:
    """Token files, as `write_token_files` leaves them.

    Attributes:
        path: their folder.
        manifest: the content of their `manifest.json`: totals by language and split, files with sizes and digests.
    """

    path: Path
    manifest: TokenManifest


def write_token_files(
    corpus: str | os.PathLike[str],
    vocabulary: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    format: str = "megatron",
    length: int | None = None,
    runner: str | None = None,
    workers: int | None = None,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    beam: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] | None = None,
) -> TokenFiles:
    """Writes the ids of all documents of a corpus for trainers that map them into memory. The command
    `c4pipe tokens --format`.

    The same call after an interruption goes on from there; after its end, it returns the finished files at once.

    Args:
        corpus: the folder of a finished corpus, or of one of its languages; also a URL of a store or a web server.
        vocabulary: the folder of a vocabulary, or the file of a SentencePiece model.
        output: the folder for the files, on this machine or mounted there. With another runner, all workers need it.
        format: `megatron` for Megatron-LM and NeMo (`.bin` and `.idx`), `npy` for an array of packed rows.
        length: with `npy`, the tokens of a row.

    The other arguments and the errors are those of `build_corpus`.
    """
    model = storage_path(os.fspath(vocabulary))
    options = TokenFileOptions(
        corpus=os.fspath(corpus),
        model=model / MODEL if model.is_dir() else model,
        output=storage_path(os.fspath(output)),
        layout=format,
        length=length,
        runner=RunnerOptions.of_arguments(runner, workers, spark_master, spark_conf, beam),
    )
    return TokenFiles(Path(output), write(options, Progress(progress)))
