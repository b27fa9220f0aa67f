"""Random models and mask distributions of the study."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import numpy_generator
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_distribution


def sample_ising(sites: int, coupling: float, field: float, seed: int, place: int) -> Ising:
    """Sample an Ising model with normally distributed couplings and fields.

    Args:
        sites: Number of spins.
        coupling: Standard deviation of the couplings between all pairs of spins.
        field: Standard deviation of the fields on single spins.
        seed: Seed of the set of models.
        place: Index of the model in its set. Models with the same seed and index have proportional couplings.
    """
    normal = _make_generator(seed, "model", place).standard_normal(sites * (sites - 1) // 2 + sites)
    scale = np.where(np.arange(len(normal)) < len(normal) - sites, coupling, field)
    return Ising.from_parameters(torch.from_numpy(scale * normal), sites)


@dataclass(frozen=True, eq=False)
class RandomFamily:
    """An exponential family on binary sequences, with six random features.

    The probability of a sequence is proportional to exp(features · parameters).

    Args:
        all_features: Features (2^sites, 6) of all sequences, in the order of `itertools.product`.
        parameters: Natural parameters (6,).
        sites: Number of bits of a sequence.
    """

    name: ClassVar[str] = "random features"
    vocab_size: ClassVar[int] = 2
    all_features: Tensor
    parameters: Tensor
    sites: int

    def states(self) -> Tensor:
        """Return all binary sequences (2^sites, sites), int64, in the order of `itertools.product`."""
        return enumerate_sequences(2, self.sites)

    def features(self, tokens: Tensor) -> Tensor:
        """Return the features of binary sequences.

        Args:
            tokens: Sequences (rows, sites), int64, with entries 0 and 1.

        Returns:
            Features (rows, 6).
        """
        return self.all_features[(tokens << torch.arange(self.sites).flip(0)).sum(1)]

    def probabilities(self) -> Tensor:
        """Return the probabilities (2^sites,) of all sequences, in the order of `states`."""
        return (self.all_features @ self.parameters).softmax(0)


def sample_family(sites: int, seed: int, place: int) -> RandomFamily:
    """Sample an exponential family on binary sequences, with six normally distributed features.

    Args:
        sites: Number of bits of a sequence.
        seed: Seed of the set of models.
        place: Index of the model in its set.
    """
    draws = _make_generator(seed, RandomFamily.name, place)
    features, parameters = draws.standard_normal((2**sites, 6)), 0.5 * draws.standard_normal(6)
    return RandomFamily(torch.from_numpy(features), torch.from_numpy(parameters), sites)


def sample_masks(sites: int, blocks: int, adaptive: bool, seed: int, place: int) -> BlockDistribution:
    """Sample a distribution over sets of masked variables.

    Each set has 1 to N - 1 of the N variables, and every variable belongs to at least one set.

    Args:
        sites: Number N of variables.
        blocks: Number of sets.
        adaptive: Whether the probabilities of the sets depend on the state. If so, they are sampled for every state.
        seed: Seed of the set of models.
        place: Index of the model in its set.
    """
    draws = _make_generator(seed, "adaptive" if adaptive else "weighted", place)
    chosen: list[list[int]] = []
    while len(set().union(*chosen)) < sites:
        sizes = draws.integers(1, sites, blocks)
        chosen = [sorted(draws.choice(sites, size, replace=False).tolist()) for size in sizes]
    weights = torch.from_numpy(draws.dirichlet(np.ones(blocks), 2**sites if adaptive else 1))
    described: dict[str, Any] = {"distribution": weights} if adaptive else {"weights": weights[0]}
    return block_distribution(sites, 2, blocks=chosen, **described)


def _make_generator(seed: int, *names: object) -> np.random.Generator:
    return numpy_generator(seed, "mixing-and-learning", *names)
