"""Writes docs/gallery.md and docs/gallery.svg: what each recipe makes of the same pages.

    .venv/bin/python scripts/make_gallery.py                           # from tests/data
    .venv/bin/python scripts/make_gallery.py --pages DIR               # measure the pages of DIR, too
    .venv/bin/python scripts/make_gallery.py --ablation ablation.json  # take over the losses of examples/ablation
    .venv/bin/python scripts/make_gallery.py --costs 3000              # measure CPU-hours on 4 files of 3,000 pages

DIR has the form of tests/data: `wet`, `pages` and `lists`. What a bare clone does not have, the figures of DIR, the
losses and the costs, is kept in scripts/gallery.json. `--keep DIR` keeps the corpora, on which examples/ablation can
train. Costs are measured on pages as long as those of a crawl (benchmarks/make_crawl.py), on an idle machine.
"""

import argparse
import datetime
import json
import re
import shutil
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import sentencepiece

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from measuring import compile_clone, machine, made_crawl, measure  # noqa: E402

import c4pipe  # noqa: E402 - also in a clone that is not installed
from c4pipe.inspect.diff import compare  # noqa: E402
from c4pipe.recipes.presets import RECIPES  # noqa: E402
from c4pipe.wet.page import Page  # noqa: E402
from c4pipe.wet.records import read_pages  # noqa: E402
from tests.helpers.warc import crawled, write_warc  # noqa: E402

DATA = ROOT / "tests" / "data"
PAGE, PICTURE = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery.svg"
MEASURED = ROOT / "scripts" / "gallery.json"
PIECES = 4000
NO_LOSS = {"webtextlike": "0 pages", "tfds-webtextlike": "0 pages", "fineweb-2": "no English"}  # of the real pages
EMPTY = 4  # the exit status of a build that keeps no page
RULES_SHOWN, PAGES_SHOWN, EXCERPT = 5, 3, 44
LEFT, WIDTH, STEP, TOP = 130, 500, 20, 70  # pixels
BOTH, ONLY = "#0072b2", "#e69f00"  # colour-blind readers can tell these apart


class Outcome(NamedTuple):
    """What a recipe keeps of some pages.

    Attributes:
        counts: the counts of the manifest.
        tokens: of the text that is kept.
        in_c4: pages that `c4` keeps, too.
        texts: the text of each page that is kept, by URL.
        dropped: rule and text of each page that is dropped, by URL.
    """

    counts: Mapping[str, int]
    tokens: int
    in_c4: int
    texts: Mapping[str, str]
    dropped: Mapping[str, tuple[str, str]]


# Corpora


def wet_files(data: Path) -> list[Path]:
    """Returns the WET files of a folder that has the form of tests/data."""
    return sorted([*data.glob("wet/*.wet.gz"), *data.glob("pages/*.wet.gz")])


def make_tokenizer(folder: Path) -> sentencepiece.SentencePieceProcessor:
    """Trains the vocabulary of the page."""
    texts = sorted(map(str, DATA.glob("text/*.jsonl")))
    made = c4pipe.train_vocabulary(texts, output=folder, size=PIECES, model="bpe")
    return sentencepiece.SentencePieceProcessor(model_file=str(made.model))


def build(recipe: str, files: Iterable[Path], output: Path, data: Path, **options: Any) -> c4pipe.Corpus:
    """Builds the corpus of a recipe, with the lists of a folder of data."""
    links = sorted(data.glob("lists/webtext/*")) if "webtextlike" in recipe else ()
    options |= {"lists": data / "lists", "links": list(map(str, links)), "workers": 1}
    return c4pipe.build_corpus(list(files), recipe=recipe, output=output, **options)


def outcomes(data: Path, target: Path, tokenizer: sentencepiece.SentencePieceProcessor) -> dict[str, Outcome]:
    """Returns what each recipe keeps of the WET files of a folder; the corpora are written to `target`."""
    found: dict[str, Outcome] = {}
    for name in RECIPES:
        corpus = build(name, wet_files(data), target / name, data, keep_dropped="all")
        tables = (pq.read_table(path).to_pylist() for path in sorted((target / name).glob("[!_]*/*.parquet")))
        texts = {row["url"]: row["text"] for row in chain.from_iterable(tables)}
        tokens = sum(map(len, tokenizer.encode(list(texts.values()))))
        diff = compare(c4pipe.open_corpus(target / "c4"), corpus, 0, lambda _: None)
        rows = pq.read_table(target / name / "_dropped").to_pylist()
        dropped = {row["url"]: (row["reason"], row["text"]) for row in rows}
        in_c4 = diff.pages["same_text"] + diff.pages["other_text"]
        found[name] = Outcome(corpus.counts, tokens, in_c4, texts, dropped)
    return found


