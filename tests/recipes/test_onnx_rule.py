"""The example of a rule that asks a network by ONNX Runtime, with a small network that is made here."""

import hashlib
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import c4pipe
from c4pipe.errors import UsageError
from c4pipe.recipes.presets import find_recipe
from tests.helpers.crawls import LISTS, SAMPLES, sample_pages

pytestmark = pytest.mark.consumers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "own_rules"
GOOD = "The sea was cold and the sky was grey.\nThe boats came in at noon. The day was long."
RECIPE = """
base = "c4"
rules = ["onnx_rules:OnnxScore"]
[onnx_score]
model = "{}"
sha256 = "{}"
"""


@pytest.fixture(autouse=True)
def _examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("onnx_rules", None)


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message of Protocol Buffers, whose numbers are those of onnx.proto."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    head = b""
    while value > 127:
        head, value = head + bytes([value & 127 | 128]), value >> 7
    return head + bytes([value])


def network(weights: npt.NDArray[np.float32]) -> bytes:
    """A network with the output sigmoid(input x weights), as ONNX."""

    def value(name: bytes, *shape: int) -> bytes:
        sizes = b"".join(field(1, field(1, each)) for each in shape)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes)))

    numbers = struct.pack(f"<{weights.size}f", *weights.reshape(-1))
    tensor = field(1, len(weights)) + field(1, 1) + field(2, 1) + field(8, b"w") + field(9, numbers)
    multiply = field(1, b"x") + field(1, b"w") + field(2, b"m") + field(4, b"MatMul")
    sigmoid = field(1, b"m") + field(2, b"y") + field(4, b"Sigmoid")
    nodes = field(1, multiply) + field(1, sigmoid) + field(2, b"g") + field(5, tensor)
    graph = nodes + field(11, value(b"x", 1, len(weights))) + field(12, value(b"y", 1, 1))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def test_a_network_keeps_pages_with_the_word(tmp_path: Path) -> None:
    weights = np.full((256, 1), -1, dtype=np.float32)
    weights[zlib.crc32(b"the") % 256] = 40
    model = tmp_path / "model.onnx"
    model.write_bytes(network(weights))
    recipe = tmp_path / "network.toml"
    recipe.write_text(RECIPE.format(model, hashlib.sha256(model.read_bytes()).hexdigest()))
    corpus = c4pipe.build_corpus(
        [str(path) for path in SAMPLES], output=tmp_path / "corpus", recipe=recipe, lists=LISTS, workers=1
    )
    assert 0 < corpus.counts["pages.dropped.onnx_score"] < corpus.counts["pages.kept"]
    cleaner = c4pipe.Cleaner(recipe, lists=LISTS)
    rule = next(each for each in cleaner.explain(GOOD).rules if each.rule == "onnx_score")
    assert rule.fact.startswith("a score of 0.9")
    start, pages = time.process_time(), sample_pages()
    for page in pages:
        cleaner(page.body)
    assert (time.process_time() - start) / len(pages) < 0.1


def test_another_network_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"another")
    recipe = tmp_path / "network.toml"
    recipe.write_text(RECIPE.format(model, "0" * 64))
    with pytest.raises(UsageError, match="has another SHA-256 than 000"):
        c4pipe.Cleaner(find_recipe(str(recipe)).without("bad_words"), lists=LISTS).explain("The sea.")
