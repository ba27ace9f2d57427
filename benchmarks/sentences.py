"""Measures sentence splitting against Universal Dependencies' sentences.

python benchmarks/sentences.py FOLDER prints a Markdown table of the treebanks in a folder (*.conllu): for each, the F1
of the starts of sentences, as c4pipe finds them, as Punkt alone does, and as datatrove's splitter does, where that
package is installed. The start of a line does not count: everyone finds it.

Sentences of one paragraph are joined to a line, as the treebank says. Where it marks no paragraphs, ten make a line,
with a blank between them if most of its sentences have one behind them: one without it was the end of a paragraph.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

TEN, NAMES = 10, ("c4pipe", "Punkt", "datatrove")
Splitter = Callable[[str], Sequence[int]]


def sentences_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Yields each sentence of a treebank with the blank behind it, and whether a paragraph begins with it."""
    text, last, begins = "", "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(("# newdoc", "# newpar")):
            begins = True
        elif line.startswith("# text = "):
            text = line.removeprefix("# text = ").strip()
        elif line[:1].isdigit():
            last = line
        elif not line and text:
            yield text + ("" if "SpaceAfter=No" in last.rpartition("\t")[2] else " "), begins
            text, begins = "", False


def lines_of(path: Path) -> list[list[str]]:
    """Returns the lines of a treebank, each as its sentences."""
    sentences = list(sentences_of(path))
    marked = sum(begins for _, begins in sentences)
    if not 1 < marked < len(sentences) / 2:
        blank = " " * (sum(text.endswith(" ") for text, _ in sentences) > len(sentences) / 2)
        sentences = [(text.strip() + blank, number % TEN == 0) for number, (text, _) in enumerate(sentences)]
    lines: list[list[str]] = []
    for text, begins in sentences:
        if begins or not lines:
            lines.append([])
        lines[-1].append(text)
    return lines


def f1(lines: Sequence[Sequence[str]], splitter: Splitter) -> float:
    """Returns the F1 of the starts of sentences inside lines."""
    right = found = wanted = 0
    for sentences in lines:
        starts, place = set(), 0
        for each in sentences[:-1]:
            place += len(each)
            starts.add(place)
        guessed = {start for start in splitter("".join(sentences).rstrip()) if start}
        right, found, wanted = right + len(starts & guessed), found + len(guessed), wanted + len(starts)
    return 2 * right / (found + wanted) if found + wanted else 0.0


def splitters_of(language: str) -> dict[str, Splitter]:
    """Returns the splitters that are installed here, by name."""
    made: dict[str, Splitter] = {}
    try:
        from c4pipe.text.scripts.facts import scripts_of
        from c4pipe.text.sentences import SentenceSplitter
    except ModuleNotFoundError:
        pass
    else:
        own = SentenceSplitter(language, scripts=scripts_of([language]))
        alone = SentenceSplitter(language)
        made = {"c4pipe": lambda line: own.starts([line]), "Punkt": lambda line: alone.starts([line])}
    try:
        from datatrove.utils.word_tokenizers import load_word_tokenizer

        peer = load_word_tokenizer(_PEERS.get(language, language.partition("-")[0]))
        peer.sent_tokenize("A.")
    except (ImportError, ValueError):  # it, or what it needs for the language, is not there
        return made

    def starts(line: str) -> list[int]:
        """Returns the first characters of the sentences: datatrove returns their texts, with other white space."""
        places, found, before = [at for at, letter in enumerate(line) if not letter.isspace()], [], 0
        for sentence in peer.sent_tokenize(line):
            found.append(places[before])
            before += len("".join(sentence.split()))
        return found

    return {**made, "datatrove": starts}


# datatrove takes the codes of two letters for Northern Kurdish, which needs Stanza
_PEERS = {"bn": "ben_Beng", "hi": "hin_Deva", "mr": "mar_Deva", "ur": "urd_Arab"}
_NAMES = {"zh_gsdsimp": "zh-cn", "zh_gsd": "zh-tw"}


def main() -> None:
    """Prints the table."""
    rows: list[tuple[str, ...]] = []
    for path in sorted(Path(sys.argv[1]).glob("*.conllu"), key=lambda path: path.name):
        treebank = path.name.partition("-ud-")[0].rpartition(".")[2]
        language = _NAMES.get(treebank, treebank.partition("_")[0])
        lines = lines_of(path)
        splitters = splitters_of(language)
        scores = {name: f"{f1(lines, splitters[name]):.3f}" if name in splitters else "-" for name in NAMES}
        if not rows:
            rows += [("language", "treebank", "sentences", *scores), ("---",) * (3 + len(scores))]
        rows.append((f"`{language}`", treebank, f"{sum(map(len, lines)):,}", *scores.values()))
        print(*rows[-1], file=sys.stderr)
    for row in rows:
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
