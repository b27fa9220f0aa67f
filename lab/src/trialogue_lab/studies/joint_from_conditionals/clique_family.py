"""Ising models with equal couplings and equal fields: fits to masked samples, and the constants of Theorem 4.1.4."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import xlogy
from torch import Tensor

from trialogue.data import Ising
from trialogue_lab.theory.masking.block_laws import BlockDistribution, block_distribution, conditionals
from trialogue_lab.theory.masking.tensorization import smallest_conditional, tensorization_upper_bound

Array = NDArray[np.float64]


def compute_total_variation(first: Tensor, second: Tensor) -> float:
    """Return the total variation distance between two distributions.

    Args:
        first: Probabilities (states,).
        second: Probabilities (states,).
    """
    return float((first - second).abs().sum()) / 2


class StateCounts(NamedTuple):
    """Data set of sampled states with masked spins, as counts.

    Attributes:
        samples: Number of samples of each state (states,).
        masks: Number of times that each spin is masked in samples of each state (states, sites).
    """

    samples: NDArray[np.int64]
    masks: NDArray[np.int64]


@dataclass(frozen=True)
class CliqueFamily:
    """Ising models in which all pairs of spins have the same coupling J, and all spins the same field h.

    The parameters theta = (J, h) are restricted to a box. A conditional distribution is the distribution of
    one masked spin given all other spins.

    Args:
        sites: Number of spins.
        couplings: Range (minimum, maximum) of J.
        fields: Range (minimum, maximum) of h.
    """

    sites: int
    couplings: tuple[float, float]
    fields: tuple[float, float]

    def probabilities(self, coupling: float, field: float) -> Tensor:
        """Return the probabilities (states,) float64 of all states of one model.

        Args:
            coupling: Coupling J between all pairs of spins.
            field: Field h of all spins.
        """
        return Ising.clique(self.sites, self.sites, coupling, field).probabilities()

    @cached_property
    def blocks(self) -> BlockDistribution:
        """Distribution of the masked spin, which is uniform over all spins."""
        return block_distribution(self.sites, 2, block_size=1)

    @cached_property
    def _slopes(self) -> Array:
        """Derivatives (states, sites, 2) of the log-odds of each observed spin in J and h."""
        spins = np.array(list(product((-1.0, 1.0), repeat=self.sites)))
        return np.stack((2 * spins * (spins.sum(1, keepdims=True) - spins), 2 * spins), 2)

    def losses(self, theta: Array) -> Array:
        """Return the negative log-probability of each spin given all others, in every state.

        Args:
            theta: Coupling and field (2,).

        Returns:
            Losses (states, sites) in nats.
        """
        return np.logaddexp(0.0, -(self._slopes @ theta))

    @property
    def beta(self) -> float:
        """Smallest conditional probability of a spin given the others, over all models in the box.

        It is the constant of Assumption 4.1.3.
        """
        corners = product(self.couplings, self.fields)
        return min(smallest_conditional(self.probabilities(*corner), self.blocks) for corner in corners)

    def farthest(self, coupling: float, field: float) -> float:
        """Return the largest total variation distance from one model to a model at a corner of the parameter box.

        The box is the range of the parameters J and h of all models.

        Args:
            coupling: Coupling J of the model.
            field: Field h of the model.
        """
        own = self.probabilities(coupling, field)
        corners = product(self.couplings, self.fields)
        return max(compute_total_variation(self.probabilities(*corner), own) for corner in corners)

    def cells(self, eps: float) -> int:
        """Return an upper bound on the number of cells that are needed to cover the parameter box.

        Within a cell, log-probabilities vary by at most eps / 2. The number is C_eps of Assumption 4.1.4.

        Args:
            eps: Accuracy of the cover in nats.
        """
        spans = self.couplings[1] - self.couplings[0], self.fields[1] - self.fields[0]
        rates = 2 * (self.sites - 1), 2
        return math.prod(
            max(1, math.ceil(span * rate * 4 / eps - 1e-9)) for span, rate in zip(spans, rates, strict=True)
        )

    def draw(
        self, coupling: float, field: float, samples: int, masks: int, draws: np.random.Generator
    ) -> StateCounts:
        """Sample a data set from a model, with random masks of single spins.

        Args:
            coupling: Coupling J of the model.
            field: Field h of the model.
            samples: Number of samples.
            masks: Number of masks per sample.
            draws: Random number generator.

        Returns:
            Counts of the states, and of the masked spins in each state.
        """
        states = draws.multinomial(samples, self.probabilities(coupling, field).numpy())
        uniform = np.full(self.sites, 1 / self.sites)
        return StateCounts(states, np.stack([draws.multinomial(count * masks, uniform) for count in states]))

    def fit(self, counts: StateCounts) -> Array:
        """Fit a model to a data set by maximum pseudolikelihood.

        The mean negative log-probability of the masked spins given the others is minimized, which is a convex function
        of the parameters.

        Args:
            counts: The data set.

        Returns:
            Coupling and field (2,) of the best model in the box of parameters.
        """
        weights = counts.masks / counts.masks.sum()

        def objective(theta: Array) -> tuple[float, Array]:
            losses = self.losses(theta)
            missed = -np.expm1(-losses)  # one minus the probability of the observed spin
            slopes = -((weights * missed)[..., None] * self._slopes).sum((0, 1))
            return float((weights * losses).sum()), slopes

        bounds = (self.couplings, self.fields)
        start = np.array([sum(bound) / 2 for bound in bounds])
        options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 500}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return np.asarray(found.x)

    def empirical_loss(self, counts: StateCounts, theta: Array) -> float:
        """Return the mean loss of a model on the masked spins of a data set.

        The loss is the negative log-probability in nats of a masked spin given the others.

        Args:
            counts: The data set.
            theta: Coupling and field (2,) of the model.
        """
        return float((counts.masks * self.losses(theta)).sum() / counts.masks.sum())

    def averaged_loss(self, counts: StateCounts, theta: Array) -> float:
        """Return the mean loss of a model on all spins of a data set.

        The loss is the negative log-probability in nats of a spin given the others. This mean is the expectation of
        `empirical_loss` over random masks.

        Args:
            counts: The data set, of which only the samples are used.
            theta: Coupling and field (2,) of the model.
        """
        return float((counts.samples @ self.losses(theta)).sum() / (counts.samples.sum() * self.sites))

    def conditional_entropy(self, counts: StateCounts) -> float:
        """Return the smallest mean loss in nats that any model can have on a data set.

        The loss is the negative log-probability of a masked spin given the others. Its minimum is the
        conditional entropy of the empirical distribution.

        Args:
            counts: The data set.
        """
        own = conditionals(torch.from_numpy(counts.samples / counts.samples.sum()), self.blocks).numpy()
        return float(-xlogy(counts.masks, np.where(counts.masks > 0, own, 1.0)).sum() / counts.masks.sum())

    def tensorization(self, theta: Array) -> float:
        """Return an upper bound on the factor by which errors of single spins can grow in the joint distribution.

        The factor is the constant C of approximate tensorization of entropy. For the model q and every distribution p,
        KL(p, q) <= C * (mean KL divergence of the conditional distributions of single spins).

        Args:
            theta: Coupling and field (2,) of the model.
        """
        return tensorization_upper_bound(self.probabilities(float(theta[0]), float(theta[1])), self.blocks)
