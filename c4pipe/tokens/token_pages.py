"""From a document or a row of token files back to its pages, so from a training step to the web pages that it read."""

import bisect
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.reader import UNREADABLE
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.parquet_footer import open_parquet
from c4pipe.tokens.token_manifest import NPY, TokenManifest, TokenSet, read_token_manifest

_ENDS = (".bin", ".idx", ".npy", "_text_document", "_documents.parquet")


@dataclass(frozen=True)
class DocumentPlace:
    """Where a document of token files is, and where it comes from.

    Attributes:
        document: its number in the file, from 0.
        start: the number of its first token in the file, from 0.
        tokens: how many tokens it has, with its end of sequence.
        shard: the path of its shard in the corpus, such as `en/c4-train-00000-of-00016.parquet`.
        row: its row in the shard, from 0.
        url: the URL of its page.
    """

    document: int
    start: int
    tokens: int
    shard: str
    row: int
    url: str


def find_pages(path: str | os.PathLike[str], number: int) -> list[DocumentPlace]:
    """Returns the page of a document of Megatron's files, or the pages of which a row of NumPy's file has tokens.

    It reads the footer and one or a few row groups of the documents' file, however large that is. The corpus is not
    needed.

    Args:
        path: token files, named as the trainer is given them: `tokens/c4-en-train_text_document` (the prefix) or
            `tokens/c4-en-train.npy`. Their folder alone will do if it has one language and split.
        number: the number of a document for `megatron`, of a row for `npy`; from 0.

    Returns one place for `megatron`; for `npy` those of the row, in order.

    Raises UsageError where there are no such token files, or no such document or row; DamagedFileError where the file
    of the documents is missing or damaged.
    """
    folder, manifest, chosen = _open(Path(path))
    figures = manifest["totals"][chosen.language][chosen.split]
    is_npy = manifest["layout"] == NPY
    count, what = (figures["rows"], "rows") if is_npy else (figures["documents"], "documents")
    if not 0 <= number < count:
        known = f"has {what} 0 to {count - 1:,}" if count else f"has no {what}"
        raise UsageError(f"there is no number {number} in {folder / chosen.name}: it {known}")
    file = folder / chosen.documents_file
    if is_npy:
        length = manifest["length"]
        return list(_between(file, "start", number * length, (number + 1) * length))
    return list(_between(file, "document", number, number + 1))


def _open(path: Path) -> tuple[Path, TokenManifest, TokenSet]:
    """Returns the folder of token files, their manifest, and the language and split that a path names."""
    folder = path if path.is_dir() else path.parent
    manifest = read_token_manifest(folder)
    if manifest is None:
        raise UsageError(
            f"{folder} has no {MANIFEST}, which c4pipe tokens --format writes last: give a path such as "
            "tokens/c4-en-train_text_document"
        )
    sets = {each.name: each for lang, splits in manifest["totals"].items() for each in _sets(lang, splits)}
    name = path.name
    for end in _ENDS:
        name = name.removesuffix(end)
    if path.is_dir():
        name = min(sets) if len(sets) == 1 else ""
    if name not in sets:
        raise UsageError(f"{path} is none of the files in {folder}: give one, such as {folder / min(sets, default='')}")
    return folder, manifest, sets[name]


def _sets(language: str, splits: Iterable[str]) -> Iterator[TokenSet]:
    return (TokenSet(language, split) for split in splits)


def _between(path: Path, column: str, first: int, end: int) -> Iterator[DocumentPlace]:
    """Yields the documents that have a number of a column from `first` up to `end`, which is excluded.

    Of `start`, that means tokens: a document also counts where it starts before `first` and ends behind it.
    """
    try:
        file, is_signed = open_parquet(path)
        with file:
            if not is_signed:
                raise ValueError("its footer has no digest")
            firsts = _firsts(file.metadata, column)
            groups = range(max(0, bisect.bisect_right(firsts, first) - 1), bisect.bisect_left(firsts, end))
            for group in groups:
                yield from _places(file.read_row_group(group), column, first, end)
    except UNREADABLE as error:
        raise DamagedFileError(
            f"{path} can't be read: {error_reason(error)}; copy it again, or write the token files again"
        ) from error


def _firsts(footer: pq.FileMetaData, column: str) -> list[int]:
    """Returns the smallest number of a column in each row group."""
    index = pq.ParquetSchema(footer).to_arrow_schema().get_field_index(column)  # `footer.schema` makes a cycle
    firsts = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunk = group.column(index)  # held until its statistics are read: they do not keep it alive
        statistics = chunk.statistics
        if statistics is None:
            raise ValueError(f"it has no smallest {column} of each row group")
        firsts.append(int(statistics.min))
    return firsts


def _places(table: pa.Table, column: str, first: int, end: int) -> Iterator[DocumentPlace]:
    """Yields the documents of a row group."""
    numbers = table[column]
    ends = pc.add(numbers, table["tokens"].cast(pa.int64()) if column == "start" else 1)
    chosen = table.filter(pc.and_(pc.less(numbers, end), pc.greater(ends, first)))
    for row in chosen.to_pylist():
        yield DocumentPlace(**row)