def measure_costs(pages: int, folder: Path, rounds: int) -> dict[str, Any]:
    """Returns the CPU-hours a TB of each recipe, of 4 files with some pages; the recipes are measured in turns."""
    compile_clone()
    where = f"{machine().removesuffix(' before the start')}, {datetime.datetime.now(datetime.timezone.utc).date()}"
    files, hours, output = made_crawl(folder / "crawl", 4, pages, DATA), dict[str, float](), folder / "corpus"
    links = [part for path in sorted(DATA.glob("lists/webtext/*")) for part in ("--links", str(path))]
    for name in [*RECIPES] * rounds:
        command = [sys.executable, "-m", "c4pipe", "build", *files, "--recipe", name, "--lists", str(DATA / "lists")]
        command += ["--output", str(output), "--workers", "1", "--quiet", *(links if "webtextlike" in name else ())]
        cost = measure(command)
        if cost.status not in (0, EMPTY):  # no URL of the made pages is in the lists of domains and links
            sys.exit(f"{name}: the build ended with status {cost.status}; its error is above")
        counts = json.loads((output / "manifest.json").read_bytes())["counts"]
        shutil.rmtree(output)
        hours[name] = min(hours.get(name, float("inf")), cost.cpu / 3600 / counts["bytes.read"] * 1e12)
    return {"where": where, "pages": counts["pages.read"], "runs": rounds, "hours": hours}


def kept_of_warc(target: Path) -> dict[str, int]:
    """Returns how many pages each recipe keeps of tests/data as WARC files."""
    file = write_warc(target / "pages.warc.gz", chain.from_iterable(_captures()))
    made = (build(name, [file], target / name, DATA, input_kind="warc", extract="main") for name in RECIPES)
    return {name: corpus.pages for name, corpus in zip(RECIPES, made, strict=True)}


def _captures() -> Iterator[list[bytes]]:
    """Yields the records of each page of tests/data as HTML: its short lines are a menu, its sentences paragraphs."""
    for file in wet_files(DATA):
        with file.open("rb") as stream:
            for page in read_pages(stream):
                if isinstance(page, Page):
                    yield crawled(page.url, _html(page.body))


def _html(text: str) -> str:
    lines = [
        f"<p>{line}</p>" if line.endswith((".", "!", "?", '"')) else f"<nav><a href='/'>{line}</a></nav>"
        for line in text.replace("&", "&amp;").replace("<", "&lt;").splitlines()
        if line.strip()
    ]
    return "<html><body>" + "\n".join(lines) + "</body></html>"


# The page


def shown_urls() -> list[str]:
    """Returns the URLs of the pages that were written for this project, then those of SQLite's documentation."""
    names = [*sorted(path.name for path in (DATA / "source").glob("own.*.txt")), "sqlite.txt"]
    texts = ((DATA / "source" / name).read_text(encoding="utf-8") for name in names)
    return list(dict.fromkeys(chain.from_iterable(re.findall(r"^url: (\S+)$", text, re.MULTILINE) for text in texts)))


def gallery_page(found: Mapping[str, Outcome], warc: Mapping[str, int], measured: Mapping[str, Any]) -> str:
    """Returns the page: head, table, notes and a section for each recipe."""
    costs, real, losses = measured["costs"], measured["pages"], measured["ablation"]["losses"]
    rows = []
    for name, each in found.items():
        share = f"{100 * real['kept'][name] / real['read']:.0f} %"
        cells = [each.counts["pages.kept"], f"{each.counts['bytes.kept'] / 1000:,.0f}", f"{each.tokens:,}"]
        cells += [each.in_c4, warc[name], share, f"{costs['hours'][name]:.1f}", show_loss(name, losses)]
        rows.append(f"| [`{name}`](#{name}) | " + " | ".join(map(str, cells)) + " |")
    counts = found["as-is"].counts
    figures = {"read": counts["pages.read"], "text": f"{counts['bytes.read'] / 1000:,.0f}", "pieces": f"{PIECES:,}"}
    figures |= {"seeds": len(losses["c4"]), "trained": f"{measured['ablation']['tokens']:,}"}
    figures |= {
        "real": f"{real['read']:,}",
        "crawl": f"{costs['pages']:,}",
        "cost": costs["where"],
        "runs": costs["runs"],
    }
    head = TEXT.format(table="\n".join(rows), **figures)
    return head + "".join(show_recipe(name, found) for name in found)


