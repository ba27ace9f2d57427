"""The lists of a mix: read by PyYAML, as OLMo-core and Olmix read them, and as Megatron-LM divides its list."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import c4pipe
from c4pipe.cli import main
from c4pipe.read.curve import CurveTimes, LabelTimes
from c4pipe.report.html_page import REPORT_PAGE
from c4pipe.tokens.lists import ListedSource, blend, domain_tokens, priors, source_mixture
from tests.helpers.commands import run_tokens as run
from tests.helpers.megatron import read_indexed
from tests.helpers.reports import Tables

NAMES = ("no", "a: b # c", "1e5", "café 😀", "the \"sea\" \\ 'x'", "a\x01\x7f\x85\u2028\ufeff\U000e0001b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpora a and b, of which b has topics; their vocabulary and token files of both layouts."""
    folder = tmp_path_factory.mktemp("lists")
    for name, count in (("a", 40), ("b", 120)):
        rows: list[dict[str, Any]] = [
            {"text": " ".join(["the sea and the land"] * (1 + number % 9)), "url": f"https://{name}.example/{number}"}
            | {"score": number / count, "topic": "art" if number % 4 else "science"}
            for number in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        columns = ["score:float", "topic"]
        c4pipe.import_text(folder / f"{name}.jsonl", output=folder / name, columns=columns, workers=1)
    more = ["--size", "20", "--workers", "1", "--quiet"]
    assert main.main(["vocab", str(folder / "a" / "und"), "--output", str(folder / "vocab"), *more]) == 0
    for name in "ab":
        for layout in ("megatron", "olmo"):
            given = ["--vocab", folder / "vocab", "--format", layout, "--output", folder / f"{layout}-{name}"]
            assert run(folder / name, *given) == 0
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def listed(mix: str, folder: str = "lists") -> tuple[int, dict[str, str]]:
    """The exit status, and the lists of a mix by name."""
    Path("mix.toml").write_text(mix)
    status = run("--plan", "mix.toml", "--vocab", "vocab", "--lists", folder)
    return status, {file.name: file.read_text() for file in Path(folder).glob("*")}


def there(layout: str, name: str) -> int:
    totals = json.loads(Path(f"{layout}-{name}", "manifest.json").read_text())["totals"]
    return int(totals["und"]["train"]["tokens"])


def mix_of(layout: str, more: str = "") -> str:
    """Three quarters of a mix from b, which has more documents, and a quarter from a."""
    return (
        f'target_tokens = 3000\nmax_repeat = 5\n[[sources]]\npath = "a"\nshare = 0.25\ntokens = "{layout}-a"\n'
        f'[[sources]]\npath = "b"\nshare = 0.75\ntokens = "{layout}-b"\n{more}'
    )


def test_megatron_and_olmix_read_their_lists(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    status, lists = listed(mix_of("megatron", 'by = "topic"\n'))
    assert (status, set(lists)) == (0, {"megatron.txt", "olmix.yaml"})
    assert lists["megatron.txt"] == "".join(
        f"{weight} {folder}/megatron-{name}/c4-und-train_text_document\n" for weight, name in ((750, "a"), (2250, "b"))
    )
    words = lists["megatron.txt"].split()  # as `get_blend_and_blend_per_split` does
    sizes = [sum(read_indexed(Path(prefix)).lengths) for prefix in words[1::2]]
    assert sizes == [there("megatron", "a"), there("megatron", "b")]
    (found,) = yaml.safe_load(lists["olmix.yaml"]).values()
    assert set(found["token_counts"]) == {"a", "b:art", "b:science"}
    assert found["token_counts"]["a"] == sizes[0]
    assert found["token_counts"]["b:art"] + found["token_counts"]["b:science"] == sizes[1]
    assert found["relative_sizes"] == {
        name: pytest.approx(count / sum(sizes)) for name, count in found["token_counts"].items()
    }
    (left_out,) = [note for note in caplog.messages if "olmo" in note]
    assert left_out.startswith(
        "olmo_core.yaml is left out: a has no token files for olmo; write them with c4pipe tokens a"
    )


def test_olmo_core_reads_its_list_and_other_lists_are_removed(folder: Path) -> None:
    listed(mix_of("megatron"), "again")
    status, lists = listed(mix_of("olmo"), "again")
    assert (status, set(lists)) == (0, {"olmix.yaml", "olmo_core.yaml"})
    comment, _, text = lists["olmo_core.yaml"].partition("\n")
    assert comment == "# requested_tokens of an epoch of the mix: 3000"
    assert yaml.safe_load(text) == {
        "sources": [
            {
                "source_name": name,
                "target_ratio": share,
                "max_repetition_ratio": 5,
                "paths": [f"{folder}/olmo-{name}/c4-und-train.npy"],
            }
            for name, share in (("a", 0.25), ("b", 0.75))
        ]
    }


def test_token_files_with_the_weights_count_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    curve = 'column = "score"\nquantiles = [[0.5, 0], [1, 2.5]]\n'
    source = f'[[sources]]\npath = "b"\n{curve}tokens = "%s"\n[[sources]]\npath = "a"\ntokens = "olmo-a"\n'
    assert listed(source % "olmo-b")[0] == 0
    assert "olmo_core.yaml has the share of b alone, as its token files are not" in caplog.text
    assert "has the share of a" not in caplog.text
    caplog.clear()
    Path("curve.toml").write_text(curve)
    given = ["--vocab", "vocab", "--format", "olmo", "--weights", "curve.toml", "--output", "weighted-b"]
    assert run("b", *given) == 0
    _, lists = listed(source % "weighted-b")
    assert "has the share of" not in caplog.text
    taken = {name: there(folder, name) for name, folder in (("a", "olmo"), ("b", "weighted"))}
    assert yaml.safe_load(lists["olmo_core.yaml"])["sources"][0]["target_ratio"] == pytest.approx(
        taken["b"] / sum(taken.values())
    )
    assert lists["olmo_core.yaml"].count("max_repetition_ratio: 1\n") == 2


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (
            "none",
            "none has no token files of this corpus and tokenizer: write them into a new folder with c4pipe tokens",
        ),
        ("5", "5 has no token files of this corpus and tokenizer"),
        ("olmo-b", "olmo-b has no token files of this corpus and tokenizer"),
        ("other-a", "other-a has no token files of this corpus and tokenizer"),
        ("with blank", "Megatron-LM divides lists at blanks: give token files in a path without blanks"),
    ],
)
def test_wrong_token_files_are_one_sentence(tokens: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    if tokens == "with blank" and not Path(tokens).exists():
        Path("megatron-a").rename(tokens)
        Path("megatron-a").symlink_to(tokens)
    if tokens == "other-a":
        end = ["--end-of-document", "<pad>"]
        assert run("a", "--vocab", "vocab", *end, "--format", "olmo", "--output", "other-a") == 0
    status, lists = listed(f'[[sources]]\npath = "a"\ntokens = "{tokens}"\n', "wrong")
    error = capsys.readouterr().err
    assert (status, lists, error.count("\n")) == (2, {}, 1)
    assert error.startswith("c4pipe: mix.toml, source a: ")
    assert says in error


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--plan", "none.toml"], "none.toml takes no tokens, and --lists needs some"),
        (["a", "--plan", "score@1:1"], "--lists is not for a count of one corpus"),
        (["a", "--format", "olmo", "--output", "new"], "--lists is not for --format"),
    ],
)
def test_lists_are_for_a_mix_that_takes_tokens(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = '[[sources]]\npath = "a"\n'
    Path("none.toml").write_text(source + 'column = "score"\nquantiles = [[1, 0]]\n')
    assert run(*given, "--vocab", "vocab", "--lists", "unmade") == 2
    assert says in capsys.readouterr().err
    assert not Path("unmade").exists()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [1e-9, 0.5])
