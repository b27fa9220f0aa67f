"""The parts of a run: ranks, and for every seed networks that hold laws, associations, the likeliest contexts."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator, numpy_generator
from trialogue_lab.ledger import Part
from trialogue_lab.studies.memorization_construct.config import CONTEXT, Config
from trialogue_lab.theory import memorization

Row = Iterator[dict[str, Any]]
_DRAWS = 10
CIRCLE = 2
"""The width, and that of the heads, in which associations are stored on a circle"""

SHAPES = tuple(
    (size, length, width, head_width, heads)
    for size, length, width, heads in (
        (5, 2, 4, 5),
        (5, 2, 5, 3),
        (10, 2, 10, 8),
        (3, 4, 3, 12),
        (4, 3, 4, 9),
        (12, 2, 7, 30),
        (5, 2, 8, 6),
        (3, 3, 5, 4),
        (2, 5, 6, 3),
        (8, 1, 6, 7),
    )
    for head_width in sorted({1, 2, width // 2, width} - {0})
)
"""N, S, d, d_h, H of the features whose rank is measured"""


def parts(config: Config) -> list[Part]:
    """The ranks, and one part per seed."""
    return [
        Part("ranks", _ranks),
        *(
            Part(f"draw-{seed}", partial(_networks, config, seed), columns={"seed": seed})
            for seed in config.seeds
        ),
    ]


def drawn_laws(seed: int, contexts: int, vocab_size: int, name: str = "laws") -> Tensor:
    """Log-probabilities (T, N) of Dirichlet laws of concentration 1/2; no probability is below 1e-12."""
    laws = numpy_generator(seed, name).dirichlet([0.5] * vocab_size, contexts)
    return torch.from_numpy(laws).clamp_min(1e-12).log().log_softmax(1)


def _ranks(_: Path) -> Row:
    for size, length, width, head_width, heads in SHAPES:
        shape = (size, length, width, head_width, heads)
        names = ("vocab_size", "context", "width", "head_width", "heads")
        yield {
            "kind": "rank",
            **dict(zip(names, shape, strict=True)),
            "generic": length > 1 and width <= size,
            "measured": memorization.feature_rank(*shape),
            "rank_one": memorization.feature_rank(*shape, query_width=1),
            "printed": memorization.printed_rank(size**length, width, head_width, heads),
            "mended": memorization.expected_rank(*shape),
        }


def _networks(config: Config, seed: int, _: Path) -> Row:
    yield from _held(config, seed)
    yield from _associations(config, seed)
    yield from _likeliest(config, seed)
    yield from _encoders(config, seed)


def _held(config: Config, seed: int) -> Row:
    size = config.vocab_size
    contexts = whole_sequences(size, CONTEXT)
    laws = drawn_laws(seed, len(contexts), size)
    for width in (config.width, size - 1):
        for provision in config.provisions:
            heads = math.ceil((len(contexts) * (1 + provision) - width) / config.head_width)
            built = memorization.memorize(laws, contexts, width, heads, config.head_width, seed)
            yield {
                "kind": "held",
                "width": width,
                "provision": provision,
                "contexts": len(contexts),
                "features": memorization.capacity(width, config.head_width, heads),
                "parameters": built.model.config.parameters,
                "encoder_kl": built.encoder_kl,
                "excess": built.kl - built.encoder_kl,
                "condition": built.condition,
                "error": built.largest_error,
                "error_float32": built.largest_error_float32,
                "error_bfloat16": built.largest_error_bfloat16,
            }


def _associations(config: Config, seed: int) -> Row:
    """As many associations as there are features, and the accuracy on all contexts."""
    size = config.small_vocab_size
    contexts = whole_sequences(size, CONTEXT)
    order = torch.randperm(len(contexts), generator=generator(seed, "order"))
    tokens = torch.randint(0, size, (len(contexts),), generator=generator(seed, "associations"))
    for heads in config.association_heads:
        stored = order[: min(len(contexts), memorization.capacity(CIRCLE, CIRCLE, heads))]
        built, draws = _drawn_until_full(tokens[stored], contexts[stored], heads, seed, size)
        right = built.model.answers(contexts).argmax(1) == tokens
        yield {
            "kind": "association",
            "heads": heads,
            "stored": len(stored),
            "contexts": len(contexts),
            "draws": draws,
            "parameters": built.model.config.parameters,
            "right": float(right[stored].double().mean()),
            "accuracy": float(right.double().mean()),
            "bound": memorization.accuracy_bound(len(stored), len(contexts), size),
            "previous": memorization.accuracy_bound(
                memorization.previous_capacity(CIRCLE, heads), len(contexts), size
            ),
            "error_float32": built.largest_error_float32,
        }


def _drawn_until_full(
    tokens: Tensor, contexts: Tensor, heads: int, seed: int, vocab_size: int
) -> tuple[memorization.Memorized, int]:
    """Associations held by heads drawn again while rounding takes rank from their features, and how many draws it took.

    In two dimensions with no feature to spare some draws are that badly conditioned.
    """
    for draw in range(_DRAWS):
        try:
            weights = _DRAWS * seed + draw
            built = memorization.memorize(
                tokens, contexts, CIRCLE, heads, CIRCLE, weights, vocab_size=vocab_size
            )
        except InputError as error:
            if error.field != "seed" or draw + 1 == _DRAWS:
                raise
        else:
            return built, draw + 1
    raise AssertionError("the last draw returns or raises")


def _likeliest(config: Config, seed: int) -> Row:
    size = config.small_vocab_size
    contexts = whole_sequences(size, CONTEXT)
    laws = drawn_laws(seed, len(contexts), size)
    ranks = numpy_generator(seed, "prior").permutation(len(contexts)) + 1.0
    prior = torch.from_numpy(ranks**-config.prior_exponent)
    prior /= prior.sum()
    width = size - 1
    for heads in config.kept_heads:
        shape = (width, heads, width, seed)
        kept = memorization.memorize_approximately(laws, contexts, *shape, method="likeliest", prior=prior)
        ridge = memorization.memorize_approximately(laws, contexts, *shape, method="ridge", prior=prior)
        yield {
            "kind": "approximate",
            "heads": heads,
            "left": kept.left,
            "kl": kept.kl,
            "encoder_kl": kept.encoder_kl,
            "tight": kept.tight_bound,
            "loose": kept.loose_bound,
            "ridge": ridge.kl,
        }


def _encoders(config: Config, seed: int) -> Row:
    size = config.small_vocab_size
    laws = drawn_laws(seed, size**CONTEXT, size, "encoded")
    for width in (*config.widths, size - 1):
        yield {
            "kind": "encoder",
            "width": width,
            "truncated": memorization.truncated_encoder(laws, width).kl,
            "nearest": memorization.nearest_encoder(laws, width).kl,
        }
    found = memorization.look_up_encoder(laws, config.look_up_width, seed=seed)
    yield {
        "kind": "look-up",
        "coherence": found.coherence,
        "kl": found.encoder.kl,
        "bound": found.bound,
        "simple": found.simple_bound,
    }
