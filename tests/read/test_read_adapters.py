"""A corpus in the libraries that train on it: each document once, and on from where a run stopped."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.tokens import subset
from c4pipe.tokens.tokenizer import TokenizerFile
from tests.helpers.classifiers import small_classifier
from tests.helpers.corpora import urls

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # 3 workers on 2 cores

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.partition("\n## Programs that read a corpus\n")[0], re.DOTALL)
NEEDS = {
    "torch": pytest.mark.torch,
    "tensorflow": pytest.mark.tensorflow,
    "grain": pytest.mark.consumers,
    "huggingface": pytest.mark.consumers,
}

Urls = list[str]


@pytest.fixture(scope="module")
def every_url(small_corpus: Path) -> Urls:
    return sorted(urls(read.documents(small_corpus)))


@pytest.fixture(scope="module")
def documented(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `corpus`, and the token-budget subset that the page names (all documents); `scored`; a mix."""
    folder = tmp_path_factory.mktemp("documented")
    small_classifier(folder)
    texts = {"1": "the sea and the land", "2": "buy here, click here"}
    rows = [json.dumps({"url": f"https://example.com/{path}", "text": text}) for path, text in texts.items()]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    (folder / "mix.toml").write_text('[[sources]]\npath = "corpus/en"\n[[sources]]\npath = "scored"\n')
    score = [f"high_quality={folder}/quality.bin"]
    c4pipe.import_text(folder / "texts.jsonl", output=folder / "scored", score=score, workers=1)
    corpus = subset.open_one_language(Path(shutil.copytree(small_corpus, folder / "corpus")) / "en")
    shards: list[dict[str, Any]] = [{"path": shard.path, "tokens": 0} for shard in corpus.shards("train")]
    shards[-1]["tokens"] = 2**29
    unused = TokenizerFile(file="", library="sentencepiece", sha256="", size=0, end=0)
    subset.write_subset(corpus, unused, {"manifest": corpus.digest, "vocabulary": "", "shards": shards}, 2**29)
    return folder


def marked(example: str) -> Any:
    """Returns an example as a parameter, marked with what it needs."""
    need = next((NEEDS[library] for library in NEEDS if library in example), None)
    return pytest.param(example, marks=need or ())


# test_torch_batches.py and test_ahead.py of tests/objectives run the blocks that need a vocabulary
@pytest.mark.slow
@pytest.mark.parametrize("example", [marked(each) for each in EXAMPLES if "Tokenizer(" not in each])
def test_what_the_documentation_shows(documented: Path, example: str) -> None:
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, cwd=documented, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "https://" in done.stdout


# PyTorch


@pytest.fixture(scope="module")
def torch_data() -> Any:
    from torch.utils import data

    return data


Load = Callable[..., Any]


@pytest.fixture
def load(small_corpus: Path, torch_data: Any) -> Load:
    """Makes a DataLoader of the corpus, after so many batches."""
    from c4pipe.read.torch import Documents

    def make(workers: int, after: int = 0, batch_size: int = 4, drop_last: bool = False, **order: Any) -> Any:
        dataset = Documents(read.documents(small_corpus, **order))
        if after:
            dataset.resume(after, batch_size, workers, drop_last)
        return torch_data.DataLoader(dataset, batch_size=batch_size, num_workers=workers, drop_last=drop_last)

    return make


def batches(loader: Any) -> list[Urls]:
    return [list(batch["url"]) for batch in loader]


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_torch_workers_give_each_document_once(load: Load, every_url: Urls, workers: int) -> None:
    hosts = [batches(load(workers, seed=1, shard_index=host, num_shards=2)) for host in range(2)]
    assert sorted(url for host in hosts for batch in host for url in batch) == every_url


@pytest.mark.torch
@pytest.mark.parametrize(("workers", "drop_last"), [(0, False), (2, False), (2, True), (3, False)])
def test_torch_goes_on_after_any_batch(load: Load, workers: int, drop_last: bool) -> None:
    whole = batches(load(workers, drop_last=drop_last, batch_size=5, seed=2))
    for after in (1, 2, 3, len(whole) - 2, len(whole) - 1, len(whole)):
        rest = batches(load(workers, after, drop_last=drop_last, batch_size=5, seed=2))
        assert rest == whole[after:]
    with pytest.raises(UsageError, match=rf"batches={len(whole) + 1}: an epoch has {len(whole)} of 5 documents"):
        load(workers, len(whole) + 1, drop_last=drop_last, batch_size=5, seed=2)


