"""Exact laws: the distribution over outputs and the expected cost of any walk on a small oracle.

The walk's own `step` runs with an enumerating `choose`, so what is proved is what users run. All states that a run
can reach become one absorbing Markov chain: bounded walks are a tree, walks without a bound (rejection, going up
and down) are solved as a sparse linear system. What never halts is reported as such.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu

from trialogue.errors import InputError
from trialogue.inference.laws.exploration import FAILED, Explored, explored
from trialogue.inference.verifiers.function import VerifierLike
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.prompts import limits
from trialogue.inference.walks.values import values
from trialogue.inference.walks.walk import Walk
from trialogue.oracles import Autoregressive

Sequence_ = tuple[int, ...]


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
    return _law(explored(walk, oracle, verifier, prompt, max_new_tokens, max_states))


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
    found = explored(walk, oracle, verifier, prompt, max_new_tokens, max_states)
    return found.prefixes, found.transitions


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


def _law(found: Explored) -> Law:
    """Solve the absorbing chain for the law of its outputs."""
    transitions, ended = found.transitions, found.ended
    size = len(found.queries)
    halting = _can_halt(transitions, ended.state)
    visits = _visits(transitions, halting)
    weighed = visits if found.weighted is None else _visits(found.weighted, halting)
    never_halts = float(visits @ transitions[:, ~halting].sum(1)) if halting[0] else 1.0
    asks_for_ever = never_halts > 0 and bool(np.any(found.queries[~halting] > 0))
    masses, complete = visits[ended.state] * ended.probability, ended.output != FAILED
    place = ended.output[complete]
    probabilities = np.bincount(place, masses[complete], len(found.outputs))
    weight = weighed[ended.state] * ended.probability * np.exp(ended.log_weight)
    weights = np.bincount(place, weight[complete], len(found.outputs))
    return Law(
        probabilities=dict(zip(found.outputs, probabilities.tolist(), strict=True)),
        failed=math.fsum(masses[~complete]),
        never_halts=never_halts,
        expected_queries=math.inf if asks_for_ever else float(visits @ found.queries),
        weights=dict(zip(found.outputs, weights.tolist(), strict=True)),
        states=size,
    )


def _visits(transitions: csr_array, halting: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The expected visits v (states,) of the states that can halt, from the first: v = start + v P."""
    visits = np.zeros(len(halting))
    if halting[0]:
        inside = transitions[halting][:, halting]
        entered = np.zeros(inside.shape[0])
        entered[0] = 1.0
        visits[halting] = splu((eye_array(inside.shape[0]) - inside.T).tocsc()).solve(entered)
    return visits


def _can_halt(transitions: csr_array, ending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which states (states,) reach an end with positive probability, where those `ending` (k,) may end."""
    size, ending = transitions.shape[0], np.unique(ending)
    reverse = transitions.T.tocoo()
    rows = np.concatenate((reverse.row, np.full(len(ending), size)))
    columns = np.concatenate((reverse.col, ending))
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(size + 1, size + 1))
    reached = breadth_first_order(graph, size, return_predecessors=False)
    halting = np.zeros(size + 1, dtype=np.bool_)
    halting[reached] = True
    return halting[:-1]
