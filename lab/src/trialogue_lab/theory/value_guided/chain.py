"""Exact analysis of the value-guided random walk as a Markov chain: speed of convergence, and first output."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.probabilities import validate_probabilities
from trialogue.samplers.exact import sampler_transitions, total_variation
from trialogue.samplers.exact.elimination import AbsorbingChain, require_distribution, stationary_distribution
from trialogue.samplers.prefix.value_guided import ValueGuided
from trialogue.validation import Natural, Share, validated
from trialogue.verifiers.functions.function import VerifierLike

Array = NDArray[np.float64]
Sequence_ = tuple[int, ...]
_DENSE = 1500
"""Largest number of states for which eigenvalues are computed with dense matrices."""


@dataclass(frozen=True, eq=False)
class ValueGuidedChain:
    """A value-guided random walk on prefixes as a Markov chain. The walk never stops.

    It moves along the tree of prefixes of a next-token model, one token up or down, and prefers prefixes of
    high value.

    Attributes:
        states: The n prefixes, starting with the prompt.
        transitions: Sparse transition matrix (n, n).
        leaf: Mask (n,) bool of the complete sequences.

    Raises:
        InputError: If a row does not sum to one, because the walk stops in this state.
    """

    states: list[Sequence_]
    transitions: csr_array
    leaf: NDArray[np.bool_]

    def __post_init__(self) -> None:
        totals = np.asarray(self.transitions.sum(1))
        if not bool((abs(totals - 1) < 1e-9).all()):
            hint = "a row has this sum instead of 1: give a walk that never stops"
            raise InputError("transitions", float(totals.min()), hint)

    @cached_property
    def stationary(self) -> Array:
        """Stationary distribution (n,). It is unique because every reachable state leads back to the root."""
        return stationary_distribution(self.transitions)

    @property
    def reversibility_residual(self) -> float:
        """Largest |mu(x) P(x, y) - mu(y) P(y, x)|, which is 0 if the chain is reversible.

        Here mu is the stationary distribution and P the transition matrix.
        """
        flow = diags_array(self.stationary) @ self.transitions
        difference = abs(flow - flow.T)
        return float(difference.max())

    @property
    def leaf_mass(self) -> float:
        """Stationary probability that the walk is at a complete sequence."""
        return math.fsum(self.stationary[self.leaf])

    def leaf_distribution(self, distribution: Array) -> dict[Sequence_, float]:
        """Condition a distribution over states on complete sequences.

        Args:
            distribution: Probabilities (n,) of the states.

        Returns:
            Probability of each complete sequence.

        Raises:
            InputError: If no complete sequence has positive probability, or `distribution` is not a
                distribution.
        """
        distribution = validate_probabilities("distribution", distribution, (len(self.states),)).numpy()
        mass = math.fsum(distribution[self.leaf])
        if not mass > 0:
            raise InputError("distribution", mass, "no leaf has a positive probability")
        return {
            self.states[place]: float(distribution[place]) / mass
            for place in np.flatnonzero(self.leaf).tolist()
        }

    @cached_property
    def spectral_gap(self) -> float:
        """1 minus the second largest absolute eigenvalue of the transition matrix.

        Raises:
            InputError: If the walk is not reversible.
        """
        if self.reversibility_residual > 1e-9:
            hint = "the walk is not reversible, so its eigenvalues may be complex"
            raise InputError("transitions", self.reversibility_residual, hint)
        root = np.sqrt(self.stationary)
        symmetric = diags_array(root) @ self.transitions @ diags_array(1 / root)
        symmetric = (symmetric + symmetric.T) / 2
        if len(self.states) < 2:
            return 1.0
        if len(self.states) <= _DENSE:
            values = eigvalsh(symmetric.toarray())
        else:
            values = eigsh(symmetric, k=3, which="LM", return_eigenvectors=False, v0=root)
        return float(1 - np.sort(abs(values))[-2])

    def mixing_time(self, distance: float = 0.25, max_steps: int = 100_000) -> int:
        """Return the number of steps after which the walk is close to its stationary distribution.

        The walk starts at the prompt.

        Args:
            distance: Total variation distance to reach.
            max_steps: Limit on the number of steps.

        Raises:
            InputError: If the walk takes more than `max_steps`.
        """
        target = self.stationary
        return self._first(
            lambda distribution: float(abs(distribution - target).sum()) / 2, distance, max_steps
        )

    def leaf_mixing_time(
        self, target: Mapping[Sequence_, float], distance: float = 0.05, max_steps: int = 100_000
    ) -> int:
        """Return the number of steps until the walk's complete sequences have almost a given distribution.

        The walk starts at the prompt. Its distribution after each step is conditioned on complete sequences.

        Args:
            target: Probability of each complete sequence.
            distance: Total variation distance to reach.
            max_steps: Limit on the number of steps.

        Raises:
            InputError: If the walk takes more than `max_steps`.
        """

        def far(distribution: Array) -> float:
            return (
                total_variation(self.leaf_distribution(distribution), target)
                if distribution[self.leaf].any()
                else 1.0
            )

        return self._first(far, distance, max_steps)

    @validated
    def _first(self, far: Callable[[Array], float], distance: Share, max_steps: Natural) -> int:
        distribution = np.zeros(len(self.states))
        distribution[0] = 1.0
        for step in range(max_steps + 1):
            if far(distribution) <= distance:
                return step
            distribution = distribution @ self.transitions
        hint = f"allow more steps: the distribution is still {far(distribution):.3g} away"
        raise InputError("max_steps", max_steps, hint)

    @cached_property
    def _before_leaves(self) -> tuple[NDArray[np.int64], AbsorbingChain]:
        """Indices of the incomplete prefixes, and the transition matrix between them."""
        inner = np.flatnonzero(~self.leaf)
        rows = self.transitions[inner]
        return inner, AbsorbingChain(rows[:, inner], rows @ self.leaf.astype(np.float64))

    @property
    def steps_to_leaf(self) -> float:
        """Expected number of steps from the prompt to the first complete sequence, possibly infinite."""
        if self.leaf[0]:
            return 0.0
        chain = self._before_leaves[1]
        return math.inf if chain.never_ends > 0 else float(chain.visits.sum())

    def first_leaf_distribution(self) -> dict[Sequence_, float]:
        """Return the distribution of the first complete sequence that the walk reaches from the prompt.

        Returns:
            Probability of each complete sequence.

        Raises:
            InputError: If the walk may never reach a complete sequence.
        """
        leaves = np.flatnonzero(self.leaf)
        if self.leaf[0]:
            distribution = (leaves == 0).astype(np.float64)
        else:
            inner, chain = self._before_leaves
            if chain.never_ends > 0:
                raise InputError("never_ends", chain.never_ends, "must be 0: the walk may never reach a leaf")
            distribution = chain.visits @ self.transitions[inner][:, leaves]
        require_distribution("transitions", distribution.tolist())
        return {
            self.states[place]: float(p)
            for place, p in zip(leaves.tolist(), distribution.tolist(), strict=True)
        }

    def visited_before_leaf(self) -> dict[Sequence_, float]:
        """Return the probability that the walk visits each incomplete prefix before its first complete sequence.

        Returns:
            Probability for each incomplete prefix, for a walk that starts at the prompt.
        """
        if self.leaf[0]:
            return {self.states[place]: 0.0 for place in np.flatnonzero(~self.leaf).tolist()}
        inner, chain = self._before_leaves
        shares = zip(inner.tolist(), chain.visited.tolist(), strict=True)
        return {self.states[place]: share for place, share in shares}


def value_guided_chain(
    oracle: Autoregressive, values: VerifierLike, max_states: int = 100_000
) -> ValueGuidedChain:
    """Return the Markov chain of the sampler `ValueGuided(stop_at_leaf=False)`.

    Args:
        oracle: Next-token model.
        values: Verifier that returns the value of each prefix.
        max_states: Limit on the number of states.

    Raises:
        InputError: If there are more than `max_states` states, or `exact_distribution` would reject the arguments.
    """
    states, transitions = sampler_transitions(
        ValueGuided(stop_at_leaf=False), oracle, values, max_states=max_states
    )
    leaf = [len(state) == oracle.max_length or state[-1:] == (oracle.eos,) for state in states]
    return ValueGuidedChain(states, transitions, np.array(leaf, dtype=np.bool_))
