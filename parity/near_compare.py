"""The rule near_duplicate against datatrove's MinHash pipeline: of each of its clusters, exactly one page stays.

    python parity/near_compare.py [--data DIR] [--short] [--python PYTHON]

Without the comparison of signatures (min_similarity = 0), the clusters must be the same. The pages are those of the
sample crawl and real pages, as c4pipe cleans them, and copies of these in which words are missing or replaced.
`--short` takes each eighth page. datatrove gets an environment of its own, as in datatrove_compare.py.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from compare import ROOT, SHARED, pages

sys.path.insert(0, str(ROOT / "benchmarks"))  # for the environment of datatrove
import measuring
import pyarrow.parquet as pq

import c4pipe
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.page import Page
from tests.helpers.wet_writer import write_wet

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\nmin_similarity = {}\n'
SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)  # of the words of a copy that are replaced
LONGEST = 150_000  # characters: below the limit of too_long
SHORT = 8  # each which page


def all_pages(data: Path, short: bool) -> Iterator[Page]:
    """Yields the pages to compare, each with a URL of its own."""
    files = sorted([*(ROOT / "samples/crawl").glob("*.wet.gz"), *data.glob("wet/*.gz"), *data.glob("pages/*.gz")])
    cleaner = c4pipe.Cleaner("unfiltered")
    rng = random.Random(3)
    for number, page in enumerate(pages(files)):
        text = cleaner(page.body).text
        if 0 < len(text) < LONGEST and number % (SHORT if short else 1) == 0:
            for copy in range(rng.choice((1, 1, 2, 4))):
                body = changed(text, rng) if copy else text
                url = f"https://site{number % 9}.example/{number}/{copy}"
                yield Page(url, "2019-04-18T10:12:43Z", body, number, len(body.encode()))


def changed(text: str, rng: random.Random) -> str:
    """Returns a text of which some words are replaced, and perhaps the end is missing."""
    share, words = rng.choice(SHARES), text.split(" ")
    words = [rng.choice(words) if rng.random() < share else word for word in words]
    return " ".join(words[: rng.randint(len(words) * 4 // 5, len(words))]).strip() or text


def kept_by(given: Sequence[Page], least: float, folder: Path) -> set[str]:
    """Returns the URLs of the pages that c4pipe keeps."""
    (folder / "crawl").mkdir()
    for number in range(4):
        write_wet(folder / "crawl" / f"CC-{number}.warc.wet.gz", given[number::4])
    (folder / "near.toml").write_text(RECIPE.format(least))
    corpus = c4pipe.build_corpus(folder / "crawl", output=folder / "corpus", recipe=folder / "near.toml")
    shards = (each["path"] for each in corpus.manifest["shards"])
    return {url for shard in shards for url in pq.read_table(folder / "corpus" / shard)["url"].to_pylist()}


def clusters_by_datatrove(given: Sequence[Page], python: Path, folder: Path) -> list[int | None]:
    """Returns the number of the cluster of each page."""
    rows, out = folder / "pages.jsonl", folder / "out.json"
    cleaner = c4pipe.Cleaner("unfiltered")
    rows.write_text("".join(json.dumps({"text": cleaner(page.body).text}) + "\n" for page in given))
    command = [python, Path(__file__).with_name("near_reference.py"), rows, out, folder / "datatrove"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"datatrove failed:\n{done.stderr[-4000:]}")
    clusters: list[int | None] = json.loads(out.read_text())
    return clusters


def kept_of(given: Sequence[Page], clusters: Sequence[int | None]) -> set[str]:
    """Returns the URLs of the longest page of each cluster, and of all pages that are in none."""
    cleaner = c4pipe.Cleaner("unfiltered")
    best: dict[object, tuple[int, int, str]] = {}
    for page, cluster in zip(given, clusters, strict=True):
        order = -len(cleaner(page.body).text), url_key(normalise_url(page.url)), page.url
        name = page.url if cluster is None else cluster
        best[name] = min(order, best.get(name, order))
    return {url for _, _, url in best.values()}


def main() -> int:
    """Compares all; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--short", action="store_true", help=f"each {SHORT}th page")
    parser.add_argument("--python", type=Path, help="the Python of an environment that has datatrove")
    arguments = parser.parse_args()
    python = arguments.python or measuring.environment("datatrove")
    given = list(all_pages(arguments.data, arguments.short))
    with TemporaryDirectory() as folder:
        clusters = clusters_by_datatrove(given, python, Path(folder))
        theirs, ours = kept_of(given, clusters), kept_by(given, 0.0, Path(folder))
    found = len({each for each in clusters if each is not None})
    print(f"{len(given):,} pages, {found:,} clusters of datatrove, {len(given) - len(ours):,} pages dropped by c4pipe")
    for url in sorted(ours ^ theirs):
        print(f"DIFFERS: {url} is {'kept' if url in ours else 'dropped'} by c4pipe alone")
    return int(ours != theirs or not found)


if __name__ == "__main__":
    raise SystemExit(main())
