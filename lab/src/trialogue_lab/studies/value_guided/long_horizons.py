"""Horizons beyond what can be listed: fair coins, and an outcome that is a product over tokens.

V*(y) is then the product over the tokens of y, and values that err by the last token leave every sampler's law a
product over positions: of first leaves by series and parallel conductances of one node per depth and token. The walks
themselves are run. How far their outputs are from the restricted law is measured on the event A where the computed law
exceeds it, as the share of outputs in A less the probability of A: its mean is the total variation, if they sample what
is computed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import Table
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import numpy_generator, seed_of
from trialogue.samplers import ActionLevel, ValueGuided, generate
from trialogue.samplers.prefix.sampler import Sampler
from trialogue.verifiers import NoisyValues
from trialogue_lab.studies.value_guided.config import LAST_TOKEN, Config

Array = NDArray[np.float64]
ERROR = 0.3
"""The values err by a factor of 1.3, up after token 0 and down after token 1."""
_COMPUTED = 200_000


class ProductValues(Verifier):
    """The product over tokens of 1 + tilt for each token 0 and 1 - tilt for each token 1."""

    def __init__(self, tilt: float) -> None:
        self._factors = torch.tensor([1 + tilt, 1 - tilt], dtype=torch.float64)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        tokens, lengths = decoding.tokens[rows], decoding.lengths[rows]
        within = torch.arange(tokens.shape[1]) < lengths[:, None]
        return torch.where(within, self._factors[tokens], 1.0).prod(1)


def action_level_shares(horizon: int, tilt: float, error: float) -> Array:
    """The probability (horizon,) of token 0 at each position, going down only."""
    due = (1 + tilt) / 2
    odds = np.full(horizon, due / (1 - due) * (1 + error) ** 2)
    odds[-1] = due / (1 - due)
    return np.asarray(odds / (1 + odds))


def first_leaf_shares(horizon: int, tilt: float, error: float) -> Array:
    """The same of the first leaf of the value-guided walk."""
    due = np.array([1 + tilt, 1 - tilt]) / 2
    errors = np.array([1 + error, 1 / (1 + error)])
    # Per unit of p V*, from a child's parent to the leaves below the child: at a leaf, 1.
    through = np.ones(2)
    shares = np.empty(horizon)
    for position in range(horizon - 1, -1, -1):
        weights = due * through
        shares[position] = weights[0] / weights.sum()
        through = errors * weights.sum() / (errors + weights.sum())
    return shares


def log_ratios(tokens: NDArray[np.int64], shares: Array, tilt: float) -> Array:
    """log of the law with `shares` over the restricted law, of sequences (n, horizon)."""
    due = (1 + tilt) / 2
    ratios = np.where(tokens == 0, np.log(shares / due), np.log((1 - shares) / (1 - due)))
    return np.asarray(ratios.sum(1))


def restricted_draws(horizon: int, tilt: float, number: int, seed: int) -> NDArray[np.int64]:
    """Sequences (number, horizon) of the restricted law."""
    draw = numpy_generator(seed, "restricted", horizon)
    return np.asarray(draw.random((number, horizon)) >= (1 + tilt) / 2).astype(np.int64)


def variation(shares: Array, tilt: float, seed: int) -> tuple[float, float]:
    """Total variation of the law with `shares` from the restricted one, and the probability of A under the latter."""
    ratios = log_ratios(restricted_draws(len(shares), tilt, _COMPUTED, seed), shares, tilt)
    return float(np.maximum(0, 1 - np.exp(ratios)).mean()), float((ratios > 0).mean())


def measure_long_horizons(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    """Walks as they run, and what is computed of them."""
    values = NoisyValues(ProductValues(config.tilt), ERROR, LAST_TOKEN)
    walks: dict[str, tuple[Sampler[Any], Any]] = {
        "action level": (ActionLevel(), action_level_shares),
        "first leaf": (ValueGuided(lazy=False), first_leaf_shares),
    }
    for horizon in config.long_horizons:
        coins = Table(lambda _: (0.5, 0.5), 2, max_length=horizon, memory=0)
        for name, (walk, shares_of) in walks.items():
            shares = shares_of(horizon, config.tilt, ERROR)
            computed, chance = variation(shares, config.tilt, 0)
            samples = generate(
                coins,
                sampler=walk,
                verifier=values,
                num_samples=config.draws,
                seed=seed_of(seed, name, horizon),
                memory=1 << 20,
            )
            inside = log_ratios(samples.tokens.numpy(), shares, config.tilt) > 0
            yield {
                "kind": "long",
                "horizon": horizon,
                "walk": name,
                "computed": computed,
                "sampled": float(inside.mean()) - chance,
                "queries": float(samples.queries.double().mean()),
            }
