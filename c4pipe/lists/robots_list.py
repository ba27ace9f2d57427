"""The list of the rule `robots_refused`: the rules of each robots.txt that refuses something, as one array of numbers.

`c4pipe lists robots` writes it. The array is mapped into memory, so the processes of a machine share it, and is stored
and checked like other lists. It has three numbers, the sorted keys of the robots.txt files, the place of each file's
rules, the names of the crawlers, and the rules as text (equal texts once).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from c4pipe.io.paths import check_regular
from c4pipe.lists.addresses import compared_path
from c4pipe.lists.lists import find_key
from c4pipe.lists.robots import RobotsRule, decode_rules, refusing_rule, robots_url
from c4pipe.text.hashes import U64, url_key
from c4pipe.wet.usage import LATEST

MAGIC = 0x6334726F626F7402
"""The first number: "c4robot" and the version. Version 1 had no preferences on usages."""

_WORD = 8
_SIZE = 4  # bytes of the number of bytes of a text
_HEAD = 3


class RobotsList:
    """Finds the rules of a robots.txt."""

    def __init__(self, words: U64) -> None:
        """Takes the array of a `RobotsWriter`. Raises ValueError for another array."""
        words = np.asarray(words)  # a slice of a memmap takes ten times as long
        if len(words) and int(words[0]) == MAGIC - 1:
            raise ValueError("an older version of c4pipe wrote it, without preferences on usages")
        if len(words) < _HEAD or int(words[0]) != MAGIC:
            raise ValueError("it is no list that `c4pipe lists robots` wrote")
        self.size, named = int(words[1]), int(words[2])
        keys, places = _HEAD, _HEAD + self.size
        names = places + self.size
        texts = names + -(-named // _WORD)
        if texts > len(words):
            raise ValueError("it is cut off")
        self._keys, self._places = words[keys:places], words[places:names]
        self._texts = words[texts:].view(np.uint8)
        self.agents = tuple(words[names:texts].view(np.uint8)[:named].tobytes().decode().split(","))

    def text(self, url: str) -> str:
        """Returns the rules of the robots.txt at a URL, as `encode_rules`; "" if not listed."""
        place = find_key(self._keys, url_key(url))
        if place is None:
            return ""
        start = int(self._places[place])
        length = int.from_bytes(self._texts[start : start + _SIZE].tobytes(), "little")
        return self._texts[start + _SIZE : start + _SIZE + length].tobytes().decode()

    def refusals(
        self, url: str, agents: Sequence[str], usages: Sequence[str] = (), draft: str = LATEST
    ) -> Iterator[tuple[str, RobotsRule]]:
        """Yields the crawlers that may not fetch a URL, or not for one of some usages, and the rule that refuses it."""
        rules = decode_rules(self.text(robots_url(url)))
        path = compared_path(url) if rules else ""
        refusing_rule_of = cache(lambda group: refusing_rule(rules.get(group, ()), path, usages, draft))
        for agent in agents:
            if rule := refusing_rule_of(agent.lower() if agent.lower() in rules else "*"):
                yield agent, rule


def read_robots_list(path: Path) -> U64:
    """Maps the array of a file into memory. Raises OSError, or ValueError for another file."""
    check_regular(path)
    words: U64 = np.load(path, mmap_mode="r")
    if words.dtype != np.uint64 or words.ndim != 1:
        raise ValueError("it is no list that `c4pipe lists robots` wrote")
    RobotsList(words)
    return words


class RobotsWriter:
    """Writes the file of a list, without holding it in memory."""

    def __init__(self, path: Path, agents: Sequence[str], keys: U64, texts: U64, sizes: U64) -> None:
        """Begins a file.

        Args:
            path: the new file.
            agents: the wanted crawlers.
            keys: the sorted keys of the robots.txt files.
            texts: the number of the text of each key.
            sizes: the bytes of each text.
        """
        ends = np.cumsum(sizes + np.uint64(_SIZE), dtype=np.uint64)
        self._places = ends - sizes - np.uint64(_SIZE)
        self._sizes = sizes
        names = ",".join(sorted({agent.lower() for agent in agents})).encode()
        named = names + bytes(-len(names) % _WORD)
        words = _HEAD + 2 * len(keys) + len(named) // _WORD
        total = words + -(-(int(ends[-1]) if len(ends) else 0) // _WORD)
        self._file = np.lib.format.open_memmap(path, "w+", np.dtype("<u8"), (total,))
        self._file[:_HEAD] = MAGIC, len(keys), len(names)
        self._file[_HEAD : _HEAD + len(keys)] = keys
        self._file[_HEAD + len(keys) : _HEAD + 2 * len(keys)] = self._places[texts] if len(keys) else 0
        self._file[words - len(named) // _WORD : words] = np.frombuffer(named, np.uint64)
        self._texts = np.asarray(self._file)[words:].view(np.uint8)  # a slice of a memmap takes ten times as long

    def add(self, number: int, text: bytes) -> None:
        """Writes the text of a number."""
        start = int(self._places[number])
        data = len(text).to_bytes(_SIZE, "little") + text
        self._texts[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def close(self) -> None:
        """Writes the rest."""
        self._file.flush()
