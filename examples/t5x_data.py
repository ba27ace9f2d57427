"""Reads the TFRecord shards of a corpus as T5X does: a seqio task, whose examples tf.data reads, tokenises and packs.

    pip install 'c4pipe[tensorflow]' seqio
    c4pipe build samples/crawl --lists samples/lists --output demo-corpus --format tfrecord,parquet
    c4pipe vocab demo-corpus/en --size 300 --output demo-vocab
    python examples/t5x_data.py demo-corpus/en demo-vocab/spm.model

A gin file of T5X imports this module after `add_task` was called, and names the task as its MIXTURE_OR_TASK_NAME. Where
the package t5 is installed, its `t5.data.preprocessors.span_corruption` goes behind `tokenize`; without it this task is
a language model's, and a text that is longer than a row is cut there. docs/vocabulary.md says which version of
sentencepiece goes with seqio.
"""

import argparse
from functools import partial
from typing import Any

import seqio
import tensorflow as tf

FEATURES = {
    **{name: tf.io.FixedLenFeature([], tf.string) for name in ("url", "text", "timestamp", "language")},
    "language_probability": tf.io.FixedLenFeature([], tf.float32),
}
"""What a record has: docs/formats.md."""


def add_task(corpus: str, model: str, name: str = "c4pipe_lm") -> Any:
    """Registers a task over the folder of a language, tokenised by a SentencePiece model, and returns it."""
    vocabulary = seqio.SentencePieceVocabulary(model, extra_ids=100)
    source = seqio.TFExampleDataSource(
        {split: f"{corpus}/c4-{split}-*.tfrecord.gz" for split in ("train", "validation")},
        feature_description=FEATURES,
        reader_cls=partial(tf.data.TFRecordDataset, compression_type="GZIP"),
    )
    return seqio.TaskRegistry.add(
        name,
        source=source,
        preprocessors=[
            partial(seqio.preprocessors.rekey, key_map={"targets": "text"}),
            seqio.preprocessors.tokenize,
            seqio.preprocessors.append_eos_after_trim,
        ],
        output_features={"targets": seqio.Feature(vocabulary, add_eos=True)},
    )


def batches(name: str, length: int, rows: int, host: int = 0, hosts: int = 1) -> Any:
    """Returns a tf.data.Dataset of packed batches for one of several hosts, as T5X's trainer makes it."""
    examples = seqio.get_dataset(
        name,
        {"targets": length},
        dataset_split="train",
        shuffle=True,
        seed=1,
        shard_info=seqio.ShardInfo(index=host, num_shards=hosts),
        feature_converter=seqio.LMFeatureConverter(pack=True),
    )
    return examples.batch(rows, drop_remainder=True).prefetch(2)


def main() -> None:
    """Prints the shapes of the first batch, and how full all of them are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="folder of a language of a corpus, built with --format tfrecord")
    parser.add_argument("model", help="a SentencePiece model")
    options = parser.parse_args()
    task = add_task(options.corpus, options.model)
    print(f"{sum(1 for _ in task.source.get_dataset('train', shuffle=False))} documents")
    count = filled = total = 0
    for batch in batches(task.name, length=256, rows=4).as_numpy_iterator():
        if not count:
            print(", ".join(f"{name} {list(rows.shape)}" for name, rows in sorted(batch.items())))
        count += 1
        filled += int((batch["decoder_segment_ids"] > 0).sum())
        total += batch["decoder_segment_ids"].size
    print(f"{count} batches, {filled} of {total} places filled")


if __name__ == "__main__":
    main()
