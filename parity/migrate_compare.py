"""The examples of docs/migrate.md, run on both sides: the same pages, with the same text.

    python parity/migrate_compare.py [--data DIR]

The script and the commands are taken from the page. The crawl is the project's own pages and, in the folder `--data`,
real ones. datatrove would download a model of languages and a list of public suffixes: both sides get a small model
that is trained here, and the list in datatrove's environment. TensorFlow Datasets gets the crawl as `reference.py`
gives it, in place of its download. Besides, the names in the first column of the tables are looked for in the source
of the installed packages; NeMo Curator is not installed.
"""

import argparse
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from compare import RECIPES, ROOT, SHARED, SHIPPED, Row, differences, pages, read_corpus, shipped_files

sys.path.insert(0, str(ROOT / "benchmarks"))  # for the environments of the peers
import measuring

from c4pipe.filters.rules import RULES
from c4pipe.text.hashes import normalise_url
from c4pipe.wet.page import Page, microseconds
from tests.helpers.documents import code_blocks, page, quoted, section, shown_commands, table_rows
from tests.helpers.wet_writer import write_wet

PAGE = page("docs/migrate.md")
PEERS = {"datatrove": "datatrove", "Dolma": "dolma"}
"""The sections about programs that have an environment of their own, and its name."""
BLOCKED = "url_filterblacklistsv0_3_0.tar.gz"

# 11 threads, as datatrove_reference.py says why.
TRAIN = """
import fasttext
options = {"epoch": 20, "dim": 16, "bucket": 50_000, "minn": 2, "maxn": 4, "thread": 11, "verbose": 0}
fasttext.train_supervised("lid.txt", **options).save_model("lid.176.bin")
"""
BEFORE = """
from datatrove.utils.lid import FT176LID
FT176LID.MODEL_URL = "lid.176.bin"
"""
AFTER = """
import json
read = [document.metadata["url"] for document in WarcReader("crawl").run()]
open("read.json", "w").write(json.dumps(read))
"""


def run(command: list[str], folder: Path, environ: Mapping[str, str] = {}) -> None:
    """Runs a command in a folder. Ends this process where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environ})
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)[:200]} failed:\n{done.stderr[-4000:]}")


def ours(heading: str, given: Mapping[str, str], folder: Path, more: str) -> Path:
    """Runs the command of c4pipe in a section of the page, and returns the folder of the corpus.

    Args:
        heading: of the section.
        given: words of the command, and what stands for them here.
        folder: where it runs.
        more: further options.
    """
    (command,) = (each for each in shown_commands(section(PAGE, heading)) if each.startswith("c4pipe "))
    for name, paths in given.items():
        assert f" {name} " in command, name
        command = command.replace(f" {name} ", f" {paths} ")
    words = [sys.executable, "-m", *shlex.split(f"{command} {more} --workers 1 --quiet")]
    run(words, folder, {"PYTHONPATH": str(ROOT)})
    return folder / "corpus"


def crawl(data: Path) -> Iterator[Page]:
    """Yields pages, one of each URL: datatrove keeps all captures."""
    files = [*sorted((ROOT / "samples/crawl").glob("*.wet.gz")), *shipped_files(), *SHIPPED.glob("pages/m*.wet.gz")]
    files += sorted([*data.glob("wet/*.wet.gz"), *data.glob("pages/*.wet.gz")])
    seen = set[str]()
    for each in pages(files):
        url = normalise_url(each.url)
        if url not in seen and each.url and each.body.strip() and microseconds(each.timestamp):
            seen.add(url)
            yield each


def give_lists(packages: Path, folder: Path) -> None:
    """Puts the lists of datatrove's URLFilter where the page says."""
    blocked = folder / "lists" / "blocked"
    blocked.mkdir(parents=True)
    assets = packages / "datatrove" / "assets"
    with tarfile.open(assets / BLOCKED) as archive:
        archive.extractall(blocked, filter="data")
    for path in assets.glob("*banned*.txt"):
        shutil.copy(path, blocked)
    shutil.copy(packages / "tldextract" / ".tld_set_snapshot", blocked / "public_suffix_list.dat")


def train_languages(python: Path, folder: Path) -> None:
    """Writes a small model of languages, `lid.176.bin`."""
    rows = (json.loads(row) for path in sorted(SHIPPED.glob("text/*.jsonl")) for row in path.open(encoding="utf-8"))
    lines = (f"__label__{row['language']} {' '.join(row['text'].split())}\n" for row in rows)
    (folder / "lid.txt").write_text("".join(lines), encoding="utf-8")
    run([str(python), "-c", TRAIN], folder)


def masked(text: str) -> str:
    """Returns a text in which the replacements of personal data are one: datatrove numbers them across pages."""
    for name in ("email_address", "public_ip_address"):
        for each in RULES[name]().parameters["replacements"]:
            text = text.replace(each, name)
    return text


