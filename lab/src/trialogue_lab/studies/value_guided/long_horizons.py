"""Value-guided samplers on sequences of fair coin tosses that are too long for enumeration.

The value of a prefix is the expected outcome of its completions. Outcome and values are products over tokens,
and the errors of approximate values depend on the last token. The output distributions are then products over
positions and can be computed. The samplers are also run. Their total variation distance from the target is
estimated by the share of outputs that the computed distribution makes more likely than the target.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import Table
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import ActionLevel, ValueGuided, generate
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.verifiers import NoisyValues
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.value_guided.config import LAST_TOKEN, Config

Array = NDArray[np.float64]
ERROR = 0.3
"""Values are too large by a factor of 1 plus this number after token 0, and too small after token 1."""
_SAMPLES = 200_000


class ProductValues(Verifier):
    """Values of token sequences that are products over tokens.

    Each token 0 contributes a factor 1 + tilt, and each token 1 a factor 1 - tilt.

    Args:
        tilt: Parameter between 0 and 1.
    """

    def __init__(self, tilt: float) -> None:
        self._factors = torch.tensor([1 + tilt, 1 - tilt], dtype=torch.float64)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the value of each selected sequence.

        Args:
            decoding: The sequences being generated.
            rows: Indices (n,) of the selected sequences.

        Returns:
            Values (n,), float64.
        """
        tokens, lengths = decoding.tokens[rows], decoding.lengths[rows]
        within = torch.arange(tokens.shape[1]) < lengths[:, None]
        return torch.where(within, self._factors[tokens], 1.0).prod(1)


def compute_action_level_shares(horizon: int, tilt: float, error: float) -> Array:
    """Return the exact probability of token 0 at each position, for action-level sampling.

    Action-level sampling weights each next token by an approximate value. The model generates fair coin
    tosses. The exact value of a sequence is a product of factors: 1 + tilt for token 0, and 1 - tilt for
    token 1.

    Args:
        horizon: Length of the sequence.
        tilt: Parameter of the exact values.
        error: Approximate values are too large by a factor of 1 + `error` after token 0, and too small by
            this factor after token 1.

    Returns:
        Probabilities (horizon,).
    """
    target = (1 + tilt) / 2
    odds = np.full(horizon, target / (1 - target) * (1 + error) ** 2)
    odds[-1] = target / (1 - target)
    return np.asarray(odds / (1 + odds))


def compute_first_leaf_shares(horizon: int, tilt: float, error: float) -> Array:
    """Return the exact probability of token 0 at each position, for the value-guided random walk.

    The walk moves on the tree of prefixes until it reaches a complete sequence, the first leaf. The model
    generates fair coin tosses. The exact value of a sequence is a product of factors: 1 + tilt for token 0,
    and 1 - tilt for token 1.

    Args:
        horizon: Length of the sequence.
        tilt: Parameter of the exact values.
        error: Approximate values are too large by a factor of 1 + `error` after token 0, and too small by
            this factor after token 1.

    Returns:
        Probabilities (horizon,).
    """
    target = np.array([1 + tilt, 1 - tilt]) / 2
    errors = np.array([1 + error, 1 / (1 + error)])
    # Conductance from the parent of a node to the leaves below the node, per unit of p V*. It is 1 for a leaf.
    through = np.ones(2)
    shares = np.empty(horizon)
    for position in range(horizon - 1, -1, -1):
        weights = target * through
        shares[position] = weights[0] / weights.sum()
        through = errors * weights.sum() / (errors + weights.sum())
    return shares


def compute_log_ratios(tokens: NDArray[np.int64], shares: Array, tilt: float) -> Array:
    """Compute the log ratio of the output probability and the target probability of each sequence.

        log(output probability / target probability)

    Tokens are independent in both distributions.

    Args:
        tokens: Token ids (n, horizon).
        shares: Probability (horizon,) of token 0 at each position of an output.
        tilt: Parameter of the target, in which token 0 has probability (1 + tilt) / 2.

    Returns:
        Log ratios (n,).
    """
    target = (1 + tilt) / 2
    ratios = np.where(tokens == 0, np.log(shares / target), np.log((1 - shares) / (1 - target)))
    return np.asarray(ratios.sum(1))


def estimate_variation(shares: Array, tilt: float, seed: int) -> tuple[float, float]:
    """Estimate the total variation distance between an output distribution and the target.

    Tokens are independent in both distributions.

    Args:
        shares: Probability (horizon,) of token 0 at each position of an output.
        tilt: Parameter of the target, in which token 0 has probability (1 + tilt) / 2.
        seed: Seed of the samples from the target.

    Returns:
        The distance, and the target probability of the event A that the output distribution is larger than the target.
    """
    draws = numpy_generator(seed, "restricted", len(shares)).random((_SAMPLES, len(shares)))
    ratios = compute_log_ratios((draws >= (1 + tilt) / 2).astype(np.int64), shares, tilt)
    return float(np.maximum(0, 1 - np.exp(ratios)).mean()), float((ratios > 0).mean())


def measure_long_horizons(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Run value-guided samplers on sequences of fair coin tosses that are too long to enumerate.

    Action-level sampling weights each next token by its value, the expected outcome of the completions. The other
    sampler walks randomly on the tree of prefixes until it reaches a complete sequence (the first leaf). The values
    have errors that depend on the last token.

    Args:
        config: Settings of the run.
        seed: Seed of the outputs.

    Yields:
        One row per sequence length and sampler. `computed` is the computed total variation distance from the target,
        `sampled` is its estimate from the outputs, and `queries` is the number of model calls per output.
    """
    values = NoisyValues(ProductValues(config.tilt), ERROR, LAST_TOKEN)
    samplers: dict[str, tuple[Sampler[Any], Any]] = {
        "action level": (ActionLevel(), compute_action_level_shares),
        "first leaf": (ValueGuided(lazy=False), compute_first_leaf_shares),
    }
    for horizon in config.long_horizons:
        coins = Table(lambda _: (0.5, 0.5), 2, max_length=horizon, memory=0)
        for name, (sampler, compute_shares) in samplers.items():
            shares = compute_shares(horizon, config.tilt, ERROR)
            computed, chance = estimate_variation(shares, config.tilt, 0)
            samples = generate(
                coins,
                sampler=sampler,
                verifier=values,
                num_samples=config.draws,
                seed=derive_seed(seed, name, horizon),
                memory=1 << 20,
            )
            inside = compute_log_ratios(samples.tokens.numpy(), shares, config.tilt) > 0
            yield {
                "kind": "long",
                "horizon": horizon,
                "walk": name,
                "computed": computed,
                "sampled": float(inside.mean()) - chance,
                "queries": float(samples.queries.double().mean()),
            }
