"""What the models share. Parameters are trees of arrays; what begins with `init_` makes them.

Packing must not show: a token attends to tokens of its own segment alone, and its position is that in its example.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Arrays = Any
"""A tree of arrays, as JAX has them."""

Random = np.random.Generator


@dataclass(frozen=True)
class Size:
    """The numbers of a model and of its training.

    Attributes:
        layers: the number of layers of the encoder, and of the decoder.
        width: the numbers of a token between layers.
        heads: the heads of an attention.
        feed: the inner width of a feed-forward layer.
        length: the tokens of a row.
        rows: the rows of a batch.
        rate: the highest learning rate.
        warm_up: the steps until the learning rate is at its highest.
        steps: the steps until it is at its lowest.
        embedding: the width of embeddings; 0 for `width`.
        generator: the width of ELECTRA's generator, as a share of the discriminator's.
    """

    layers: int
    width: int
    heads: int
    feed: int
    length: int
    rows: int
    rate: float
    warm_up: int
    steps: int
    embedding: int = 0
    generator: float = 1.0


# Single layers


def init_normal(random: Random, deviation: float, *shape: int) -> Arrays:
    """Returns normal numbers of 32 bits with this standard deviation."""
    numbers = random.standard_normal(shape, np.float32)
    numbers *= np.float32(deviation)
    return numbers


def init_linear(random: Random, inputs: int, outputs: int, deviation: float = 0.02) -> Arrays:
    """Returns a matrix and a bias; BERT, GPT-2 and their kin begin with a standard deviation of 0.02."""
    return {"matrix": init_normal(random, deviation, inputs, outputs), "bias": np.zeros(outputs, np.float32)}


def linear(weights: Arrays, x: jax.Array) -> jax.Array:
    """Returns x, [..., inputs], times the matrix, plus the bias: [..., outputs]."""
    return x @ weights["matrix"] + weights["bias"]


def init_norm(width: int) -> Arrays:
    """Returns the scale and shift of a layer norm."""
    return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}


def layer_norm(weights: Arrays, x: jax.Array) -> jax.Array:
    """Returns x with mean 0 and variance 1 in the last axis, then scaled and shifted."""
    return jax.nn.standardize(x, epsilon=1e-6) * weights["scale"] + weights["shift"]


def attend(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array, heads: int, **more: Any) -> jax.Array:
    """Returns what the queries, [rows, length, width], find in the values where mask, [rows, length, memory], is set.

    `more` can have `bias`, [1, heads, length, memory], and `scale`, by default 1 / sqrt(width of a head).
    """

    def split(x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:2], heads, -1)

    found = jax.nn.dot_product_attention(split(query), split(key), split(value), mask=mask[:, None], **more)
    return found.reshape(query.shape)


def same(segments: jax.Array, others: jax.Array) -> jax.Array:
    """Returns a mask, [rows, length, others' length], of tokens that are of the same segment."""
    return segments[:, :, None] == others[:, None]


def shifted(targets: jax.Array, positions: jax.Array) -> jax.Array:
    """Returns the inputs of a decoder: the target before. An example begins with 0, as T5's do."""
    return jnp.where(positions == 0, 0, jnp.roll(targets, 1, axis=1))


# Layers with biases, as BERT and GPT-2 have them


def init_block(random: Random, width: int, feed: int, deviation: float = 0.02) -> Arrays:
    """Returns an attention, a feed-forward layer and their norms; `deviation` is that of what is added to a token."""
    return {
        **{name: init_linear(random, width, width) for name in ("query", "key", "value")},
        "out": init_linear(random, width, width, deviation),
        "in": init_linear(random, width, feed),
        "back": init_linear(random, feed, width, deviation),
        "norms": [init_norm(width), init_norm(width)],
    }


def self_attention(weights: Arrays, x: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
    """Returns what tokens find in the others, [rows, length, width]."""
    query, key, value = (linear(weights[name], x) for name in ("query", "key", "value"))
    return linear(weights["out"], attend(query, key, value, mask, heads))


def feed_forward(weights: Arrays, x: jax.Array) -> jax.Array:
    """Returns what the layer makes of each token by itself, [rows, length, width]."""
    return linear(weights["back"], jax.nn.gelu(linear(weights["in"], x)))


# The encoder of BERT, ELECTRA and ALBERT (Devlin et al. 2019, section 3)


def init_embedding(random: Random, ids: int, length: int, width: int) -> Arrays:
    """Returns the embeddings of ids, of positions and of the two segments of a pair."""
    sizes = {"words": ids, "places": length, "types": 2}
    return {**{name: init_normal(random, 0.02, size, width) for name, size in sizes.items()}, "norm": init_norm(width)}


def embedded(weights: Arrays, ids: jax.Array, batch: Arrays) -> jax.Array:
    """Returns ids as vectors, [rows, length, embedding]; without `types`, all are of the first segment."""
    places, types = weights["places"][batch["inputs_positions"]], weights["types"][batch.get("types", 0)]
    return layer_norm(weights["norm"], weights["words"][ids] + places + types)


def init_encoder(random: Random, layers: int, width: int, feed: int, embedding: int) -> Arrays:
    """Returns so many layers, and a matrix in front of them where embeddings have another width."""
    project = init_linear(random, embedding, width) if embedding != width else None
    return {"project": project, "layers": [init_block(random, width, feed) for _ in range(layers)]}


def encoded(weights: Arrays, x: jax.Array, segments: jax.Array, layers: int, heads: int) -> jax.Array:
    """Returns embeddings after so many layers, [rows, length, width]. They are used again where there are fewer."""
    if weights["project"] is not None:
        x = linear(weights["project"], x)
    mask = same(segments, segments)
    for number in range(layers):
        layer = weights["layers"][number % len(weights["layers"])]
        x = layer_norm(layer["norms"][0], x + self_attention(layer, x, mask, heads))
        x = layer_norm(layer["norms"][1], x + feed_forward(layer, x))
    return x


def init_masked(random: Random, ids: int, width: int, embedding: int) -> Arrays:
    """Returns what predicts masked tokens."""
    dense = init_linear(random, width, embedding)
    return {"dense": dense, "norm": init_norm(embedding), "bias": np.zeros(ids, np.float32)}


def masked_logits(weights: Arrays, x: jax.Array, words: jax.Array) -> jax.Array:
    """Returns the logits of the token at each place, [rows, length, ids], given the embeddings of the ids."""
    x = layer_norm(weights["norm"], jax.nn.gelu(linear(weights["dense"], x)))
    return x @ words.T + weights["bias"]


def init_pair(random: Random, width: int) -> Arrays:
    """Returns what tells pairs of segments from others."""
    return {"dense": init_linear(random, width, width), "out": init_linear(random, width, 2)}


def pair_loss(weights: Arrays, x: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns the mean loss of a pair. Labels, [rows, length], are 1 or 2 at the beginning of a pair, 0 elsewhere."""
    logits = linear(weights["out"], jnp.tanh(linear(weights["dense"], x)))
    return token_loss(logits, jnp.maximum(labels - 1, 0), labels > 0)


# Losses and learning rates


def token_loss(logits: jax.Array, targets: jax.Array, mask: jax.Array) -> jax.Array:
    """Returns the mean loss of a target where mask, [rows, length], is set, in nats."""
    return mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets), mask)


def mean(losses: jax.Array, mask: jax.Array) -> jax.Array:
    """Returns the mean of losses, [rows, length], where mask is set."""
    return jnp.sum(losses * mask) / jnp.maximum(jnp.sum(mask), 1)


def warmed_up(size: Size) -> optax.Schedule:
    """Returns a learning rate that rises to its highest in a straight line, and falls to 0 in another."""
    rise = optax.linear_schedule(0, size.rate, size.warm_up)
    fall = optax.linear_schedule(size.rate, 0, size.steps - size.warm_up)
    return optax.join_schedules([rise, fall], [size.warm_up])


def matrices(parameters: Arrays) -> Arrays:
    """Returns which parameters have weight decay: all but biases and norms."""
    return jax.tree.map(lambda each: each.ndim > 1, parameters)
