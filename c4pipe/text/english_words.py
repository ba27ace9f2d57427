"""English words as datatrove's filters count them: the tokens of spaCy's rule-based English tokenizer.

A text is cut at white space. Each chunk loses prefixes and suffixes (punctuation, quotes, units), unless it is a
special case. The rest is cut at infixes (hyphens, slashes), unless it is a URL. Runs of tokens that together are a
special case are cut as the special case.

Source: spaCy 3.8 (MIT), `tokenizer.pyx` and the tables of `english_patterns`. This code works on positions, so a chunk
of a million brackets takes linear time, and equal chunks are cut once.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from itertools import accumulate, chain, pairwise

from c4pipe.native import text_kernel
from c4pipe.text import english_patterns as patterns
from c4pipe.text.english_tables import character_kinds, known_texts, special_cases

_MOST_CHUNKS = 400_000  # whose tokens are remembered
_LONGEST_REMEMBERED = 64  # characters of a chunk
_SPACES_OR_CHUNK = re.compile(r"\s+|\S+")

_Tokens = tuple[str, ...]


class EnglishWords:
    """Cuts texts into words as spaCy's English tokenizer does."""

    def __init__(self) -> None:
        self._special = special_cases()
        self._longest_special = max(map(len, self._special))
        self._chunks = _Chunks(self._cut)
        self._with_runs: dict[str, _Tokens] = {}  # the tokens of chunks in which a run is cut in another way
        runs = {self._affixes(each, False) for each in self._special if patterns.has_affix(each)}
        self._runs = _Runs(self._special, runs)

    def words(self, text: str) -> list[str]:
        """Returns the words of a text: its tokens without white space."""
        chunks = text.split()
        found = list(map(self._chunks.__getitem__, chunks))
        if self._has_runs(chunks):
            places = [place for place, chunk in enumerate(chunks) if chunk in self._with_runs]
            if any(self._runs.cross(found, place) for place in places):
                return [each for each in self.tokens(text) if not each.isspace()]
            for place in places:
                found[place] = self._with_runs[chunks[place]]
        return list(chain.from_iterable(found))

    def joined_words(self, text: str) -> tuple[str, memoryview]:
        """Returns the words of a text, joined, and the offsets between them: 0, and the end of each word."""
        if text_kernel:
            cut = text_kernel.cut_words(text, *self._tables, self._chunks, self._with_runs)
            if not cut[2] or not self._may_cross(text, memoryview(cut[2]).cast("q")):
                return cut[0], memoryview(cut[1]).cast("q")
        words = self.words(text)
        return "".join(words), memoryview(array("q", accumulate(map(len, words), initial=0)))

    @cached_property
    def _tables(self) -> tuple[bytes, bytes]:
        """The tables for C: the kinds of all characters, and the texts for Python."""
        return character_kinds(), known_texts(self._special, self._runs.changed())

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text. White space is a token, except a single space after a word."""
        tokens, spaced = self._with_spaces(text)
        return self._runs.replace(tokens, spaced) if self._has_runs(text.split()) else tokens

    def sentence_count(self, text: str) -> int:
        """Returns the number of sentences of a text, which spaCy's sentencizer finds by punctuation."""
        if patterns.has_one_sentence(text):
            return min(1, len(text))
        # Nearly all lines have single blanks only, so all their tokens are words.
        tokens = self.words(text) if " ".join(text.split()) == text else self.tokens(text)
        sentences, ended = min(1, len(tokens)), False
        for token in tokens:
            ends = token in patterns.ENDS_SENTENCE
            if ended and not ends and not patterns.is_punctuation(token):
                sentences, ended = sentences + 1, False
            elif ends:
                ended = True
        return sentences

    def _may_cross(self, text: str, places: Sequence[int]) -> bool:
        """Tells whether a run may reach from a chunk at one of the places into the next chunk. No run crosses lines."""
        chunks = text.split()
        open_places = [place for place in places if self._crosses(chunks, place)]
        first = at = 0
        for line in text.split("\n") if open_places else ():
            chunks = line.split()
            while at < len(open_places) and open_places[at] < first + len(chunks):
                if self._crosses(chunks, open_places[at] - first):
                    return True
                at += 1
            first += len(chunks)
        return False

    def _crosses(self, chunks: Sequence[str], place: int) -> bool:
        most = self._runs.longest
        start = max(0, place - most)
        near = list(map(self._chunks.__getitem__, chunks[start : place + 1 + most]))
        return self._runs.cross(near, place - start)

    def _has_runs(self, chunks: Sequence[str]) -> bool:
        return bool(self._with_runs) and not self._with_runs.keys().isdisjoint(chunks)

    def _cut(self, chunk: str) -> _Tokens:
        """Returns the tokens of a chunk, and remembers them."""
        tokens = self._special.get(chunk)
        plain = None if tokens else patterns.plain_word(chunk)
        if plain and plain[0] not in self._special:
            tokens, has_runs = plain, False
        else:
            tokens = tokens or self._affixes(chunk, True)
            has_runs = self._runs.change(tokens)
        if len(chunk) <= _LONGEST_REMEMBERED or has_runs:
            if len(self._chunks) >= _MOST_CHUNKS:
                self._chunks.clear()
                self._with_runs.clear()
            self._chunks[chunk] = tokens
            if has_runs:
                self._with_runs[chunk] = tuple(self._runs.replace(list(tokens), set()))
        return tokens

    def _with_spaces(self, text: str) -> tuple[list[str], set[int]]:
        """Returns the tokens, with white space, and the indices of the tokens before a space."""
        tokens: list[str] = []
        spaced: set[int] = set()
        for piece in _SPACES_OR_CHUNK.findall(text):
            if not piece.isspace():
                tokens += self._chunks[piece]
                continue
            if is_behind_word := bool(tokens) and piece[0] == " ":
                spaced.add(len(tokens) - 1)
            if len(piece) > is_behind_word:
                tokens.append(piece[is_behind_word:])
        return tokens, spaced

    def _affixes(self, chunk: str, with_special: bool) -> _Tokens:
        """Returns the tokens of a chunk by its prefixes, suffixes and infixes."""
        start, end = 0, len(chunk)
        before: list[str] = []
        behind: list[str] = []
        while start < end:
            if with_special and self._is_special(chunk, start, end):
                break
            prefix = patterns.prefix_length(chunk, start, end)
            if prefix and with_special and self._is_special(chunk, start + prefix, end):
                before.append(chunk[start : start + prefix])
                start += prefix
                break
            suffix = patterns.suffix_length(chunk, start + prefix, end)
            if suffix and with_special and self._is_special(chunk, start, end - suffix):
                behind.append(chunk[end - suffix : end])
                end -= suffix
                break
            if not prefix and not suffix:
                break
            if prefix:
                before.append(chunk[start : start + prefix])
                start += prefix
            if suffix:
                behind.append(chunk[end - suffix : end])
                end -= suffix
        return (*before, *self._middle(chunk[start:end], with_special), *reversed(behind))

    def _is_special(self, chunk: str, start: int, end: int) -> bool:
        return 0 < end - start <= self._longest_special and chunk[start:end] in self._special

    def _middle(self, chunk: str, with_special: bool) -> Iterable[str]:
        """Returns the tokens of a chunk without its affixes."""
        if not chunk:
            return ()
        if with_special and chunk in self._special:
            return self._special[chunk]
        if patterns.is_address(chunk):
            return (chunk,)
        return patterns.cut_at_infixes(chunk)


