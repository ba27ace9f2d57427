"""What training_peers.py measures, by name: programs that make batches of a corpus, of c4pipe and of its peers."""

from typing import NamedTuple

LENGTH, ROWS = 512, 128

START = f"""
import json, sys, time
from pathlib import Path
corpus, vocabulary, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
LENGTH, ROWS = {LENGTH}, {ROWS}

def finish(tokens, places):
    cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
    print(json.dumps({{"cpu": cpu, "wall": wall, "tokens": int(tokens), "places": int(places)}}))

def start():
    global started
    started = time.process_time(), time.perf_counter()
"""

C4PIPE = """
from c4pipe import read
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.tokenizer import Tokenizer

start()
tokenizer = Tokenizer(Path(vocabulary, "spm.model"))
made = {make}
tokens = places = 0
for epoch in range(epochs):
    for batch in Batches(read.documents(corpus, seed=1, epoch=epoch), tokenizer, made, ROWS, seed=1):
        tokens += (batch["inputs_segment_ids"] > 0).sum()
        places += batch["inputs"].size
finish(tokens, places)
"""

SEQIO = """
from functools import partial
import seqio
import tensorflow as tf
from t5.data import preprocessors

start()
ids = seqio.SentencePieceVocabulary(f"{vocabulary}/spm.model", extra_ids=100)
source = seqio.TFExampleDataSource(
    {"train": f"{corpus}/c4-train-*.tfrecord.gz"},
    feature_description={"text": tf.io.FixedLenFeature([], tf.string)},
    reader_cls=partial(tf.data.TFRecordDataset, compression_type="GZIP"),
)
seqio.TaskRegistry.add(
    "spans",
    source=source,
    preprocessors=[
        partial(seqio.preprocessors.rekey, key_map={"inputs": None, "targets": "text"}),
        seqio.preprocessors.tokenize,
        preprocessors.span_corruption,
        seqio.preprocessors.append_eos_after_trim,
    ],
    output_features={name: seqio.Feature(ids, add_eos=True) for name in ("inputs", "targets")},
)
examples = seqio.get_dataset(
    "spans",
    {"inputs": LENGTH, "targets": 114},
    dataset_split="train",
    shuffle=True,
    num_epochs=epochs,
    seed=1,
    feature_converter=seqio.EncDecFeatureConverter(pack=True),
)
tokens = places = 0
for batch in examples.batch(ROWS).prefetch(2).as_numpy_iterator():
    tokens += (batch["encoder_segment_ids"] > 0).sum()
    places += batch["encoder_input_tokens"].size
finish(tokens, places)
"""
"""T5's own task: as t5.data.tasks has it for C4, with the converter of T5X."""

TRANSFORMERS = """
import itertools
from datasets import load_dataset
from transformers import AutoTokenizer, DataCollatorForLanguageModeling

start()
tokenizer = AutoTokenizer.from_pretrained(vocabulary)
tokenizer.mask_token = "<extra_id_0>"
collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, return_tensors="np", seed=1)

def pieces(texts):
    ids = list(itertools.chain.from_iterable(tokenizer(texts["text"])["input_ids"]))
    whole = len(ids) // LENGTH * LENGTH
    return {"input_ids": [ids[place : place + LENGTH] for place in range(0, whole, LENGTH)]}

tokens = places = 0
for epoch in range(epochs):
    rows = load_dataset("parquet", data_files=f"{corpus}/c4-train-*.parquet", split="train", streaming=True)
    rows = rows.shuffle(seed=1, buffer_size=1000)
    rows = rows.map(pieces, batched=True, batch_size=1000, remove_columns=rows.column_names)
    for some in rows.batch(ROWS):
        batch = collate([{"input_ids": ids} for ids in some["input_ids"]])
        tokens += batch["input_ids"].size
        places += batch["input_ids"].size
finish(tokens, places)
"""
"""What Transformers' examples/pytorch/language-modeling/run_mlm.py does with a streamed dataset."""

C4PIPE_READ = """
from c4pipe.read import documents

start()
size = sum(len(page["text"]) for epoch in range(epochs) for page in documents(corpus, seed=1, epoch=epoch))
finish(size, size)
"""

DATASETS_READ = """
from datasets import load_dataset

start()
size = 0
for epoch in range(epochs):
    rows = load_dataset("parquet", data_files=f"{corpus}/c4-train-*.parquet", split="train", streaming=True)
    size += sum(len(page["text"]) for page in rows.shuffle(seed=epoch, buffer_size=10_000))
finish(size, size)
"""

TENSORFLOW_READ = """
import tensorflow as tf

start()
files = tf.data.Dataset.list_files(f"{corpus}/c4-train-*.tfrecord.gz", seed=1).repeat(epochs)
records = files.interleave(lambda file: tf.data.TFRecordDataset(file, "GZIP"), num_parallel_calls=tf.data.AUTOTUNE)
names = ("url", "text", "timestamp", "language")
form = {name: tf.io.FixedLenFeature([], tf.string) for name in names}
form["language_probability"] = tf.io.FixedLenFeature([], tf.float32)
rows = records.shuffle(10_000, seed=1).map(lambda one: tf.io.parse_single_example(one, form), tf.data.AUTOTUNE)
size = sum(len(page["text"].decode()) for page in rows.prefetch(tf.data.AUTOTUNE).as_numpy_iterator())
finish(size, size)
"""


class Trainer(NamedTuple):
    """What is measured: a title, the program, and whether it runs in the peers' environment."""

    title: str
    program: str
    is_peer: bool = True


SPANS, MASKED = "objective.span_corruption(tokenizer.ids)", "objective.masked_lm(tokenizer.ids)"
PEERS = {
    "c4pipe-spans": Trainer("c4pipe, span corruption", C4PIPE.format(make=SPANS), False),
    "seqio-spans": Trainer("seqio and t5, span corruption", SEQIO),
    "c4pipe-masked": Trainer("c4pipe, masked tokens", C4PIPE.format(make=MASKED), False),
    "transformers-masked": Trainer("datasets and Transformers' collator, masked tokens", TRANSFORMERS),
    "c4pipe-read": Trainer("c4pipe.read, Parquet", C4PIPE_READ, False),
    "datasets-read": Trainer("datasets, Parquet, streaming", DATASETS_READ),
    "tensorflow-read": Trainer("tf.data, TFRecord", TENSORFLOW_READ),
}
PAIRS = {"seqio-spans": "c4pipe-spans", "transformers-masked": "c4pipe-masked"}
PAIRS |= dict.fromkeys(("datasets-read", "tensorflow-read"), "c4pipe-read")
