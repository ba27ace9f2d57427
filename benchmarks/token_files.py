"""What Megatron's token files of a corpus take: c4pipe beside the logic of Megatron-LM's `tools/preprocess_data.py`.

    python benchmarks/token_files.py [CORPUS VOCABULARY] [--bpe FOLDER] [--pages 4000] [--pieces 16000] [--language en]
        [--rounds 5] [--write]

Without CORPUS, a corpus and a vocabulary of --pieces are made of 4 WET files with --pages pages of tests/data.
VOCABULARY is a folder that `c4pipe vocab` wrote; it has the SentencePiece model for c4pipe, and the same vocabulary as
tokenizer.json for the fast tokenizer of Hugging Face, which `preprocess_data.py` calls with
`--tokenizer-type HuggingFaceTokenizer`. The other side reads the same documents as JSON Lines, one worker each.
FOLDER has the tokenizer.json and tokenizer_config.json of a byte-level BPE tokenizer; without it, tokenizers makes one
of --pieces of the documents. For it, c4pipe is also compared with `encode_batch` of tokenizers alone, in turns.
Whole processes, start-up and children included. Measure on an idle machine.
"""

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

# Other packages are imported where they are used: the memory of the process that measures counts as a floor.
from measuring import DATA, Cost, compile_clone, machine, made_corpus, measure
from results import Goal, publish, spread, written_by

HEAD = "Token files"
PACKAGES = ("sentencepiece", "tiktoken", "tokenizers", "transformers")

PREPROCESS = """
import json, struct, sys
from multiprocessing import Pool
import numpy as np

vocabulary, pages, prefix = sys.argv[1:]

def start():
    global tokenizer
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(vocabulary)

def encode(line):
    ids = tokenizer(json.loads(line)["text"], add_special_tokens=False)["input_ids"]
    ids.append(tokenizer.eos_token_id)
    return ids

start()
dtype = np.uint16 if len(tokenizer) < 65500 else np.int32
lengths = []
with open(pages) as lines, open(prefix + ".bin", "wb") as data, Pool(1, start) as pool:
    for ids in pool.imap(encode, lines, 32):
        data.write(np.array(ids, dtype=dtype).tobytes(order="C"))
        lengths.append(len(ids))
offsets = np.cumsum([0, *lengths[:-1]], dtype=np.int64) * dtype().itemsize
with open(prefix + ".idx", "wb") as index:
    index.write(struct.pack("<9sQBQQ", b"MMIDIDX", 1, 8 if dtype is np.uint16 else 4, len(lengths), len(lengths) + 1))
    for array in (np.array(lengths, np.int32), offsets, np.arange(len(lengths) + 1, dtype=np.int64)):
        index.write(array.tobytes(order="C"))
print(sum(lengths))
"""
"""The logic of `tools/preprocess_data.py --append-eod --workers 1`: lines of JSON to a pool in chunks of 32, a list of
ids for each document, which becomes an array; the index at the end. Megatron-LM itself needs a large PyTorch."""

ALONE = """
import json, sys
from tokenizers import Tokenizer

tokenizer, tokens = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json"), 0
tokenizer.no_truncation()
tokenizer.no_padding()
with open(sys.argv[2]) as lines:
    texts = [json.loads(line)["text"] for line in lines]
for first in range(0, len(texts), 256):
    encodings = tokenizer.encode_batch(texts[first : first + 256], add_special_tokens=False)
    tokens += sum(len(each.ids) + 1 for each in encodings)
print(tokens)
"""
"""tokenizers alone: the ids of all documents, in batches as large as those of c4pipe, which go nowhere."""

NOTES = """
- All numbers are of whole processes, with their start-up. CPU includes all child processes; memory is that of the
  largest process.
- c4pipe's row is its whole command: it reads Parquet, writes the way back to each page, and the digests of all files.
- For BPE, c4pipe gets the ids from tiktoken, which are equal (c4pipe/tokens/byte_level.py); the others call tokenizers.
- For SentencePiece, the fast tokenizer has the same vocabulary. Its ids differ in a few characters, as
  docs/vocabulary.md says.
"""


def export(corpus: Path, language: str, target: Path) -> int:
    """Writes the documents of both splits as JSON Lines, and returns how many there are."""
    from c4pipe import read

    count = 0
    with target.open("w") as lines:
        for split in ("train", "validation"):
            for page in read.documents(corpus / language, split=split):
                lines.write(json.dumps({"text": page["text"]}) + "\n")
                count += 1
    return count


