"""BERT: an encoder that predicts masked words, and whether two segments follow each other (Devlin et al. 2019)."""

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
    "tiny": Size(2, 64, 4, 256, length=64, rows=8, rate=3e-3, warm_up=30, steps=3000),  # for 300 steps on a CPU
    # BERT-Small of Turc et al. 2019, table 1, trained as BERT
    "small": Size(4, 512, 8, 2048, length=512, rows=256, rate=1e-4, warm_up=10_000, steps=1_000_000),
    # section 3; the training: appendix A.2
    "base": Size(12, 768, 12, 3072, length=512, rows=256, rate=1e-4, warm_up=10_000, steps=1_000_000),
}


def objective_of(tokenizer: Tokenizer, size: Size) -> Objective:
    """Returns how text becomes examples: 15 % masked, half of the pairs of two documents (section 3.1)."""
    return objective.next_sentence(tokenizer.ids, tokenizer.word_starts, tokenizer.sentence_ends, size.length)


def optimizer_of(size: Size) -> optax.GradientTransformation:
    """Returns Adam with weight decay, and a rate that rises and falls in straight lines (appendix A.2)."""
    return optax.adamw(warmed_up(size), b1=0.9, b2=0.999, eps=1e-6, weight_decay=0.01, mask=matrices)


def init(random: Random, ids: int, size: Size) -> Arrays:
    """Returns the parameters."""
    return {
        "embedding": init_embedding(random, ids, size.length, size.width),
        "encoder": init_encoder(random, size.layers, size.width, size.feed, size.width),
        "masked": init_masked(random, ids, size.width, size.width),
        "pair": init_pair(random, size.width),
    }


def loss_of(parameters: Arrays, batch: Arrays, key: jax.Array, size: Size) -> jax.Array:
    """Returns the mean loss of a masked token plus that of a pair, in nats."""
    x = embedded(parameters["embedding"], batch["inputs"], batch)
    x = encoded(parameters["encoder"], x, batch["inputs_segment_ids"], size.layers, size.heads)
    logits = masked_logits(parameters["masked"], x, parameters["embedding"]["words"])
    return token_loss(logits, batch["targets"], batch["masked"]) + pair_loss(parameters["pair"], x, batch["next"])
