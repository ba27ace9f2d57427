"""A wrong argument of a public function is one sentence with its name and what to give, before any work is done."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c4pipe
from c4pipe import read
from c4pipe.objectives import Tokenizer, batches, objective
from tests.helpers.crawls import LISTS, SAMPLES

INPUTS = {"inputs": SAMPLES, "output": "never-made", "lists": LISTS}

BATCHES = ("documents", "tokenizer", "objective", "size")

WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (c4pipe.Cleaner, {"lists": 3}, "lists=3: give a str, a path or None"),
    (c4pipe.Cleaner, {"recipe": None}, "recipe=None: give a str, a path or a Recipe"),
    (c4pipe.Cleaner, {"languages": [3]}, "languages=[3]: give a str or a list of str"),
    (c4pipe.Cleaner, {"links": "links.txt"}, "links='links.txt': give a list of str or path, such as ['links.txt']"),
    (c4pipe.explain_text, {"text": 3}, "text=3: give a str"),
    (c4pipe.explain_text, {"text": "a", "lists": b"l"}, "lists=b'l': give a str, a path or None"),
    (c4pipe.build_corpus, {**INPUTS, "inputs": [3]}, "inputs=[3]: give a str, a path or a list of str or path"),
    (c4pipe.build_corpus, {**INPUTS, "inputs": []}, "there is no input: give at least one file, folder or crawl"),
    (c4pipe.build_corpus, {**INPUTS, "output": None}, "output=None: give a str or a path"),
    (c4pipe.build_corpus, {**INPUTS, "workers": 1.5}, "workers=1.5: give an int or None"),
    (c4pipe.build_corpus, {**INPUTS, "shards": "3"}, "shards='3': give an int or None"),
    (c4pipe.build_corpus, {**INPUTS, "spark_conf": 3}, "spark_conf=3: give a Mapping, a list of str or None"),
    (c4pipe.build_corpus, {**INPUTS, "progress": 3}, "progress=3: give a function, or True for a bar"),
    (c4pipe.clean_files, {"inputs": SAMPLES, "work": 3}, "work=3: give a str or a path"),
    (c4pipe.dedup_files, {"work": 3, "output": "o"}, "work=3: give a str, a path or a list of str or path"),
    (c4pipe.dedup_files, {"work": [], "output": "o"}, "there is no work folder: give at least one, which c4pipe clean"),
    (c4pipe.import_text, {"inputs": 3, "output": "o"}, "inputs=3: give a str, a path or a list of str or path"),
    (c4pipe.open_corpus, {"path": None}, "path=None: give a str or a path"),
    (c4pipe.find_overlap, {"corpus": 3, "against": "x"}, "corpus=3: give a str or a path"),
    (c4pipe.train_vocabulary, {"sources": [], "output": "v", "size": "x"}, "size='x': give an int"),
    (c4pipe.write_token_files, {"corpus": 3, "vocabulary": "v", "output": "t"}, "corpus=3: give a str, a path or None"),
    (read.documents, {"path": 3}, "path=3: give a str or a path"),
    (read.documents, {"path": "c", "seed": 1.5}, "seed=1.5: give an int or None"),
    (read.documents, {"path": "c", "epoch": True}, "epoch=True: give an int"),
    (read.documents, {"path": "c", "languages": "en"}, "languages='en': give a list of str or None, such as ['en']"),
    (read.documents, {"path": "c", "verify": "no"}, "verify='no': give True or False"),
    (read.mix, {"paths": "corpus", "seed": 1}, "corpus can't be read as the TOML file of a mix: "),
    (read.mix, {"paths": ["corpus"], "seed": None}, "seed=None: give an int"),
    (read.random_access, {"path": 3}, "path=3: give a str or a path"),
    (Tokenizer, {"model": 3}, "model=3: give a str or a path"),
    (objective.span_corruption, {"ids": 3}, "ids=3: give an Ids"),
    (batches.Batches, dict.fromkeys(BATCHES, 3), "tokenizer=3: give a Tokenizer"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "sentence"), WRONG, ids=[sentence for *_, sentence in WRONG])
def test_an_argument_of_a_wrong_type(
    function: Callable[..., Any], arguments: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(c4pipe.UsageError) as caught:
        function(**arguments)
    assert str(caught.value).startswith(sentence)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("function", "name", "sentence"),
    [
        (c4pipe.build_corpus, "worker", "build_corpus() has no argument 'worker'; did you mean 'workers' or 'work'?"),
        (c4pipe.Cleaner, "list", "Cleaner() has no argument 'list'; did you mean 'lists' or 'links'?"),
        (read.documents, "sed", "documents() has no argument 'sed'; did you mean 'seed'?"),
        (read.mix, "zzz", "mix() has no argument 'zzz'; it has paths, split, seed, limit, temperature, shard_index, "),
        (objective.prefix_lm, "lenght", "prefix_lm() has no argument 'lenght'; did you mean 'length'?"),
    ],
)
def test_an_argument_that_there_is_not(function: Callable[..., Any], name: str, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        function(**{name: 1})
    assert str(caught.value).startswith(sentence)


def test_an_argument_that_is_missing() -> None:
    with pytest.raises(TypeError, match=r"^mix\(\): missing a required argument: 'seed'; it has paths, split, seed"):
        read.mix(["corpus"])  # type: ignore[call-arg]


def test_values_that_are_as_good(small_corpus: Path) -> None:
    """NumPy's numbers, paths, tuples and generators."""
    documents = read.documents(small_corpus, languages=("en",), seed=np.int64(1), verify=np.bool_(True))  # type: ignore[arg-type]
    assert len(documents) == len(read.documents(str(small_corpus), languages=["en"]))
    assert read.mix((small_corpus,), seed=1, temperature=2).rates == [1]


def test_a_selection_of_nothing(small_corpus: Path) -> None:
    corpus = c4pipe.open_corpus(small_corpus)
    with pytest.raises(c4pipe.UsageError, match=r"languages=\[\]: name one of de, en, or give None for all of them"):
        read.documents(small_corpus, languages=[])
    with pytest.raises(c4pipe.UsageError, match="split='trian': a corpus has train and validation"):
        corpus.shards("trian")
    with pytest.raises(c4pipe.UsageError, match=r"file_format='csv': the corpus .* has parquet"):
        corpus.shards("train", "csv")