@pytest.mark.torch
@pytest.mark.parametrize(("workers", "drop_last"), [(0, False), (2, False), (2, True), (3, False)])
@pytest.mark.parametrize("used", [1, 2])
def test_torch_goes_on_after_any_number_of_restarts(load: Load, workers: int, drop_last: bool, used: int) -> None:
    whole = batches(load(workers, drop_last=drop_last, batch_size=5, seed=2))
    found: list[Urls] = []
    while len(found) < len(whole):
        loader = load(workers, len(found), drop_last=drop_last, batch_size=5, seed=2)
        found += [list(batch["url"]) for batch in islice(loader, used)]
    assert found == whole


@pytest.mark.torch
@pytest.mark.usefixtures("torch_data")
def test_torch_workers_have_states(small_corpus: Path) -> None:
    from torchdata import stateful_dataloader

    from c4pipe.read.torch import Documents

    def loader() -> Any:
        dataset = Documents(read.documents(small_corpus, seed=1))
        return stateful_dataloader.StatefulDataLoader(dataset, batch_size=4, num_workers=2)

    whole = batches(loader())
    for after in (0, 1, 6, len(whole) - 1):
        stopped, again = loader(), loader()
        list(islice(stopped, after))
        again.load_state_dict(stopped.state_dict())
        assert batches(again) == whole[after:]


@pytest.mark.torch
def test_torch_needs_as_many_workers_as_before(small_corpus: Path, torch_data: Any) -> None:
    from c4pipe.read.torch import Documents

    dataset = Documents(read.documents(small_corpus))
    dataset.resume(3, 4, workers=2)
    dataset = pickle.loads(pickle.dumps(dataset))  # as workers that are spawned get it
    with pytest.raises(UsageError, match="2 workers have read before, and now there are 1"):
        next(iter(dataset))
    documents = read.documents(small_corpus)
    documents.skip(5)
    rest = urls(torch_data.DataLoader(Documents(documents), batch_size=None))
    assert rest == urls(read.documents(small_corpus))[5:]


@pytest.mark.torch
@pytest.mark.parametrize(("workers", "stays"), [(0, False), (2, False), (2, True)])
def test_torch_reads_each_epoch_in_another_order(
    small_corpus: Path, torch_data: Any, every_url: Urls, workers: int, stays: bool
) -> None:
    from c4pipe.read.torch import Documents

    def loader(dataset: Any) -> Any:
        return torch_data.DataLoader(dataset, batch_size=4, num_workers=workers, persistent_workers=stays)

    dataset = Documents(read.documents(small_corpus, seed=1))
    assert len(dataset) == len(every_url)
    one = loader(dataset)
    epochs = [batches(one) for _ in range(3)]
    assert len({str(epoch) for epoch in epochs}) == 3
    assert all(sorted(url for batch in epoch for url in batch) == every_url for epoch in epochs)
    dataset.set_epoch(1)
    assert [batches(one), batches(one)] == epochs[1:]
    assert batches(loader(Documents(read.documents(small_corpus, seed=1, epoch=2)))) == epochs[2]
    resumed = Documents(read.documents(small_corpus, seed=1))
    resumed.set_epoch(1)
    resumed.resume(3, 4, workers)
    one = loader(resumed)
    assert [batches(one), batches(one)] == [epochs[1][3:], epochs[2]]
    same = loader(Documents(read.documents(small_corpus)))
    assert batches(same) == batches(same)


