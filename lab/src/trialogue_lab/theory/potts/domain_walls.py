"""Domain walls in Potts chains: exact values, and the bounds in the proof of Theorem 1.1.

A Potts chain is a distribution p(x) ∝ exp(-energy / T) over sequences of L tokens, where the energy is a sum
over windows of W neighboring tokens and T is the temperature. A stored pattern is a sequence of energy zero.
A domain wall is a point at which a sequence switches from one stored pattern to another. Energies are tables
(V,) * W with one axis per token of the window.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import Integers, Reals
from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue.validation import Count, InstanceOf, NonNegative, Positive, validated
from trialogue_lab.theory.potts.transfer_decay import compute_decay_rate

Energies = Annotated[Tensor, Reals("V*", least=0, infinite="both")]
"""Energies of one window, with one axis of size V per token; infinite for forbidden windows."""
Patterns = Annotated[Tensor, Integers("patterns length", least=0)]
"""Stored patterns, one row of tokens each."""
AtLeastTwo = Annotated[int, Ge(2)]
"""Number of patterns, at least two."""


@validated
def largest_wall_energy(window: Count, max_energy: NonNegative) -> float:
    """Return an upper bound on the energy of one domain wall, (W - 1) E_max (equation 3).

    A domain wall is a point at which a sequence switches from one stored pattern to another. Only the W - 1
    windows that contain this point can have positive energy.

    Args:
        window: Number W of tokens in a window.
        max_energy: Largest energy E_max of a window.
    """
    return (window - 1) * max_energy


@validated
def largest_wall_entropy(length: Annotated[int, Ge(2)], patterns: AtLeastTwo) -> float:
    """Return the logarithm of the number of sequences with one domain wall, log[(N - 1)(L - 1)] (equation 4).

    A domain wall is a point at which a sequence switches from one stored pattern to another. It has L - 1
    possible positions, and N - 1 patterns can follow it. If some of these sequences are equal, the result is
    an upper bound.

    Args:
        length: Number L of tokens in a sequence.
        patterns: Number N of stored patterns.
    """
    return math.log((patterns - 1) * (length - 1))


@validated
def free_energy_bound(
    length: int, window: int, max_energy: float, temperature: Positive, patterns: int
) -> float:
    """Return the upper bound of equation 5 on the free energy of a single domain wall.

        bound = (W - 1) E_max - T log[(N - 1)(L - 1)]

    A domain wall is a point at which a sequence switches from one stored pattern to another. If the bound is
    negative, one wall is more likely than none. It holds if all sequences with one wall are distinct.

    Args:
        length: Number L of tokens in a sequence.
        window: Number W of tokens in a window.
        max_energy: Largest energy E_max of a window.
        temperature: Temperature T, in the unit of the energies.
        patterns: Number N of stored patterns.
    """
    energy = largest_wall_energy(window, max_energy)
    return energy - temperature * largest_wall_entropy(length, patterns)


@validated
def crossing_length(window: int, max_energy: float, temperature: Positive, patterns: AtLeastTwo) -> float:
    """Return the sequence length beyond which one switch between patterns is more likely than none.

    A switch from one stored pattern to another is called a domain wall. The length is L* = 1 + exp((W - 1) E_max / T) /
    (N - 1), at which `free_energy_bound` is zero. The result is infinite if it exceeds the range of a float.

    Args:
        window: Number W of tokens in a window.
        max_energy: Largest energy E_max of a window.
        temperature: Temperature T, in the unit of the energies.
        patterns: Number N of stored patterns (sequences of energy zero).
    """
    exponent = largest_wall_energy(window, max_energy) / temperature
    log_walls = exponent - math.log(patterns - 1)
    return 1 + math.exp(log_walls) if log_walls < math.log(np.finfo(float).max) else math.inf


@validated
def stored_sequences(chain: InstanceOf[PottsChain], length: Count) -> Tensor:
    """Return all sequences of a given length that repeat one of the patterns stored in `chain`.

    A stored pattern is one period of a periodic sequence. It gives one sequence for each position of the
    period at which the sequence can start.

    Args:
        chain: Chain created with patterns.
        length: Number L of tokens in each sequence.

    Returns:
        Distinct sequences (N, L) int64.

    Raises:
        InputError: If the chain has no patterns.
    """
    if chain.patterns is None:
        hint = "the chain stores no patterns: use PottsChain(energies, patterns) or from_patterns"
        raise InputError("patterns", None, hint)
    sites = torch.arange(length)
    followed = [
        tuple(pattern[(sites + phase) % len(pattern)].tolist())
        for pattern in chain.patterns
        for phase in range(len(pattern))
    ]
    return torch.tensor(list(dict.fromkeys(followed)))


@validated
def splice_energies(energies: Energies, patterns: Patterns) -> Tensor:
    """Return the energies of all sequences that switch once from the first pattern to another one.

    Such a sequence consists of the first b tokens of pattern 0 and the remaining tokens of pattern n.

    Args:
        energies: Energies (V,) * W of a window.
        patterns: Sequences (N, L) int64 of energy zero.

    Returns:
        Energies (N - 1, L - 1) float64. Row n - 1 and column b - 1 belong to pattern n and the switch after b
        tokens.

    Raises:
        InputError: If a pattern has non-zero energy, is shorter than a window or contains an invalid token.
    """
    table, sequences = energies.double().numpy(), patterns.numpy()
    _require_stored(table, sequences)
    width, vocab, length = table.ndim, table.shape[0], sequences.shape[1]
    places = vocab ** np.arange(width - 1, -1, -1)
    windows = np.lib.stride_tricks.sliding_window_view(sequences, width, axis=1) * places
    cost = np.zeros((len(sequences) - 1, length - 1))
    starts = np.arange(length - width + 1)
    for left in range(1, width):
        # The window that starts `left` sites before the bond.
        index = windows[:1, :, :left].sum(2) + windows[1:, :, left:].sum(2)
        cost[:, starts + left - 1] += table.ravel()[index]
    return torch.from_numpy(cost)


class OneWall(NamedTuple):
    """Number and total weight of the sequences that switch once from one stored pattern to another.

    A stored pattern is a sequence of energy zero. All sequences start with the same pattern. Sequences that are stored
    patterns themselves do not count.

    Attributes:
        states: Number of these sequences, at most (N - 1)(L - 1) for N patterns of L tokens.
        largest_energy: Largest energy of such a sequence.
        log_weight: Log of the sum of exp(-E / T) over these sequences with energies E. The weight of the stored pattern
            is 1.
        temperature: Temperature T.
    """

    states: int
    largest_energy: float
    log_weight: float
    temperature: float

    @property
    def free_energy(self) -> float:
        """Free energy -T log(W) of sequences that change once from one pattern to another.

        T is the temperature, and log(W) is `log_weight`. A negative value means that one change is more likely than
        none. If all sequences with one change are distinct, `free_energy_bound` is an upper bound.
        """
        return -self.temperature * self.log_weight

    @property
    def entropy(self) -> float:
        """Logarithm of the number of sequences `states` in nats, -inf for none; at most `largest_wall_entropy`."""
        return math.log(self.states) if self.states else -math.inf


@validated
def one_wall(energies: Energies, patterns: Patterns, temperature: Positive) -> OneWall:
    """Return the exact number and weight of the sequences that switch once from the first pattern to another one.

    Such a sequence has the first tokens of pattern 0 and the remaining tokens of another pattern. Equal sequences count
    once, and sequences that equal a given pattern do not count. Equations 3 to 5 bound the result.

    Args:
        energies: Energies (V,) * W of a window of W tokens; infinite for forbidden windows.
        patterns: Sequences (N, L) int64 of energy zero, at least two.
        temperature: Temperature T, in the unit of the energies.

    Raises:
        InputError: If there are fewer than two patterns, a pattern has non-zero energy, or E / T overflows.
    """
    cost = splice_energies(energies, patterns).numpy()
    if len(patterns) < 2:
        raise InputError("patterns", len(patterns), "a domain wall requires at least two stored patterns")
    other, bond = _list_distinct_splices(patterns.numpy())
    chosen = cost[other - 1, bond - 1]
    if not len(chosen):
        return OneWall(0, 0.0, -math.inf, temperature)
    log_weight = np.logaddexp.reduce(_compute_log_weights(chosen, temperature))
    return OneWall(len(chosen), float(chosen.max()), float(log_weight), temperature)


@validated
def stored_pattern_count(energies: Energies, length: Count) -> int:
    """Return the exact number of sequences of a Potts chain with energy zero, which are the stored patterns.

    Args:
        energies: Energies (V,) * W of a window.
        length: Number of tokens in a sequence, at least W.
    """
    table = energies.double().numpy()
    if length < table.ndim:
        raise InputError("length", length, f"use at least one window of {table.ndim} tokens")
    free = (table == 0).reshape(-1, table.shape[0]).astype(object)
    counts = np.array([1] * len(free), dtype=object)
    for _ in range(length - table.ndim + 1):
        # The next context consists of the last W - 1 tokens, so the index of the first token is dropped.
        counts = (free * np.resize(counts, free.shape)).sum(1)
    return int(counts.sum())


@validated
def stored_pattern_decay_rate(energies: Energies, temperature: Positive) -> float:
    """Return how fast the probability of a stored pattern falls with the sequence length, as a rate c.

        P(a sequence of L tokens has energy zero) ∝ exp(-c L), with c = log(lambda_all / lambda_zero)

    Stored patterns are the sequences of energy zero. lambda_all is the leading eigenvalue of the transfer matrix, whose
    entries are exp(-energy / T) for windows. lambda_zero is the leading eigenvalue if only windows of energy zero are
    allowed.

    Args:
        energies: Energies (V,) * W of a window; infinite for forbidden windows.
        temperature: Temperature T, in the unit of the energies.

    Returns:
        Rate c in nats per token.

    Raises:
        InputError: If no infinite sequence has energy zero, or the eigenvalues cannot be distinguished at
            this temperature.
    """
    table = energies.double().numpy()
    rate = compute_decay_rate(_compute_log_weights(table, temperature), [[table == 0]], temperature)
    if rate == math.inf:
        raise InputError("energies", float(table.min()), "no sequence of any length has energy zero")
    return rate


@validated
def no_wall_decay_rate(chain: InstanceOf[PottsChain], temperature: Positive) -> float:
    """Return how fast the probability of no domain wall falls with the sequence length, as a rate c.

        P(a sequence of L tokens has no wall) ∝ exp(-c L), with c = log(lambda / lambda_0)

    Each window is labeled with the closest stored pattern and its shift (see `PottsChain.window_labels`). There is no
    domain wall if all labels are equal. lambda is the leading eigenvalue of the transfer matrix, and lambda_0 the
    largest one if only windows of a single label are allowed.

    Args:
        chain: Chain created with patterns.
        temperature: Temperature T, in the unit of the energies.

    Returns:
        Rate c in nats per token.

    Raises:
        InputError: If the chain has no patterns, or the eigenvalues cannot be distinguished at this
            temperature.
    """
    period = len(chain.patterns[0]) if chain.patterns else 1
    labels = [chain.window_labels(site).numpy() for site in range(period)]
    kept = [[of_site == label for of_site in labels] for label in np.unique(labels)]
    return compute_decay_rate(
        _compute_log_weights(chain.energies.double().numpy(), temperature), kept, temperature
    )


def _compute_log_weights(energies: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Return -E / T, which is -inf for infinite energies."""
    with np.errstate(over="ignore"):
        log_weights = -energies / temperature
    if np.isinf(log_weights[np.isfinite(energies)]).any():
        largest = float(energies[np.isfinite(energies)].max())
        raise InputError("temperature", temperature, f"E / T overflows: the largest energy is {largest}")
    return log_weights


