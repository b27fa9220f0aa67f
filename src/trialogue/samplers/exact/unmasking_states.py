"""Enumeration of the states that an unmasking sampler reaches, for its exact output distribution.

The states form an absorbing Markov chain. States that are equal are merged.
"""

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

from trialogue.enumeration import enumerate_outcomes
from trialogue.errors import InputError
from trialogue.oracles import Masked
from trialogue.samplers.exact.digit_products import list_sequences, total_mass
from trialogue.samplers.exact.elimination import AbsorbingChain
from trialogue.samplers.exact.moves import Moves, Outcomes, one_each
from trialogue.samplers.exact.propagation import has_cycles, propagate
from trialogue.samplers.exact.random_sizes import RandomSizePasses
from trialogue.samplers.exact.row_numbers import RowNumbers, as_rows
from trialogue.samplers.unmasking.contract import Canvas, Planned, Unmasking, map_fields, select, tensors
from trialogue.samplers.unmasking.engine import evaluate
from trialogue.samplers.unmasking.stages import Stage, WrappedStage, stages_of, with_inner

Sequence_ = tuple[int, ...]

_STATES_AT_ONCE = 1024
_OUTCOMES_AT_ONCE = 1 << 20
_ENTRIES_AT_ONCE = 1 << 20
"""Number of log-probabilities in a batch from which it has fewer states."""
_LARGEST_CODE = 1 << 24
"""Largest number of a canvas, which bounds the size of a table."""
_STORED_ENTRIES = 1 << 24
"""Largest number of log-probabilities that are stored for further states with the same canvas."""


class Costs(NamedTuple):
    """Solution of the Markov chain.

    Attributes:
        passes: Expected number of passes.
        positions: Expected sum of the numbers of masked positions over the passes.
        masses: Probability (outputs,) of each output.
        never_ends: Probability that the sampler does not end.
    """

    passes: float
    positions: float
    masses: Any
    never_ends: float


