"""What must hold for any bytes: of the reader, and of the rules. No fuzzer is needed to call it.

python fuzz/targets.py reader|rules|native FILE...    checks files again that a fuzzer found
"""

import gzip
import io
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain, pairwise, product
from pathlib import Path
from unittest.mock import patch

from c4pipe.clean import page_batch
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.page_batch import BatchCleaner
from c4pipe.clean.side_files import count_page
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.lines import NoTerminalPunctuation
from c4pipe.io import gzip_members
from c4pipe.lists.lists import Lists
from c4pipe.lists.pinned_lists import load_bad_words
from c4pipe.native import text_kernel
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.english_words import english_words
from c4pipe.text.hashes import is_validation, span_hashes, unit_hashes, url_key, url_md5
from c4pipe.text.page_text import PUNCTUATION, count_marks, count_words
from c4pipe.text.spans import cut
from c4pipe.wet import records
from c4pipe.wet.damage import DAMAGE, Damage
from c4pipe.wet.page import Page, PlainPages, microseconds
from c4pipe.wet.records import read_page_batches, read_pages

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
_RECORD = b"WARC/1.0\r\n"

_CAPS = {"HEADER_CAP": 1500, "RECORD_CAP": 6000}
_SMALL = {**_CAPS, "_RECORD_BYTES": 1000, "_PAGE_BYTES": 4000}
_SMALL_BUFFERS = {"READ": 512, "INFLATE": 2048, "_KEPT": 3000}


class _Stream(io.BytesIO):
    """A stream that gives at most `most` bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.most if size is None or size < 0 else min(size, self.most))


def check_reader(data: bytes) -> None:
    """Reads a file: its first byte tells how the others are packed, since no mutation makes good checksums."""
    if not data:
        return
    _shrink()
    kind, file = data[0] % 3, data[1:]
    may_have_other_types = kind == 0 or b"warc-type" in data.lower()
    if kind == 1:  # all records in a member
        file = gzip.compress(file, 1, mtime=0)
    elif kind == 2:  # a member for each
        parts = [_RECORD + part for part in file.split(_RECORD)]
        file = b"".join(gzip.compress(part, 1, mtime=0) for part in parts)
    items = list(read_pages(io.BytesIO(file)))
    assert items or may_have_other_types, "what has neither a page nor records of other types is damage"
    _check_items(items)
    values = [_values(item) for item in items]
    if len(file) < 4096:
        assert [_values(item) for item in read_pages(_Stream(file, 7))] == values
    with patch.object(records, "text_kernel", None):
        assert [_values(item) for item in read_pages(io.BytesIO(file))] == values
    for evaluator in _evaluators().values() if text_kernel else ():
        together = read_page_batches(io.BytesIO(file), BatchCleaner(evaluator).split)
        assert list(chain.from_iterable(map(_page_values, together))) == values


def _shrink() -> None:
    """Makes caps and buffers so small that a fuzzer's inputs, which are small as well, come to their ends."""
    for module, values in ((records, _SMALL), (page_batch, _CAPS), (gzip_members, _SMALL_BUFFERS)):
        for name, value in values.items():
            assert hasattr(module, name)
            setattr(module, name, value)


def _check_items(items: list[Page | Damage]) -> None:
    pages = [item for item in items if isinstance(item, Page)]
    assert [page.position for page in pages] == list(range(len(pages)))
    offsets = [item.offset for item in items if isinstance(item, Damage)]
    assert offsets == sorted(offsets)
    for item in items:
        if isinstance(item, Damage):
            assert item.kind in DAMAGE
        else:
            assert item.size <= vars(records)["RECORD_CAP"]  # a small one
            assert "\n" not in item.url
            item.body.encode()


def _values(item: Page | Damage) -> tuple[object, ...]:
    return (item.url, item.timestamp, item.body, item.size) if isinstance(item, Page) else tuple(item)


def _page_values(item: Page | Damage | PlainPages) -> list[tuple[object, ...]]:
    if isinstance(item, PlainPages):
        return [(url, timestamp, body.decode(), len(body)) for url, timestamp, body, _ in item.pages]
    return [_values(item)]


def check_rules(data: bytes) -> None:
    """Cleans a page (a line with its URL, one with its time, the text) by both bases."""
    url, _, rest = data.decode("utf-8", "replace").partition("\n")
    timestamp, _, body = rest.partition("\n")
    for recipe, evaluator in _evaluators().items():
        _check_page(Page(url, timestamp, body, 0, len(data)), recipe, evaluator)


