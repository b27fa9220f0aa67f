"""Domain walls in chains with a finite window: the bounds of the proof and the exact quantities.

Theorem 1.1 of the document on the Potts chain, equations 2 to 5. A chain of length L with windows of width W
has N > 1 stored patterns, which are sequences of energy zero. A single wall joins the beginning of one
pattern with the rest of another. The proof bounds the energy and the number of walls. This module also
computes the exact energy of each splice, the number of distinct splices and their total weight.

Energies are tables (V,) * W of one window, in units in which the temperature is an energy. Patterns are
sequences (N, L) of energy zero.
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
from trialogue_lab.theory.potts.transfer_decay import kept_decay_rate

Energies = Annotated[Tensor, Reals("V*", least=0, infinite="both")]
"""Energies of one window, with one axis of size V per token; infinite for forbidden windows."""
Patterns = Annotated[Tensor, Integers("patterns length", least=0)]
"""Stored patterns, one row of tokens each."""
Several = Annotated[int, Ge(2)]
"""Number of patterns, at least two."""


@validated
def largest_wall_energy(window: Count, max_energy: NonNegative) -> float:
    """Return (W - 1) E_max, the largest energy of one wall (equation 3).

    The theorem requires a finite E_max, because forbidden windows can exclude every wall.

    Args:
        window: Window width W.
        max_energy: Largest energy E_max of a window.
    """
    return (window - 1) * max_energy


@validated
def largest_wall_entropy(length: Annotated[int, Ge(2)], patterns: Several) -> float:
    """Return log[(N - 1)(L - 1)] in nats, the entropy of a single wall if all splices are distinct (equation 4).

    Args:
        length: Chain length L.
        patterns: Number N of patterns.
    """
    return math.log((patterns - 1) * (length - 1))


@validated
def free_energy_bound(
    length: int, window: int, max_energy: float, temperature: Positive, patterns: int
) -> float:
    """Return the bound (W - 1) E_max - T log[(N - 1)(L - 1)] on the free energy of a single wall (equation 5).

    It is an upper bound on the free energy of `one_wall` if all splices are distinct.

    Args:
        length: Chain length L.
        window: Window width W.
        max_energy: Largest energy E_max of a window.
        temperature: Temperature T.
        patterns: Number N of patterns.
    """
    energy = largest_wall_energy(window, max_energy)
    return energy - temperature * largest_wall_entropy(length, patterns)


@validated
def crossing_length(window: int, max_energy: float, temperature: Positive, patterns: Several) -> float:
    """Return L* = 1 + exp((W - 1) E_max / T) / (N - 1), beyond which `free_energy_bound` is negative.

    The result is infinite on overflow.

    Args:
        window: Window width W.
        max_energy: Largest energy E_max of a window.
        temperature: Temperature T.
        patterns: Number N of patterns.
    """
    exponent = largest_wall_energy(window, max_energy) / temperature
    log_walls = exponent - math.log(patterns - 1)
    return 1 + math.exp(log_walls) if log_walls < math.log(np.finfo(float).max) else math.inf


@validated
def stored_sequences(chain: InstanceOf[PottsChain], length: Count) -> Tensor:
    """Return the distinct sequences (N, L) int64 that follow a pattern of `chain` in any phase.

    Raises:
        InputError: If the chain stores no pattern.
    """
    if chain.patterns is None:
        hint = "nothing is stored: use PottsChain(energies, patterns) or from_patterns"
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
    """Return energies (N - 1, L - 1) of the sequences that switch from pattern 0 to pattern n at a bond.

    Raises:
        InputError: If a pattern is not a sequence of the chain or has non-zero energy.
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
    """All distinct sequences with a single wall that start with one pattern.

    Attributes:
        states: Number of sequences, at most (N - 1)(L - 1).
        largest_energy: Largest energy of such a sequence.
        log_weight: Log of the sum of exp(-E / T), relative to the pattern itself.
        temperature: Temperature T.
    """

    states: int
    largest_energy: float
    log_weight: float
    temperature: float

    @property
    def free_energy(self) -> float:
        """-T log_weight, bounded by `free_energy_bound`. If negative, one wall is more likely than none."""
        return -self.temperature * self.log_weight

    @property
    def entropy(self) -> float:
        """Log of `states`, bounded by `largest_wall_entropy`."""
        return math.log(self.states) if self.states else -math.inf


