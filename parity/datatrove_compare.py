"""c4pipe's recipes of other corpora against datatrove and Dolma, page for page: the same verdict, reason and text.

    python parity/datatrove_compare.py [--data DIR] [--short] [--only RECIPE]

Zero differences are allowed, but for one kind: `blocked_domain` takes hosts as browsers do (UTS 46), and datatrove as
they are written, so c4pipe drops a page of a blocked domain whose host has full-width letters, blanks or the like.

Both are given the pages of the sample crawl, pages that are made to be hard (`hostile.py`, `quality_pages.py`), real
pages, and a crawl that is made of all their lines (`made_crawl.py`). The lists of blocked URLs are datatrove's own,
which must be those that c4pipe pins, and parts of these pages' URLs (`blocked_pages.py`). The list of bad words of
`dolma-c4` is that of the installed Dolma. `--short` takes each sixteenth page. datatrove and Dolma get environments of
their own in the user's cache, as in benchmarks/peers.py.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from compare import HOSTILE, ROOT, SHARED, make_lists, pages, shipped_files

sys.path.insert(0, str(ROOT / "benchmarks"))  # for the environments of the peers
import blocked_pages
import hostile
import made_crawl
import measuring
import quality_pages

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.lists.addresses import ascii_host
from c4pipe.lists.lists import BLOCKED_FOLDER
from c4pipe.lists.pinned_lists import DOLMA_ENGLISH, PINNED_FILES, bad_words_file, status_of_lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.text.urls import host_of
from c4pipe.wet.page import Page, microseconds

MADE = 1500  # pages for the quality rules
MADE_CRAWL = 4000  # pages made of lines of the others
SHORT = 16  # each which page
REAL = 300  # pages on domains of datatrove's own list

EXAMPLES = ROOT / "examples" / "recipes"
IN_FILES = ("fineweb_urls", "classifiers")
PEERS = {
    "gopher": "datatrove",
    "fineweb": "datatrove",
    "fineweb_urls": "datatrove",
    "datatrove-c4": "datatrove",
    "classifiers": "datatrove",
    "dolma-c4": "dolma",
}
"""The recipes, and whose filters each has."""

REASONS = {
    "gopher_short_doc": "few_page_words",
    "gopher_long_doc": "many_page_words",
    "gopher_below_avg_threshold": "short_mean_word",
    "gopher_above_avg_threshold": "long_mean_word",
    "gopher_too_many_hashes": "many_hashes",
    "gopher_too_many_ellipsis": "many_ellipses",
    "gopher_too_many_bullets": "many_bullet_lines",
    "gopher_too_many_end_ellipsis": "many_ellipsis_lines",
    "gopher_below_alpha_threshold": "few_alphabetic_words",
    "gopher_enough_stop_words": "few_stop_words",
    "dup_para_frac": "repeated_paragraphs",
    "dup_para_char_frac": "repeated_paragraph_text",
    "dup_line_frac": "repeated_lines",
    "dup_line_char_frac": "repeated_line_text",
    **{f"top_{size}_gram": f"top_{size}_gram" for size in (2, 3, 4)},
    **{f"duplicated_{size}_n_grams": f"repeated_{size}_grams" for size in range(5, 11)},
    "line_punct_ratio": "few_punctuated_lines",
    "short_line_ratio": "many_short_lines",
    "char_dup_ratio": "repeated_characters",
    "list_ratio": "many_newlines",
    "too_few_sentences": "few_sentences",
    "lorem_ipsum": "lorem_ipsum",
    "curly_bracket": "curly_bracket",
    "document_removed_with_badwords": "bad_words",
    "language": "language",
    "domain": "blocked_domain",
    "subdomain": "blocked_domain",
    "url": "blocked_url",
    "hard_blacklisted": "banned_url_word",
    "soft_blacklisted": "soft_banned_url_words",
    "blacklisted_subword": "banned_url_subword",
    "has_curly_brace": "curly_bracket",
    "has_lorem_ipsum": "lorem_ipsum",
    "has_javascript": "javascript_page",
    "has_naughty_word": "bad_token",
    "empty": "empty",
    "HighQuality": "high_quality",
    "Advertising": "advertising",
}
"""The reasons of datatrove and Dolma, and the rules of c4pipe."""

# A page with both, on two lines: datatrove names that of the first line, c4pipe the first rule.
EITHER = {"lorem_ipsum", "curly_bracket"}


class Decision(NamedTuple):
    """What is decided about a page: the rule that drops it, or None, and the text of a page that is kept.

    A page that is kept has no text where the peer's text is known to be wrong.
    """

    reason: str | None
    text: str | None


def all_pages(data: Path, listed: Sequence[str]) -> Iterator[Page]:
    """Yields the pages to compare; some of the made ones have listed words."""
    samples = list(pages(sorted((ROOT / "samples/crawl").glob("*.wet.gz"))))
    yield from samples
    yield from hostile.pages(HOSTILE)
    yield from quality_pages.pages(MADE)
    sources = samples
    if data.is_dir():
        real = list(pages(sorted([*data.glob("wet/*.wet.gz"), *data.glob("pages/*.wet.gz")])))
        yield from real
        sources = [*samples, *real]
    else:
        print(f"real pages are NOT compared: {data} does not exist")
        sources = [*samples, *pages(shipped_files())]
    yield from made_crawl.pages(MADE_CRAWL, sources, listed)


def ours(recipe: str, given: Sequence[Page], lists: Path) -> list[Decision]:
    """Returns what c4pipe decides about each page by itself."""
    chosen = find_recipe(EXAMPLES / f"{recipe}.toml" if recipe in IN_FILES else recipe)
    evaluator = RecipeEvaluator(chosen, gather_lists(chosen, lists, ()))
    decisions = []
    for page in given:
        verdict, facts = evaluator.clean(page)
        reason = verdict.reason or verdict.final
        decisions.append(Decision(reason, None if reason else facts.text))
    return decisions


def run_peer(peer: str, recipes: Sequence[str], python: Path, lists: Path, folder: Path) -> None:
    """Writes what the filters of datatrove or Dolma decide about `pages.jsonl`, in a process of their own."""
    script, given = Path(__file__).with_name(f"{peer}_reference.py"), folder / "pages.jsonl"
    arguments: list[str | Path] = [given, folder / f"{recipes[0]}.jsonl"]
    if peer == "datatrove":
        arguments = [",".join(recipes), given, folder, lists / str(bad_words_file("en")), lists / BLOCKED_FOLDER]
    command = [python, script, *arguments]
    # datatrove copies each model into huggingface_hub's folder for assets, by default in the user's cache
    environ = {**os.environ, "HF_ASSETS_CACHE": str(folder / "assets")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        raise SystemExit(f"{peer} failed:\n{done.stderr[-4000:]}")


def theirs(recipe: str, folder: Path) -> list[Decision]:
    """Returns what the filters of datatrove or Dolma decided about each page."""
    out = folder / f"{recipe}.jsonl"
    rows = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    reasons = ((row["reason"], row["text"]) for row in rows)
    return [Decision(None, text) if reason is None else Decision(REASONS[reason], None) for reason, text in reasons]


def differences(given: Sequence[Page], first: Sequence[Decision], second: Sequence[Decision]) -> list[str]:
    """Returns a line for each page about which the two decide otherwise."""
    lines = []
    for page, mine, other in zip(given, first, second, strict=True):
        same = mine.reason == other.reason if other.text is None else mine == other
        if same or {mine.reason, other.reason} <= EITHER:
            continue
        host = host_of(page.url)
        if mine.reason == "blocked_domain" and ascii_host(host.partition("\\")[0]) != host:
            continue
        what = "the text" if mine.reason == other.reason else f"{mine.reason or 'kept'}, not {other.reason or 'kept'}"
        lines.append(f"{page.url[:200]!r}: {what}")
    return lines


def environments(recipes: Sequence[str]) -> dict[str, Path]:
    """Returns the Pythons of the peers of some recipes. One that has no release for this Python is left out."""
    found = {}
    for name in dict.fromkeys(PEERS[recipe] for recipe in recipes):
        if not measuring.has_release(name):
            print(f"{name} is NOT compared: it has no release for Python {sys.version_info[0]}.{sys.version_info[1]}")
            continue
        try:
            found[name] = measuring.environment(name)
        except measuring.NotMeasured as error:
            raise SystemExit(f"{name} can't be compared: {error}") from None
    return found


def add_dolma_list(lists: Path, python: Path) -> list[str]:
    """Copies the installed Dolma's list of bad words into a lists folder, and returns its entries."""
    (source,) = python.parents[1].glob("lib/python*/site-packages/dolma/data/naughty_words_en.txt")
    target = lists / str(bad_words_file(DOLMA_ENGLISH))
    shutil.copyfile(source, target)
    if {each.path: status for each, status in status_of_lists(lists)}[str(bad_words_file(DOLMA_ENGLISH))] != "ok":
        raise SystemExit("the installed Dolma has another list of bad words than the one that c4pipe pins")
    return target.read_text(encoding="utf-8").splitlines()


