"""ELECTRA: a small generator replaces tokens, a discriminator finds them (Clark et al. 2020)."""

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
    embedded,
    encoded,
    init_embedding,
    init_encoder,
    init_linear,
    init_masked,
    linear,
    masked_logits,
    matrices,
    mean,
    token_loss,
    warmed_up,
)

SIZES = {  # the paper's: table 6
    # for 300 steps on a CPU
    "tiny": Size(2, 64, 4, 256, 64, 8, rate=3e-3, warm_up=30, steps=3000, embedding=32, generator=0.5),
    "small": Size(12, 256, 4, 1024, 128, 128, 5e-4, 10_000, 1_000_000, embedding=128, generator=1 / 4),
    "base": Size(12, 768, 12, 3072, 512, 256, 2e-4, 10_000, 766_000, embedding=768, generator=1 / 3),
}
WEIGHT = 50  # of the discriminator's loss (section 2)


def objective_of(tokenizer: Tokenizer, size: Size) -> Objective:
    """Returns how text becomes examples: 15 % masked for the generator."""
    return objective.electra(tokenizer.ids, size.length)


def optimizer_of(size: Size) -> optax.GradientTransformation:
    """Returns Adam with weight decay, and a rate that rises and falls in straight lines (table 6)."""
    return optax.adamw(warmed_up(size), b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.01, mask=matrices)


def generator_of(size: Size) -> tuple[int, int]:
    """Returns the width of the generator, and its heads."""
    return round(size.width * size.generator), round(size.heads * size.generator)


def init(random: Random, ids: int, size: Size) -> Arrays:
    """Returns the parameters: both networks share the embeddings (section 3.2)."""
    width, _ = generator_of(size)
    return {
        "embedding": init_embedding(random, ids, size.length, size.embedding),
        "generator": init_encoder(random, size.layers, width, 4 * width, size.embedding),
        "masked": init_masked(random, ids, width, size.embedding),
        "discriminator": init_encoder(random, size.layers, size.width, size.feed, size.embedding),
        "replaced": [init_linear(random, size.width, size.width), init_linear(random, size.width, 1)],
    }


def loss_of(parameters: Arrays, batch: Arrays, key: jax.Array, size: Size) -> jax.Array:
    """Returns the mean loss of a masked token plus 50 times that of any token, in nats.

    The generator does not learn from what the discriminator finds: no gradient goes through a draw.
    """
    embedding, segments, masked = parameters["embedding"], batch["inputs_segment_ids"], batch["masked"] > 0
    x = embedded(embedding, batch["inputs"], batch)
    x = encoded(parameters["generator"], x, segments, size.layers, generator_of(size)[1])
    logits = masked_logits(parameters["masked"], x, embedding["words"])
    inputs = jnp.where(masked, jax.random.categorical(key, logits), batch["inputs"])

    x = embedded(embedding, inputs, batch)
    x = encoded(parameters["discriminator"], x, segments, size.layers, size.heads)
    dense, out = parameters["replaced"]
    found = linear(out, jax.nn.gelu(linear(dense, x)))[..., 0]
    # a draw can be the token of the text: then it is not replaced
    losses = optax.sigmoid_binary_cross_entropy(found, inputs != batch["targets"])
    return token_loss(logits, batch["targets"], masked) + WEIGHT * mean(losses, segments > 0)