@validated
def one_wall(energies: Energies, patterns: Patterns, temperature: Positive) -> OneWall:
    """Compute the exact counterparts of equations 2 to 5 for walls that start with pattern 0.

    If patterns share tokens, several splices give the same sequence or a stored pattern. Duplicates count
    once and stored patterns do not count. Sequences of infinite energy have weight zero.

    Args:
        energies: Energies (V,) * W.
        patterns: Patterns (N, L), at least two.
        temperature: Temperature T.
    """
    cost = splice_energies(energies, patterns).numpy()
    if len(patterns) < 2:
        raise InputError("patterns", len(patterns), "a wall needs two or more stored patterns")
    other, bond = _different_splices(patterns.numpy())
    chosen = cost[other - 1, bond - 1]
    if not len(chosen):
        return OneWall(0, 0.0, -math.inf, temperature)
    log_weight = np.logaddexp.reduce(_log_weights(chosen, temperature))
    return OneWall(len(chosen), float(chosen.max()), float(log_weight), temperature)


@validated
def stored_pattern_count(energies: Energies, length: Count) -> int:
    """Return the number of sequences of `length` tokens with energy zero."""
    table = energies.double().numpy()
    if length < table.ndim:
        raise InputError("length", length, f"use at least one window of {table.ndim} tokens")
    free = (table == 0).reshape(-1, table.shape[0]).astype(object)
    counts = np.array([1] * len(free), dtype=object)
    for _ in range(length - table.ndim + 1):
        # Of the contexts that a token leads to, the last W - 1 tokens count: the first one is dropped.
        counts = (free * np.resize(counts, free.shape)).sum(1)
    return int(counts.sum())


@validated
def stored_pattern_decay_rate(energies: Energies, temperature: Positive) -> float:
    """Return the rate c of P(energy zero) ~ exp(-c L), in nats per site.

    c = log(lambda(T) / lambda(0)), where lambda are the leading eigenvalues of the transfer matrices with all
    windows and with zero-energy windows only. It is positive for finite energies at every T > 0, and zero if
    all other windows are forbidden.

    Args:
        energies: Energies (V,) * W.
        temperature: Temperature T.

    Raises:
        InputError: If no infinite sequence has energy zero, or the eigenvalues are not resolved at this
            temperature.
    """
    table = energies.double().numpy()
    rate = kept_decay_rate(_log_weights(table, temperature), [[table == 0]], temperature)
    if rate == math.inf:
        raise InputError("energies", float(table.min()), "no sequence of any length has energy zero")
    return rate


@validated
def no_wall_decay_rate(chain: InstanceOf[PottsChain], temperature: Positive) -> float:
    """Return the rate c of P(all windows follow one label) ~ exp(-c L), in nats per site.

    c = log(lambda / lambda_0), where lambda is the leading eigenvalue of the transfer matrix and lambda_0 the
    largest one with windows of a single label. Labels depend on the position in the period, so eigenvalues
    are taken per site.

    Args:
        chain: Chain with stored patterns.
        temperature: Temperature T.

    Raises:
        InputError: If the chain stores no pattern, or the eigenvalues are not resolved at this temperature.
    """
    period = len(chain.patterns[0]) if chain.patterns else 1
    labels = [chain.window_labels(site).numpy() for site in range(period)]
    kept = [[of_site == label for of_site in labels] for label in np.unique(labels)]
    return kept_decay_rate(_log_weights(chain.energies.double().numpy(), temperature), kept, temperature)


def _log_weights(energies: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
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
        hint = f"pattern {int(cost.argmax())} has this energy: stored ones have none"
        raise InputError("patterns", float(cost.max()), hint)


def _different_splices(sequences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pattern and bond of every distinct splice of pattern 0 that is not itself stored.

    A splice is identified by the first site that differs from pattern 0 and by its continuation.
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
    stored = names[:, 0]  # what departs at its own first difference is the other pattern itself
    kept = (departs < length) & ~np.isin(names, stored)
    _, first = np.unique(names[:, 1:][kept[:, 1:]], return_index=True)
    return others[:, 1:][kept[:, 1:]][first], departs[:, 1:][kept[:, 1:]][first]
