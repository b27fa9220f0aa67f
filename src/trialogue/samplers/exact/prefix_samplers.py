"""Exact output distribution and expected cost of any sampler on a small model.

The `step` method of the sampler runs with a `choose` that enumerates all outcomes, so the result describes
the code that users run.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.elimination import AbsorbingChain, require_distribution
from trialogue.samplers.exact.exploration import FAILED, ReachableStates, StateEnumeration
from trialogue.samplers.exact.prefix_trees import TooManyPrefixes, prefix_tree
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.values import log_values
from trialogue.validation import Count, check
from trialogue.verifiers.combination import Product
from trialogue.verifiers.functions.function import VerifierLike, as_verifier

Sequence_ = tuple[int, ...]


@dataclass(frozen=True)
class ExactDistribution:
    """Exact output distribution and cost of a sampler, as returned by `prefix_distribution`.

    Args:
        probabilities: Probability of each complete output (token ids of prompt and completion).
        failed: Probability that the sampler stops on an incomplete sequence.
        never_halts: Probability that the sampler does not halt.
        expected_calls: Expected number of model calls, infinite if the sampler may call the model forever.
        weights: For each output x, the expectation of exp(log_weight), counted as 0 for other outputs. This
            is the unnormalised target if samples are properly weighted, and `probabilities` for samplers
            without weights.
        states: Number of states of the sampler that were enumerated.
    """

    probabilities: dict[Sequence_, float]
    failed: float
    never_halts: float
    expected_calls: float
    weights: dict[Sequence_, float]
    states: int


def prefix_distribution(
    sampler: Sampler[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
    progress: bool = False,
) -> ExactDistribution:
    """Compute the output distribution and the expected cost of a sampler, without sampling.

    All states that the sampler can reach are enumerated, so the cost is exponential in the length of
    completions. Probabilities have a relative precision of about twelve digits, even if the sampler rarely
    halts.

    Args:
        sampler: The sampler.
        oracle: A small model.
        verifier: The verifier, if the sampler needs one.
        prompt: Token ids of the prompt (default: empty).
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        max_states: Largest number of states (default: 1,000,000).
        progress: Whether to count the states on standard error (default: False).

    Returns:
        Probabilities and weights of the outputs, the probability of failure, and the expected number of model
        calls.

    Raises:
        InputError: If there are more states, the sampler halts with a probability below 1e-300 before it
            returns to its start, or `generate` would raise it.
    """
    found = StateEnumeration(
        sampler, oracle, verifier, prompt=prompt, max_new_tokens=max_new_tokens, max_states=max_states
    ).run(progress=progress)
    return _output_distribution(found)


def sampler_transitions(
    sampler: Sampler[Any],
    oracle: Autoregressive,
    verifier: VerifierLike | None = None,
    *,
    prompt: Sequence_ = (),
    max_new_tokens: int | None = None,
    max_states: int = 1_000_000,
) -> tuple[list[Sequence_], csr_array]:
    """Return the states that a sampler can reach, and the probabilities of moving between them in one step.

    A state consists of the prefixes of a sample and what the sampler stores about them. It is simply a prefix
    for samplers such as `ValueGuided(stop_at_leaf=False)`.

    Args:
        sampler: The sampler.
        oracle: A small model.
        verifier: The verifier, if the sampler needs one.
        prompt: Token ids of the prompt (default: empty).
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        max_states: Largest number of states (default: 1,000,000).

    Returns:
        The prefix (token ids) of the first row in each of n states, and the sparse matrix (n, n) of
        transition probabilities. A row of the matrix sums to one minus the probability that the sampler ends
        in this state.

    Raises:
        InputError: If `prefix_distribution` would raise it.
    """
    found = StateEnumeration(
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
    """Compute the normalised p(x) V(x), where p is the oracle's distribution and V the verifier's value.

    With a 0/1 verifier this is the oracle's distribution restricted to accepted sequences. With
    `power(alpha)` it is proportional to p(x)^alpha, and with `tilted(reward, beta)` to p(x) exp(beta
    reward(x)).

    Args:
        oracle: A small model, or a model of any size if the verifier has a mask that allows few sequences.
        verifier: The verifier or target, which is evaluated on complete sequences.
        prompt: Token ids of the prompt (default: empty).
        max_new_tokens: Maximum length of a completion (default: up to the oracle's `max_length`).
        max_states: Largest number of prefixes (default: 1,000,000).

    Returns:
        Probability of each sequence (prompt and completion) of positive value.

    Raises:
        InputError: If no sequence has a positive value, or there are more prefixes.

    Example:
        >>> from trialogue import target_distribution
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> target = target_distribution(table, lambda prefix: prefix != (0, 0))
        >>> {output: round(probability, 3) for output, probability in target.items()}
        {(0, 1): 0.5, (1, 1): 0.5}
    """
    most, whole = check("max_states", max_states, Count), as_verifier(verifier)
    masks = [factor for factor in whole.parts or (whole,) if factor.has_mask]
    try:
        tree = prefix_tree(
            oracle,
            prompt=prompt,
            max_new_tokens=max_new_tokens,
            max_nodes=most,
            viable=Product(*masks) if masks else None,
        )
    except TooManyPrefixes:
        raise InputError("max_states", most, "use a smaller oracle, or increase `max_states`") from None
    places = np.flatnonzero(tree.leaf).tolist()
    sequences = [tree.prefixes[place] for place in places]
    log_weights = torch.from_numpy(tree.log_probs[places]) + log_values(
        verifier, tree.oracle, sequences, prompt_lengths=tree.start, max_length=tree.longest
    )
    if not bool((log_weights > -math.inf).any()):
        raise InputError("verifier", 0.0, "accept at least one sequence of positive probability")
    target = zip(sequences, log_weights.softmax(0).tolist(), log_weights.tolist(), strict=True)
    return {x: probability for x, probability, log_weight in target if log_weight > -math.inf}


def _output_distribution(found: ReachableStates) -> ExactDistribution:
    """Compute the output distribution and cost from all reachable states and their transitions."""
    ended, size = found.ended, len(found.queries)
    chain = AbsorbingChain(
        found.transitions, np.bincount(ended.state, ended.probability, size).astype(np.float64)
    )
    visits = chain.visits
    weighed = visits if found.weighted is None else chain.weighted_visits(found.weighted)
    never_halts = chain.never_ends
    never_stops_calling = never_halts > 0 and bool(np.any(found.queries[~chain.ending] > 0))
    masses, complete = visits[ended.state] * ended.probability, ended.output != FAILED
    place = ended.output[complete]
    probabilities = np.bincount(place, masses[complete], len(found.outputs)).tolist()
    failed = math.fsum(masses[~complete])
    require_distribution("probabilities", (*probabilities, failed), never_halts)
    queries = float(visits @ found.queries)
    with np.errstate(over="ignore", invalid="ignore"):  # Weights that are not finite raise an error below.
        weight = weighed[ended.state] * (ended.probability * np.exp(ended.log_weight))
    weights = np.bincount(place, weight[complete], len(found.outputs))
    if not math.isfinite(queries) or not bool((np.isfinite(weights) & (weights >= 0)).all()):
        raise InputError(
            "log_weight",
            queries,
            "use a smaller problem, because the expected calls or weights exceed double precision",
        )
    return ExactDistribution(
        probabilities=dict(zip(found.outputs, probabilities, strict=True)),
        failed=failed,
        never_halts=never_halts,
        expected_calls=math.inf if never_stops_calling else queries,
        weights=dict(zip(found.outputs, weights.tolist(), strict=True)),
        states=size,
    )
