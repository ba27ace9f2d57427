"""T5: an encoder and a decoder that restore corrupted spans (Raffel et al. 2020, sections 2.1 and 3.1)."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from c4pipe.objectives import objective
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.tokenizer import Tokenizer
from models.layers import Arrays, Random, Size, attend, init_normal, same, shifted, token_loss

SIZES = {
    "tiny": Size(2, 64, 4, 256, length=64, rows=8, rate=0.03, warm_up=300, steps=0),  # for 300 steps on a CPU
    "small": Size(6, 512, 8, 2048, length=512, rows=128, rate=0.01, warm_up=10_000, steps=0),  # section 3.7
    "base": Size(12, 768, 12, 3072, length=512, rows=128, rate=0.01, warm_up=10_000, steps=0),  # section 3.1.1
}
BUCKETS, FARTHEST = 32, 128  # of distances between tokens: section 2.1


def objective_of(tokenizer: Tokenizer, size: Size) -> Objective:
    """Returns how text becomes examples: spans of 3 tokens, 15 % of all (section 3.3.4)."""
    return objective.span_corruption(tokenizer.ids, size.length)


def optimizer_of(size: Size) -> optax.GradientTransformation:
    """Returns Adafactor with a rate of 1 / sqrt(max(step, 10,000)): that is 0.01 at first (section 3.1.2)."""
    return optax.adafactor(lambda step: size.rate / jnp.sqrt(jnp.maximum(step / size.warm_up, 1)))


def init(random: Random, ids: int, size: Size) -> Arrays:
    """Returns the parameters, with the deviations of T5's code: attention there has no scale of its own."""
    width, feed, ones = size.width, size.feed, np.ones(size.width, np.float32)
    per_head = width // size.heads

    def attention() -> Arrays:
        query = init_normal(random, (width * per_head) ** -0.5, width, width)
        others = {name: init_normal(random, width**-0.5, width, width) for name in ("key", "value", "out")}
        return {"norm": ones, "query": query, **others}

    def feed_forward() -> Arrays:
        into, out = init_normal(random, width**-0.5, width, feed), init_normal(random, feed**-0.5, feed, width)
        return {"norm": ones, "in": into, "out": out}

    def stack(*attentions: str) -> Arrays:
        layers = [{**{name: attention() for name in attentions}, "feed": feed_forward()} for _ in range(size.layers)]
        return {"layers": layers, "norm": ones, "distances": init_normal(random, width**-0.5, BUCKETS, size.heads)}

    words = init_normal(random, 1, ids, width)
    return {"words": words, "encoder": stack("self"), "decoder": stack("self", "cross")}


def norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Returns x with a mean square of 1, scaled: no mean is taken off, nothing is added."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def bucket_of(length: int, both: bool) -> np.ndarray[Any, Any]:
    """Returns the bucket of the distance from each query to each key, [length, length], as T5's code has it.

    Half of the buckets are for one distance each, the others for ranges that grow up to the farthest. An encoder looks
    in both directions, and each has half of the buckets.
    """
    distance = np.arange(length)[:, None] - np.arange(length)
    count = BUCKETS // 2 if both else BUCKETS
    away = np.abs(distance) if both else np.maximum(distance, 0)
    near = count // 2
    far = near + np.log(np.maximum(away, 1) / near) / np.log(FARTHEST / near) * (count - near)
    bucket: np.ndarray[Any, Any] = np.where(away < near, away, np.minimum(far.astype(int), count - 1))
    if both:
        bucket += count * (distance < 0)
    return bucket


def bias_of(stack: Arrays, length: int, both: bool) -> jax.Array:
    """Returns what all layers add to the scores of attention, [1, heads, length, length].

    Places in a row are enough, although it is packed: tokens see their own example alone, which has no gaps.
    """
    return stack["distances"][bucket_of(length, both)].transpose(2, 0, 1)[None]