def show_loss(name: str, losses: Mapping[str, Sequence[float]]) -> str:
    """Returns mean and standard deviation over seeds, or why a recipe has no losses."""
    if name not in losses:
        return NO_LOSS.get(name, "not trained")
    return f"{statistics.mean(losses[name]):.3f} ± {statistics.stdev(losses[name]):.3f}"


def show_recipe(name: str, found: Mapping[str, Outcome]) -> str:
    """Returns the section of a recipe: what it is, the rules that drop most pages, and pages of both kinds.

    Pages on which the recipe differs from `c4` come first, and pages that each another rule drops.
    """
    each, c4, urls = found[name], found["c4"], shown_urls()
    start = "pages.dropped."
    counts = {key.removeprefix(start): count for key, count in each.counts.items() if key.startswith(start) and count}
    rules = sorted(counts.items(), key=lambda item: -item[1])[:RULES_SHOWN]
    kept = sorted((url for url in urls if url in each.texts), key=lambda url: url in c4.texts)[:PAGES_SHOWN]
    lost = sorted(
        (url for url in urls if url not in each.texts and each.dropped.get(url, ("", ""))[1]),
        key=lambda url: url not in c4.texts,
    )
    of_rules: dict[str, str] = {}
    for url in lost:
        of_rules.setdefault(each.dropped[url][0], url)
    first = list(dict.fromkeys([*of_rules.values(), *lost]))[:PAGES_SHOWN]
    items = {
        "by rule": ", ".join(f"`{rule}` {count}" for rule, count in rules),
        "kept": "; ".join(excerpt(each.texts[url]) for url in kept),
        "dropped": "; ".join(f"{excerpt(each.dropped[url][1])} (`{each.dropped[url][0]}`)" for url in first),
    }
    lines = [
        textwrap.fill(f"- {title}: {text or 'none'}", 120, subsequent_indent="  ") for title, text in items.items()
    ]
    return "\n".join([f"\n## {name}\n", RECIPES[name].description + ".\n", *lines, ""])


def excerpt(text: str) -> str:
    """Returns the first words of a text."""
    first = textwrap.shorten(text, EXCERPT, placeholder=" …")
    return '"' + re.sub(r"([\\`*_<\[|])", r"\\\1", first).replace('"', "'") + '"'


TEXT = """# Gallery of recipes

What each [recipe](recipes.md) makes of the same pages.

![Bars: the shares of tests/data and of real pages that each recipe keeps](gallery.svg)

| recipe | pages | kB | tokens | in `c4` | WARC | real pages | CPU-hours | loss |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
{table}

- **Pages, kB**: kept of the {read} pages ({text} kB) in the WET files of [tests/data](../tests/data/README.md), with
  its lists. A crawl gives other shares: many pages were written to meet a rule, the bad words are ordinary
  words, and the list of links is short.
- **Tokens**: by a SentencePiece vocabulary of {pieces}, made of `tests/data/text`.
- **In c4**: pages that `c4` keeps, too, in any form ([`c4pipe diff`](explain.md#two-corpora)).
- **WARC**: kept of the same pages as HTML, sentences as paragraphs, other lines as menus: `--from warc --extract main`.
- **Real pages**: the share kept of {real} pages of Common Crawl, of the tests of text extractors, and of a handbook in
  six languages. The project may not contain them.
- **CPU-hours**: for a TB of text, the least of {runs} builds of {crawl} pages as long as a crawl's, with the start
  ({cost}).
- **Loss**: nats a token of held-out English, mean and standard deviation of {seeds} seeds, of tiny models that read
  {trained} tokens of the real pages kept, in English (`as-is`: all languages). Three recipes have none: no real page
  is in the list of links, and `fineweb-2` leaves out English. With so few tokens, all differences are noise. With
  524,288, `c4` was [better](../examples/ablation/README.md) than `fineweb` and `unfiltered`.
- `fineweb-2` asks langdetect for the language: a clone has no model of GlotLID.
- **By rule**: the five rules that drop most pages. **Kept**, **dropped**: the first words of three pages each, as the
  rules left them. Pages on which the recipe and `c4` differ come first. The pages are ours, or SQLite's documentation.

`python scripts/make_gallery.py` writes this page; `--pages DIR` takes your pages instead of the real ones.
"""


# The picture


