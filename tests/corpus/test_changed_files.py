"""JSON files of a corpus that somebody changed: each number is an error, which names the file and the difference."""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.cli import main
from c4pipe.corpus.opened import open_corpus
from c4pipe.errors import UsageError
from c4pipe.inspect.opt_outs import read_opt_outs
from c4pipe.report.data import read_dedup_data, read_report_data
from c4pipe.tokens.count import read_counts
from c4pipe.tokens.folder import read_token_manifest
from c4pipe.vocab.model import read_description
from tests.helpers.corpora import edit_manifest, read_manifest, write_edited

READERS: dict[str, Callable[[Path], Any]] = {
    "manifest.json": open_corpus,
    "report.json": read_report_data,
    "dedup.json": read_dedup_data,
    "tokens.json": read_counts,
    "opt_outs.json": read_opt_outs,
    "subset-en-4096.json": lambda folder: read.documents(folder / "subset-en-4096.json"),
    "vocabulary/vocab.json": lambda folder: read_description(folder / "vocabulary"),
    "megatron/manifest.json": lambda folder: read_token_manifest(folder / "megatron"),
}


@pytest.fixture(scope="module")
def original(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus that has all JSON files."""
    folder = tmp_path_factory.mktemp("changed")
    corpus = Path(shutil.copytree(small_corpus, folder / "corpus"))
    (folder / "lists" / "blocked").mkdir(parents=True)
    (folder / "lists" / "blocked" / "opt_outs.txt").write_text("kitchen.example.com\n")
    vocabulary = ["--vocab", f"{corpus}/vocabulary/spm.model", "--workers=1"]
    for command in (
        ["vocab", f"{corpus}/en", "--output", f"{corpus}/vocabulary", "--size=300"],
        ["tokens", f"{corpus}/en", *vocabulary, "--budget-subset=4096"],
        ["tokens", f"{corpus}/en", *vocabulary, "--format=megatron", "--output", f"{corpus}/megatron"],
        ["report", str(corpus), "--opt-outs", f"{folder}/lists", "--workers=1"],
    ):
        assert main.main([*command, "--quiet"]) == 0
    return corpus


@pytest.fixture
def corpus(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "corpus"))


def changed(values: Any, inside: Any, place: str = "") -> Iterator[str]:
    """Yields the place of each number inside the values of a JSON file, while the number is one more."""
    for name in list(inside) if isinstance(inside, dict) else range(len(inside)):
        value = inside[name]
        if isinstance(value, dict | list):
            yield from changed(values, value, f"{place}.{name}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            inside[name] = value + 1
            yield f"{place}.{name}"
            inside[name] = value


@pytest.mark.parametrize("name", READERS)
def test_each_number_that_is_changed_is_an_error(corpus: Path, name: str) -> None:
    file, total, wrong = corpus / name, 0, []
    READERS[name](corpus)
    values = json.loads(file.read_text())
    for place in changed(values, values):
        file.write_text(json.dumps(values, indent=1))
        total += 1
        try:
            READERS[name](corpus)
            wrong.append(place)
        except UsageError as error:
            wrong += [] if str(file) in str(error) else [f"{place}: {error}"]
    assert wrong == []
    assert total >= 5


def test_the_error_says_how_to_accept_the_change(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, before = corpus / "manifest.json", read_manifest(corpus)
    bytes_kept = before["counts"]["bytes.kept"]
    file.write_text(file.read_text().replace(f'"bytes.kept": {bytes_kept}', f'"bytes.kept": {bytes_kept + 100_000}'))
    for command in (["report", str(corpus)], ["diff", str(corpus), str(corpus)]):
        assert main.main(command) == 2
        assert capsys.readouterr().err == (
            f"c4pipe: {file} can't be used: it was changed after c4pipe wrote it, as its sha256 shows (delete the line "
            '"sha256" there to accept the change); copy or build the corpus again\n'
        )
    edit_manifest(corpus, lambda manifest: manifest["counts"].update({"bytes.kept": bytes_kept}))
    assert main.main(["report", str(corpus), "--quiet"]) == 0  # earlier versions wrote no digest


SUMS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "pages": ("manifest.json", lambda new: new["counts"].update({"pages.kept": 1}), "pages.read is "),
    "language": ("manifest.json", lambda new: new["counts"].update({"pages.kept.en": 1}), "pages.kept is "),
    "rows": ("manifest.json", lambda new: new["shards"][0].update(rows=999), "but by the rows of the "),
    "bytes": ("report.json", lambda new: new["profile"]["language_bytes"].update(en=1), "profile.language_bytes is "),
    "tokens": (
        "tokens.json",
        lambda new: new["totals"]["en"]["train"].update(tokens=1),
        "totals.en.train.tokens is 1",
    ),
    "subset": ("subset-en-4096.json", lambda new: new.update(documents=999), "documents is 999, but by the sum"),
}


@pytest.mark.parametrize("what", SUMS)
def test_numbers_without_a_digest_are_added_up(corpus: Path, what: str) -> None:
    name, change, wanted = SUMS[what]
    values = copy.deepcopy(json.loads((corpus / name).read_text()))
    change(values)
    write_edited(corpus / name, values)
    with pytest.raises(UsageError) as caught:
        READERS[name](corpus) if name != "report.json" else read_report_data(corpus, read_manifest(corpus)["counts"])
    assert wanted in str(caught.value)


def test_rows_that_only_the_shards_contradict(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def move_rows(manifest: dict[str, Any]) -> None:
        first, second = [each for each in manifest["shards"] if "en/c4-train-" in each["path"] and each["rows"]][:2]
        first["rows"], second["rows"] = first["rows"] + 1, second["rows"] - 1

    edit_manifest(corpus, lambda made: made.update(shards=[s for s in made["shards"] if s["path"].endswith("parquet")]))
    edit_manifest(corpus, lambda made: made.update(formats=["parquet"]))
    edit_manifest(corpus, move_rows)
    (corpus / "report.json").unlink()
    (corpus / "tokens.json").unlink()
    for command in (
        ["report", str(corpus)],
        ["diff", str(corpus), str(corpus)],
        ["tokens", str(corpus), "--vocab", f"{corpus}/vocabulary/spm.model"],
        ["vocab", f"{corpus}/en", "--output", f"{corpus}/other", "--size=300"],
    ):
        assert main.main(command) == 1
        assert "and by the manifest" in capsys.readouterr().err
    with pytest.raises(Exception, match="and by the manifest"):
        list(read.documents(corpus))