@pytest.mark.torch
def test_a_torch_state_of_a_later_epoch(small_corpus: Path, torch_data: Any) -> None:
    import torchdata.stateful_dataloader as stateful

    from c4pipe.read.torch import Documents

    def loader() -> Any:
        dataset = Documents(read.documents(small_corpus, seed=1))
        return stateful.StatefulDataLoader(dataset, batch_size=4, num_workers=2)

    stopped, again = loader(), loader()
    epochs = [batches(stopped) for _ in range(3)]
    assert len({str(epoch) for epoch in epochs}) == 3
    stopped = loader()
    batches(stopped)
    list(islice(stopped, 5))
    again.load_state_dict(stopped.state_dict())
    assert batches(again) == epochs[1][5:]


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("hosts", [2, 5])
@pytest.mark.parametrize("how", ["drop", "repeat"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_torch_hosts_have_equal_steps(
    small_corpus: Path, torch_data: Any, every_url: Urls, workers: int, hosts: int, how: Any, drop_last: bool
) -> None:
    from c4pipe.read.torch import Documents

    steps, found = [], Urls()
    for host in range(hosts):
        dataset = Documents(read.documents(small_corpus, seed=1, shard_index=host, num_shards=hosts), how)
        made = batches(torch_data.DataLoader(dataset, batch_size=3, num_workers=workers, drop_last=drop_last))
        steps.append(len(made))
        found += [url for batch in made for url in batch]
    assert len(set(steps)) == 1
    if how == "repeat" and not drop_last:
        assert set(found) == set(every_url)
    if how == "drop":
        assert len(set(found)) == len(found)


@pytest.mark.torch
@pytest.mark.usefixtures("torch_data")
def test_torch_steps_that_can_not_be_equal(small_corpus: Path) -> None:
    from c4pipe.read.torch import Documents

    with pytest.raises(UsageError, match="a mixture has no end, and so equal steps: leave equal_steps out"):
        Documents(read.mix([small_corpus], seed=1), "drop")
    with pytest.raises(UsageError, match="epoch=-1: epochs count from 0"):
        Documents(read.documents(small_corpus)).set_epoch(-1)
    with pytest.raises(TypeError):
        len(Documents(read.mix([small_corpus], seed=1)))


@pytest.mark.torch
def test_torch_reads_by_number(small_corpus: Path, torch_data: Any, every_url: Urls) -> None:
    loader = torch_data.DataLoader(read.random_access(small_corpus), batch_size=7, shuffle=True, num_workers=2)
    assert sorted(url for batch in loader for url in batch["url"]) == every_url


# TensorFlow


@pytest.mark.tensorflow
def test_tensorflow(small_corpus: Path) -> None:
    import tensorflow as tf

    from c4pipe.read.tensorflow import dataset

    expected = list(read.documents(small_corpus, seed=1))
    documents = dataset(read.documents(small_corpus, seed=1))
    assert documents.cardinality() == len(expected)
    assert documents.element_spec["url"] == tf.TensorSpec((), tf.string)
    for document, found in zip(expected, documents.prefetch(4).as_numpy_iterator(), strict=True):
        assert {name: getattr(v, "decode", lambda v=v: v)() for name, v in found.items()} == document
    later = read.documents(small_corpus, seed=1)
    later.skip(10)
    batch = next(iter(dataset(later).batch(8)))
    assert [url.decode() for url in batch["url"].numpy()] == urls(expected[10:18])


def tensorflow_urls(documents: Any) -> Urls:
    return [document["url"].decode() for document in documents.as_numpy_iterator()]


@pytest.mark.tensorflow
def test_tensorflow_reads_each_epoch_in_another_order(small_corpus: Path, every_url: Urls) -> None:
    import tensorflow as tf

    from c4pipe.read.tensorflow import dataset

    expected = [urls(read.documents(small_corpus, seed=1, epoch=epoch)) for epoch in range(4)]
    documents = dataset(read.documents(small_corpus, seed=1))
    assert [tensorflow_urls(documents) for _ in range(2)] == expected[:2]
    assert tensorflow_urls(documents.repeat(2)) == expected[2] + expected[3]
    begun = read.documents(small_corpus, seed=1, epoch=2)
    begun.skip(10)
    rest = dataset(begun)
    assert rest.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert tensorflow_urls(rest.repeat(2)) == expected[2][10:] + expected[3]
    assert [len(set(order)) for order in expected] == [len(every_url)] * 4
    same = dataset(read.documents(small_corpus))
    assert tensorflow_urls(same) == tensorflow_urls(same)
    mixture = read.mix([small_corpus], seed=1)
    endless = dataset(mixture).take(30)
    assert tensorflow_urls(endless) == urls(islice(mixture.copy(), 30))
    assert tensorflow_urls(endless) == urls(islice(mixture.at_epoch(1), 30))


# Grain


@pytest.mark.consumers
def test_grain_dataset(small_corpus: Path, every_url: Urls) -> None:
    import grain

    documents = read.random_access(small_corpus)
    in_order = grain.MapDataset.source(documents)
    assert sorted(urls(in_order.shuffle(seed=1).to_iter_dataset())) == every_url
    # not grain.experimental.WindowShuffleMapDataset: where the last window is not full, some documents come twice
    shuffled = grain.experimental.WindowShuffleIterDataset(in_order.to_iter_dataset(), window_size=20, seed=1)
    whole = urls(shuffled)
    assert sorted(whole) == every_url
    assert whole != urls(documents[number] for number in range(len(documents)))
    iterator = iter(shuffled)
    list(islice(iterator, 13))
    again = iter(shuffled)
    again.set_state(iterator.get_state())
    assert urls(again) == whole[13:]
    ends = [len(documents) * host // 3 for host in range(4)]
    hosts = [urls(in_order[ends[host] : ends[host + 1]].to_iter_dataset()) for host in range(3)]
    assert sorted(url for host in hosts for url in host) == every_url


@pytest.mark.consumers
def test_grain_loader(small_corpus: Path, every_url: Urls) -> None:
    import grain

    documents = read.random_access(small_corpus)
    sampler = grain.samplers.IndexSampler(len(documents), shuffle=True, seed=1, num_epochs=1)

    def loader(source: Any) -> Any:
        return grain.DataLoader(data_source=source, sampler=sampler, worker_count=0)

    iterator = iter(loader(documents))
    first = urls(islice(iterator, 9))
    again = iter(loader(read.random_access(small_corpus)))
    again.set_state(iterator.get_state())
    assert sorted(first + urls(again)) == every_url
    with pytest.raises(ValueError, match="DataSource in checkpoint does not match"):
        iter(loader(read.random_access(small_corpus, languages=["en"]))).set_state(iterator.get_state())


@pytest.mark.consumers
def test_grain_reads_each_epoch_in_another_order(small_corpus: Path, every_url: Urls) -> None:
    import grain

    repeated = grain.MapDataset.source(read.random_access(small_corpus)).repeat(3).to_iter_dataset()
    found = urls(grain.experimental.WindowShuffleIterDataset(repeated, window_size=len(every_url), seed=1))
    epochs = [found[first : first + len(every_url)] for first in range(0, len(found), len(every_url))]
    assert [sorted(epoch) for epoch in epochs] == [every_url] * 3
    assert len(set(map(str, epochs))) == 3


# Hugging Face


@pytest.mark.consumers
def test_huggingface(small_corpus: Path, every_url: Urls) -> None:
    from datasets.distributed import split_dataset_by_node

    from c4pipe.read.huggingface import dataset

    documents = dataset(read.documents(small_corpus, seed=1), num_shards=6)
    assert documents.num_shards == 6
    assert list(documents.features) == list(next(read.documents(small_corpus)))
    whole = list(documents)
    assert sorted(urls(whole)) == every_url
    assert sorted(map(str, whole)) == sorted(map(str, read.documents(small_corpus)))
    nodes = [urls(split_dataset_by_node(documents, node, 3)) for node in range(3)]
    assert sorted(url for node in nodes for url in node) == every_url
    iterator = iter(documents)
    list(islice(iterator, 17))
    again = dataset(read.documents(small_corpus, seed=1), num_shards=6)
    again.load_state_dict(documents.state_dict())
    assert list(again) == whole[17:]
    used = read.documents(small_corpus)
    used.skip(3)
    with pytest.raises(UsageError, match="3 documents were read: divide a new reader"):
        dataset(used)


@pytest.mark.consumers
def test_huggingface_reads_each_epoch_in_another_order(small_corpus: Path, every_url: Urls) -> None:
    from datasets.distributed import split_dataset_by_node

    from c4pipe.read.huggingface import dataset

    documents = dataset(read.documents(small_corpus, seed=1), num_shards=6)
    epochs = []
    for epoch in range(3):
        documents.set_epoch(epoch)
        epochs.append(urls(documents))
        nodes = [split_dataset_by_node(documents, node, 3) for node in range(3)]
        for node in nodes:
            node.set_epoch(epoch)
        assert sorted(url for node in nodes for url in urls(node)) == every_url
    assert len(set(map(str, epochs))) == 3
    list(islice(iter(documents), 17))
    again = dataset(read.documents(small_corpus, seed=1), num_shards=6)
    again.set_epoch(2)
    again.load_state_dict(documents.state_dict())
    assert urls(again) == epochs[2][17:]