def test_yaml_keeps_each_name_and_share(name: str, share: float) -> None:
    sources = [ListedSource(name, share, 0.5, "olmo", {f"/{name}.npy": 9}), ListedSource("b", 1 - share, 7)]
    read = yaml.safe_load(source_mixture(sources))["sources"]
    assert [each["target_ratio"] for each in read] == [pytest.approx(share), pytest.approx(1 - share)]
    assert (read[0]["source_name"], read[0]["paths"]) == (name, [f"/{name}.npy"])
    assert [each["max_repetition_ratio"] for each in read] == [1, 7]
    counts = {name: 1, "b": round(1 / share)}
    found = yaml.safe_load(priors({each: (count, 0.0) for each, count in counts.items()}))["priors"]
    assert found["token_counts"] == counts
    assert found["relative_sizes"] == {
        each: pytest.approx(count / sum(counts.values())) for each, count in counts.items()
    }


def test_documents_without_a_label_have_a_domain_of_their_own() -> None:
    labels = [LabelTimes(name, (), (2.0,), (1,), (size,)) for name, size in (("None", 1), ("", 3), (None, 5))]
    planned = [("a", CurveTimes("", "topic", 0, tuple(labels))), ("b", CurveTimes("", "", 0, (labels[2],)))]
    assert domain_tokens(planned) == {"a:None": (1, 2), "a:": (3, 6), "a": (5, 10), "b": (5, 10)}


def test_the_report_names_documents_without_a_label(folder: Path) -> None:
    row = {"text": "the sea", "url": "https://c.example/1", "topic": None}
    Path("c.jsonl").write_text(json.dumps(row))
    c4pipe.import_text("c.jsonl", output="c", columns=["topic:string"], workers=1)
    for by in ("topic", ""):
        Path("by.toml").write_text(f'by = "{by}"\nquantiles = [[1, 2]]\n')
        assert run("c", "--plan", "by.toml", "--vocab", "vocab") == 0
    assert main.main(["report", "c", "--quiet"]) == 0
    rows = Tables(Path("c", REPORT_PAGE).read_text()).rows["plans"]
    assert [row[0] for row in rows] == ["topic", "(none)", "label", "all"]


def test_files_of_a_source_share_its_weight_by_their_tokens() -> None:
    languages = ListedSource("a", 300, 1, "megatron", {"/a/de.bin": 10, "/a/en.bin": 90})
    unread, other = (
        ListedSource("c", 0, 1, "megatron", {"/c.bin": 5}),
        ListedSource("b", 10.4, 1, "megatron", {"/b.bin": 7}),
    )
    assert blend([languages, unread, other]) == "30 /a/de\n270 /a/en\n10 /b\n"
