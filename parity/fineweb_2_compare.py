"""The recipe fineweb-2 against datatrove with FineWeb-2's pipeline, page for page: the same verdict and reason.

    python parity/fineweb_2_compare.py [TEXTS] [--pages 200] [--only LABEL] [--python PYTHON]

TEXTS is a folder with a file LABEL.txt for each language, such as `tha_Thai.txt`: a sentence or paragraph on each line.
By default it is the sentences of `tests/filters/words_of_languages.json`. Pages are made of these lines, with faults,
so that many rules drop some of them. The language is that of a fastText model which is trained on some of the pages.
Zero differences are allowed, except for pages on which datatrove itself fails.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from datatrove_compare import REASONS, ROOT, environments
from quality_pages import FAULTS

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.filters import fineweb_2
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.wet.page import Page

SENTENCES = ROOT / "tests" / "filters" / "words_of_languages.json"
MIXED, FAULTY, MARKED = 0.1, 0.5, 0.6  # of the pages


def texts_of(folder: Path | None) -> dict[str, list[str]]:
    """Returns the lines of each language."""
    if folder is None:
        return {row["label"]: row["sentences"] for row in json.loads(SENTENCES.read_text(encoding="utf-8"))}
    files = sorted(folder.glob("*_*.txt"))
    return {each.stem: each.read_text(encoding="utf-8").strip("\n").split("\n") for each in files}


def made_pages(texts: Mapping[str, Sequence[str]], number: int) -> Iterator[tuple[str, str]]:
    """Yields (label, text), `number` for each label."""
    for label, sentences in texts.items():
        chance = random.Random(label)
        others = [each for other, lines in texts.items() if other != label for each in lines[:50]]
        for _ in range(number):
            lines = [_line(sentences, chance) for _ in range(chance.choice((1, 3, 8, 20, 40)))]
            if others and chance.random() < MIXED:
                lines += chance.choices(others, k=len(lines))
            fault = chance.choice(FAULTS) if chance.random() < FAULTY else lambda given, _: "\n".join(given)
            yield label, fault(lines, chance)


def _line(sentences: Sequence[str], chance: random.Random) -> str:
    line = "".join(
        each + chance.choice((" ", " ", "", "  ")) for each in chance.choices(sentences, k=chance.randint(1, 4))
    )
    return line if chance.random() < MARKED else line.strip().rstrip(".。।!?؟۔")


def ours(labels: Sequence[str], texts: Sequence[str], model: Path) -> list[str | None]:
    """Returns the rule of c4pipe that drops each page, or None."""
    listed = ListedRecipe.choose("fineweb-2", labels, language_model=model)
    evaluator = RecipeEvaluator(listed.recipe, listed.lists)
    return [evaluator.clean(Page("https://a.example/", "2030-01-01T00:00:00Z", text))[0].reason for text in texts]


def main() -> int:
    """Compares all languages; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--pages", type=int, default=200, help="of each language")
    parser.add_argument("--only", help="some languages, with commas between them")
    parser.add_argument("--python", type=Path, help="of an environment that has datatrove")
    arguments = parser.parse_args()
    python = arguments.python or environments(["fineweb"]).get("datatrove")
    if python is None:
        return 0
    texts = texts_of(arguments.texts)
    if arguments.only:
        texts = {label: texts[label] for label in arguments.only.split(",")}
    with TemporaryDirectory() as name:
        pages, out, model = (Path(name) / each for each in ("pages.jsonl", "out.jsonl", "model.bin"))
        made = list(made_pages(texts, arguments.pages))
        rows = (json.dumps({"label": label, "text": text}) + "\n" for label, text in made)
        pages.write_text("".join(rows), encoding="utf-8")
        table = Path(fineweb_2.__file__).with_suffix(".tsv")
        script = Path(__file__).with_name("fineweb_2_reference.py")
        command = [python, script, pages, out, table, model, ",".join(texts)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"datatrove failed:\n{done.stderr[-4000:]}")
        theirs = [json.loads(line)["reason"] for line in out.read_text(encoding="utf-8").splitlines()]
        mine = ours(list(texts), [text for _, text in made], model)
    return report(made, mine, theirs)


def report(made: Sequence[tuple[str, str]], mine: Sequence[str | None], theirs: Sequence[str | None]) -> int:
    """Prints a line for each language and each difference; returns 1 where anything differs."""
    counts: dict[str, Counter[str]] = {}
    reasons = set()
    for (label, text), own, other in zip(made, mine, theirs, strict=True):
        wanted = REASONS[other] if other and other != "error" else other
        outcome = "error" if other == "error" else "kept" if other is None else "dropped"
        counts.setdefault(label, Counter())[outcome] += 1
        reasons.add(wanted)
        if outcome != "error" and own != wanted:
            counts[label]["differences"] += 1
            print(f"{label}: {own or 'kept'}, not {wanted or 'kept'}: {text[:200]!r}", file=sys.stderr)
    for label, count in counts.items():
        print(
            f"{label}: {count['kept'] + count['dropped']:,} pages compared, {count['kept']:,} kept, "
            f"{count['differences']:,} differences"
            + (f"; datatrove fails at {count['error']:,}" if count["error"] else "")
        )
    total = sum(count["differences"] for count in counts.values())
    print(
        f"{len(counts)} languages, {len(made):,} pages, {len(reasons - {None, 'error'})} reasons, {total:,} differences"
    )
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
