"""Tasks of a run: ranks of feature matrices, and networks with computed weights for each seed."""

import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator, numpy_generator
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.memorization_construct.config import CONTEXT, Config
from trialogue_lab.theory import memorization

_ATTEMPTS = 10
PLANE = 2
"""Embedding width and head width of the networks that store one token per context."""

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
"""Network shapes (N, S, d, d_h, H): tokens, context length, embedding width, head width, heads."""
_SHAPE_COLUMNS = ("vocab_size", "context", "width", "head_width", "heads")


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure how much constructed attention-only networks store.

    Args:
        config: Settings of the run.

    Returns:
        One task that measures the ranks of feature matrices, and one task per seed. The latter constructs networks that
        store next-token distributions, and measures their errors.
    """
    return [Part("ranks", _measure_ranks), *parts_by_seed(config, config.seeds, draw=_measure_networks)]


def sample_distributions(seed: int, contexts: int, vocab_size: int, name: str = "laws") -> Tensor:
    """Sample next-token distributions from a Dirichlet distribution with concentration 1/2.

    Args:
        seed: Seed of the distributions.
        contexts: Number of distributions T.
        vocab_size: Number of tokens N.
        name: Name of the random stream.

    Returns:
        Log-probabilities (T, N), float64. Probabilities below 1e-12 are replaced by 1e-12.
    """
    distributions = numpy_generator(seed, name).dirichlet([0.5] * vocab_size, contexts)
    return torch.from_numpy(distributions).clamp_min(1e-12).log().log_softmax(1)


def _measure_ranks(_: Path) -> MeasuredRows:
    for size, length, width, head_width, heads in SHAPES:
        shape = (size, length, width, head_width, heads)
        yield {
            "kind": "rank",
            **dict(zip(_SHAPE_COLUMNS, shape, strict=True)),
            "generic": length > 1 and width <= size,
            "measured": memorization.feature_rank(*shape),
            "rank_one": memorization.feature_rank(*shape, query_width=1),
            "printed": memorization.printed_rank(size**length, width, head_width, heads),
            "mended": memorization.expected_rank(*shape),
        }


def _measure_networks(config: Config, seed: int, _: Path) -> MeasuredRows:
    for measure in (_measure_storage, _measure_associations, _measure_approximations, _measure_encoders):
        yield from measure(config, seed)


def _measure_storage(config: Config, seed: int) -> MeasuredRows:
    size = config.vocab_size
    contexts = enumerate_sequences(size, CONTEXT)
    targets = sample_distributions(seed, len(contexts), size)
    for width in (config.width, size - 1):
        for provision in config.provisions:
            heads = math.ceil((len(contexts) * (1 + provision) - width) / config.head_width)
            built = memorization.memorize(targets, contexts, width, heads, config.head_width, seed)
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


def _measure_associations(config: Config, seed: int) -> MeasuredRows:
    """Build networks that store one token per context for some contexts, and measure their accuracy."""
    size = config.small_vocab_size
    contexts = enumerate_sequences(size, CONTEXT)
    order = torch.randperm(len(contexts), generator=generator(seed, "order"))
    tokens = torch.randint(0, size, (len(contexts),), generator=generator(seed, "associations"))
    for heads in config.association_heads:
        stored = order[: min(len(contexts), memorization.capacity(PLANE, PLANE, heads))]
        built, attempts = _build_with_retries(tokens[stored], contexts[stored], heads, seed, size)
        previous = memorization.previous_capacity(PLANE, heads)
        correct = built.model.context_log_probs(contexts).argmax(1) == tokens
        yield {
            "kind": "association",
            "heads": heads,
            "stored": len(stored),
            "contexts": len(contexts),
            "draws": attempts,
            "parameters": built.model.config.parameters,
            "right": float(correct[stored].double().mean()),
            "accuracy": float(correct.double().mean()),
            "bound": memorization.accuracy_bound(len(stored), len(contexts), size),
            "previous": memorization.accuracy_bound(previous, len(contexts), size),
            "error_float32": built.largest_error_float32,
        }


def _build_with_retries(
    tokens: Tensor, contexts: Tensor, heads: int, seed: int, vocab_size: int
) -> tuple[memorization.MemorizedNetwork, int]:
    """Build a network that stores one token per context, and return it with the number of attempts.

    In two dimensions, rounding can lower the rank of the features of badly conditioned random heads. Such heads are
    sampled again.
    """
    attempts = 0
    while True:
        weights = _ATTEMPTS * seed + attempts
        attempts += 1
        try:
            built = memorization.memorize(
                tokens, contexts, PLANE, heads, PLANE, weights, vocab_size=vocab_size
            )
            return built, attempts
        except InputError as error:
            if error.field != "seed" or attempts == _ATTEMPTS:
                raise


def _measure_approximations(config: Config, seed: int) -> MeasuredRows:
    size = config.small_vocab_size
    contexts = enumerate_sequences(size, CONTEXT)
    targets = sample_distributions(seed, len(contexts), size)
    ranks = numpy_generator(seed, "prior").permutation(len(contexts)) + 1.0
    prior = torch.from_numpy(ranks**-config.prior_exponent)
    prior /= prior.sum()
    width = size - 1
    for heads in config.kept_heads:
        shape = (width, heads, width, seed)
        build = partial(memorization.memorize_approximately, targets, contexts, *shape, prior=prior)
        kept, ridge = build(method="likeliest"), build(method="ridge")
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


def _measure_encoders(config: Config, seed: int) -> MeasuredRows:
    size = config.small_vocab_size
    targets = sample_distributions(seed, size**CONTEXT, size, "encoded")
    for width in (*config.widths, size - 1):
        yield {
            "kind": "encoder",
            "width": width,
            "truncated": memorization.truncated_encoder(targets, width).kl,
            "nearest": memorization.nearest_encoder(targets, width).kl,
        }
    found = memorization.look_up_encoder(targets, config.look_up_width, seed=seed)
    yield {
        "kind": "look-up",
        "coherence": found.coherence,
        "kl": found.encoder.kl,
        "bound": found.bound,
        "simple": found.simple_bound,
    }
