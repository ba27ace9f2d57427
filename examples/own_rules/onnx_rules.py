"""A rule of our own that asks a neural network, by ONNX Runtime (pip install onnxruntime): docs/classifiers.md."""

import hashlib
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe import CheckedPage, PageRule
from c4pipe.errors import UsageError

BUCKETS = 256  # of words: the network's input is the share of the words in each


@dataclass(frozen=True)
class OnnxScore(PageRule):
    """Drops a page to which a network gives a low score. The network takes `[1, 256]` floats and gives one number."""

    name = "onnx_score"
    does = "drops a page to which the network {model} ({sha256}) gives a score below {min_score}"
    source = "our own classifier"
    counts = "float"

    model: str = "model.onnx"
    sha256: str = "of the file"  # a parameter, so that the fingerprint covers the network
    min_score: float = 0.5

    def value(self, page: CheckedPage) -> float:
        """Returns the score."""
        words = page.text.lower().encode().split()
        counts = np.bincount([zlib.crc32(word) % BUCKETS for word in words] or [0], minlength=BUCKETS)
        shares = (counts / max(len(words), 1)).astype(np.float32)[np.newaxis]
        session = _session(self.model, self.sha256)
        (scores,) = session.run(None, {session.get_inputs()[0].name: shares})
        return float(scores.reshape(-1)[0])

    def drops(self, value: float) -> bool:
        """Tells whether it is too low."""
        return value < self.min_score

    def says(self, value: float, dropped: bool, page: CheckedPage) -> str:
        """Returns the score and the limit."""
        return f"a score of {value:.4f}; at least {self.min_score}"


@cache
def _session(path: str, sha256: str) -> Any:
    """Returns a network. Each process loads it once, and uses one thread: c4pipe has a process for each core."""
    data = Path(path).read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UsageError(f"the network {path} has another SHA-256 than {sha256}: give the file that is meant")
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
