"""The pages of every recipe's corpus stay as they are: their digests, the recipes' JSON and fingerprints are golden.

A change of these values changes users' corpora. It belongs into CHANGELOG.md. To write the values again, delete
`tests/cases/golden/corpora.json` and run these tests twice.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.io.versions import TEXT_RULES
from c4pipe.recipes.presets import RECIPES
from tests.helpers.web_data import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "cases" / "golden" / "corpora.json"
EXTRA = {
    "c4-de-fr": ["--recipe", "c4", "--languages", "en,de,fr,ro"],
    "two-bases": [],  # the recipe file below
}
RECIPE_FILE = """
base = "gopher"
on = ["near_duplicate", "repeated_span", "few_sentences_left", "email_address", "public_ip_address"]
off = ["many_hashes"]
[top_2_gram]
at_most = 0.25
[few_stop_words]
stop_words = ["the", "and", "of"]
"""


def golden() -> dict[str, Any]:
    values: dict[str, Any] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return values


def check(name: str, value: object) -> None:
    known = golden()
    if not GOLDEN.exists() or name not in known:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps({**known, name: value}, indent=1, sort_keys=True) + "\n")
        pytest.fail(f"{name} was missing in {GOLDEN.name}, and was written: run the test again")
    assert value == known[name]


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "lists"
    shutil.copytree(SHIPPED / "lists", folder)
    shutil.copytree(ROOT / "samples" / "lists", folder, dirs_exist_ok=True)
    return folder


def page_digest(corpus: Path) -> str:
    """The digest of all rows of all shards, with the shards' names; it depends on no library's version."""
    digest = hashlib.sha256()
    for path in sorted(corpus.glob("[!_]*/*.parquet")):
        digest.update(f"{path.relative_to(corpus)}\n".encode())
        for row in pq.read_table(path).to_pylist():
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RECIPES, *EXTRA])
def test_the_pages_of_a_corpus_are_golden(name: str, lists: Path, tmp_path: Path) -> None:
    recipe = EXTRA.get(name, ["--recipe", name])
    if name == "two-bases":
        (tmp_path / "own.toml").write_text(RECIPE_FILE)
        recipe = ["--recipe", str(tmp_path / "own.toml")]
    if "webtextlike" in name:
        recipe += ["--links", str(lists / "webtext" / "links.txt")]
    inputs = [str(SHIPPED / "wet"), str(SHIPPED / "pages"), str(ROOT / "samples" / "crawl")]
    corpus = tmp_path / "corpus"
    options = ["--lists", str(lists), "--output", str(corpus), "--workers", "1", "--quiet"]
    assert main.main(["build", *inputs, *recipe, *options]) == 0
    manifest = json.loads((corpus / "manifest.json").read_text())
    counts = {name: number for name, number in manifest["counts"].items() if number}
    check(
        f"corpus {name}",
        {"pages": page_digest(corpus), "counts": counts, "fingerprint": manifest["fingerprint"]},
    )


@pytest.mark.parametrize("name", RECIPES)
def test_the_json_and_the_fingerprint_of_a_recipe_are_golden(name: str) -> None:
    recipe = RECIPES[name]
    text = json.dumps(recipe.to_json())
    check(
        f"recipe {name}",
        {"json": hashlib.sha256(text.encode()).hexdigest(), "fingerprint": recipe.fingerprint({"links": "0" * 64})},
    )


def test_other_pages_have_another_version_of_the_text_rules() -> None:
    """A release that changes the pages of a recipe raises TEXT_RULES: no run of an earlier release goes on with it.

    The digest of a number changes only by a new recipe, or before the release.
    """
    pages = {name: value["pages"] for name, value in golden().items() if name.startswith("corpus ")}
    digest = hashlib.sha256(json.dumps(pages, sort_keys=True).encode()).hexdigest()
    assert (TEXT_RULES, digest[:16]) == (1, "931efba56622f708")