def compare_datatrove(python: Path, packages: Path, data: Path, folder: Path) -> list[str]:
    """Runs datatrove's script and c4pipe's command over a crawl; returns a line for each page that differs."""
    (folder / "crawl").mkdir()
    write_wet(folder / "crawl" / "CC.warc.wet.gz", crawl(data))
    give_lists(packages, folder)
    train_languages(python, folder)
    text = section(PAGE, "datatrove")
    (script,), (recipe,) = code_blocks(text, "python"), code_blocks(text, "toml")
    (folder / "my.toml").write_text(recipe)
    (folder / "script.py").write_text(BEFORE + script + AFTER)
    run([str(python), "script.py"], folder, {"HF_ASSETS_CACHE": str(folder / "assets")})
    corpus = ours("datatrove", {}, folder, "--keep-dropped all")

    first = {url: masked(row["text"]) for url, row in read_corpus(corpus).items()}
    second: dict[str, str] = {}
    for path in (folder / "deduplicated").glob("*.jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            second.update((row["metadata"]["url"], masked(row["text"])) for row in map(json.loads, rows))
    unread = first.keys() - set(json.loads((folder / "read.json").read_text()))
    dropped = (row for path in corpus.glob("_dropped/*.dedup.parquet") for row in pq.read_table(path).to_pylist())
    survivors = {row["url"]: row["fact"].split(" stays;")[0] for row in dropped if row["reason"] == "near_duplicate"}

    lines = [f"{url}: the texts differ" for url in first.keys() & second.keys() if first[url] != second[url]]
    alone, others = first.keys() - second.keys(), {url: survivors.get(url) for url in second.keys() - first.keys()}
    lines += [f"{url}: only datatrove keeps it" for url, stays in others.items() if stays not in alone]
    lines += [f"{url}: only c4pipe keeps it" for url in alone - unread - set(others.values())]
    if len(others) != len(set(others.values())):
        lines.append("datatrove keeps two pages of a cluster")
    print(
        f"datatrove's script: {len(first.keys() & second.keys()):,} pages kept by both, {len(survivors):,} "
        f"near-duplicates, of which {len(others):,} stay on the other side in place of another page, {len(unread):,} "
        f"pages not read by datatrove, {len(lines):,} differences",
        flush=True,
    )
    return lines if survivors else ["no near-duplicates"]


def compare_tfds(folder: Path) -> list[str]:
    """Runs both commands of the section about TensorFlow Datasets over the project's pages."""
    from tensorflow_datasets.scripts.cli import build, cli_utils

    commands = shown_commands(section(PAGE, "TensorFlow Datasets"))
    (theirs,) = (shlex.split(each) for each in commands if each.startswith("tfds "))
    # The parser of `tfds build` alone: that of `tfds` needs mlcroissant, for another command.
    (name,) = cli_utils.make_flags_parser(build.Args, "tfds build")(theirs[1:]).positional_datasets
    rows = [cells for cells in table_rows(section(PAGE, "TensorFlow Datasets")) if cells[0].startswith("`c4/")]
    if {quoted(cells[0])[0].removeprefix("c4/"): quoted(cells[1])[0] for cells in rows} != RECIPES:
        return ["the page has other configurations than compare.py"]
    out = folder / "reference.jsonl"
    files = [str(path) for path in shipped_files()]
    script = [sys.executable, str(ROOT / "parity" / "reference.py"), name.removeprefix("c4/"), str(out)]
    run([*script, str(SHIPPED / "lists"), *files], folder, {"PYTHONPATH": str(ROOT)})
    reference: dict[str, Row] = {row.pop("url"): row for row in map(json.loads, out.open(encoding="utf-8"))}
    more = f"--lists {shlex.quote(str(SHIPPED / 'lists'))}"
    kept = read_corpus(ours("TensorFlow Datasets", {"CC-MAIN-2019-18": shlex.join(files)}, folder, more))
    lines = differences(kept, reference) if reference else ["no pages"]
    print(f"{shlex.join(theirs)}: {len(reference):,} pages compared, {len(lines):,} differences", flush=True)
    return lines + unknown_names("TensorFlow Datasets", Path(build.__file__).parents[2])


def unknown_names(heading: str, packages: Path) -> list[str]:
    """Returns a line for each name in the first column of a section's tables that a package's source does not have."""
    source = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in packages.rglob("*.py"))
    words = set(re.findall(r"[\w-]+(?:\.\w+)?", source))
    first = (name for cells in table_rows(section(PAGE, heading)) for name in quoted(cells[0]))
    names = {re.sub("^(?:--|c4/|dolma )", "", name) for name in first}
    print(f"{heading}: {len(names)} names looked for", flush=True)
    return [f"{name}: {heading} has no such name" for name in sorted(names) if name not in words]


def main() -> int:
    """Compares all; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    data = parser.parse_args().data
    lines = []
    with TemporaryDirectory() as name:
        for heading, peer in PEERS.items():
            if not measuring.has_release(peer):
                print(f"{peer} is NOT compared: it has no release for this Python")
                continue
            try:
                python = measuring.environment(peer)
            except measuring.NotMeasured as error:
                raise SystemExit(f"{peer} can't be compared: {error}") from None
            (packages,) = python.parents[1].glob("lib/python*/site-packages")
            lines += unknown_names(heading, packages / peer)
            if peer == "datatrove":
                (Path(name) / peer).mkdir()
                lines += compare_datatrove(python, packages, data, Path(name) / peer)
        lines += compare_tfds(Path(name))
    for line in lines[:40]:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