def _require_stored(table: NDArray[np.float64], sequences: NDArray[np.int64]) -> None:
    """Raise `InputError` unless every row of `sequences` (N, L) has energy zero."""
    if sequences.shape[1] < table.ndim:
        raise InputError("patterns", sequences.shape, f"give at least {table.ndim} tokens per pattern")
    if sequences.max() >= table.shape[0]:
        raise InputError("patterns", int(sequences.max()), f"use tokens from 0 to {table.shape[0] - 1}")
    windows = np.lib.stride_tricks.sliding_window_view(sequences, table.ndim, axis=1)
    cost = table[tuple(np.moveaxis(windows, 2, 0))].sum(1)
    if cost.any():
        hint = f"pattern {int(cost.argmax())} has this energy, but stored patterns must have energy 0"
        raise InputError("patterns", float(cost.max()), hint)


def _list_distinct_splices(sequences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where sequences switch from pattern 0 to another pattern, as pattern and position.

    Each resulting sequence is listed once, and only if it is not a stored pattern.
    """
    count, length = sequences.shape
    same_end = np.zeros((length + 1, count), dtype=np.int64)
    for site in range(length - 1, -1, -1):
        key = sequences[:, site] * count + same_end[site + 1]
        same_end[site] = np.unique(key, return_inverse=True)[1]
    departs = np.where(sequences[1:] != sequences[0], np.arange(length), length)
    departs = np.minimum.accumulate(departs[:, ::-1], axis=1)[:, ::-1]
    others = np.broadcast_to(np.arange(1, count)[:, None], departs.shape)
    names = departs * count + same_end[departs, others]
    stored = names[:, 0]  # A splice at the first difference is the other pattern.
    kept = (departs < length) & ~np.isin(names, stored)
    _, first = np.unique(names[:, 1:][kept[:, 1:]], return_index=True)
    return others[:, 1:][kept[:, 1:]][first], departs[:, 1:][kept[:, 1:]][first]
