"""Exact laws: the distribution over outputs and the expected cost of any walk on a small oracle.

The walk's own `step` runs with an enumerating `choose`, so what is proved is what users run. All states that a run
can reach become one absorbing Markov chain: bounded walks are a tree, walks without a bound (rejection, going up
and down) are solved as a sparse linear system. What never halts is reported as such.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu
from torch import Tensor

from trialogue.enumeration import Enumeration
from trialogue.errors import InputError, whole_number
from trialogue.inference.verifiers.function import VerifierLike, as_verifier
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.batch import Batch
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.prompts import checked_prompts, limits, token_ids
from trialogue.inference.walks.values import values
from trialogue.inference.walks.walk import Walk, log_weight, runnable
from trialogue.oracles import Autoregressive, as_oracle, padded

Sequence_ = tuple[int, ...]
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Law:
    """The exact law of a walk's output.

    `probabilities` maps each complete output (prompt and completion) to its probability; together with `failed`
    (the walk stopped on an incomplete sequence) and `never_halts` they sum to one. `expected_queries` is infinite
    where the walk asks in a state from which it can no longer halt. `weights` maps each output x to
    E[exp(log_weight) 1(output = x)]: the target, unnormalised, where the walk is properly weighted; it equals
    `probabilities` for a walk without weights. `states` is the number of states the chain has.
    """

    probabilities: dict[Sequence_, float]
    failed: float
    never_halts: float
    expected_queries: float
    weights: dict[Sequence_, float]
    states: int


@dataclass
class _Branches:
    """The chain as it is discovered: transitions between states, and outputs."""

    source: list[int]
    target: list[int]
    weight: list[float]
    outputs: dict[tuple[int, Sequence_, float], float]  # (state, output, log-weight) -> probability
    failures: dict[int, float]


def exact_law(
    walk: Walk[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> Law:
    """Compute the law of the output of `walk` on `oracle` from `prompt`, and its expected number of queries.

    Costs grow as vocabulary to the power of length; `max_states` bounds the chain. Raises `InputError` where the
    chain is larger, and wherever `generate` would.
    """
    return _Chain(walk, oracle, verifier, prompt, max_new_tokens, max_states).law()


def walk_transitions(
    walk: Walk[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> tuple[list[Sequence_], csr_array]:
    """The states (prefixes of the first row) that `walk` visits from `prompt`, and its transitions between them.

    Rows of the sparse matrix sum to one minus the probability that the walk ends there. Meant for walks of one
    row without a state of their own, such as `ValueGuided(stop_at_leaf=False)`. Raises `InputError` wherever
    `exact_law` does.
    """
    return _Chain(walk, oracle, verifier, prompt, max_new_tokens, max_states).explore()


def target_law(
    oracle: Autoregressive,
    verifier: VerifierLike,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> dict[Sequence_, float]:
    """Compute the oracle's law tilted by the verifier's value of complete sequences: p(x) V(x) / sum of p V.

    With a 0/1 verifier this is the restricted law. Raises `InputError` where no sequence has positive value.
    """
    free = exact_law(
        Ancestral(), oracle, prompt=prompt, max_new_tokens=max_new_tokens, max_states=max_states
    ).probabilities
    sequences, longest = list(free), int(limits(oracle, torch.tensor([len(prompt)]), max_new_tokens))
    judged = values(verifier, oracle, sequences, prompt_lengths=len(prompt), max_length=longest).tolist()
    tilted = {x: free[x] * value for x, value in zip(sequences, judged, strict=True) if value > 0}
    total = math.fsum(tilted.values())
    if total == 0:
        raise InputError("verifier", 0.0, "accept at least one sequence that the oracle can give")
    return {x: weight / total for x, weight in tilted.items()}


def total_variation(first: Mapping[Sequence_, float], second: Mapping[Sequence_, float]) -> float:
    """Half the summed absolute difference of two laws; mass missing from either counts as a further outcome."""
    differences = [abs(first.get(x, 0.0) - second.get(x, 0.0)) for x in first.keys() | second.keys()]
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(differences) + missing) / 2


class _Chain:
    def __init__(
        self,
        walk: Walk[Any],
        oracle: Autoregressive,
        verifier: VerifierLike | None,
        prompt: Sequence_,
        max_new_tokens: int | None,
        max_states: int,
    ) -> None:
        oracle = as_oracle(oracle)
        walk = runnable(walk, oracle, verifier)
        self._walk, self._members = walk, walk.rows_per_sample
        self._max_states = whole_number("max_states", max_states, 1)
        prompt = tuple(token_ids("prompt", prompt).tolist())
        tokens, lengths = padded([prompt])
        checked_prompts(tokens, lengths, oracle.vocab_size)
        limit = limits(oracle, lengths, max_new_tokens)
        self._start, self._limit, self._capacity = len(prompt), int(limit[0]), int(limit[0])
        self._prompt = prompt
        self._groups_at_once = max(1, _ROWS_AT_ONCE // self._members)
        resolved = None if verifier is None else as_verifier(verifier)
        layers = () if resolved is None else tuple(resolved.layers)
        self._batch = Batch(oracle, self._groups_at_once * self._members, self._capacity, layers=layers)
        self._judge = cast(Judge, None) if resolved is None else Judge(resolved, self._batch)
        self._ids: dict[bytes, int] = {}
        self._sequences: list[tuple[Tensor, Tensor]] = []  # of each state: tokens and lengths of its rows
        self._states: list[tuple[Tensor, ...]] = []
        self._branches = _Branches([], [], [], {}, {})
        self._queries: list[float] = []

    def law(self) -> Law:
        """Solve the chain for the law of its outputs."""
        _, transitions = self.explore()
        return self._solve(transitions)

    @torch.inference_mode()
    def explore(self) -> tuple[list[Sequence_], csr_array]:
        """Visit every state; return what the first row of each holds, and the transitions."""
        tokens = torch.zeros(self._members, self._capacity, dtype=torch.int64)
        tokens[:, : self._start] = torch.tensor(self._prompt, dtype=torch.int64)
        lengths = torch.full((self._members,), self._start)
        self._load([(tokens, lengths)])
        self._state_type = self._walk.init(self._batch)
        self._visit(tokens, lengths, tuple(self._state_type))
        explored = 0
        while explored < len(self._sequences):
            stop = min(len(self._sequences), explored + self._groups_at_once)
            self._explore(range(explored, stop))
            explored = stop
        branches, size = self._branches, len(self._sequences)
        transitions = coo_array(
            (branches.weight, (branches.source, branches.target)), shape=(size, size)
        ).tocsr()
        prefixes = [tuple(tokens[0, : int(lengths[0])].tolist()) for tokens, lengths in self._sequences]
        return prefixes, transitions

    def _load(self, sequences: list[tuple[Tensor, Tensor]]) -> None:
        batch, rows = self._batch, len(sequences) * self._members
        batch.select(torch.zeros(0, dtype=torch.int64))
        batch.add(
            torch.cat([tokens for tokens, _ in sequences]),
            torch.cat([lengths for _, lengths in sequences]),
            torch.full((rows,), self._start),
            torch.full((rows,), self._limit),
        )

    def _visit(self, tokens: Tensor, lengths: Tensor, state: tuple[Tensor, ...]) -> int:
        tokens = tokens * (torch.arange(tokens.shape[1]) < lengths[:, None])
        key = b"".join(field.contiguous().numpy().tobytes() for field in (tokens, lengths, *state))
        index = self._ids.setdefault(key, len(self._ids))
        if index == len(self._sequences):
            if index >= self._max_states:
                raise InputError("max_states", self._max_states, "use a smaller oracle, or allow more states")
            self._sequences.append((tokens, lengths))
            self._states.append(state)
        return index

    def _explore(self, states: range) -> None:
        members, batch = self._members, self._batch
        self._load([self._sequences[index] for index in states])
        fields = zip(*(self._states[index] for index in states), strict=True)
        state = type(self._state_type)(*(torch.cat(field) for field in fields))
        enumeration = Enumeration(len(states), members)
        asked = torch.zeros(len(states), dtype=torch.float64)

        def step() -> tuple[Moves, tuple[Tensor, ...], Tensor]:
            before = batch.meter.queries.clone()
            moves, after = self._walk.step(batch, state, self._judge, enumeration.choose)
            return moves, after, (batch.meter.queries - before).view(-1, members).sum(1).double()

        for weights, (moves, after, queries) in enumeration.branches(step):
            asked += weights * queries
            tokens, lengths = moves.applied(batch.tokens)
            kept = tuple(field[moves.source] for field in after)
            done = moves.done.view(-1, members).all(1).tolist()
            for group, weight in enumerate(weights.tolist()):
                if weight == 0.0:
                    continue
                rows = slice(group * members, (group + 1) * members)
                index, sequences = states[group], (tokens[rows], lengths[rows])
                group_state = tuple(field[rows] for field in kept)
                if done[group]:
                    self._finish(index, *sequences, type(self._state_type)(*group_state), weight)
                else:
                    self._branches.source.append(index)
                    self._branches.target.append(self._visit(*sequences, group_state))
                    self._branches.weight.append(weight)
        self._queries += asked.tolist()

    def _finish(
        self, index: int, tokens: Tensor, lengths: Tensor, state: tuple[Tensor, ...], weight: float
    ) -> None:
        output = tuple(tokens[0, : int(lengths[0])].tolist())
        value = float(log_weight(state)[0]) if self._walk.weighted else 0.0
        ended = self._batch.eos is not None and output[-1:] == (self._batch.eos,)
        if len(output) < self._limit and not ended:
            self._branches.failures[index] = self._branches.failures.get(index, 0.0) + weight
        else:
            key = (index, output, value)
            self._branches.outputs[key] = self._branches.outputs.get(key, 0.0) + weight

    def _solve(self, transitions: csr_array) -> Law:
        branches, size = self._branches, len(self._sequences)
        halting = self._can_halt(transitions)
        visits = np.zeros(size)
        never_halts = 0.0
        if halting[0]:
            inside = transitions[halting][:, halting]
            # Expected visits v of the states that can halt: v = start + v P.
            system = (eye_array(inside.shape[0]) - inside.T).tocsc()
            entered = np.zeros(inside.shape[0])
            entered[0] = 1.0
            visits[halting] = splu(system).solve(entered)
            never_halts = float(visits @ transitions[:, ~halting].sum(1))
        else:
            never_halts = 1.0
        asks_for_ever = never_halts > 0 and bool(np.any(np.asarray(self._queries)[~halting] > 0))
        probabilities: dict[Sequence_, float] = {}
        weights: dict[Sequence_, float] = {}
        for (index, output, log_value), weight in branches.outputs.items():
            mass = float(visits[index]) * weight
            probabilities[output] = probabilities.get(output, 0.0) + mass
            weights[output] = weights.get(output, 0.0) + mass * math.exp(log_value)
        return Law(
            probabilities=probabilities,
            failed=math.fsum(visits[index] * weight for index, weight in branches.failures.items()),
            never_halts=never_halts,
            expected_queries=math.inf if asks_for_ever else float(visits @ np.asarray(self._queries)),
            weights=weights,
            states=size,
        )

    def _can_halt(self, transitions: csr_array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which states (states,) reach an end with positive probability."""
        size = transitions.shape[0]
        ending = {index for index, _, _ in self._branches.outputs} | set(self._branches.failures)
        reverse = transitions.T.tocoo()
        rows = np.concatenate((reverse.row, np.full(len(ending), size)))
        columns = np.concatenate((reverse.col, np.fromiter(ending, dtype=np.int64, count=len(ending))))
        graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(size + 1, size + 1))
        reached = breadth_first_order(graph, size, return_predecessors=False)
        halting = np.zeros(size + 1, dtype=np.bool_)
        halting[reached] = True
        return halting[:-1]
