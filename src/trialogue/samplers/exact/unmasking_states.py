"""Enumeration of the states that an unmasking sampler reaches, for its exact output distribution.

The states form an absorbing Markov chain. States that are equal are merged.
"""

from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

from trialogue.enumeration import enumerate_outcomes
from trialogue.errors import InputError
from trialogue.oracles import Masked
from trialogue.samplers.exact.digit_products import multiply_digits, total_mass
from trialogue.samplers.exact.elimination import AbsorbingChain
from trialogue.samplers.unmasking.checked import Checked
from trialogue.samplers.unmasking.contract import (
    Canvas,
    Planned,
    Unmasking,
    map_fields,
    select,
    tensors,
)
from trialogue.samplers.unmasking.engine import evaluate

Sequence_ = tuple[int, ...]
_STATES_AT_ONCE = 1024
_LARGEST_CODE = 1 << 24
"""Largest number of a canvas, which bounds the size of a table."""
_UNKNOWN = np.iinfo(np.int64).min
_SMALLEST = 1e-18
"""Probability below which the rest of a chain is neglected."""
_MOST_PASSES = 100_000
"""Largest number of passes between two rejections. If more are needed, the probabilities do not sum to one."""


class Costs(NamedTuple):
    """Solution of the Markov chain.

    Attributes:
        visits: Expected number of visits (states,) of each state.
        masses: Probability (outputs,) of each output.
        never_ends: Probability that the sampler does not end.
    """

    visits: Any
    masses: Any
    never_ends: float


