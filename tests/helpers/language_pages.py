"""Pages in many languages, made of sentences with faults, so that many rules drop some of them."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_FAULTY, _MIXED, _MARKED = 0.6, 0.1, 0.6  # of the pages, of the pages, of the lines
_ENDS = ".。।!?؟۔၊។"


def made_sentences(path: Path) -> dict[str, list[str]]:
    """Returns sentences of each language: words in another order. It takes words_of_languages.json."""
    made = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        chance = random.Random(row["label"])
        words = [each for each in row["words"] if each[0].isalpha()]
        between = "" if row["label"].partition("_")[2] in ("Hani", "Jpan", "Khmr", "Laoo", "Mymr", "Thai") else " "
        sizes = [chance.randint(4, 14) for _ in range(200)]
        made[row["label"]] = [between.join(chance.choices(words, k=size)) + "." for size in sizes]
    return made


def language_pages(texts: Mapping[str, Sequence[str]], number: int) -> Iterator[tuple[str, str]]:
    """Yields (label, text): `number` pages of each language, some with lines of other languages.

    Args:
        texts: sentences of each language, by its label.
        number: how many pages.
    """
    for label, sentences in texts.items():
        chance = random.Random(label)
        others = [each for other, lines in texts.items() if other != label for each in lines[:50]]
        for _ in range(number):
            lines = [_line(sentences, chance) for _ in range(chance.choice((1, 3, 8, 20, 40)))]
            if others and chance.random() < _MIXED:
                lines += chance.choices(others, k=len(lines))
            if chance.random() < _FAULTY:
                lines = _faulty(lines, chance)
            yield label, chance.choice(("\n", "\n", "\n\n", "\r\n")).join(lines)


def _line(sentences: Sequence[str], chance: random.Random) -> str:
    chosen = chance.choices(sentences, k=chance.randint(1, 4))
    line = "".join(each + chance.choice((" ", " ", "", "  ")) for each in chosen)
    return line if chance.random() < _MARKED else line.strip().rstrip(_ENDS)


def _faulty(lines: list[str], chance: random.Random) -> list[str]:
    """Returns lines with repeats of lines or n-grams, marks, numbers, or parts of lines."""
    fault, share = chance.randrange(6), chance.choice((0.1, 0.3, 0.6, 1.0))
    start, end = chance.choice((("- ", ""), ("• ", ""), ("", "..."), ("# ", ""), ("12 ", " 7 8 9"), ("... ", "")))
    chosen = chance.choice(lines)
    changes: tuple[Callable[[str], str], ...] = (
        lambda line: chosen,
        lambda line: f"{line} {chosen[: len(chosen) // 2]}",
        lambda line: f"{start}{line}{end}",
        lambda line: line[: chance.choice((2, 5, 10, 30))],
        lambda line: line.replace(" ", ""),
        lambda line: " ".join(line[::2]),
    )
    change = changes[fault]
    return [change(line) if chance.random() < share else line for line in lines]
