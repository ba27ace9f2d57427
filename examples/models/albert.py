"""ALBERT: BERT with one layer used again, small embeddings, and segments in order or swapped (Lan et al. 2020)."""

import jax
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
    init_masked,
    init_pair,
    masked_logits,
    matrices,
    pair_loss,
    token_loss,
    warmed_up,
)

SIZES = {
    # for 300 steps on a CPU
    "tiny": Size(2, 64, 4, 256, length=64, rows=8, rate=1e-2, warm_up=30, steps=3000, embedding=32),
    # half of base; the paper has nothing smaller than base
    "small": Size(6, 384, 6, 1536, length=512, rows=4096, rate=1.76e-3, warm_up=3125, steps=125_000, embedding=128),
    # table 1; the training: section 4.1; the warm-up: README.md of google-research/albert
    "base": Size(12, 768, 12, 3072, length=512, rows=4096, rate=1.76e-3, warm_up=3125, steps=125_000, embedding=128),
}


def objective_of(tokenizer: Tokenizer, size: Size) -> Objective:
    """Returns how text becomes examples: n-grams of up to 3 words masked, half of the pairs swapped (section 4.1)."""
    return objective.albert(tokenizer.ids, tokenizer.word_starts, tokenizer.sentence_ends, size.length)


def optimizer_of(size: Size) -> optax.GradientTransformation:
    """Returns LAMB (section 4.1)."""
    return optax.lamb(warmed_up(size), b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.01, mask=matrices)


def init(random: Random, ids: int, size: Size) -> Arrays:
    """Returns the parameters: all layers share those of one (section 3.1)."""
    return {
        "embedding": init_embedding(random, ids, size.length, size.embedding),
        "encoder": init_encoder(random, 1, size.width, size.feed, size.embedding),
        "masked": init_masked(random, ids, size.width, size.embedding),
        "pair": init_pair(random, size.width),
    }


def loss_of(parameters: Arrays, batch: Arrays, key: jax.Array, size: Size) -> jax.Array:
    """Returns the mean loss of a masked token plus that of a pair, in nats."""
    x = embedded(parameters["embedding"], batch["inputs"], batch)
    x = encoded(parameters["encoder"], x, batch["inputs_segment_ids"], size.layers, size.heads)
    logits = masked_logits(parameters["masked"], x, parameters["embedding"]["words"])
    return token_loss(logits, batch["targets"], batch["masked"]) + pair_loss(parameters["pair"], x, batch["order"])
