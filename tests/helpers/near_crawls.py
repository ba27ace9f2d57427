"""Made pages that are nearly the same, and what the rule `near_duplicate` makes of them in plain Python."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

from c4pipe.text import minhash
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.page import Page

TIMESTAMP = "2019-04-18T10:12:43Z"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def made_words(rng: random.Random, number: int) -> list[str]:
    """Words of two to nine letters, all different."""
    words: set[str] = set()
    while len(words) < number:
        words.add("".join(rng.choices(_LETTERS, k=rng.randint(2, 9))))
    return sorted(words)


def made_texts(families: int, seed: int = 1, sizes: Sequence[int] = (1, 1, 2, 3, 5)) -> list[str]:
    """Texts in families: copies of one text in which some words are replaced, or the end is missing."""
    rng = random.Random(seed)
    vocabulary = made_words(rng, 4000)
    texts = []
    for _ in range(families):
        words = rng.choices(vocabulary, k=rng.randint(60, 240))
        share = rng.choice((0.0, 0.005, 0.01, 0.02, 0.04))
        for _ in range(rng.choice(sizes)):
            copy = [rng.choice(vocabulary) if rng.random() < share else word for word in words]
            copy = copy[: rng.randint(len(copy) * 9 // 10, len(copy))]
            lines = [copy[at : at + 12] for at in range(0, len(copy), 12)]
            texts.append("\n".join(f"{' '.join(line).capitalize()}." for line in lines))
    rng.shuffle(texts)
    return texts


def pages_of(texts: Iterable[str]) -> list[Page]:
    """A page of each text, with a URL of its own."""
    return [
        Page(f"https://site{number % 7}.example/{number}", TIMESTAMP, text, number, len(text.encode()))
        for number, text in enumerate(texts)
    ]


def divided(pages: Sequence[Page], files: int) -> dict[str, list[Page]]:
    """The pages in a number of files, by name."""
    return {f"CC-{number:05d}.warc.wet.gz": list(pages[number::files]) for number in range(files)}


def similar_pairs(
    texts: Sequence[str], min_similarity: float, bands: int = 14, rows: int = 8
) -> dict[tuple[int, int], float]:
    """The estimated similarity of the texts that share a band and are similar enough: each pair is compared."""
    signatures = [minhash.minima(text, 5, bands, rows) for text in texts]
    by_band: Mapping[tuple[int, bytes], set[int]] = defaultdict(set)
    for number, signature in enumerate(signatures):
        for band in range(bands if len(signature) else 0):
            by_band[band, signature[band * rows : (band + 1) * rows].tobytes()].add(number)
    pairs = {pair for same in by_band.values() for pair in combinations(sorted(same), 2)}
    found = {pair: float((signatures[pair[0]] == signatures[pair[1]]).mean()) for pair in pairs}
    return {pair: share for pair, share in found.items() if share >= min_similarity}


def clusters_of(texts: Sequence[str], min_similarity: float, bands: int = 14, rows: int = 8) -> list[set[int]]:
    """The clusters of all texts that share a band and are similar enough by all minima."""
    return joined(similar_pairs(texts, min_similarity, bands, rows))


def settled(
    pairs: Iterable[tuple[int, int]],
    order: Callable[[int], Any],
    is_alike: Callable[[int, int], bool],
    rounds: int = 1000,
) -> tuple[dict[int, int], set[int]]:
    """Each node to drop with the node that stays: nodes unlike the first one of their cluster are new clusters. And the
    nodes that are left after the last round.
    """
    stays, unlike = dict[int, int](), set[int]()
    for _ in range(rounds):
        clusters, unlike = joined(pairs), set()
        for cluster in clusters:
            first, *others = sorted(cluster, key=order)
            alike = {each for each in others if is_alike(first, each)}
            stays.update(dict.fromkeys(alike, first))
            unlike |= set(others) - alike
        if not unlike:
            break
        pairs = [pair for pair in pairs if unlike.issuperset(pair)]
    return stays, unlike


def joined(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """The connected components of a graph, of more than one node, in the order of their smallest node."""
    component: dict[int, set[int]] = {}
    for pair in pairs:
        one, other = (component.setdefault(node, {node}) for node in pair)
        if one is not other:
            one |= other
            component.update(dict.fromkeys(other, one))
    return sorted({id(each): each for each in component.values()}.values(), key=min)


def kept_of(pages: Sequence[Page], clusters: Iterable[set[int]], texts: Sequence[str]) -> set[str]:
    """The URLs of the pages that stay: the longest of each cluster, then the smallest key."""
    dropped: set[int] = set()
    for cluster in clusters:
        order = sorted(cluster, key=lambda each: (-len(texts[each]), url_key(normalise_url(pages[each].url))))
        dropped.update(order[1:])
    return {page.url for number, page in enumerate(pages) if number not in dropped}


def jaccard(one: str, other: str) -> float:
    """The exact similarity of two texts: the share of common n-grams."""
    first, second = _ngrams(one), _ngrams(other)
    return len(first & second) / len(first | second)


@cache  # tests compare each text with hundreds of others
def _ngrams(text: str) -> frozenset[int]:
    return frozenset(minhash.ngram_hashes(text, 5).tolist())