def _check_page(page: Page, name: str, evaluator: RecipeEvaluator) -> None:
    recipe = {"c4": C4, "tfds": TFDS}[name]
    verdict, facts = evaluator.clean(page)
    counts: Counter[str] = Counter()
    count_page(facts, verdict, evaluator.line_counters, counts)
    dropped = sum(number for key, number in counts.items() if key.startswith("pages.dropped."))
    assert counts["pages.read"] == dropped + counts["pages.cleaned"] == 1
    lines = sum(number for key, number in counts.items() if key.startswith("lines.dropped."))
    assert counts["lines.read"] == lines + counts["lines.left"]
    assert min(counts.values()) >= 0
    url_key(facts.normalised_url), is_validation(facts.normalised_url, 1000), url_md5(page.url)
    assert verdict.reason is None or recipe.has(verdict.reason) or verdict.reason == "empty"
    if verdict.reason:
        return
    assert verdict.readable
    assert microseconds(page.timestamp) is not None or name == "tfds"  # where any text is a timestamp
    _check_kept(facts.lines, facts.text, recipe)
    starts = facts.unit_starts
    units = cut(facts.text, starts)
    assert starts[0] == 0
    assert "".join(units) == facts.text
    assert all(units)
    span = recipe.need(RepeatedSpan).parameters
    hashes = unit_hashes(units, span["whitespace"])
    assert len(span_hashes(hashes, span["size"])) == max(0, len(units) - span["size"] + 1)
    assert verdict.final == evaluator.finish(page.url, facts.text, len(units))[0]
    evaluator.finish(page.url, "".join(units[1:]).strip(), len(units) - 1)
    evaluator.finish(page.url, "", 0)


def _check_kept(lines: list[str], text: str, recipe: Recipe) -> None:
    assert text.strip()
    text.encode()
    marks = recipe.need(NoTerminalPunctuation).parameters
    for line in lines:
        assert line.endswith(tuple(marks["endings"]))
        assert not line.endswith(tuple(marks["excluded_endings"]))
        assert len(line.split()) >= 5
        assert "javascript" not in line.lower()
    assert "{" not in text
    assert "lorem ipsum" not in text.lower()


_loaded: dict[str, RecipeEvaluator] = {}


def _evaluators() -> Mapping[str, RecipeEvaluator]:
    if not _loaded:
        lists = Lists(bad_words={"en": load_bad_words(SAMPLES / "lists", "en")})
        _loaded.update({recipe.name: RecipeEvaluator(recipe, lists) for recipe in (C4, TFDS)})
    return _loaded