class Exploration:
    """Enumeration of the states that a sampler can reach, with the probabilities of moving between them.

    The nodes of the Markov chain are the states before a pass, and the states between two stages of a pass.

    If every node leads to nodes that are expanded later, the expected visits of a node are known before its expansion,
    so that moves need not be stored. Otherwise, `returns` becomes True, and the exploration must be repeated.

    Args:
        sampler: The sampler.
        model: The model.
        max_states: Largest number of nodes.
        stores_moves: Whether to store all moves between nodes.
    """

    def __init__(self, sampler: Unmasking[Any], model: Masked, max_states: int, stores_moves: bool) -> None:
        self._sampler, self._model, self._max_states = sampler, model, max_states
        self._stages = stages_of(sampler)
        self._stores_moves, self.returns = stores_moves, False
        self._numbers, self._nodes = [RowNumbers() for _ in self._stages], 0
        # Node of each number, and nodes and states that have been found since the last expansion, by stage.
        self._places = [np.zeros(0, np.int64) for _ in self._stages]
        self._waiting: list[list[tuple[Any, Any]]] = [[] for _ in self._stages]
        self._expanded = np.zeros(1, bool)
        # Expected visits of the nodes found so far, and probabilities of the outputs, unless moves are stored.
        self._visits, self._masses = np.ones(1), np.zeros(1)
        self._outputs: dict[Sequence_ | None, int] = {None: 0}
        # Number of masked positions of each node before a pass, -1 for nodes between two stages.
        self._positions = np.zeros(0, np.int64)
        self._canvases, self._conditionals = RowNumbers(), torch.zeros(0)
        self._random_sizes: dict[int, RandomSizePasses] = {}
        # Source, target and probability of each move, and source, output and probability of each end.
        self._moves: list[tuple[Any, Any, Any]] = []
        self._ends: list[tuple[Any, Any, Any]] = []

    @property
    def states(self) -> int:
        """Number of states before a pass that were found."""
        return self._numbers[0].count

    def add(self, state: Any, stage: int = 0) -> Any:
        """Return the node (rows,) of each row's state before a stage.

        States that were not found before are new nodes. The next call of `expand` computes the steps from them.
        """
        numbers, new = self._numbers[stage].number(as_rows(tensors(state)))
        nodes = np.arange(self._nodes, self._nodes + len(new))
        self._nodes += len(new)
        if self._nodes > self._max_states:
            hint = "use a shorter sequence, or increase `max_states`"
            raise InputError("max_states", self._max_states, hint)
        self._places[stage] = np.concatenate((self._places[stage], nodes))
        if len(new):
            found = select(state, torch.from_numpy(new).to(state.masked.device))
            self._waiting[stage].append((nodes, found))
            positions = np.full(len(new), -1) if stage else found.masked.sum(1).cpu().numpy()
            self._positions = np.concatenate((self._positions, positions))
        return self._places[stage][numbers]

    def expand(self) -> bool:
        """Apply a stage to each new node, with all outcomes. Returns whether the exploration goes on."""
        if self.returns or not any(self._waiting):
            return False
        for stage, waiting in enumerate(self._waiting):
            if waiting:
                nodes = np.concatenate([some for some, _ in waiting])
                states = map_fields(lambda *parts: torch.cat(parts), *(state for _, state in waiting))
                self._waiting[stage] = []
                self._expanded = np.pad(self._expanded, (0, self._nodes - len(self._expanded)))
                entries = states.tokens.shape[1] * int(self._model.vocab_size)
                for rows in torch.arange(len(nodes)).split(max(_STATES_AT_ONCE, _ENTRIES_AT_ONCE // entries)):
                    self._expanded[nodes[rows.numpy()]] = True
                    self._expand(stage, nodes[rows.numpy()], select(states, rows.to(states.masked.device)))
        return True

    def _expand(self, stage: int, nodes: Any, state: Any) -> None:
        """Apply a stage to each row of `state`, which are the given `nodes`."""
        shape = (*state.tokens.shape, int(self._model.vocab_size))
        conditionals = self._evaluate(state) if not stage else torch.zeros(()).expand(shape)
        factors = None if self._stores_moves else self._visits[nodes]
        contexts = np.zeros(len(nodes), np.int64)
        for moves in self._outcomes(self._stages[stage], state, conditionals, factors, contexts):
            self._take(stage, nodes, moves)

    def _evaluate(self, state: Any) -> Tensor:
        """Return the conditionals of the canvases of states, each of which is evaluated once if there are not many."""
        shape = (state.tokens.shape[1], int(self._model.vocab_size))
        places, new = self._canvases.number(as_rows([state.tokens, state.masked]))
        if self._canvases.count * shape[0] * shape[1] > _STORED_ENTRIES:
            return evaluate(self._model, state.tokens, state.masked)
        if len(new):
            rows = torch.from_numpy(new).to(state.masked.device)
            found = evaluate(self._model, state.tokens[rows], state.masked[rows])
            self._conditionals = torch.cat((self._conditionals.to(found).view(-1, *shape), found))
        return self._conditionals[torch.from_numpy(places).to(state.masked.device)]

    def _outcomes(
        self, stage: Stage, state: Any, conditionals: Tensor, factors: Any, contexts: Any
    ) -> Outcomes:
        """Enumerate the outcomes of a stage.

        Args:
            stage: The stage, or the stage of a wrapped sampler.
            state: States of its sampler.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            factors: Factor (rows,) of the probabilities of each row, if moves from different rows to the same state may
                be merged. None if they may not.
            contexts: Number (rows,) of the state of the wrapping sampler without its canvas. Rows with equal contexts
                lead to the same states.
        """
        if isinstance(stage, WrappedStage):
            yield from self._wrapped_outcomes(stage, state, conditionals, factors, contexts)
        elif passes := self._random_size_passes(stage, state):
            yield from passes.outcomes(state, conditionals, factors, contexts)
        elif sampler := self._planned_sampler(stage, state):
            yield from self._planned_outcomes(sampler, state, conditionals, factors, contexts)
        else:
            for rows, weights, after in enumerate_outcomes(
                lambda rows, choose: stage(select(state, rows), conditionals[rows], choose), len(contexts)
            ):
                yield one_each(rows.numpy(), weights.numpy(), after).weighted(factors)

    def _wrapped_outcomes(
        self, stage: WrappedStage, state: Any, conditionals: Tensor, factors: Any, contexts: Any
    ) -> Outcomes:
        """Enumerate the outcomes of a wrapped stage, with the arguments and the result of `_outcomes`.

        Rows in which the wrapped sampler takes no step go through `stage.otherwise`, or stay as they are.
        """
        chosen = np.ones(len(contexts), bool) if stage.applies is None else stage.applies(state).cpu().numpy()
        rows = np.flatnonzero(chosen)
        if len(rows):
            part = select(state, torch.from_numpy(rows))
            own = part._replace(
                tokens=part.tokens[:, :0], masked=part.masked[:, :0], inner=part.inner.tokens[:, :0]
            )
            labels, _ = RowNumbers().number(np.column_stack((contexts[rows], as_rows(tensors(own)))))
            own_factors = None if factors is None else factors[rows]
            for moves in self._outcomes(
                stage.stage, part.inner, conditionals[torch.from_numpy(rows)], own_factors, labels
            ):
                before = select(part, torch.from_numpy(moves.origins))
                yield moves.of_rows(rows)._replace(states=with_inner(before, moves.states))
        rest = np.flatnonzero(~chosen)
        if len(rest):
            unchanged = select(state, torch.from_numpy(rest))
            rest_factors = None if factors is None else factors[rest]
            if stage.otherwise is None:
                moves = one_each(np.arange(len(rest)), np.ones(len(rest)), unchanged).weighted(rest_factors)
                yield moves.of_rows(rest)
                return
            for moves in self._outcomes(
                stage.otherwise,
                unchanged,
                conditionals[torch.from_numpy(rest)],
                rest_factors,
                contexts[rest],
            ):
                yield moves.of_rows(rest)

    def _random_size_passes(self, stage: Stage, state: Any) -> RandomSizePasses | None:
        """Return the stored passes of a sampler with random sizes, or None for other stages."""
        sampler = getattr(stage, "__self__", None)
        if not RandomSizePasses.applies(sampler) or not isinstance(state, Canvas):
            return None
        passes = self._random_sizes.setdefault(
            id(sampler), RandomSizePasses(cast(Any, sampler), self._outcomes)
        )
        return None if passes.is_full else passes

    def _planned_sampler(self, stage: Stage, state: Any) -> Planned | None:
        """Return the sampler whose plans a stage carries out, or None for other stages and too many canvases."""
        sampler = getattr(stage, "__self__", None)
        plans = isinstance(sampler, Planned) and getattr(stage, "__func__", None) is Planned.step
        if not plans or not isinstance(state, Canvas):
            return None
        canvases = (int(self._model.vocab_size) + 1) ** state.tokens.shape[1]
        return sampler if canvases * (int(state.passes.max()) + 2) <= _LARGEST_CODE else None

    def _planned_outcomes(
        self, sampler: Planned, state: Canvas, conditionals: Tensor, factors: Any, contexts: Any
    ) -> Outcomes:
        """Enumerate the outcomes of a planned pass, by multiplying the probabilities of the positions."""
        vocab = int(self._model.vocab_size)
        canvases = (vocab + 1) ** state.tokens.shape[1]
        labels, context = RowNumbers().number(np.column_stack((contexts, as_rows([state.free]))))
        plans = enumerate_outcomes(
            lambda rows, choose: sampler.plan(select(state, rows), conditionals[rows], choose), len(contexts)
        )
        for source, weight, plan in plans:
            options = sampler.options(select(state, source), plan, conditionals[source]).cpu().numpy()
            offsets = plan.passes.cpu().numpy() * canvases
            sources, masses = source.numpy(), weight.numpy()
            if factors is None:
                counts = (options > 0).sum(2).prod(1).cumsum()
                for part in np.split(np.arange(len(counts)), _changes(counts // _OUTCOMES_AT_ONCE)):
                    rows, codes, products = list_sequences(options[part])
                    rows = part[rows]
                    codes += offsets[rows]
                    places, new = RowNumbers().number(np.column_stack((labels[sources[rows]], codes)))
                    origins = sources[rows[new]]
                    after = _decode(codes[new], state.free[torch.from_numpy(origins)], vocab)
                    yield Moves(sources[rows], masses[rows] * products, after, origins, places)
                continue
            masses = masses * factors[sources]
            size = int(offsets.max()) + canvases
            for label in np.unique(labels[sources]):
                rows = np.flatnonzero(labels[sources] == label)
                total = total_mass(options[rows], offsets[rows], masses[rows], size)
                codes = np.flatnonzero(total)
                first = np.full(len(codes), context[label])
                after = _decode(codes, state.free[torch.from_numpy(first)], vocab)
                yield one_each(first, total[codes], after)

    def _take(self, stage: int, sources: Any, moves: Moves) -> None:
        """Store outcomes of a stage.

        Args:
            stage: Index of the stage.
            sources: Nodes (rows,) before the stage.
            moves: The outcomes.
        """
        nodes = self._classify(stage, moves.states)[moves.places]
        if self._stores_moves:
            self._record(sources[moves.rows], nodes, moves.weights)
        else:
            self._receive(nodes, moves.weights)

    def _classify(self, stage: int, after: Any) -> Any:
        """Return the node (rows,) of each state after a stage, and -1 minus the index of the output of final states."""
        if stage + 1 < len(self._stages):
            return self.add(after, stage + 1)
        done = self._sampler.finished(after).cpu()
        ended, going = done.nonzero()[:, 0], (~done).nonzero()[:, 0]
        nodes = np.empty(len(done), np.int64)
        if len(going):
            nodes[going.numpy()] = self.add(select(after, going))
        if len(ended):
            last = select(after, ended)
            accepted = self._sampler.accepted(last)
            places, new = RowNumbers().number(as_rows([last.tokens, accepted]))
            distinct = torch.from_numpy(new)
            outputs = [
                self._outputs.setdefault(tuple(row) if valid else None, len(self._outputs))
                for row, valid in zip(
                    last.tokens[distinct].tolist(), accepted[distinct].tolist(), strict=True
                )
            ]
            nodes[ended.numpy()] = -1 - np.array(outputs)[places]
        return nodes

    def _receive(self, nodes: Any, masses: Any) -> None:
        """Add probability to nodes and outputs.

        Args:
            nodes: Nodes or outputs (n,), as `_classify` encodes them.
            masses: What is added (n,) to the expected visits of a node, or to the probability of an output.
        """
        going = nodes >= 0
        found = nodes[going]
        self.returns |= bool(self._expanded[found[found < len(self._expanded)]].any())
        self._visits = np.pad(self._visits, (0, self._nodes - len(self._visits)))
        self._visits += np.bincount(found, masses[going], self._nodes)
        outputs = np.bincount(-1 - nodes[~going], masses[~going], len(self._outputs))
        self._masses = np.pad(self._masses, (0, len(outputs) - len(self._masses))) + outputs

    def _record(self, sources: Any, nodes: Any, weights: Any) -> None:
        """Store the probabilities of steps.

        Args:
            sources: Nodes (n,) before the steps.
            nodes: Nodes or outputs (n,) after the steps, as `_classify` encodes them.
            weights: Probabilities (n,) of the steps.
        """
        going = nodes >= 0
        self._moves.append((sources[going], nodes[going], weights[going]))
        self._ends.append((sources[~going], -1 - nodes[~going], weights[~going]))

    @property
    def outputs(self) -> list[Sequence_ | None]:
        """Outputs in the order of `Costs.masses`, None for outputs that are not accepted."""
        return list(self._outputs)

    def solve(self) -> Costs:
        """Compute the expected number of passes and evaluated positions, and the probability of each output."""
        if not self._stores_moves:
            return self._costs(self._visits, self._masses, 0.0)
        transitions, (node, output, ending) = self._matrix(self._moves), joined(self._ends)
        if has_cycles(transitions):
            chain = AbsorbingChain(transitions, np.bincount(node, ending, self._nodes).astype(np.float64))
            visits, never_ends = chain.visits, chain.never_ends
        else:
            visits, never_ends = propagate(transitions, np.eye(1, self._nodes)[0]), 0.0
        masses = np.bincount(output, visits[node] * ending, len(self._outputs))
        return self._costs(visits, masses, never_ends)

    def _costs(self, visits: Any, masses: Any, never_ends: float) -> Costs:
        """Return the costs, given the expected visits (nodes,) of all nodes."""
        passes = self._positions >= 0
        return Costs(
            math.fsum(visits[passes]), float(visits[passes] @ self._positions[passes]), masses, never_ends
        )

    def _matrix(self, moves: list[tuple[Any, Any, Any]]) -> Any:
        """Return the sparse matrix (nodes, nodes) of the probabilities of `moves`."""
        source, target, probability = joined(moves)
        return coo_array((probability, (source, target)), shape=(self._nodes, self._nodes)).tocsr()


def _decode(codes: Any, free: Tensor, vocab_size: int) -> Canvas:
    """Return the canvases with the given numbers, whose digits are tokens or `vocab_size` for a mask."""
    digits, rest = list[Tensor](), torch.from_numpy(codes).to(free.device)
    for _ in range(free.shape[1]):
        digits.append(rest % (vocab_size + 1))
        rest = rest // (vocab_size + 1)
    tokens = torch.stack(digits, 1)
    masked = tokens == vocab_size
    return Canvas(tokens.masked_fill(masked, 0), masked, free, rest)


def _changes(numbers: Any) -> Any:
    """Return the places at which sorted numbers change."""
    return np.flatnonzero(np.diff(numbers)) + 1


def joined(parts: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Concatenate triples (row indices, column indices, probabilities)."""
    indices = np.zeros(0, np.int64)
    first, second, third = zip((indices, indices, np.zeros(0)), *parts, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)