def attention(
    weights: Arrays, x: jax.Array, memory: jax.Array | None, mask: jax.Array, heads: int, bias: jax.Array | None = None
) -> jax.Array:
    """Adds to x, [rows, length, width], what its tokens find in memory, or in x itself."""
    normed = norm(weights["norm"], x)
    memory = normed if memory is None else memory
    query, key, value = normed @ weights["query"], memory @ weights["key"], memory @ weights["value"]
    return x + attend(query, key, value, mask, heads, bias=bias, scale=1.0) @ weights["out"]


def feed_forward(weights: Arrays, x: jax.Array) -> jax.Array:
    """Adds to x what the layer makes of each token by itself."""
    return x + jax.nn.relu(norm(weights["norm"], x) @ weights["in"]) @ weights["out"]


def encoded(parameters: Arrays, inputs: jax.Array, segments: jax.Array, size: Size) -> jax.Array:
    """Returns what the decoder sees of inputs, [rows, length, width]."""
    encoder = parameters["encoder"]
    x, mask = parameters["words"][inputs], same(segments, segments)
    bias = bias_of(encoder, inputs.shape[1], both=True)
    for layer in encoder["layers"]:
        x = feed_forward(layer["feed"], attention(layer["self"], x, None, mask, size.heads, bias))
    return norm(encoder["norm"], x)


def decoded(
    parameters: Arrays, before: jax.Array, segments: jax.Array, memory: jax.Array, inputs: jax.Array, size: Size
) -> jax.Array:
    """Returns what predicts each target, [rows, length, width]: `before` are the targets before, `inputs` segments."""
    decoder = parameters["decoder"]
    x, mask = parameters["words"][before], same(segments, segments) & jnp.tri(before.shape[1], dtype=bool)
    bias = bias_of(decoder, before.shape[1], both=False)
    for layer in decoder["layers"]:
        x = attention(layer["self"], x, None, mask, size.heads, bias)
        x = attention(layer["cross"], x, memory, same(segments, inputs), size.heads)
        x = feed_forward(layer["feed"], x)
    return norm(decoder["norm"], x)


def logits_of(parameters: Arrays, x: jax.Array, size: Size) -> jax.Array:
    """Returns the logits of tokens, [..., ids]."""
    return x @ parameters["words"].T * size.width**-0.5


def loss_of(parameters: Arrays, batch: Arrays, key: jax.Array, size: Size) -> jax.Array:
    """Returns the mean loss of a target token, in nats."""
    inputs, targets = batch["inputs_segment_ids"], batch["targets_segment_ids"]
    memory = encoded(parameters, batch["inputs"], inputs, size)
    before = shifted(batch["targets"], batch["targets_positions"])
    logits = logits_of(parameters, decoded(parameters, before, targets, memory, inputs, size), size)
    return token_loss(logits, batch["targets"], targets > 0)  # padding has segment 0


@partial(jax.jit, static_argnums=(2, 3))
def greedy(parameters: Arrays, inputs: jax.Array, size: Size, eos: int) -> jax.Array:
    """Returns the most likely targets token by token, up to an end of sequence (section 3.1.2), [rows, length].

    A row of inputs has one example, and zeros behind it; so have the targets. Each step computes all places again: that
    is simple, and enough for short targets.
    """
    segments, one = jnp.sign(inputs), jnp.ones_like(inputs)
    memory = encoded(parameters, inputs, segments, size)

    def goes_on(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        place, targets = state
        return (place < targets.shape[1]) & ~jnp.all(jnp.any(targets == eos, 1))

    def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        place, targets = state
        x = decoded(parameters, jnp.roll(targets, 1, axis=1).at[:, 0].set(0), one, memory, segments, size)
        likely = jnp.argmax(logits_of(parameters, x[:, place], size), -1)
        return place + 1, targets.at[:, place].set(jnp.where(jnp.any(targets == eos, 1), 0, likely))

    return jax.lax.while_loop(goes_on, step, (jnp.int32(0), jnp.zeros_like(inputs)))[1]
