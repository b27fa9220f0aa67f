"""Exact distributions: the distribution over outputs and the expected cost of any sampler on a small oracle.

The sampler's own `step` runs with an enumerating `choose`, so what is proved is what users run. All states that a run
can reach become one absorbing Markov chain, which is solved by elimination without subtraction. What never halts is
reported as such.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.elimination import SMALLEST, AbsorbingChain, require_distribution
from trialogue.samplers.exact.exploration import FAILED, Exploration, Explored
from trialogue.samplers.prefix.ancestral import Ancestral
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.prompts import limits
from trialogue.samplers.prefix.values import values
from trialogue.verifiers.functions.function import VerifierLike

Sequence_ = tuple[int, ...]


@dataclass(frozen=True)
class ExactDistribution:
    """The exact distribution of a sampler's output.

    `probabilities` maps each complete output (prompt and completion) to its probability; together with `failed`
    (the sampler stopped on an incomplete sequence) and `never_halts` they sum to one. `expected_calls` is infinite
    where the sampler asks in a state from which it can no longer halt. `weights` maps each output x to
    E[exp(log_weight) 1(output = x)]: the target, unnormalised, where the sampler is properly weighted; it equals
    `probabilities` for a sampler without weights. `states` is the number of states the chain has.
    """

    probabilities: dict[Sequence_, float]
    failed: float
    never_halts: float
    expected_calls: float
    weights: dict[Sequence_, float]
    states: int


def exact_distribution(
    sampler: Sampler[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> ExactDistribution:
    """Compute the distribution of the output of `sampler` on `oracle` from `prompt`, and its expected number of
    queries.

    Costs grow as vocabulary to the power of length; `max_states` bounds the chain. Probabilities are right to about
    twelve digits of their own, however rarely the sampler halts. Raises `InputError` where the chain is larger, where
    the sampler halts with a probability below 1e-300 before it comes back to its start, and wherever `generate` would.
    """
    found = Exploration(
        sampler, oracle, verifier, prompt=prompt, max_new_tokens=max_new_tokens, max_states=max_states
    ).run()
    return _law(found)


def sampler_transitions(
    sampler: Sampler[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> tuple[list[Sequence_], csr_array]:
    """The states (prefixes of the first row) that `sampler` visits from `prompt`, and its transitions between them.

    Rows of the sparse matrix sum to one minus the probability that the sampler ends there. Meant for samplers of one
    row without a state of their own, such as `ValueGuided(stop_at_leaf=False)`. Raises `InputError` wherever
    `exact_distribution` does.
    """
    found = Exploration(
        sampler, oracle, verifier, prompt=prompt, max_new_tokens=max_new_tokens, max_states=max_states
    ).run()
    return found.prefixes, found.transitions


def target_distribution(
    oracle: Autoregressive,
    verifier: VerifierLike,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> dict[Sequence_, float]:
    """Compute the oracle's distribution tilted by the verifier's value of complete sequences: p(x) V(x) / sum of p V.

    With a 0/1 verifier this is the restricted distribution. Raises `InputError` where no sequence has positive value,
    and where the mean value is below 1e-300.
    """
    free = exact_distribution(
        Ancestral(), oracle, prompt=prompt, max_new_tokens=max_new_tokens, max_states=max_states
    ).probabilities
    sequences, longest = list(free), int(limits(oracle, torch.tensor([len(prompt)]), max_new_tokens))
    judged = values(verifier, oracle, sequences, prompt_lengths=len(prompt), max_length=longest).tolist()
    tilted = {x: free[x] * value for x, value in zip(sequences, judged, strict=True) if value > 0}
    if not tilted:
        raise InputError("verifier", 0.0, "accept at least one sequence that the oracle can give")
    total = math.fsum(tilted.values())
    if not total >= SMALLEST:
        hint = f"the mean value of the oracle's sequences is below {SMALLEST:g}: beyond double precision"
        raise InputError("verifier", total, hint)
    target = {x: weight / total for x, weight in tilted.items()}
    require_distribution("verifier", target.values())
    return target


def _law(found: Explored) -> ExactDistribution:
    """Solve the absorbing chain for the distribution of its outputs."""
    ended, size = found.ended, len(found.queries)
    chain = AbsorbingChain(
        found.transitions, np.bincount(ended.state, ended.probability, size).astype(np.float64)
    )
    visits = chain.visits
    weighed = visits if found.weighted is None else chain.weighted_visits(found.weighted)
    never_halts = chain.never_ends
    asks_for_ever = never_halts > 0 and bool(np.any(found.queries[~chain.ending] > 0))
    masses, complete = visits[ended.state] * ended.probability, ended.output != FAILED
    place = ended.output[complete]
    probabilities = np.bincount(place, masses[complete], len(found.outputs)).tolist()
    failed = math.fsum(masses[~complete])
    require_distribution("probabilities", (*probabilities, failed), never_halts)
    queries = float(visits @ found.queries)
    with np.errstate(over="ignore", invalid="ignore"):  # Weights that are not finite are refused below.
        weight = weighed[ended.state] * (ended.probability * np.exp(ended.log_weight))
    weights = np.bincount(place, weight[complete], len(found.outputs))
    if not math.isfinite(queries) or not bool((np.isfinite(weights) & (weights >= 0)).all()):
        raise InputError("log_weight", queries, "the expected calls or weights are beyond double precision")
    return ExactDistribution(
        probabilities=dict(zip(found.outputs, probabilities, strict=True)),
        failed=failed,
        never_halts=never_halts,
        expected_calls=math.inf if asks_for_ever else queries,
        weights=dict(zip(found.outputs, weights.tolist(), strict=True)),
        states=size,
    )