def check_native(data: bytes) -> None:
    """Calls the C extension with bytes that need not be UTF-8, and with functions that give anything back."""
    if text_kernel is None:
        return
    number = int.from_bytes(data[:8], "little", signed=True)
    for everywhere in (False, True):
        lines = text_kernel.Lines(data, everywhere)
        phrases = ("javascript", "terms of use", "use cookies")
        before = ("drop_starts", ("WARC", "Content-")), ("drop_long_words", number), ("body_has_phrase", phrases)
        with suppress(UnicodeDecodeError):
            lines.run(text_kernel.program((*before, ("edit_brackets", lambda line: line[number % 7 :]))))
        lines.run(text_kernel.program((("resplit",), ("exceeds", number), ("has_phrase", phrases))))
        endings = ("keep_endings", (".", "!", "\u201d"), ("...",))
        rules = ("drop_phrases", phrases), endings, ("drop_few_words", number % 5)
        lines.run(text_kernel.program((*rules, ("count",), ("trim_start",), ("is_empty",))))
        assert 0 <= len(lines) <= len(data)
        assert len(lines.encoded()) >= lines.length() >= 0
        assert len(lines.starts()) == len(lines)
    split, size = text_kernel.plain_records(data, 0, 1500, 6000)
    assert sum(len(body) for _, body, _ in split) <= size <= len(data)
    for everywhere, anywhere in product((False, True), repeat=2):
        pages, numbers, size = text_kernel.plain_pages(data, 1500, 6000, text_kernel.Lines, everywhere, anywhere)
        assert sum(len(body) for _, _, body, _ in pages) <= size <= len(data)
        program = text_kernel.program((("drop_few_words", number % 5), ("is_empty",), ("resplit",), ("count",)))
        table = text_kernel.run_on_all(program, tuple(lines for *_, lines in pages), 1)
        assert (len(numbers), len(table)) == (40 * len(pages), 40 * len(pages))
    text = data.decode("utf-8", "replace")
    assert text_kernel.is_utf8(data) == (text.encode() == data)
    assert text_kernel.Lines(text, True).unpacked() == [line.strip() for line in text.splitlines() if line.strip()]
    assert text_kernel.lower(text) == text.lower()
    assert len(text_kernel.span_hashes(data, number % 64)) % 8 == 0
    text_kernel.span_hashes(data, number)
    starts = sorted({0, number % (len(text) + 1), len(text) // 2})
    for each in (data, text.encode()):
        hashes = text_kernel.unit_hashes(each, starts, bool(number % 2))
        assert hashes is None or len(hashes) == 8 * len(starts)
    words = frozenset(text.lower().split()[::2])
    found = text_kernel.sentence_starts(text.split("\n"), words, lambda each: number % 2 == 0, lambda each: [0])
    assert all(0 <= start <= len(text) for start in found)
    assert 0 <= text_kernel.sure_sentences(text, words, number) <= max(0, number)
    entries = ("a frizzle", 2), ("bum", 0), ("é a_b", -1)
    text_kernel.Words(("frizzle", "bum", "a_b"), entries, ("女",)).entries_in(data)
    joined, ends = english_words().joined_words(text)
    assert joined == "".join(text.split())
    assert [joined[start:end] for start, end in pairwise(ends)] == english_words().words(text)
    last = number % 16
    counts = text_kernel.count_ngrams(joined, ends, 2, 4, last)
    assert text_kernel.count_ngrams(joined, ends, 5, 4, last) == counts[3:]
    assert 0 <= text_kernel.bound_pairs(joined, ends)[1] < len(ends)
    assert text_kernel.count_marks(text) == count_marks(text)
    for size, count in enumerate(counts, 2):
        assert (count > 0) == (size < len(ends)) if size <= 4 else 0 <= count <= len(joined)
    assert text_kernel.count_words(joined, ends, PUNCTUATION) == count_words(joined, ends, PUNCTUATION)
    factors, size = array("Q", data[: len(data) // 8 * 8]), 1 + number % 7
    signature = text_kernel.minima(joined, ends, size, factors, factors[::-1])
    assert len(signature) == (8 * len(factors) if size < len(ends) else 0)
    with suppress(ValueError):  # bytes are seldom the ends of words
        text_kernel.count_ngrams(text, memoryview(data), number % 8, number % 16, number % 32)


def reader_seeds() -> list[bytes]:
    """Returns the files of the sample crawl and their records, packed in every way."""
    files = [path.read_bytes() for path in sorted((SAMPLES / "crawl").iterdir())]
    seeds = [b"\0" + file for file in files]
    for page in _pages():
        head = f"WARC-Type: conversion\r\nWARC-Target-URI: {page.url}\r\nWARC-Date: {page.timestamp}\r\n"
        body = page.body.encode()[:2000]
        record = _RECORD + head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body + b"\r\n\r\n"
        seeds += [bytes([kind]) + record * 2 for kind in range(3)]
    return seeds


def rules_seeds() -> list[bytes]:
    """Returns the pages of the sample crawl."""
    return [f"{page.url}\n{page.timestamp}\n{page.body}".encode()[:8000] for page in _pages()]


def _pages() -> list[Page]:
    items: list[Page] = []
    for path in sorted((SAMPLES / "crawl").iterdir()):
        with path.open("rb") as stream:
            items += [item for item in read_pages(stream) if isinstance(item, Page)]
    return items


TARGETS: Mapping[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "reader": (check_reader, reader_seeds),
    "rules": (check_rules, rules_seeds),
    "native": (check_native, rules_seeds),
}
"""Each target: what checks some bytes, and what to begin with."""


def main() -> None:
    """Checks the files that are named, or else what a fuzzer begins with."""
    check, seeds = TARGETS[sys.argv[1]]
    files = [Path(name).read_bytes() for name in sys.argv[2:]] or seeds()
    for data in files:
        check(data)
    print(f"{sys.argv[1]}: {len(files)} inputs, all well")


if __name__ == "__main__":
    main()
