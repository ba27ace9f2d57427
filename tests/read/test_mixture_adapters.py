"""Mixtures in the libraries that train on them."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from tests.helpers.corpora import urls


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
def test_torch_reads_a_mixture(small_corpus: Path, workers: int) -> None:
    from torch.utils import data as torch_data

    from c4pipe.read.torch import Documents

    def loader(after: int) -> Any:
        dataset = Documents(read.mix([small_corpus / "de", small_corpus / "en"], seed=1))
        dataset.resume(after, 5, workers)
        return torch_data.DataLoader(dataset, batch_size=5, num_workers=workers)

    whole = [list(batch["url"]) for batch in islice(loader(0), 30)]
    parts = [
        urls(islice(read.mix([small_corpus / "de", small_corpus / "en"], seed=1, shard_index=n, num_shards=2), 75))
        for n in range(2)
    ]
    if workers:
        assert [url for batch in whole[::2] for url in batch] == parts[0]
        assert [url for batch in whole[1::2] for url in batch] == parts[1]
    for after in (0, 1, 2, 13):
        assert [list(batch["url"]) for batch in islice(loader(after), 30 - after)] == whole[after:]


@pytest.mark.tensorflow
def test_tensorflow_reads_a_mixture(small_corpus: Path) -> None:
    import tensorflow as tf

    from c4pipe.read.tensorflow import dataset

    mixture = read.mix([small_corpus / "de", small_corpus / "en"], seed=1)
    expected = urls(islice(mixture.copy(), 200))
    mixture.skip(20)
    documents = dataset(mixture)
    assert documents.cardinality() == tf.data.INFINITE_CARDINALITY
    later = urls(islice(mixture.at_epoch(1), 180))
    for expected_urls in (expected[20:], later):  # each pass is an epoch
        assert [
            url.decode() for url in documents.map(lambda row: row["url"]).take(180).as_numpy_iterator()
        ] == expected_urls


@pytest.mark.consumers
def test_grain_mixes_by_the_same_rates(small_corpus: Path) -> None:
    import grain

    from c4pipe.read.mixture import rates

    sources = [read.random_access(small_corpus / language) for language in ("de", "en")]
    weights = rates([len(source) for source in sources], limit=10)
    datasets = [grain.MapDataset.source(source).shuffle(seed=1).repeat() for source in sources]
    found = list(islice(grain.MapDataset.mix(datasets, weights=weights).to_iter_dataset(), 200))
    german = sum(document["language"] == "de" for document in found)
    assert abs(german - 200 * weights[0]) <= 1


@pytest.mark.consumers
def test_huggingface_reads_a_mixture(small_corpus: Path) -> None:
    from datasets.distributed import split_dataset_by_node

    from c4pipe.read.huggingface import dataset

    paths = [small_corpus / "de", small_corpus / "en"]
    assert dataset(read.mix(paths, seed=1)).num_shards == 1
    documents = dataset(read.mix(paths, seed=1), num_shards=2)
    for node in range(2):
        expected = urls(islice(read.mix(paths, seed=1, shard_index=node, num_shards=2), 120))
        assert urls(islice(split_dataset_by_node(documents, node, 2), 120)) == expected
    first = dataset(read.mix(paths, seed=1))
    whole = urls(islice(first, 60))
    list(islice(iter(first), 25))
    again = dataset(read.mix(paths, seed=1))
    again.load_state_dict(first.state_dict())
    assert urls(islice(again, 35)) == whole[25:]
