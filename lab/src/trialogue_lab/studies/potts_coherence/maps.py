"""Exact comparisons of random autoregressive models with Potts chains (Theorem 1.2 and Corollary 1.2.1)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Table
from trialogue.oracles import Autoregressive, enumerate_sequences
from trialogue.oracles.prefixes import next_log_probs
from trialogue.randomness import generator
from trialogue.samplers import truncated
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import (
    context_log_probs,
    convert_to_autoregressive,
    convert_to_hamiltonian,
)

VOCAB, LENGTH = 3, 6
TEMPERATURES = (0.5, 2.0)


def make_random_model(width: int, place: int) -> Table:
    """Return an autoregressive model with random next-token distributions.

    Args:
        width: Number of previous tokens that the next token depends on.
        place: Index of the model, which is used as its seed.
    """
    draws = generator(0, "potts-coherence", "model", width, place)
    weights = [
        -torch.rand([VOCAB] * (known + 1), generator=draws, dtype=torch.float64).log()
        for known in range(width + 1)
    ]

    def next_weights(prefix: tuple[int, ...]) -> Any:
        context = prefix[max(0, len(prefix) - width) :]
        return weights[len(context)][context].tolist()

    return Table(next_weights, VOCAB)


def compute_sequence_probabilities(oracle: Autoregressive) -> Tensor:
    """Return the probabilities of all sequences of `LENGTH` tokens under an autoregressive model.

    Args:
        oracle: The model, with a vocabulary of V tokens.

    Returns:
        Probabilities (V^LENGTH,), float64, in the order of `itertools.product`.
    """
    states = enumerate_sequences(VOCAB, LENGTH)
    total = torch.zeros(len(states), dtype=torch.float64)
    for place in range(LENGTH):
        log_probs = next_log_probs(oracle, states, torch.full((len(states),), place))
        total += log_probs.gather(1, states[:, place, None])[:, 0]
    return total.exp()


def measure_maps(widths: Sequence[int], models: int) -> MeasuredRows:
    """Convert random autoregressive models to Potts chains and back, and measure the errors (Theorem 1.2).

    A Potts chain is a distribution over token sequences whose energy is a sum over windows of successive tokens.

    Args:
        widths: Numbers of previous tokens that a model depends on.
        models: Number of models per width.

    Yields:
        One row per model. Distances are total variation distances.

        - "global", "per_context": distance between the model and its chain, for the two interpretations of the constant
          in equation 9.
        - "round_trip": distance to the model that is recovered from the chain.
        - "per_step_T": distance between the chain at temperature T and sampling each token at temperature T.
        - "exact_T": distance between the chain at temperature T and the model that is recovered at T.
        - "patterns": number of stored patterns, which greedy decoding repeats forever.
        - "decay": smallest rate at which sampled text leaves a pattern (Corollary 1.2.1).
    """
    states = enumerate_sequences(VOCAB, LENGTH)
    for width in widths:
        for place in range(models):
            oracle = make_random_model(width, place)
            own = compute_sequence_probabilities(oracle)
            hamiltonian = convert_to_hamiltonian(oracle, width)
            energy = hamiltonian.energy(states)
            relative = convert_to_hamiltonian(oracle, width, "per-context").energy(states)
            back = compute_sequence_probabilities(convert_to_autoregressive(hamiltonian, LENGTH, 1.0))
            row = {
                "kind": "map",
                "width": width,
                "place": place,
                "global": _compute_variation(own, (-energy).softmax(0)),
                "per_context": _compute_variation(own, (-relative).softmax(0)),
                "round_trip": _compute_variation(own, back),
            }
            for temperature in TEMPERATURES:
                exact = (-energy / temperature).softmax(0)
                per_token = compute_sequence_probabilities(truncated(oracle, temperature=temperature))
                row[f"per_step_{temperature:g}"] = _compute_variation(per_token, exact)
                of_chain = compute_sequence_probabilities(
                    convert_to_autoregressive(hamiltonian, LENGTH, temperature)
                )
                row[f"exact_{temperature:g}"] = _compute_variation(of_chain, exact)
            patterns = greedy_patterns(context_log_probs(oracle, width))
            row["patterns"] = sum(len(pattern.tokens) for pattern in patterns)
            row["cycles"] = len(patterns)
            row["decay"] = min(pattern.decay_rate for pattern in patterns)
            yield row


def _compute_variation(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().sum()) / 2