def made_bpe(pages: Path, pieces: int, folder: Path) -> Path:
    """Trains a byte-level BPE tokenizer on JSON Lines, and returns its folder, in the form of Transformers."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    end = "<|endoftext|>"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=pieces, initial_alphabet=alphabet, special_tokens=[end], show_progress=False
    )
    with pages.open() as lines:
        tokenizer.train_from_iterator((json.loads(line)["text"] for line in lines), trainer)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def c4pipe_tokens(folder: Path) -> int:
    """Returns the number of tokens that c4pipe wrote."""
    totals = json.loads((folder / "manifest.json").read_text())["totals"]
    return sum(total["tokens"] for splits in totals.values() for total in splits.values())


def row(name: str, costs: list[Cost], tokens: int, first: float) -> str:
    """Returns a row of the table; `first` is the CPU seconds that the last column is in."""
    cpu = min(cost.cpu for cost in costs)
    values = [f"{tokens:,}", *(spread([getattr(cost, each) for cost in costs]) for each in ("cpu", "wall"))]
    values += [f"{max(cost.peak for cost in costs):.0f}", f"{tokens / cpu / 1e6:.2f}", f"{cpu / first:.2f}"]
    return f"| {' | '.join([name, *values])} |"


def ratio(costs: list[Cost], others: list[Cost]) -> float:
    """Returns the CPU of some runs in that of others, each by its least."""
    return min(each.cpu for each in costs) / min(each.cpu for each in others)


def main() -> int:
    """Prints the figures of all, and returns the exit status: 1 where a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("vocabulary", type=Path, nargs="?")
    parser.add_argument("--bpe", type=Path, help="the folder of a byte-level BPE tokenizer; without it, one is made")
    parser.add_argument("--pages", type=int, default=4000, help="of each synthetic WET file, without CORPUS")
    parser.add_argument("--pieces", type=int, default=16_000, help="of a vocabulary that is made")
    parser.add_argument("--language", default="en")
    parser.add_argument("--rounds", type=int, default=5, help="runs of c4pipe; preprocess_data.py runs once")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    compile_clone()
    named = "CORPUS VOCABULARY" if options.corpus else f"--pages {options.pages} --pieces {options.pieces}"
    title, table, goals = machine(), list[str](), list[Goal]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.vocabulary is None:
            corpus, options.vocabulary = made_corpus(folder, options.pages, options.pieces, DATA)
            options.corpus = options.corpus or corpus
        pages = folder / "pages.jsonl"
        documents = export(options.corpus, options.language, pages)
        bpe = options.bpe or made_bpe(pages, options.pieces, folder / "bpe")
        for kind, vocabulary, times in (("SentencePiece", options.vocabulary, 10), ("BPE", bpe, 3)):
            source = [str(options.corpus / options.language), "--vocab", str(vocabulary)]
            command = [sys.executable, "-m", "c4pipe", "tokens", *source, "--format", "megatron", "--workers", "1"]
            serial = ["env", "TOKENIZERS_PARALLELISM=false", sys.executable, "-c"]
            ours, alone, given = list[Cost](), list[Cost](), [str(vocabulary), str(pages), str(folder / "theirs")]
            for number in range(options.rounds):
                ours.append(measure([*command, "--output", str(folder / f"{kind}{number}"), "--quiet"]))
                if kind == "BPE":
                    alone.append(measure([*serial, ALONE, *given[:2]]))
            peer = measure([*serial, PREPROCESS, *given])
            if any(cost.status for cost in (*ours, *alone, peer)):
                sys.exit("a command failed; its error is above")
            tokens, cpu = c4pipe_tokens(folder / f"{kind}0"), min(cost.cpu for cost in ours)
            table.append(row(f"{kind}: c4pipe tokens --format megatron, 1 worker", ours, tokens, cpu))
            table.append(row(f"{kind}: preprocess_data.py, 1 worker", [peer], int(peer.output.split()[-1]), cpu))
            least = 2 if kind == "SentencePiece" else 2.5
            goals.append(Goal(f"{kind}: million tokens a CPU second of c4pipe", tokens / cpu / 1e6, "at least", least))
            if kind == "BPE":
                table.append(row(f"{kind}: encode_batch alone", alone, int(alone[0].output), cpu))
                goals.append(
                    Goal(f"{kind}: CPU of c4pipe in that of encode_batch alone", ratio(ours, alone), "at most", 1.15)
                )
            goals.append(
                Goal(f"{kind}: CPU of preprocess_data.py in that of c4pipe", ratio([peer], ours), "at least", times)
            )
    page = [written_by(f"token_files.py {named}"), "", f"{title}; {documents:,} documents", ""]
    page += ["| peer | tokens | CPU s | wall s | peak MB | million tokens a CPU second | CPU / c4pipe |"]
    page += ["|---|--:|--:|--:|--:|--:|--:|", *table, "", *(goal.line() for goal in goals)]
    page += [*NOTES.strip().splitlines(), "- " + ", ".join(f"{each}=={version(each)}" for each in PACKAGES)]
    return publish(HEAD, page, options.write, goals)


if __name__ == "__main__":
    sys.exit(main())
