"""The recipe fineweb-2 against datatrove with FineWeb-2's pipeline, page for page: the same verdict and reason.

    python parity/fineweb_2_compare.py [TEXTS] [--pages 200] [--only LABEL] [--python PYTHON] [--record]

TEXTS is a folder with a file LABEL.txt for each language, such as `tha_Thai.txt`: a sentence or paragraph on each line.
By default it is the sentences of `tests/text/words_of_languages.json`. Pages are made of these lines, with faults,
so that many rules drop some of them. The language is that of a fastText model which is trained on some of the pages.
Zero differences are allowed, except for pages on which datatrove itself fails. A language is left out where c4pipe
lacks the package that finds its words; of all languages, 12 must be compared. `--record` writes what datatrove decides
about pages of these sentences, whose language is given, for the tests.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from compare import ROOT
from datatrove_compare import REASONS, environments

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.errors import UsageError
from c4pipe.filters import fineweb_2
from c4pipe.filters.checked_page import WORDS
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.text.word_tokenizers import check_tokenizer
from c4pipe.wet.page import Page
from tests.helpers.language_pages import language_pages, made_sentences

SENTENCES = ROOT / "tests" / "text" / "words_of_languages.json"
DECISIONS = ROOT / "tests" / "recipes" / "fineweb_2_decisions.json"
RECORDED = 12  # pages of each language
FEWEST = 12  # languages that must be compared


def texts_of(folder: Path | None) -> dict[str, list[str]]:
    """Returns the lines of each language."""
    if folder is None:
        return made_sentences(SENTENCES)
    files = sorted(folder.glob("*_*.txt"))
    return {each.stem: each.read_text(encoding="utf-8").strip("\n").split("\n") for each in files}


def has_words(label: str) -> bool:
    """Tells whether c4pipe finds the words of a language here; says what it lacks."""
    try:
        check_tokenizer(fineweb_2.language_limits(label)[WORDS], label)
    except UsageError as error:
        print(f"{label} is NOT compared: {error}", flush=True)
        return False
    return True


def decided(made: Sequence[tuple[str, str]], python: Path, model: Path | str, folder: Path) -> list[str | None]:
    """Returns datatrove's reason to drop each page, as c4pipe names it, or None; "error" where it fails.

    Args:
        made: the label and text of each page.
        python: that of an environment with datatrove.
        model: where to write a model that detects the language; "" to take the labels for known.
        folder: a folder for files.
    """
    pages, out = folder / "pages.jsonl", folder / "out.jsonl"
    rows = (json.dumps({"label": label, "text": text}) + "\n" for label, text in made)
    pages.write_text("".join(rows), encoding="utf-8")
    script, table = Path(__file__).with_name("fineweb_2_reference.py"), Path(fineweb_2.__file__).with_suffix(".tsv")
    command = [python, script, pages, out, table, ",".join(dict(made)), model]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"datatrove failed:\n{done.stderr[-4000:]}")
    reasons = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return [REASONS.get(each, each) for each in reasons]


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
    parser.add_argument("--record", action="store_true", help="write tests/recipes/fineweb_2_decisions.json")
    arguments = parser.parse_args()
    python = arguments.python or environments(["fineweb"]).get("datatrove")
    if python is None:
        return 0
    texts = texts_of(arguments.texts)
    if arguments.only:
        texts = {label: texts[label] for label in arguments.only.split(",")}
    asked = len(texts)
    if not arguments.record:
        texts = {label: lines for label, lines in texts.items() if has_words(label)}
    if len(texts) < min(FEWEST, asked):
        raise SystemExit(f"too few languages can be compared: {len(texts)} of {asked}")
    made = list(language_pages(texts, RECORDED if arguments.record else arguments.pages))
    with TemporaryDirectory() as name:
        model = Path(name, "model.bin")
        theirs = decided(made, python, "" if arguments.record else model, Path(name))
        if arguments.record:
            rows = {label: [each for (of, _), each in zip(made, theirs, strict=True) if of == label] for label in texts}
            DECISIONS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            return 0
        mine = ours(list(texts), [text for _, text in made], model)
    return report(made, mine, theirs)


def report(made: Sequence[tuple[str, str]], mine: Sequence[str | None], theirs: Sequence[str | None]) -> int:
    """Prints a line for each language and each difference; returns 1 where anything differs."""
    counts: dict[str, Counter[str]] = {}
    reasons = set()
    for (label, text), own, other in zip(made, mine, theirs, strict=True):
        outcome = "error" if other == "error" else "kept" if other is None else "dropped"
        counts.setdefault(label, Counter())[outcome] += 1
        reasons.add(other)
        if outcome != "error" and own != other:
            counts[label]["differences"] += 1
            print(f"{label}: {own or 'kept'}, not {other or 'kept'}: {text[:200]!r}", file=sys.stderr)
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
