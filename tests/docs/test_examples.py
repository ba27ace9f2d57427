"""The examples as they are, in processes of their own: a training learns, and goes on exactly where it was killed."""

import csv
import json
import math
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import combinations, islice
from pathlib import Path
from statistics import mean, stdev, variance
from typing import Any

import numpy as np
import pytest

from c4pipe import read
from c4pipe.cli import main
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.tokenizer import Tokenizer
from tests.helpers.loopback import free_port

ROOT = Path(__file__).resolve().parents[2]
STEPS, EVERY = 40, 10
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"  # compiled in a third of the time


@pytest.fixture(scope="module", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        # a training compiles for longer than it trains here
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("XLA_FLAGS", QUICK)
        # seqio reads a model by a module that asks for another protobuf than Beam's (docs/vocabulary.md)
        patch.setenv("TEMPORARILY_DISABLE_PROTOBUF_VERSION_CHECK", "true")
        yield


def started(script: str, *arguments: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, str(ROOT / script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]") -> str:
    printed, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors[-3000:]
    return printed


def losses(printed: str) -> dict[int, float]:
    found = re.findall(r"^step (\d+): loss ([\d.]+)$", printed, re.MULTILINE)
    return {int(step): float(loss) for step, loss in found}


@pytest.mark.parametrize("mixed", [False, True])
def test_batches_of_a_reader_go_on_exactly(small_corpus: Path, vocabulary: Path, mixed: bool) -> None:
    tokenizer = Tokenizer(vocabulary / "spm.model")

    def batches() -> Batches:
        documents: Any = read.documents(small_corpus, seed=1, shard_index=0, num_shards=1, window=7)
        if mixed:
            documents = read.mix([small_corpus / "en", small_corpus / "de"], seed=1, window=7)
        return Batches(documents, tokenizer, objective.span_corruption(tokenizer.ids, 64), size=8, shuffle=100)

    unbroken, states, given = batches(), [], []
    for batch in islice(unbroken, 40):
        given.append(batch)
        states.append(json.dumps(unbroken.state()))
    assert json.loads(states[-1])["documents"] != json.loads(states[0])["documents"]  # not all was read at once
    for number in (0, len(given) // 2, len(given) - 2):
        resumed = batches()
        resumed.restore(json.loads(states[number]))
        np.testing.assert_equal(list(islice(resumed, len(given) - 1 - number)), given[number + 1 :])


@pytest.mark.examples
def test_a_training_learns_and_goes_on_after_a_kill(small_corpus: Path, vocabulary: Path, tmp_path: Path) -> None:
    data = [small_corpus / "en", vocabulary, "--steps", STEPS, "--every", EVERY]
    unbroken = losses(finished(started("examples/pretrain.py", *data)))
    assert list(unbroken) == list(range(10, STEPS + 1, 10))
    assert unbroken[STEPS] < unbroken[10] - 0.1

    more = ["--checkpoints", tmp_path / "checkpoints"]
    process = started("examples/pretrain.py", *data, *more)
    ends = time.monotonic() + 120
    while not list((tmp_path / "checkpoints").glob("step-*.pickle")) and time.monotonic() < ends:
        time.sleep(0.01)
    process.kill()  # as it is on its way to the next checkpoint
    before = losses(process.communicate()[0])
    resumed = losses(finished(started("examples/pretrain.py", *data, *more, "--resume")))
    assert resumed
    assert min(resumed) > EVERY  # it did not begin anew
    assert {**before, **resumed} == unbroken  # to the last digit that is printed


@pytest.mark.examples
def test_two_hosts_train_one_model_on_their_own_parts(small_corpus: Path, vocabulary: Path, tmp_path: Path) -> None:
    address = f"localhost:{free_port()}"
    data = [small_corpus / "en", vocabulary, "--steps", 10, "--every", 10, "--checkpoints", tmp_path]
    hosts = [
        started("examples/pretrain.py", *data, "--coordinator", address, "--hosts", 2, "--host", host)
        for host in (0, 1)
    ]
    printed = [finished(host) for host in hosts]
    assert list(losses(printed[0])) == [10]
    assert not losses(printed[1])
    (_, first, state), (_, second, other) = (
        pickle.loads((tmp_path / f"step-00000010-host-{host}-of-2.pickle").read_bytes()) for host in (0, 1)
    )
    np.testing.assert_equal(first, second)  # the gradients of both
    readers = [each["documents"] for each in (state, other)]
    assert [(reader["shard_index"], reader["num_shards"]) for reader in readers] == [(0, 2), (1, 2)]

    alone = finished(
        started("examples/pretrain.py", *data, "--steps", 20, "--resume")
    )  # one host goes on where two were
    assert list(losses(alone)) == [20]
    assert losses(alone)[20] < losses(printed[0])[10]
    *_, state = pickle.loads((tmp_path / "step-00000020-host-0-of-1.pickle").read_bytes())
    (source,) = state["documents"]["readers"]
    assert {num_shards for _, _, num_shards, _, _ in source["left"]} == {2}  # it began with what the two had left


MODELS = {  # the parameters of the papers, in millions
    "t5": {"small": 60, "base": 220},  # Raffel et al. 2020, sections 3.7 and 3.1.2
    "bert": {"small": 29, "base": 110},  # Turc et al. 2019, table 1; Devlin et al. 2019, section 3
    "electra": {"small": 14, "base": 110},  # Clark et al. 2020, table 1: without the generator
    "albert": {"base": 12},  # Lan et al. 2020, table 1
    "decoder": {"base": 125},  # Brown et al. 2020, table 2.1
}


@pytest.fixture(scope="module")
def trained(small_corpus: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", f"{QUICK} --xla_force_host_platform_device_count=8")
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'examples'}")
        folder = tmp_path_factory.mktemp("models")
        process = started("tests/docs/train_models.py", small_corpus / "en", vocabulary, folder)
        found: dict[str, Any] = json.loads(finished(process))
    return found


@pytest.mark.examples
@pytest.mark.parametrize("model", MODELS)
def test_each_model_learns_and_is_the_same_however_it_is_trained(trained: dict[str, Any], model: str) -> None:
    found = trained[model]
    whole = found["whole"]
    assert list(whole) == ["10", "20"]
    assert whole["20"] < whole["10"]
    assert found["resumed"] == {"20": whole["20"]}  # to the last digit that is printed
    if "divided" in found:
        assert found["divided"] == pytest.approx(whole, rel=2e-4)  # sums of eight devices are rounded otherwise
    in_one_row, alone = found["packed"]
    assert in_one_row == pytest.approx(alone, rel=1e-5)
    for size, millions in MODELS[model].items():
        assert found["parameters"][size] == pytest.approx(millions * 1e6, rel=0.05), size


@pytest.mark.examples
def test_a_mixture_is_learned_goes_on_and_is_evaluated(
    small_corpus: Path, vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    for case in json.loads((ROOT / "tests" / "cases" / "objectives" / "tasks_appendix_d.json").read_text()):
        if case["task"] in ("cola", "sst2", "stsb", "multirc", "wsc", "squad", "wmt_enro"):
            (folder / f"{case['task']}.jsonl").write_text(json.dumps(case["record"]) + "\n")
    own = [{"inputs": f"say {word}", "targets": word} for word in ("one", "two")]
    (folder / "own.jsonl").write_text("".join(json.dumps(each) + "\n" for each in own))
    with (folder / "sst2.jsonl").open("a") as file:
        file.write('{"sentence": "A test.", "label": -1}\n')
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'examples'}")
    script = "tests/docs/train_mixture.py"
    found = json.loads(finished(started(script, small_corpus / "en", vocabulary, folder, tmp_path / "checkpoints")))

    assert "--mixture is for text to text, and bert writes none: give --model t5" in found["refused"]
    assert "nowhere/spm.model does not exist: give the folder of a vocabulary, or its spm.model" in found["refused"]
    whole, resumed = losses(found["whole"]), losses(found["resumed"])
    assert list(whole) == [10, 20, 30, 40]
    assert mean([whole[30], whole[40]]) < mean([whole[10], whole[20]]) - 0.1  # each batch has other tasks
    assert resumed == {step: whole[step] for step in (30, 40)}  # to the last digit that is printed
    said, likely, end = found["decoded"]
    ends = [row.index(end) if end in row else len(row) for row in said]
    assert len(set(ends)) > 1  # some rows end before others
    assert len({token for row in said for token in row}) > 3
    for row, expected, place in zip(said, likely, ends, strict=True):
        assert row == expected[: place + 1] + [0] * (len(row) - place - 1)

    table = found["whole"].partition("evaluated on the records of the training:\n")[2]
    assert table
    assert found["resumed"].endswith(table)  # the same parameters say the same
    assert max(map(len, table.splitlines())) <= 80
    rows = dict(re.findall(r"^(\w+) +(\d+)  .+ +(?:[\d.]+|undefined)$", table, re.MULTILINE))
    told = {line.split()[0].rstrip(":") for line in table.splitlines()}
    assert told >= {file.stem for file in folder.iterdir()}
    assert rows["own"] == "2"
    assert "sst2: 1 records give no example or have no label, and are left out" in table
    assert "squad: 1 of 1 inputs were too long, and lost their last tokens" in table


def ablated(corpus: Path, held_out: Path, output: Path, *more: Any) -> tuple[str, dict[str, Any]]:
    """English and German, each on all tokens and on half of them twice, against English held-out text."""
    budget = ["--tokens", 4096, "--seeds", 3, "--repeats", "1,2", "--vocab-size", 300]
    corpora = [corpus / "en", corpus / "de"]
    printed = finished(
        started("examples/ablation/ablate.py", *corpora, "--held-out", held_out, "--output", output, *budget, *more)
    )
    return printed, json.loads((output / "ablation.json").read_text())


def welch(first: list[float], second: list[float], pairs: int) -> bool:
    """Whether two means differ by more than noise, computed from Welch's formulas."""
    from scipy import stats

    parts = [variance(each) / len(each) for each in (first, second)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(first) - 1) for part in parts)
    error = math.sqrt(sum(parts)) * float(stats.t.ppf(1 - 0.05 / pairs / 2, freedom))
    return abs(mean(first) - mean(second)) > error


@pytest.mark.examples
def test_an_ablation_has_a_table_a_verdict_for_each_pair_and_the_same_numbers_again(
    tmp_path: Path,
) -> None:
    corpus, pages = tmp_path / "corpus", ROOT / "tests" / "data" / "pages" / "multilingual-handbook.warc.wet.gz"
    build = ["build", str(pages), "--recipe", "unfiltered", "--languages", "en,de", "--output", str(corpus)]
    assert main.main([*build, "--workers", "1", "--quiet"]) == 0
    held_out = tmp_path / "held_out.jsonl"  # of all pages, the losses would take four times as long as the trainings
    held_out.write_text("".join((ROOT / "tests/data/text/en.jsonl").read_text().splitlines(True)[:20]))
    printed, results = ablated(corpus, held_out, tmp_path / "first")
    assert "8 steps" in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    losses = results["losses"]
    assert list(losses) == ["en", "en 2x", "de", "de 2x"]
    for name, times in results["repeats"].items():
        row = rf"^{name} +{4096 // times:,} +{times}x +4,096 +{mean(losses[name]):.4f} ± {stdev(losses[name]):.4f}$"
        assert re.search(row, printed, re.MULTILINE), name

    told = printed.replace("\n  ", " ")
    pairs = list(combinations(losses, 2))
    assert told.count("It is not noise.") + told.count("The difference is noise: run more seeds") == len(pairs)
    for pair in pairs:
        better, worse = sorted(pair, key=lambda name: mean(losses[name]))
        certain = welch(losses[better], losses[worse], len(pairs))
        sentence = f"{better} is better than {worse}: its loss is" if certain else f": the loss of {better} is"
        assert sentence in told
    assert "de is better than de 2x:" in told
    assert "en and en 2x: the loss of en is" in told

    picture = (tmp_path / "first" / "ablation.svg").read_bytes()
    _, same = ablated(corpus, held_out, tmp_path / "again", "--vocab", tmp_path / "first" / "vocab")
    assert same == results
    assert (tmp_path / "again" / "ablation.svg").read_bytes() == picture
    with pytest.raises(AssertionError, match=r"has [\d,]+ tokens, and 1,048,576 are needed: give --tokens \d+ or less"):
        ablated(corpus, held_out, tmp_path / "again", "--vocab", tmp_path / "first" / "vocab", "--tokens", 2**20)


@pytest.mark.examples
def test_an_ablation_of_mixes_writes_what_olmix_reads(
    small_corpus: Path, vocabulary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small_corpus, "corpus")
    held_out = Path("held_out.jsonl")
    held_out.write_text("".join((ROOT / "tests/data/text/de.jsonl").read_text().splitlines(True)[:20]))
    for name, share in (("first", 0.25), ("second", 1)):
        sources = f'[[sources]]\npath = "corpus/en"\nshare = {share}\nby = "language"\n'
        sources += f'[[sources]]\npath = "corpus/de"\nshare = {1 - share}\n' if share < 1 else ""
        Path(f"{name}.toml").write_text(f"target_tokens = 9000\n{sources}")
    given = ["first.toml", "second.toml", "corpus/en", "--held-out", held_out, "--seeds", 2]
    with pytest.raises(AssertionError, match="--vocab: a mix needs the vocabulary of c4pipe tokens --plan"):
        finished(started("examples/ablation/ablate.py", *given, "--output", "out"))
    finished(started("examples/ablation/ablate.py", *given, "--output", "out", "--vocab", vocabulary, "--tokens", 2048))
    losses = json.loads(Path("out/ablation.json").read_text())["losses"]
    assert list(losses) == ["first.toml", "second.toml", "en"]
    first, second = mean(losses["first.toml"]), mean(losses["second.toml"])
    read = {name: list(csv.reader(Path(f"out/{name}.csv").read_text().splitlines())) for name in ("ratios", "metrics")}
    begin = [["run", "name", "index"], ["first.toml", "first.toml", "0"], ["second.toml", "second.toml", "1"]]
    assert [row[:3] for row in read["ratios"]] == [row[:3] for row in read["metrics"]] == begin
    assert [row[3:] for row in read["metrics"]] == [["held_out_loss"], [str(first)], [str(second)]]
    assert read["ratios"][0][3:] == ["corpus/de", "corpus/en:en"]
    assert [list(map(float, row[3:])) for row in read["ratios"][1:]] == [pytest.approx([0.75, 0.25]), [0, 1]]


@pytest.mark.consumers
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="seqio has no release for this Python")
def test_seqio_reads_tfrecord(small_corpus: Path, vocabulary: Path) -> None:
    printed = finished(started("examples/t5x_data.py", small_corpus / "en", vocabulary / "spm.model"))
    assert re.search(r"^51 documents$", printed, re.MULTILINE)
    assert "decoder_segment_ids [4, 256]" in printed
    (batches, filled, places) = map(int, re.findall(r"(\d+) batches, (\d+) of (\d+) places filled", printed)[0])
    assert places == batches * 4 * 256
    assert places * 0.6 < filled < places
