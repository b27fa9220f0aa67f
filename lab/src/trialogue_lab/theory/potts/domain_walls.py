"""Why a chain with a finite window cannot keep one stored pattern: the bounds of the proof, and what they bound.

Theorem 1.1 of the document on the Potts chain, equations 2 to 5. A chain of length L with windows of width W has N > 1
stored patterns, sequences of energy zero; a single wall splices the beginning of one with the rest of another. The
proof bounds what the wall costs and counts where it can be. Beside each bound stands the exact number: how many windows
a bond really cuts, what each splice costs, how many different splices there are, and the weight of all of them.

Energies are the table (V,) * W of one window, in units where the temperature is an energy; patterns are whole sequences
(N, L) of energy zero.
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
from trialogue_lab.theory.potts.transfer_decay import kept_decay

Energies = Annotated[Tensor, Reals("V*", least=0, infinite="both")]
"""Energies of one window, one axis of size V per token; infinite for forbidden windows."""
Patterns = Annotated[Tensor, Integers("patterns length", least=0)]
"""Stored patterns, one row of tokens each."""
Several = Annotated[int, Ge(2)]
"""A number of patterns: a wall needs two or more."""


@validated
def largest_wall_energy(window: Count, max_energy: NonNegative) -> float:
    """(W - 1) E_max, the most that one wall can cost (equation 3).

    Raises `InputError` where E_max is not finite: windows that are forbidden can make every wall impossible, and then
    the theorem does not hold.
    """
    return (window - 1) * max_energy


@validated
def largest_wall_entropy(length: Annotated[int, Ge(2)], patterns: Several) -> float:
    """log[(N - 1)(L - 1)], the entropy of a single wall in nats (equation 4), if all splices are different.

    Raises `InputError` for less than two patterns, between which alone there are walls.
    """
    return math.log((patterns - 1) * (length - 1))


@validated
def free_energy_bound(
    length: int, window: int, max_energy: float, temperature: Positive, patterns: int
) -> float:
    """(W - 1) E_max - T log[(N - 1)(L - 1)], which bounds the free energy of a single wall (equation 5).

    It bounds that of `one_wall` where all splices are different. Raises `InputError` where the theorem assumes
    otherwise: T not positive, E_max not finite, less than two patterns.
    """
    energy = largest_wall_energy(window, max_energy)
    return energy - temperature * largest_wall_entropy(length, patterns)


@validated
def crossing_length(window: int, max_energy: float, temperature: Positive, patterns: Several) -> float:
    """L* = 1 + exp((W - 1) E_max / T) / (N - 1), beyond which `free_energy_bound` is negative; inf if it overflows.

    Raises `InputError` where the theorem assumes otherwise: T not positive, E_max not finite, less than two patterns.
    """
    exponent = largest_wall_energy(window, max_energy) / temperature
    log_walls = exponent - math.log(patterns - 1)
    return 1 + math.exp(log_walls) if log_walls < math.log(np.finfo(float).max) else math.inf


@validated
def stored_sequences(chain: InstanceOf[PottsChain], length: Count) -> Tensor:
    """The different sequences (N, L) int64 that follow one of the patterns of `chain` in any phase.

    Raises `InputError` for a chain that stores none.
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
    """Energies (N - 1, L - 1) of the sequences that follow pattern 0 up to a bond and pattern n from there on.

    Raises `InputError` where a pattern is no sequence of the chain, or has an energy: it is not stored then.
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
    """All sequences with a single wall that begin in one pattern, each counted once.

    `states` is how many there are, at most (N - 1)(L - 1); `largest_energy` the most that one of them costs;
    `log_weight` the log of the sum of exp(-E / T) over them, relative to the pattern itself, whose energy is zero.
    """

    states: int
    largest_energy: float
    log_weight: float
    temperature: float

    @property
    def free_energy(self) -> float:
        """-T log of the weight, what `free_energy_bound` bounds: negative where one wall is likelier than none."""
        return -self.temperature * self.log_weight

    @property
    def entropy(self) -> float:
        """log of `states`, what `largest_wall_entropy` bounds."""
        return math.log(self.states) if self.states else -math.inf


@validated
def one_wall(energies: Energies, patterns: Patterns, temperature: Positive) -> OneWall:
    """The exact counterparts of equations 2 to 5 for walls out of pattern 0 of `patterns` (N, L).

    Where patterns share tokens several (bond, pattern) give the same sequence, and some give a stored pattern, which
    has no wall: those are left out. Infinite energies may be given; such walls weigh nothing. Raises `InputError` for a
    temperature that is not positive, for less than two patterns, and as `splice_energies`.
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
    """How many sequences of `length` tokens have energy zero: the number of stored patterns, exact at any length."""
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
def stored_pattern_decay(energies: Energies, temperature: Positive) -> float:
    """Rate c at which the probability of no excitation at all falls, P(energy zero) ~ exp(-c L), in nats per site.

    It is log(lambda(T) / lambda(0)) of the leading eigenvalues of the transfer matrices with all windows, and with
    those of energy zero alone: positive at every T > 0 if energies are finite, and zero where every window that costs
    is forbidden (infinite). Raises `InputError` where no sequence of energy zero can go on for ever, and as
    `transfer_decay.kept_decay` for chains so cold that the eigenvalues are not resolved.
    """
    table = energies.double().numpy()
    rate = kept_decay(_log_weights(table, temperature), [[table == 0]], temperature)
    if rate == math.inf:
        raise InputError("energies", float(table.min()), "no sequence of any length has energy zero")
    return rate


@validated
def no_wall_decay(chain: InstanceOf[PottsChain], temperature: Positive) -> float:
    """Rate c at which the probability of no domain wall falls, P(all windows follow one label) ~ exp(-c L), per site.

    It is log(lambda / lambda_0): the leading eigenvalue of the transfer matrix, and the largest one with windows of a
    single label alone, whose sites differ by their place in the period (per site of it). Raises `InputError` for a
    temperature that is not positive, for a chain that stores nothing, and as `transfer_decay.kept_decay` for chains so
    cold that the eigenvalues are not resolved.
    """
    period = len(chain.patterns[0]) if chain.patterns else 1
    labels = [chain.window_labels(site).numpy() for site in range(period)]
    kept = [[of_site == label for of_site in labels] for label in np.unique(labels)]
    return kept_decay(_log_weights(chain.energies.double().numpy(), temperature), kept, temperature)


def _log_weights(energies: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """-E / T, which is infinite where E is."""
    with np.errstate(over="ignore"):
        log_weights = -energies / temperature
    if np.isinf(log_weights[np.isfinite(energies)]).any():
        largest = float(energies[np.isfinite(energies)].max())
        raise InputError("temperature", temperature, f"E / T overflows: the largest energy is {largest}")
    return log_weights


def _require_stored(table: NDArray[np.float64], sequences: NDArray[np.int64]) -> None:
    """Raise `InputError` unless every row of `sequences` (N, L) is a sequence of energy zero."""
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
    """Pattern and bond of every different sequence that begins like pattern 0 and ends like another, and is neither.

    A splice is named by the first site where it departs from pattern 0 and by what it is from there on.
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
