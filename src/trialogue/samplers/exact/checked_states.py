"""Enumeration of the states of `Checked`, whose verifier masks positions of rejected texts again."""

from typing import Any, TypeGuard

import numpy as np
import torch

from trialogue.oracles import Masked
from trialogue.samplers.exact.moves import Moves
from trialogue.samplers.exact.propagation import propagate
from trialogue.samplers.exact.unmasking_states import Costs, Exploration, joined
from trialogue.samplers.unmasking.checked import Checked
from trialogue.samplers.unmasking.contract import Unmasking

_SMALLEST = 1e-18
"""Probability below which the rest of a chain is neglected."""


class RestartedExploration(Exploration):
    """Enumeration of the states of `Checked` if a rejection masks all positions again.

    Each rejection leads back to the start. The steps up to the first rejection are therefore explored once, without
    stored moves, and their expected visits are multiplied by the expected number of starts. If prefixes are judged, the
    steps after the last rejection differ, and are explored, too.
    """

    def __init__(self, sampler: Checked, model: Masked, max_states: int) -> None:
        super().__init__(sampler, model, max_states, stores_moves=False)
        self._quota, self._partial = sampler.quota, sampler.partial
        self._start: Any = None
        self._left, self._rejected = 1, 0.0

    @staticmethod
    def applies(sampler: Unmasking[Any]) -> TypeGuard[Checked]:
        """Return whether the sampler is a `Checked` that masks all positions of rejected texts again."""
        return CheckedExploration.applies(sampler) and sampler.remask is None

    def add(self, state: Any, stage: int = 0) -> Any:
        """Return the node (rows,) of each row's state. See `Exploration.add`."""
        if self._start is None:
            self._start = state = state._replace(left=torch.ones_like(state.left))
        return super().add(state, stage)

    def _take(self, stage: int, sources: Any, moves: Moves) -> None:
        is_rejection = moves.states.left.cpu().numpy() < self._left
        self._rejected += float(moves.weights[is_rejection[moves.places]].sum())
        super()._take(stage, sources, moves.to(~is_rejection))

    def expand(self) -> bool:
        """Apply a stage to each new node, with all outcomes. Returns whether the exploration goes on."""
        if super().expand():
            return True
        if self.returns or not self._left:
            return False
        self._left = 0
        # Probability of the last start, and expected number of starts that are followed by the same steps.
        last = self._rejected**self._quota
        starts = sum(self._rejected**index for index in range(self._quota))
        if not self._partial:
            starts += last
            self._masses[0] += last * self._rejected / starts
        self._visits *= starts
        self._masses *= starts
        if self._partial:
            start = self._start._replace(left=torch.zeros_like(self._start.left))
            self._receive(self.add(start), np.array([last]))
        return self._partial


class CheckedExploration(Exploration):
    """Enumeration of the states of `Checked`, in which the number of remaining rejections is one or zero.

    A step is the same for all positive numbers of remaining rejections. States that differ only in this number are
    therefore merged, and explored with one rejection left. `solve` then runs the chain once for each number of
    rejections. Each run starts from the states in which the texts of the previous run were masked again.

    If prefixes are judged, a rejected prefix is kept when no rejection is left. These steps differ, so the states
    without a remaining rejection are explored, too.
    """

    def __init__(self, sampler: Checked, model: Masked, max_states: int) -> None:
        super().__init__(sampler, model, max_states, stores_moves=True)
        self._quota, self._partial = sampler.quota, sampler.partial
        self._left = np.zeros(0, np.int64)
        # Rejections after which further ones are possible, and the last one if prefixes are judged.
        self._rejections: list[tuple[Any, Any, Any]] = []
        self._last_rejections: list[tuple[Any, Any, Any]] = []

    @staticmethod
    def applies(sampler: Unmasking[Any]) -> TypeGuard[Checked]:
        """Return whether the sampler is a `Checked` that masks positions of rejected texts again."""
        return type(sampler) is Checked and sampler.quota > 0

    def add(self, state: Any, stage: int = 0) -> Any:
        """Return the node (rows,) of each row's state, with at most one rejection left. See `Exploration.add`."""
        state = state._replace(left=state.left.clamp(max=1))
        first, nodes = self._nodes, super().add(state, stage)
        self._left = np.pad(self._left, (0, self._nodes - first))
        self._left[nodes] = state.left.cpu().numpy()
        return nodes

    def _take(self, stage: int, sources: Any, moves: Moves) -> None:
        is_rejection = moves.states.left.cpu().numpy() < self._left[sources[moves.origins]]
        super()._take(stage, sources, moves.to(~is_rejection))
        again = moves.to(is_rejection)
        before, states = sources[again.rows], again.states
        if self._partial:
            last = self._classify(stage, states)[again.places]
            self._last_rejections.append((before, last, again.weights))
        states = states._replace(left=torch.ones_like(states.left))
        self._rejections.append((before, self._classify(stage, states)[again.places], again.weights))

    def solve(self) -> Costs:
        """Return the expected numbers of visits, and the probabilities of the outputs."""
        (node, output, ending), rejections = joined(self._ends), self._matrix(self._rejections)
        moves, again = self._matrix(self._moves), rejections.T
        last = self._matrix(self._last_rejections).T if self._partial else again
        total, entered, visits = np.zeros(self._nodes), np.eye(1, self._nodes)[0], np.zeros(self._nodes)
        for left in range(self._quota, -1, -1):
            visits = propagate(moves, entered, _SMALLEST)
            total += visits
            entered = (last if left == 1 else again) @ visits
        masses = np.bincount(output, total[node] * ending, len(self._outputs)).astype(np.float64)
        # With prefixes, no further rejection happens in the last run.
        masses[0] += visits @ rejections.sum(1)
        return self._costs(total, masses, 0.0)
