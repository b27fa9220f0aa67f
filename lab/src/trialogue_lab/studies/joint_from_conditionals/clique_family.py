"""Cliques of equal spins whose coupling and field lie in a box: fits of the stated loss, constants of Theorem 4.1.4."""

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
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_law, conditionals
from trialogue_lab.theory.masking.tensorization import smallest_conditional, tensorization_upper_bound

Array = NDArray[np.float64]


class Counts(NamedTuple):
    """Of n samples how many are each state (states,), and how often each site was masked in it (states, sites)."""

    samples: NDArray[np.int64]
    masks: NDArray[np.int64]


@dataclass(frozen=True)
class CliqueFamily:
    """All Ising models on a clique of `sites` spins, J from `couplings` (least, most) and h from `fields`.

    One site is masked at a time. The parameters theta are (J, h).
    """

    sites: int
    couplings: tuple[float, float]
    fields: tuple[float, float]

    def law(self, coupling: float, field: float) -> Tensor:
        """p_theta (states,) float64."""
        return Ising.clique(self.sites, self.sites, coupling, field).probabilities()

    @cached_property
    def blocks(self) -> BlockLaw:
        """Which site is masked: any, uniformly."""
        return block_law(self.sites, 2, block_size=1)

    @cached_property
    def _slopes(self) -> Array:
        """What J and h multiply in the log-odds of the spin that is there (states, sites, 2)."""
        spins = np.array(list(product((-1.0, 1.0), repeat=self.sites)))
        return np.stack((2 * spins * (spins.sum(1, keepdims=True) - spins), 2 * spins), 2)

    def losses(self, theta: Array) -> Array:
        """-log p_theta(x_i | x_-i) (states, sites)."""
        return np.logaddexp(0.0, -(self._slopes @ theta))

    @property
    def beta(self) -> float:
        """Assumption 4.1.3: the least conditional over the box; log-odds are linear, and so least in its corners."""
        corners = product(self.couplings, self.fields)
        return min(smallest_conditional(self.law(*corner), self.blocks) for corner in corners)

    def farthest(self, coupling: float, field: float) -> float:
        """Total variation of the model of `coupling` and `field` from that in the farthest corner of the box."""
        own = self.law(coupling, field)
        corners = product(self.couplings, self.fields)
        return max(float((self.law(*corner) - own).abs().sum()) / 2 for corner in corners)

    def cells(self, eps: float) -> int:
        """Assumption 4.1.4: into how many boxes the box is cut so that no log-probability varies by more than eps / 2.

        It changes by at most 2 per unit of h and 2 (N - 1) per unit of J; each may make half of eps / 2. The least
        number C_eps is at most this, and the bound grows with it.
        """
        spans = self.couplings[1] - self.couplings[0], self.fields[1] - self.fields[0]
        rates = 2 * (self.sites - 1), 2
        return math.prod(
            max(1, math.ceil(span * rate * 4 / eps - 1e-9)) for span, rate in zip(spans, rates, strict=True)
        )

    def draw(
        self, coupling: float, field: float, samples: int, masks: int, draws: np.random.Generator
    ) -> Counts:
        """`samples` states of the model, and `masks` masks for each of them, as counts."""
        of_states = draws.multinomial(samples, self.law(coupling, field).numpy())
        uniform = np.full(self.sites, 1 / self.sites)
        return Counts(of_states, np.stack([draws.multinomial(count * masks, uniform) for count in of_states]))

    def fit(self, counts: Counts) -> Array:
        """The theta (2,) of the box that minimises L^_PL, which is convex in it."""
        weights = counts.masks / counts.masks.sum()

        def objective(theta: Array) -> tuple[float, Array]:
            losses = self.losses(theta)
            missed = -np.expm1(-losses)  # one minus the probability of the spin that is there
            slopes = -((weights * missed)[..., None] * self._slopes).sum((0, 1))
            return float((weights * losses).sum()), slopes

        bounds = (self.couplings, self.fields)
        start = np.array([sum(bound) / 2 for bound in bounds])
        options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 500}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        theta: Array = found.x
        return theta

    def empirical_loss(self, counts: Counts, theta: Array) -> float:
        """L^_PL: the mean of -log p_theta(x_i | x_-i) over samples and masks, in nats."""
        return float((counts.masks * self.losses(theta)).sum() / counts.masks.sum())

    def averaged_loss(self, counts: Counts, theta: Array) -> float:
        """L~_PL: the same with the masks averaged."""
        return float((counts.samples @ self.losses(theta)).sum() / (counts.samples.sum() * self.sites))

    def conditional_entropy(self, counts: Counts) -> float:
        """What of L^_PL no theta can lower: the mean of -log p~(x_i | x_-i) under the samples' own law p~."""
        own = conditionals(torch.from_numpy(counts.samples / counts.samples.sum()), self.blocks).numpy()
        return float(-xlogy(counts.masks, np.where(counts.masks > 0, own, 1.0)).sum() / counts.masks.sum())

    def tensorization(self, theta: Array) -> float:
        """A number that C_AT(p_theta) does not exceed."""
        return tensorization_upper_bound(self.law(float(theta[0]), float(theta[1])), self.blocks)
