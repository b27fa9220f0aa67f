"""Decoding at temperature 0, and the theorem on parallel decoding of Fast-dLLM (arXiv 2505.22618)."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.samplers.unmasking import Ordered
from trialogue.samplers.unmasking.contract import Canvas
from trialogue_lab.studies.unmasking.instances import Conditionals, sum_over_masks

_ROUNDING = 1e-9


class TheoremCase(NamedTuple):
    """Sets of positions of one size whose most probable tokens are so probable that Theorem 1 applies to them.

    Attributes:
        positions: Number n of positions of a set.
        cases: Number of pairs of a possible canvas and a set.
        different: Number of cases in which the most probable joint tokens differ from the most probable single ones.
        variation_ratio: Largest ratio of the total variation between joint and product to the bound of the theorem.
        divergence_ratio: Largest ratio of the divergence between joint and product to the bound of the theorem.
        mean_variation_ratio: Mean of the first ratio over cases.
    """

    positions: int
    cases: int
    different: int
    variation_ratio: float
    divergence_ratio: float
    mean_variation_ratio: float


def check_theorem(joint: Tensor) -> Iterator[TheoremCase]:
    """Compare joint and product distributions of all sets of masked positions to which Theorem 1 applies.

    The theorem is about n positions whose most probable tokens have probabilities above 1 - e, with (n + 1) e <= 1. It
    states that the product of the conditionals has the same most probable tokens as the joint distribution, a total
    variation below (3 n - 1) e / 2, and a divergence below (n - 1) (H(e) + e log(V - 1)). Here H is the entropy of a
    coin, and e is the smallest admissible number.

    Args:
        joint: Probabilities (V, ..., V).
    """
    sums, vocab, sites = sum_over_masks(joint), joint.shape[0], joint.ndim
    for size in range(2, sites + 1):
        found = []
        for chosen in combinations(range(sites), size):
            rest = [site for site in range(sites) if site not in chosen]
            table = sums.permute(*rest, *chosen)
            # The chosen positions are the last axes: all masked, or all revealed.
            contexts = table.flatten(len(rest))[..., -1].flatten()
            tokens = table[(..., *(slice(0, vocab),) * size)].reshape(len(contexts), *[vocab] * size)
            possible = contexts > 0
            found.append(_compare(tokens[possible] / contexts[possible].reshape(-1, *[1] * size)))
        cases = torch.cat(found)
        if len(cases):
            different, variation, divergence = cases.T
            yield TheoremCase(
                size,
                len(cases),
                int(different.sum()),
                float(variation.max()),
                float(divergence.max()),
                float(variation.mean()),
            )


def _compare(tokens: Tensor) -> Tensor:
    """Return differences of modes and both ratios (cases, 3), given conditional joint distributions (n, V, ..., V)."""
    size, vocab = tokens.ndim - 1, tokens.shape[1]
    singles = [tokens.sum([axis for axis in range(1, size + 1) if axis != own]) for own in range(1, size + 1)]
    error = 1 - torch.stack([single.amax(1) for single in singles]).amin(0)
    applies = ((size + 1) * error < 1 - _ROUNDING) & (error > _ROUNDING)
    tokens, error = tokens[applies].flatten(1), error[applies]
    product = torch.ones(len(tokens), 1, dtype=torch.float64)
    for single in singles:
        product = (product[:, :, None] * single[applies, None]).flatten(1)
    variation = (tokens - product).abs().sum(1) / 2
    logs = torch.where(tokens > 0, (tokens / product).log(), 0.0)
    divergence = (tokens * logs).sum(1)
    coin = torch.special.entr(error) + torch.special.entr(1 - error)
    return torch.stack(
        (
            (tokens.argmax(1) != product.argmax(1)).double(),
            variation / ((3 * size - 1) * error / 2),
            divergence / ((size - 1) * (coin + error * math.log(max(vocab - 1, 1)))),
        ),
        1,
    )


def decode(sampler: Ordered, model: Conditionals) -> Tensor:
    """Complete every canvas at temperature 0.

    Args:
        sampler: Sampler with a deterministic order and temperature 0.
        model: The conditional distributions.

    Returns:
        Texts (canvases, L) int64. Canvases are in the order of `itertools.product`, with token V at masked positions.
    """
    vocab, sites = model.vocab_size, model.sites
    canvases = torch.cartesian_prod(*[torch.arange(vocab + 1)] * sites)
    masked = canvases == vocab
    state: Any = Canvas.start(canvases.masked_fill(masked, 0), masked)
    while bool(state.masked.any()):
        state = sampler.step(state, model.log_probs(state.tokens, state.masked), _refuse)
    tokens: Tensor = state.tokens
    return tokens


def _refuse(log_weights: Tensor, rows: Tensor) -> Tensor:
    raise AssertionError(f"a deterministic sampler made a random choice for rows {rows} of {log_weights}")


def prompt_weights(joint: Tensor) -> Tensor:
    """Return the probability of each canvas, if a text of the distribution loses 1 to L tokens.

    The number of masked positions is uniform, and so is the set of positions.

    Args:
        joint: Probabilities (V, ..., V).

    Returns:
        Probabilities (canvases,) in the order of `decode`.
    """
    vocab, sites = joint.shape[0], joint.ndim
    masked = (torch.cartesian_prod(*[torch.arange(vocab + 1)] * sites) == vocab).sum(1)
    sets = torch.tensor([math.comb(sites, count) for count in range(sites + 1)], dtype=torch.float64)
    return torch.where(masked > 0, sum_over_masks(joint).flatten() / (sites * sets[masked]), 0.0)