def unpack_url_lists(python: Path, folder: Path) -> Path:
    """Writes the lists of URLs and words of the installed datatrove into a new folder, and returns the folder."""
    (assets,) = python.parents[1].glob("lib/python*/site-packages/datatrove/assets")
    folder.mkdir()
    for pinned in PINNED_FILES:
        if pinned.path.startswith(f"{BLOCKED_FOLDER}/datatrove/"):
            source = assets / PurePath(pinned.url).name
            if hashlib.sha256(source.read_bytes()).hexdigest() != pinned.sha256:
                raise SystemExit(f"the installed datatrove has another {source.name} than the one that c4pipe pins")
            if pinned.form:
                with tarfile.open(source) as archive:
                    archive.extract(PurePath(pinned.path).name, folder)
            else:
                shutil.copy(source, folder)
    return folder


def blocked_by_datatrove(given: Sequence[Page], lists: Path) -> Iterator[Page]:
    """Yields some of the pages on domains that datatrove's own list blocks, and on their subdomains."""
    domains = (lists / "domains").read_text(encoding="utf-8").splitlines()
    for number, domain in enumerate(domains[:: len(domains) // REAL]):
        page = given[number % len(given)]
        yield Page(f"http://{'www.' * (number % 3)}{domain}/{number}", page.timestamp, page.body)


def compare(recipe: str, given: Sequence[Page], lists: Path, folder: Path) -> int:
    """Compares one recipe over pages, of which a peer has decided; returns the number of pages that differ."""
    other = theirs(recipe, folder)
    differing = differences(given, ours(recipe, given, lists), other)
    reasons = Counter(each.reason for each in other)
    without_text = sum(each == (None, None) for each in other)
    print(
        f"{recipe}: {len(given):,} pages compared with {PEERS[recipe]}, {reasons[None]:,} kept, "
        f"{len(reasons) - (None in reasons)} reasons, {len(differing):,} differences"
        + (f", {without_text} kept pages without its text" if without_text else ""),
        flush=True,
    )
    for line in differing[:20]:
        print(f"{recipe}: {line}", file=sys.stderr)
    return len(differing)


def main() -> int:
    """Compares all; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--short", action="store_true", help=f"each {SHORT}th page")
    parser.add_argument("--only", choices=PEERS, help="one recipe")
    arguments = parser.parse_args()
    recipes = [arguments.only] if arguments.only else list(PEERS)
    pythons = environments(recipes)
    with TemporaryDirectory() as name:
        folder = Path(name)
        lists = make_lists(folder / "lists")
        listed = add_dolma_list(lists, pythons["dolma"]) if "dolma" in pythons else []
        made = all_pages(arguments.data, listed)
        readable = [page for page in made if page.url and page.body.strip() and microseconds(page.timestamp)]
        given = readable[:: SHORT if arguments.short else 1]
        if "datatrove" in pythons:
            real = unpack_url_lists(pythons["datatrove"], folder / "datatrove")
            blocked_pages.write_lists(lists, [page.url for page in given], real)
            given += blocked_by_datatrove(given, real)
        rows = (json.dumps({"url": page.url, "text": page.body}) for page in given)
        (folder / "pages.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        wrong = 0
        for peer, python in pythons.items():
            compared = [recipe for recipe in recipes if PEERS[recipe] == peer]
            run_peer(peer, compared, python, lists, folder)
            wrong += sum(compare(each, given, lists, folder) for each in compared)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
