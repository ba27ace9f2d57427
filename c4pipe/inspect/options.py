"""The options of the commands `overlap` and `tune`."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.errors import UsageError
from c4pipe.io.options import Option, PathArgument, as_strings
from c4pipe.runners.runner_options import WorkerOptions

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


@dataclass(frozen=True)
class OverlapOptions(WorkerOptions):
    """What a corpus shares with examples. The defaults of n-grams are those of PaLM (8) and of GPT-3 (13, 10 pages)."""

    corpus: Annotated[
        PathArgument, Option("folder of a finished corpus, or of one of its languages", "CORPUS", positional=True)
    ]
    against: Annotated[
        PathArgument | Sequence[PathArgument],
        Option(
            "examples to search for: JSON Lines (.jsonl, .ndjson, .json) or plain text, one on each line, gzipped or "
            "not; or Parquet (.parquet), one in each row",
            "FILE",
            nargs="+",
        ),
    ]
    _: KW_ONLY
    fields: Annotated[
        Sequence[str],
        Option("the fields of JSON Lines, or columns, to take", "NAME,...", otherwise="all texts of a line or row"),
    ] = ()
    ngrams: Annotated[
        Sequence[int], Option("how many words an n-gram has; several sizes are counted apart", "N,...")
    ] = (8, 13)
    max_pages: Annotated[int, Option("ignore n-grams that are on more than N pages", "N")] = 10
    output: Annotated[PathArgument | None, Option("write all matches to this Parquet file", "FILE.parquet")] = None

    @property
    def example_files(self) -> tuple[Path, ...]:
        """The files of examples. Raises UsageError for a URL."""
        names = as_strings(self.against)
        if urls := [name for name in names if "://" in name]:
            raise UsageError(f"--against {urls[0]}: examples are read from files of this machine: download it first")
        return tuple(map(Path, names))

    @property
    def matches_file(self) -> "StoragePath | None":
        """The file for the matches; None to write none."""
        from c4pipe.io.paths import storage_path

        return None if self.output is None else storage_path(os.fspath(self.output))


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """The page of an annotated folder with other limits."""

    annotated: Annotated[
        PathArgument, Option("folder that c4pipe clean or build wrote with --annotate", "ANNOTATED", positional=True)
    ]
    output: Annotated[
        PathArgument, Option("the recipe file that the page writes; it must not exist yet", "FILE.toml")
    ] = "tuned.toml"
    port: Annotated[int | None, Option("the port of the page on 127.0.0.1", "N", otherwise="a free port")] = None
