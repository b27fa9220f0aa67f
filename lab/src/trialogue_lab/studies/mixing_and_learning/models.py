"""Random models and mask laws of the study: Ising models, exponential families, blocks."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.oracles import whole_sequences
from trialogue.randomness import numpy_generator
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_law


def random_ising(sites: int, coupling: float, field: float, seed: int, place: int) -> Ising:
    """Normal couplings and fields with deviations `coupling` and `field`; the normal numbers are those of the place."""
    drawn = _draws(seed, "model", place).standard_normal(sites * (sites - 1) // 2 + sites)
    scale = np.where(np.arange(len(drawn)) < len(drawn) - sites, coupling, field)
    return Ising.from_parameters(torch.from_numpy(scale * drawn), sites)


class RandomFamily:
    """An exponential family on `sites` bits whose six features are random numbers (states, 6)."""

    name: ClassVar[str] = "random features"
    vocab_size = 2

    def __init__(self, features: Tensor, parameters: Tensor, sites: int) -> None:
        self._features, self.parameters, self.sites = features, parameters, sites

    def states(self) -> Tensor:
        """All states (2^N, N) int64 in the order of `itertools.product`."""
        return whole_sequences(2, self.sites)

    def features(self, tokens: Tensor) -> Tensor:
        """Features (rows, 6) float64 of `tokens` (rows, N)."""
        places = 2 ** torch.arange(self.sites - 1, -1, -1)
        return self._features[(tokens * places).sum(1)]

    def probabilities(self) -> Tensor:
        """p(x) (2^N,) float64 of `states`."""
        return (self._features @ self.parameters).softmax(0)


def random_family(sites: int, seed: int, place: int) -> RandomFamily:
    """Six features and their parameters, all normal."""
    draws = _draws(seed, RandomFamily.name, place)
    features, parameters = draws.standard_normal((2**sites, 6)), 0.5 * draws.standard_normal(6)
    return RandomFamily(torch.from_numpy(features), torch.from_numpy(parameters), sites)


def random_law(sites: int, blocks: int, adaptive: bool, seed: int, place: int) -> BlockLaw:
    """Random blocks of 1 to N - 1 sites that cover all; weights uniform on the simplex, in each state if adaptive."""
    draws = _draws(seed, "adaptive" if adaptive else "weighted", place)
    while True:
        sizes = draws.integers(1, sites, blocks)
        chosen = [sorted(draws.choice(sites, size, replace=False).tolist()) for size in sizes]
        if len(set().union(*chosen)) == sites:
            break
    weights = torch.from_numpy(draws.dirichlet(np.ones(blocks), 2**sites if adaptive else 1))
    described: dict[str, Any] = {"distribution": weights} if adaptive else {"weights": weights[0]}
    return block_law(sites, 2, blocks=chosen, **described)


def _draws(seed: int, *names: object) -> np.random.Generator:
    return numpy_generator(seed, "mixing-and-learning", *names)