class Exploration:
    """Enumeration of the states that a sampler can reach, with the probabilities of moving between them.

    If every state leads to states that are expanded later, the expected visits of a state are known before its
    expansion, so that moves need not be stored. Otherwise, `returns` becomes True, and the exploration must be
    repeated.

    Args:
        sampler: The sampler.
        model: The model.
        max_states: Largest number of states.
        stores_moves: Whether to store all moves between states.
    """

    def __init__(self, sampler: Unmasking[Any], model: Masked, max_states: int, stores_moves: bool) -> None:
        self._sampler, self._model, self._max_states = sampler, model, max_states
        self._stores_moves, self.returns = stores_moves, False
        # Expected visits of the states found so far, and probabilities of the outputs, unless moves are stored.
        self._visits, self._masses = np.ones(1), np.zeros(1)
        # States that have been found since the last expansion, which began with number `_expanded`.
        self._waiting: list[Any] = []
        self._expanded = 0
        self._places: dict[bytes, int] = {}
        self._outputs: dict[Sequence_ | None, int] = {None: 0}
        self._positions: list[int] = []
        # Result of `_classify` for each canvas. The digits of its number are the tokens, or `vocab_size` for a mask.
        self._nodes = np.zeros(0, np.int64)
        self._canvases = 0
        # Source, target and probability of each move, and source, output and probability of each end.
        self._moves: list[tuple[Any, Any, Any]] = []
        self._ends: list[tuple[Any, Any, Any]] = []

    @property
    def states(self) -> int:
        """Number of states found."""
        return len(self._places)

    def add(self, state: Any) -> Tensor:
        """Return the index (rows,) of each row's state in the list of all states.

        States that were not found before are appended to the list. The next call of `expand` computes the steps from
        them.
        """
        fields = tensors(state)
        columns = [
            field.reshape(len(field), -1).contiguous().cpu().numpy().view(np.uint8) for field in fields
        ]
        keys = np.concatenate(columns, 1)
        first, known, new = self.states, self._places, list[int]()
        places = [known.setdefault(key, len(known)) for key in keys.view(f"V{keys.shape[1]}")[:, 0].tolist()]
        for row, place in enumerate(places):
            if place == first + len(new):
                new.append(row)
        if self.states > self._max_states:
            hint = "use a shorter sequence, or increase `max_states`"
            raise InputError("max_states", self._max_states, hint)
        self._waiting.append(select(state, torch.tensor(new, dtype=torch.int64, device=fields[0].device)))
        self._positions += state.masked.sum(1)[new].tolist()
        return torch.tensor(places, dtype=torch.int64)

    def expand(self) -> bool:
        """Take one step from each new state, with all outcomes. Returns whether the exploration goes on."""
        if self._expanded == self.states or self.returns:
            return False
        states = map_fields(lambda *parts: torch.cat(parts), *self._waiting)
        self._waiting = []
        for rows in torch.arange(self.states - self._expanded).split(_STATES_AT_ONCE):
            self._expand(self._expanded, select(states, rows))
            self._expanded += len(rows)
        return True

    def _expand(self, first: int, state: Any) -> None:
        """Take one step from each row of `state`, whose indices begin with `first`."""
        conditionals = evaluate(self._model, state.tokens, state.masked)
        if self._is_planned(state):
            self._expand_plans(first, state, conditionals)
            return
        outcomes = enumerate_outcomes(
            lambda rows, choose: self._sampler.step(select(state, rows), conditionals[rows], choose),
            len(state.tokens),
        )
        for source, weight, after in outcomes:
            self._take((first + source).numpy(), weight.numpy(), after, first + len(state.tokens))

    def _take(self, sources: Any, weights: Any, after: Any, expanded: int) -> None:
        """Store the outcomes `after` of steps from the states `sources`, of which `expanded` must not change."""
        nodes = self._classify(after)
        if self._stores_moves:
            self._record(sources, nodes, weights)
        else:
            self._receive(nodes, self._visits[sources] * weights, expanded)

    def _is_planned(self, state: Any) -> bool:
        """Return whether the sampler plans its passes, and the canvases after a pass have small numbers."""
        if not isinstance(self._sampler, Planned) or type(self._sampler).step is not Planned.step:
            return False
        self._canvases = (int(self._model.vocab_size) + 1) ** state.tokens.shape[1]
        return isinstance(state, Canvas) and self._canvases * (int(state.passes.max()) + 2) <= _LARGEST_CODE

    def _expand_plans(self, first: int, state: Canvas, conditionals: Tensor) -> None:
        """Take one step from each row of `state`, by multiplying the probabilities of the positions."""
        sampler = cast(Planned, self._sampler)
        plans = enumerate_outcomes(
            lambda rows, choose: sampler.plan(select(state, rows), conditionals[rows], choose),
            len(state.tokens),
        )
        for source, weight, plan in plans:
            options = sampler.options(select(state, source), plan, conditionals[source]).cpu().numpy()
            sources, weights = (first + source).numpy(), weight.numpy()
            offsets = plan.passes.cpu().numpy()[:, None] * self._canvases
            if self._stores_moves:
                for rows, factors, codes in multiply_digits(options):
                    nodes, shares = (
                        self._find(codes + offsets[rows], state.free[:1]),
                        factors * weights[rows, None],
                    )
                    self._record(np.repeat(sources[rows], codes.shape[1]), nodes.ravel(), shares.ravel())
            else:
                mass = total_mass(options, offsets, self._visits[sources] * weights, self._canvases)
                reached = np.flatnonzero(mass)
                self._receive(self._find(reached, state.free[:1]), mass[reached], first + len(state.tokens))

    def _find(self, codes: Any, free: Tensor) -> Any:
        """Decode canvases from their numbers `codes`, and classify them, as `_classify` does."""
        size = int(codes.max()) + 1
        if size > len(self._nodes):
            self._nodes = np.pad(self._nodes, (0, size - len(self._nodes)), constant_values=_UNKNOWN)
        seen = np.zeros(size, bool)
        seen[codes] = True
        new = np.flatnonzero(seen & (self._nodes[:size] == _UNKNOWN))
        if len(new):
            digits, vocab = list[Tensor](), int(self._model.vocab_size)
            rest = torch.from_numpy(new % self._canvases).to(free.device)
            for _ in range(free.shape[1]):
                digits.append(rest % (vocab + 1))
                rest = rest // (vocab + 1)
            tokens = torch.stack(digits, 1)
            masked = tokens == vocab
            passes = torch.from_numpy(new // self._canvases).to(free.device)
            after = Canvas(tokens.masked_fill(masked, 0), masked, free.expand_as(masked), passes)
            self._nodes[new] = self._classify(after)
        return self._nodes[codes]

    def _classify(self, after: Any) -> Any:
        """Return the index (rows,) of each unfinished state, and -1 minus the index of the output of each other one."""
        done = self._sampler.finished(after).cpu()
        ended, going = done.nonzero()[:, 0], (~done).nonzero()[:, 0]
        nodes = np.empty(len(done), np.int64)
        if len(going):
            nodes[going.numpy()] = self.add(select(after, going)).numpy()
        if len(ended):
            last = select(after, ended)
            accepted = self._sampler.accepted(last).tolist()
            nodes[ended.numpy()] = [
                -1 - self._outputs.setdefault(tuple(row) if valid else None, len(self._outputs))
                for row, valid in zip(last.tokens.tolist(), accepted, strict=True)
            ]
        return nodes

    def _receive(self, nodes: Any, masses: Any, expanded: int) -> None:
        """Add `masses` to the expected visits of states, and to the probabilities of outputs.

        Args:
            nodes: States and outputs (n,), as `_classify` encodes them.
            masses: Expected visit of each state, or probability of each output (n,).
            expanded: The first `expanded` states are finished, so their expected visits must not change.
        """
        going = nodes >= 0
        self.returns |= bool((nodes[going] < expanded).any())
        missing = self.states - len(self._visits)
        self._visits = np.pad(self._visits, (0, missing)) + np.bincount(
            nodes[going], masses[going], self.states
        )
        outputs = np.bincount(-1 - nodes[~going], masses[~going], len(self._outputs))
        self._masses = np.pad(self._masses, (0, len(outputs) - len(self._masses))) + outputs

    def _record(self, sources: Any, nodes: Any, weights: Any) -> None:
        """Store the probabilities of steps.

        Args:
            sources: Indices (n,) of the states before the steps.
            nodes: States or outputs (n,) after the steps, as `_classify` encodes them.
            weights: Probabilities (n,) of the steps.
        """
        going = nodes >= 0
        if going.all():  # A copy would take time.
            self._moves.append((sources, nodes, weights))
            return
        self._moves.append((sources[going], nodes[going], weights[going]))
        self._ends.append((sources[~going], -1 - nodes[~going], weights[~going]))

    @property
    def outputs(self) -> list[Sequence_ | None]:
        """Outputs in the order of `Costs.masses`, None for outputs that are not accepted."""
        return list(self._outputs)

    @property
    def positions(self) -> Any:
        """Number of masked positions (states,) of each state."""
        return np.array(self._positions)

    def solve(self) -> Costs:
        """Return the expected visits of the states, and the probabilities of the outputs."""
        if not self._stores_moves:
            return Costs(self._visits, self._masses, 0.0)
        transitions, (state, output, ending) = self._matrix(self._moves), _joined(self._ends)
        chain = AbsorbingChain(transitions, np.bincount(state, ending, self.states).astype(np.float64))
        masses = np.bincount(output, chain.visits[state] * ending, len(self._outputs))
        return Costs(chain.visits, masses, chain.never_ends)

    def _matrix(self, moves: list[tuple[Any, Any, Any]]) -> Any:
        """Return the sparse matrix (states, states) of the probabilities of `moves`."""
        source, target, probability = _joined(moves)
        return coo_array((probability, (source, target)), shape=(self.states, self.states)).tocsr()


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
        self._left: list[int] = []
        # Rejections after which further ones are possible, and the last one if prefixes are judged.
        self._rejections: list[tuple[Any, Any, Any]] = []
        self._last_rejections: list[tuple[Any, Any, Any]] = []

    @staticmethod
    def applies(sampler: Unmasking[Any]) -> TypeGuard[Checked]:
        """Return whether the sampler is a `Checked` that masks positions of rejected texts again."""
        return type(sampler) is Checked and sampler.quota > 0

    def add(self, state: Any) -> Tensor:
        """Return the index (rows,) of each row's state, with at most one rejection left. See `Exploration.add`."""
        state = state._replace(left=state.left.clamp(max=1))
        first, places = self.states, super().add(state)
        new, row = np.unique(places.numpy(), return_index=True)
        self._left += state.left[row[new >= first]].tolist()
        return places

    def _take(self, sources: Any, weights: Any, after: Any, expanded: int) -> None:
        del expanded
        rejected = after.left.cpu().numpy() < np.array(self._left)[sources]
        judged = select(after, torch.from_numpy(~rejected).to(after.left.device))
        self._record(sources[~rejected], self._classify(judged), weights[~rejected])
        again = select(after, torch.from_numpy(rejected).to(after.left.device))
        sources, weights = sources[rejected], weights[rejected]
        if self._partial:
            self._last_rejections.append((sources, self._classify(again), weights))
        again = again._replace(left=torch.ones_like(again.left))
        self._rejections.append((sources, self._classify(again), weights))

    def solve(self) -> Costs:
        """Return the expected visits of the states, and the probabilities of the outputs."""
        (state, output, ending), rejections = _joined(self._ends), self._matrix(self._rejections)
        moves, again = self._matrix(self._moves).T.tocsr(), rejections.T.tocsr()
        last = self._matrix(self._last_rejections).T.tocsr() if self._partial else again
        total, entered, visits = np.zeros(self.states), np.zeros(self.states), np.zeros(self.states)
        entered[0] = 1.0
        for left in range(self._quota, -1, -1):
            visits = np.zeros(self.states)
            for _ in range(_MOST_PASSES):
                if entered.sum() <= _SMALLEST:
                    break
                visits += entered
                entered = moves @ entered
            total += visits
            entered = (last if left == 1 else again) @ visits
        masses = np.bincount(output, total[state] * ending, len(self._outputs))
        # With prefixes, no further rejection happens in the last run.
        masses[0] += visits @ rejections.sum(1)
        return Costs(total, masses, 0.0)


def _joined(parts: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Concatenate triples (row indices, column indices, probabilities)."""
    indices = np.zeros(0, np.int64)
    first, second, third = zip((indices, indices, np.zeros(0)), *parts, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)
