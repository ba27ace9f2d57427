"""Mixes of several sources: their file, its errors, and the documents that `read.mix` reads by it."""

import json
from collections import Counter
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.read.mix_file import MixSource, parse_mix
from c4pipe.text.hashes import is_validation, normalise_url
from tests.read.test_curve import QUANTILES, wanted_times


def test_shares_divide_the_target_and_a_source_changes_the_defaults() -> None:
    sources = [{"path": "a", "share": 0.7, "column": "quality"}, {"path": "b/en", "share": 0.3, "max_repeat": 2}]
    mix = parse_mix({"target_tokens": 1001, "max_repeat": 5, "drop": 0.2, "seed": 3, "sources": sources})
    common = {"drop": 0.2, "seed": 3}
    assert (mix.target_tokens, mix.seed) == (1001, 3)
    assert mix.sources == (
        MixSource("a", 0.7, {**common, "column": "quality", "max_repeat": 5, "target_tokens": 701}),
        MixSource("b/en", 0.3, {**common, "max_repeat": 2, "target_tokens": 300}),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sources = 1", "the.toml: sources is 1 instead of a list"),
        ("sources = [1]", "the.toml: sources[0] is 1 instead of an object"),
        ("sources = []", "the.toml has no sources, or one of them twice: give each one a table [[sources]] and a path"),
        ("[[sources]]\npath = 'a'\n[[sources]]\npath = './a/'", "the.toml has no sources, or one of them twice"),
        ("source = []", "the.toml, line 1, has no 'source': give sources, target_tokens, max_repeat, drop, seed; did"),
        ("seed = 1\n\nfile = 'a'\n[[sources]]\npath = 'a'", "the.toml, line 3, has no 'file': give sources, target_"),
        ("sources = [{path = 'a', file = 'b'}]", "the.toml, source a: it has no 'file': give path, share, tokens, "),
        (
            "[[sources]]\npath = 'a'\nseed = 1\n[[sources]]\npath = 'b'\n 'file' = 1",
            "the.toml, source b: it, line 6, has no 'file'",
        ),
        ("seed = 1979-05-27", "the.toml: Object of type date is not JSON serializable"),
        ("seed = -1\n[[sources]]\npath = 'a'", "the.toml: seed is -1 instead of a whole number"),
        ("target_tokens = 1\n[[sources]]\nshare = 1", "the.toml, source None: give it a path; "),
        ("[[sources]]\npath = 'a'\nshar = 1", "the.toml, source a: it, line 3, has no 'shar': give path, share, "),
        (
            "[[sources]]\npath = 'a'\nshare = 1",
            "the.toml, source a: give it a path; if the mix has target_tokens, also",
        ),
        ("[[sources]]\npath = 'a'\ncolumn = 'b'", "source a: weights: give either quantiles or target_tokens"),
        (
            "target_tokens = 9\n[[sources]]\npath = 'a'",
            "source a: give it a path; if the mix has target_tokens, also a",
        ),
        ("target_tokens = 9\n[[sources]]\npath = 'a'\nshare = nan", "a share of them, such as 0.5, and no own target"),
        ("target_tokens = 9\n[[sources]]\npath = 'a'\nshare = 1\ntarget_tokens = 9", "no own target_tokens; otherwise"),
        ("target_tokens = 9\n[[sources]]\npath = 'a'\nshare = 0.5", "the.toml: the shares of the sources are 0.5 toge"),
        ("[[sources]]\npath = 'a'", "a has no manifest.json, which build writes last"),
        ("[[sources]", "the.toml can't be read as the TOML file of a mix: "),
    ],
)
def test_wrong_mixes_are_one_sentence(text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("the.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read.mix("the.toml", seed=1)
    assert says in str(caught.value)


def url_of(name: str, number: int) -> str:
    """A URL of a page; page 7 is in the validation split."""
    urls = (f"https://{name}.example/{number}/{each}" for each in count())
    return next(url for url in urls if number != 7 or is_validation(normalise_url(url), 1000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mix of three corpora: by quantiles of labels, 2.5 times, and once."""
    folder = tmp_path_factory.mktemp("mix")
    for name, size in (("first", 240), ("second", 50), ("third", 30)):
        rows: list[dict[str, Any]] = [
            {"text": f"This is text {number}.", "url": url_of(name, number)}
            | {"score": number * 7 % 100 / 40 if number % 9 else None, "topic": "art" if number % 3 else "science"}
            for number in range(size)
        ]
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        options: dict[str, Any] = {"columns": ["score:float", "topic"], "shards": 2, "workers": 1}
        c4pipe.import_text(folder / "rows.jsonl", output=folder / name, **options)
    (folder / "mix.toml").write_text(
        f"seed = 5\n[[sources]]\npath = '{folder}/first'\ncolumn = 'score'\nby = 'topic'\nquantiles = {QUANTILES}\n"
        f"[[sources]]\npath = '{folder}/second'\nquantiles = [[1, 2.5]]\n[[sources]]\npath = '{folder}/third/und'\n"
    )
    return folder


def wanted_in_mix(folder: Path) -> dict[str, Counter[str]]:
    """How often each URL of each source is read, by plain Python."""
    pages = {name: list(read.documents(folder / name)) for name in ("first", "second", "third")}
    return {
        "first": wanted_times(pages["first"], "score", "topic", 5),
        "second": wanted_times(pages["second"], "", "", 5, [[1, 2.5]]),
        "third": Counter(page["url"] for page in pages["third"]),
    }


def test_a_mix_reads_each_source_by_its_weights(folder: Path) -> None:
    wanted = wanted_in_mix(folder)
    sizes = [sum(each.values()) for each in wanted.values()]
    mixture = read.mix(folder / "mix.toml", seed=1)
    assert mixture.rates == pytest.approx([size / sum(sizes) for size in sizes])
    urls = [document["url"] for document in islice(mixture, 2 * sum(sizes))]
    for name, size in zip(wanted, sizes, strict=True):
        of_source = [url for url in urls if url.startswith(f"https://{name}.")]
        assert Counter(of_source[:size]) == wanted[name]
        assert len(of_source) > size


def test_validation_documents_count_once(folder: Path) -> None:
    mixture = read.mix(folder / "mix.toml", "validation", seed=1)
    assert mixture.rates == pytest.approx([1 / 3] * 3)
    assert {page["url"] for page in islice(mixture, 100)} == {url_of(name, 7) for name in ("first", "second", "third")}