def gallery_picture(found: Mapping[str, Outcome], measured: Mapping[str, Any]) -> str:
    """Returns the picture as SVG: a bar for each recipe, and a diamond for the real pages."""
    read, real = found["c4"].counts["pages.read"], measured["pages"]
    base = TOP + STEP * len(found)
    parts = [
        f"<rect width='{LEFT + WIDTH + 30}' height='{base + 40}' fill='#fff'/>",
        draw_text(LEFT, 20, "Pages kept", "start"),
        *draw_key(LEFT, BOTH, "c4 keeps them, too"),
        *draw_key(LEFT + 150, ONLY, "c4 drops them"),
        draw_mark(LEFT + 276, 40),
        draw_text(LEFT + 288, 44, "of the real pages", "start"),
    ]
    for percent in range(0, 101, 20):
        x = LEFT + WIDTH * percent / 100
        parts.append(f"<path d='M{x:.1f} {TOP - 6} V{base}' stroke='#ccc'/>")
        parts.append(draw_text(x, base + 18, f"{percent} %"))
    for row, (name, each) in enumerate(found.items()):
        y, x = TOP + STEP * row, float(LEFT)
        parts.append(draw_text(LEFT - 8, y + 12, name, "end"))
        for pages, colour in ((each.in_c4, BOTH), (each.counts["pages.kept"] - each.in_c4, ONLY)):
            width = WIDTH * pages / read
            parts.append(f"<rect x='{x:.1f}' y='{y}' width='{width:.1f}' height='{STEP - 5}' fill='{colour}'/>")
            x += width
        parts.append(draw_mark(LEFT + WIDTH * real["kept"][name] / real["read"], y + 7.5))
    frame = f"viewBox='0 0 {LEFT + WIDTH + 30} {base + 40}' width='{LEFT + WIDTH + 30}' height='{base + 40}'"
    lines = "\n".join(parts)
    style = "font-family='system-ui, sans-serif' font-size='13'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {frame} {style}>\n{lines}\n</svg>\n"


def draw_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Returns a text."""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{text}</text>"


def draw_key(x: int, colour: str, text: str) -> Iterator[str]:
    """Yields a box and what its colour means."""
    yield f"<rect x='{x}' y='34' width='12' height='12' fill='{colour}'/>"
    yield draw_text(x + 18, 44, text, "start")


def draw_mark(x: float, y: float) -> str:
    """Returns a diamond."""
    return f"<path d='M{x:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z' fill='#fff' stroke='#000'/>"


# The command


def make_texts(measured: Mapping[str, Any]) -> dict[Path, str]:
    """Returns the page and the picture, made of tests/data and of what was measured elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        found = outcomes(DATA, target / "wet", make_tokenizer(target / "vocab"))
        warc = kept_of_warc(target / "warc")
    return {PAGE: gallery_page(found, warc, measured), PICTURE: gallery_picture(found, measured)}


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, metavar="DIR", help="measure these pages, too: a folder like tests/data")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the corpora of --pages into this folder")
    parser.add_argument("--ablation", type=Path, metavar="FILE", help="ablation.json of examples/ablation/ablate.py")
    parser.add_argument("--costs", type=int, metavar="PAGES", help="measure CPU-hours on 4 files of so many pages")
    parser.add_argument("--rounds", type=int, default=5, help="builds of each recipe, for --costs")
    options = parser.parse_args()
    if options.pages and not wet_files(options.pages):
        parser.error(
            f"--pages {options.pages}: no *.wet.gz in its folders wet and pages; give a folder like tests/data"
        )
    if options.ablation and not options.ablation.is_file():
        parser.error(f"--ablation {options.ablation}: there is no such file; ablate.py writes it into its --output")
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    if options.pages:
        with tempfile.TemporaryDirectory() as folder:
            target = options.keep or Path(folder)
            corpora = [build(name, wet_files(options.pages), target / name, options.pages) for name in RECIPES]
        kept = {name: corpus.pages for name, corpus in zip(RECIPES, corpora, strict=True)}
        measured["pages"] = {"read": corpora[0].counts["pages.read"], "kept": kept}
    if options.costs:
        with tempfile.TemporaryDirectory() as folder:
            measured["costs"] = measure_costs(options.costs, Path(folder), options.rounds)
    if options.ablation:
        made = json.loads(options.ablation.read_text(encoding="utf-8"))
        losses = {Path(corpus).parts[0]: values for corpus, values in made["losses"].items()}
        measured["ablation"] = {"tokens": made["tokens"], "losses": losses}
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    for path, text in make_texts(measured).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