class _Chunks(dict[str, _Tokens]):
    """The tokens of chunks. A function cuts a new chunk, and may store its tokens here."""

    def __init__(self, cut: Callable[[str], _Tokens]) -> None:
        super().__init__()
        self._cut = cut

    def __missing__(self, chunk: str) -> _Tokens:
        return self._cut(chunk)


class _Runs:
    """Runs of tokens that together are a special case, such as `a`, `.` at the end of `and/or/a.`

    Attributes:
        longest: the most tokens of a run.
    """

    def __init__(self, special: Mapping[str, _Tokens], runs: Set[_Tokens]) -> None:
        """Takes the special cases, and the runs: the tokens by affixes of each special case with an affix."""
        self._special = special
        self._patterns: dict[_Tokens, set[_Tokens]] = {}  # by the first two tokens: one token is never cut
        for tokens in runs:
            self._patterns.setdefault(tokens[:2], set()).add(tokens)
        self.longest = max(map(len, runs))

    def changed(self) -> list[_Tokens]:
        """Returns the runs that are cut in another way."""
        return [
            tokens
            for tokens in chain.from_iterable(self._patterns.values())
            if self._special.get("".join(tokens), tokens) != tokens
        ]

    def change(self, tokens: _Tokens) -> bool:
        """Tells whether a run of these tokens, without white space between them, is cut in another way."""
        return any(
            self._special.get("".join(tokens[start:end]), tokens[start:end]) != tokens[start:end]
            for start, end in self._matches(tokens)
        )

    def cross(self, chunks: Sequence[_Tokens], place: int) -> bool:
        """Tells whether a run may reach from the chunk at a place into another chunk, given the tokens of all."""
        most = self.longest
        before = [*chain.from_iterable(each[-most:] for each in chunks[max(0, place - most) : place])][-most:]
        behind = [*chain.from_iterable(each[:most] for each in chunks[place + 1 : place + 1 + most])][:most]
        start, end = len(before), len(before) + len(chunks[place])
        matches = self._matches([*before, *chunks[place], *behind])
        return any(first < start < last or first < end < last for first, last in matches)

    def replace(self, tokens: list[str], spaced: set[int]) -> list[str]:
        """Returns tokens with the runs cut as special cases; a space follows the tokens at the places `spaced`.

        Of overlapping runs the longest wins, then the first. A run with a space inside may win, but is not cut.
        """
        taken: set[int] = set()
        chosen: list[tuple[int, int]] = []
        for start, end in sorted(self._matches(tokens), key=lambda span: (span[0] - span[1], span[0])):
            if start not in taken and end - 1 not in taken:
                chosen.append((start, end))
            taken.update(range(start, end))
        result: list[str] = []
        place = 0
        for start, end in sorted(chosen):
            run = tokens[start:end]
            has_space = not spaced.isdisjoint(range(start, end - 1))
            result += tokens[place:start]
            result += run if has_space else self._special.get("".join(run), run)
            place = end
        return result + tokens[place:]

    def _matches(self, tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
        for start, pair in enumerate(pairwise(tokens)):
            for pattern in self._patterns.get(pair, ()):
                if tuple(tokens[start : start + len(pattern)]) == pattern:
                    yield start, start + len(pattern)


@cache
def english_words() -> EnglishWords:
    """Returns the tokenizer of this process."""
    return EnglishWords()
