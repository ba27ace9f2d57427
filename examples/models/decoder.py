"""A decoder that predicts the next token: GPT-2's layers (Radford et al. 2019), GPT-3's numbers (Brown et al. 2020)."""

import jax
import jax.numpy as jnp
import optax

from c4pipe.objectives import objective
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.tokenizer import Tokenizer
from models.layers import (
    Arrays,
    Random,
    Size,
    feed_forward,
    init_block,
    init_norm,
    init_normal,
    layer_norm,
    matrices,
    same,
    self_attention,
    shifted,
    token_loss,
)

SIZES = {
    "tiny": Size(2, 64, 4, 256, length=64, rows=8, rate=3e-3, warm_up=30, steps=3000),  # for 300 steps on a CPU
    # Pythia-70M's layers (Biderman et al. 2023, table 1): GPT-3 has nothing so small
    "small": Size(6, 512, 8, 2048, length=2048, rows=256, rate=1e-3, warm_up=715, steps=496_000),
    # GPT-3 Small (table 2.1): 0.5M tokens a batch; 375M tokens of warm-up, 260B to the lowest rate (appendix B)
    "base": Size(12, 768, 12, 3072, length=2048, rows=256, rate=6e-4, warm_up=715, steps=496_000),
}


def objective_of(tokenizer: Tokenizer, size: Size) -> Objective:
    """Returns how text becomes examples: pieces of documents, packed."""
    return objective.language_model(tokenizer.ids, size.length)


def optimizer_of(size: Size) -> optax.GradientTransformation:
    """Returns Adam with clipped gradients; the rate is a cosine down to its tenth (GPT-3, appendix B)."""
    rate = optax.warmup_cosine_decay_schedule(0, size.rate, size.warm_up, size.steps, size.rate / 10)
    adam = optax.adamw(rate, b1=0.9, b2=0.95, eps=1e-8, weight_decay=0.1, mask=matrices)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


def init(random: Random, ids: int, size: Size) -> Arrays:
    """Returns the parameters. What layers add to a token begins smaller, by their number (GPT-2, section 2.3)."""
    added = 0.02 / (2 * size.layers) ** 0.5
    return {
        "words": init_normal(random, 0.02, ids, size.width),
        "places": init_normal(random, 0.01, size.length, size.width),
        "layers": [init_block(random, size.width, size.feed, added) for _ in range(size.layers)],
        "norm": init_norm(size.width),
    }


def loss_of(parameters: Arrays, batch: Arrays, key: jax.Array, size: Size) -> jax.Array:
    """Returns the mean loss of a token, in nats."""
    segments, positions = batch["targets_segment_ids"], batch["targets_positions"]
    x = parameters["words"][shifted(batch["targets"], positions)] + parameters["places"][positions]
    mask = same(segments, segments) & jnp.tri(segments.shape[1], dtype=bool)
    for layer in parameters["layers"]:
        x += self_attention(layer, layer_norm(layer["norms"][0], x), mask, size.heads)
        x += feed_forward(layer, layer_norm(layer["norms"][1], x))
    logits = layer_norm(parameters["norm"], x) @ parameters["words"].T
    return token_loss(logits, batch["targets"], segments > 0)  # padding has segment 0
