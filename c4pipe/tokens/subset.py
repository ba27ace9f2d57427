"""Token-budget subsets: the first documents of a corpus with a given number of tokens, to study repeated data.

T5 was trained on such subsets of C4 (Raffel et al. 2020, section 3.4.2). A subset is a file that lists shards, with the
number of documents of each; `read.documents` reads it as a corpus.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4pipe.corpus.formats.shard_format import Document
from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.corpus.reader import read_shard
from c4pipe.errors import UsageError
from c4pipe.io.json_files import write_json
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.read.by_column import BestFirst, best_first
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader
from c4pipe.read.source import BEST_SUBSET_VERSION, SUBSET_FORMAT, SUBSET_VERSION, find
from c4pipe.tokens.count import sizes
from c4pipe.tokens.tokenizer import TokenizerFile

_WINDOW = 50_000  # best documents that are read together
_NUMBER = re.compile(r"([1-9]\d{0,17})(?:\^(\d{1,2}))?")


@dataclass(frozen=True)
class Subset:
    """A token-budget subset that was written.

    Attributes:
        file: its file.
        documents: the number of its documents.
        tokens: the number of their tokens, with the ends of sequences.
    """

    file: StoragePath
    documents: int
    tokens: int

    def epochs(self, training_tokens: int) -> int:
        """Returns the number of epochs of a training on that number of tokens; the last one can be incomplete."""
        return -(-training_tokens // self.tokens)


def parse_tokens(option: str, text: str) -> int:
    """Returns the number that `2^29` or `536870912` names. Raises UsageError, naming the option, for another text."""
    match = _NUMBER.fullmatch(text.replace("_", ""))
    if not match:
        raise UsageError(f"{option} {text}: give a number of tokens, such as 2^29 or 536870912")
    number: int = int(match[1]) ** int(match[2] or 1)
    return number


def open_one_language(path: StoragePath) -> Corpus:
    """Opens a corpus with one language, or one language of a corpus, given its folder.

    Raises UsageError for several languages: a subset of the first documents would have only the first language.
    """
    corpus = open_language(path)
    if len(corpus.languages) != 1:
        raise UsageError(
            f"{path} has the languages {', '.join(corpus.languages)}, and a token-budget subset has one language: "
            f"give the folder of a language, such as {path}/{corpus.languages[0]}"
        )
    return corpus


def open_best(corpus: Corpus, column: str) -> BestFirst:
    """Returns the train split of a corpus with one language, with the largest numbers of a column first.

    Raises UsageError for a column that is missing or has no numbers, and for a corpus without Parquet.
    """
    return best_first(find(str(corpus.path), languages=corpus.languages), column)


def write_subset(
    corpus: Corpus, tokenizer: TokenizerFile, counted: Mapping[str, Any], size: int, best: BestFirst | None = None
) -> Subset:
    """Writes `subset-<language>-<size>.json`: the first documents of the train split with `size` tokens together.

    With `best` (see `open_best`), the documents have the largest numbers of a column, and the file is
    `subset-<language>-<column>-<size>.json`. The last document is complete, so the subset can have a few tokens more.

    `counted` is the content of `tokens.json` for this corpus of one language and this vocabulary.

    Raises UsageError if the train split has fewer tokens, C4pipeError if a shard can't be read.
    """
    shards = corpus.shards("train")
    tokens_of = {each["path"]: int(each["tokens"]) for each in counted["shards"]}
    total = sum(tokens_of[shard.path] for shard in shards)
    if total < size:
        raise UsageError(f"--budget-subset {size}: the train split of {corpus.path} has only {total:,} tokens")
    tokens = 0
    documents_of: dict[str, int] = {}
    chosen: dict[str, Any] = {"version": SUBSET_VERSION}
    (name,) = corpus.languages
    if best:
        documents, tokens = _first_documents(Reader(best, Order(window=_WINDOW)), size, tokenizer, best.path)
        source = best.first(documents)
        documents_of = {shard.path: rows for shard, rows in zip(shards, source.rows, strict=True)}
        chosen = {"version": BEST_SUBSET_VERSION, "best_first": vars(source.best)}
        name += f"-{best.column}"
    for shard in () if best else shards:
        documents, more = shard.rows, tokens_of[shard.path]
        if tokens + more > size:
            rows = read_shard(shard, 0, shard.rows)
            documents, more = _first_documents(rows, size - tokens, tokenizer, str(shard.file))
        documents_of[shard.path] = documents
        tokens += more
        if tokens >= size:
            break
    subset = Subset(storage_path(str(corpus.path)) / f"subset-{name}-{size}.json", sum(documents_of.values()), tokens)
    content = {
        "format": SUBSET_FORMAT,
        **chosen,
        "manifest": counted["manifest"],
        "vocabulary": counted["vocabulary"],
        "language": corpus.languages[0],
        "documents": subset.documents,
        "tokens": tokens,
        "shards": [{"path": path, "documents": documents} for path, documents in documents_of.items()],
    }
    write_json(subset.file, content)
    return subset


def _first_documents(given: Iterable[Document], size: int, tokenizer: TokenizerFile, where: str) -> tuple[int, int]:
    """Returns the number of first documents that have `size` tokens together, and their number of tokens."""
    documents = tokens = 0
    for some in sizes(given, tokenizer.load()):
        ends = tokens + np.cumsum(some)
        if ends[-1] >= size:
            last = int(np.searchsorted(ends, size))
            return documents + last + 1, int(ends[last])
        documents, tokens = documents + len(some), int(ends[-1])
    raise UsageError(f"{where} has fewer tokens than tokens.json says: remove that file and count again")
