"""The beginning of a corpus, cut to a number of tokens, as T5 was trained on (Raffel et al. 2020, section 3.4.2).

It is written as a list of shards, with the documents taken of each; `read.documents` reads it as a corpus.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from c4pipe.corpus.shard_reader import Shard, read
from c4pipe.errors import UsageError
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import StoragePath
from c4pipe.read.source import TAKE_FORMAT, TAKE_VERSION, Source, find
from c4pipe.tokens.count import folder_of, load, path_of, sizes

_NUMBER = re.compile(r"([1-9]\d{0,17})(?:\^(\d{1,2}))?")


@dataclass(frozen=True)
class Take:
    """A take that was written.

    Attributes:
        file: where it is.
        documents: how many it has.
        tokens: how many they have, ends of sequences with them.
    """

    file: StoragePath
    documents: int
    tokens: int

    def epochs(self, budget: int) -> int:
        """Returns how many times training on that many tokens begins to read it."""
        return -(-budget // self.tokens)


def parse_tokens(option: str, text: str) -> int:
    """Returns the number that `2^29` or `536870912` names. Raises UsageError, naming the option, for another text."""
    found = _NUMBER.fullmatch(text)
    if not found:
        raise UsageError(f"{option} {text}: give a number of tokens, such as 2^29 or 536870912")
    number: int = int(found[1]) ** int(found[2] or 1)
    return number


def find_train(corpus: StoragePath) -> Source:
    """Returns the train split of a corpus, or of the language whose folder is given.

    Raises UsageError where there are several languages: one after the other, a take would have only the first.
    """
    source = find(str(corpus))
    if len(source.languages) != 1:
        raise UsageError(
            f"{corpus} has the languages {', '.join(source.languages)}, and a take is of one: "
            f"give its folder, such as {corpus}/{source.languages[0]}"
        )
    return source


def write_take(source: Source, model: StoragePath, counted: Mapping[str, Any], size: int) -> Take:
    """Writes `take-<language>-<size>.json`: the first documents of the train split that have `size` tokens together.

    The last document is taken whole, so there are as many tokens or a few more.

    Args:
        source: what `find_train` gave.
        model: the vocabulary's file.
        counted: what `tokens.count` gave for that corpus and vocabulary.
        size: tokens.

    Raises UsageError where there are fewer tokens, C4pipeError where a shard can't be read.
    """
    tokens_of = {each["path"]: int(each["tokens"]) for each in counted["shards"]}
    total = sum(tokens_of[path_of(shard)] for shard in source.shards)
    if total < size:
        raise UsageError(f"--take {size}: the train split has {total:,} tokens in {source.path}; give no more")
    tokens = 0
    taken: dict[str, int] = {}
    for shard in source.shards:
        documents, more = shard.rows, tokens_of[path_of(shard)]
        if tokens + more > size:
            documents, more = _cut(shard, size - tokens, model)
        taken[path_of(shard)] = documents
        tokens += more
        if tokens >= size:
            break
    (language,) = source.languages
    take = Take(folder_of(source) / f"take-{language}-{size}.json", sum(taken.values()), tokens)
    made = {
        "format": TAKE_FORMAT,
        "version": TAKE_VERSION,
        "manifest": counted["manifest"],
        "vocabulary": counted["vocabulary"],
        "language": language,
        "documents": take.documents,
        "tokens": tokens,
        "shards": [{"path": path, "documents": documents} for path, documents in taken.items()],
    }
    write_text(take.file, json.dumps(made, indent=1) + "\n")
    return take


def _cut(shard: Shard, size: int, model: StoragePath) -> tuple[int, int]:
    """Returns how many documents of a shard have `size` tokens together, and how many tokens they have."""
    documents = tokens = 0
    for some in sizes(read(shard, 0, shard.rows), load(model)):
        ends = tokens + np.cumsum(some)
        if ends[-1] >= size:
            last = int(np.searchsorted(ends, size))
            return documents + last + 1, int(ends[last])
        documents, tokens = documents + len(some), int(ends[-1])
    raise UsageError(f"{shard.file} has fewer tokens than were counted: remove the corpus' tokens.json to count anew")
