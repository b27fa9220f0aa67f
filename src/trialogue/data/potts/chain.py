"""Potts chains: sequences of tokens whose energy is a sum over windows, with everything about them exact.

H(x) = sum over i = 0, ..., L - W of E(x_i, ..., x_(i+W-1)), open ends, and p(x) ∝ exp(-H(x) / T): the
pseudo-convolutional Hamiltonians of Definition 1.3 of the document on Potts chains, all windows alike. Tokens are
0, ..., V - 1. Energies and temperatures share a unit; logarithms are natural.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.data.potts.distribution import PottsDistribution
from trialogue.data.potts.messages import (
    MAX_MESSAGES,
    Messages,
    checked_tokens,
    require_fitting,
    window_numbers,
)
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.data.potts.spectrum import correlation_length
from trialogue.data.potts.walls import Walls
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, NonNegative, Positive, validated


class PottsChain:
    """A chain of V-valued tokens with `energies` (V, ..., V) of W axes: what each window of W successive tokens costs.

    Lengths are given when asked for: any of at least W. `energies` become float64. `patterns` (periodic sequences of
    token ids, of one length) are what domain walls lie between; energies need not come from them.

    Raises `InputError` for axes of unequal size, energies that are negative, infinite or NaN, patterns that are
    unequal or outside the vocabulary, and transfer matrices of more than `potts_messages.MAX_WINDOWS` nonzeros V^W.
    Methods raise it for a `length` below W or one whose answer would not fit, and for a `temperature` that is not
    positive, or so low that the sum of E / T over all windows overflows.
    """

    def __init__(self, energies: Tensor, patterns: Iterable[Sequence[int] | Tensor] | None = None) -> None:
        hint = "give W axes of one size V, at least 2"
        table = real_tensor("energies", energies, hint)
        if not table.ndim or len(set(table.shape)) > 1 or table.shape[0] < 2:
            raise InputError("energies", tuple(table.shape), hint)
        self.vocab_size, self.window = table.shape[0], table.ndim
        require_fitting(self.vocab_size, self.window)
        wrong = table[~(torch.isfinite(table) & (table >= 0))]
        if len(wrong):
            raise InputError("energies", float(wrong[0]), "give finite energies of at least 0")
        self.energies = table.clone()
        self._stored = None if patterns is None else StoredPatterns(patterns, self.window, self.vocab_size)
        # Messages and tables are made once for the temperatures and lengths that were used last.
        self._messages = lru_cache(4)(lambda number: Messages(self._log_weights(number)))
        self._laws = lru_cache(4)(lambda sites, number: PottsDistribution(self.messages(number), sites))

    def __reduce__(self) -> Any:
        """Pickle without the caches."""
        return type(self), (self.energies, self.patterns)

    @classmethod
    @validated
    def from_patterns(
        cls,
        patterns: Iterable[Sequence[int] | Tensor],
        window: int = 3,
        penalty: NonNegative = 1.0,
        vocab_size: int | None = None,
    ) -> Self:
        """The chain that stores `patterns`: periodic sequences of tokens, all of one length, in any phase.

        A window costs `penalty` times its Hamming distance to the nearest window of a pattern. `vocab_size` is by
        default one more than the largest token of the patterns.
        """
        stored = StoredPatterns(patterns, window, vocab_size)
        distances = stored.distances().view([stored.vocab_size] * stored.window)
        return cls(penalty * distances.double(), stored.patterns)

    @property
    def patterns(self) -> list[Tensor] | None:
        """The stored patterns, each (period,) int64; None where there are none."""
        return None if self._stored is None else list(self._stored.patterns)

    @property
    def max_energy(self) -> float:
        """E^max of Definition 1.3: the largest energy of a window."""
        return float(self.energies.max())

    def energy(self, tokens: Tensor) -> Tensor:
        """H(x) (rows,) float64 of `tokens` (rows, L), L at least W."""
        tokens = checked_tokens(tokens, self.vocab_size, self.window)
        self._windows(tokens.shape[1])
        return self.energies.view(-1)[window_numbers(tokens, self.vocab_size, self.window)].sum(1)

    def at(self, length: int, temperature: float) -> PottsDistribution:
        """The distribution of sequences of `length` tokens: an energy (H / T), a masked oracle, and joint draws of
        blocks.
        """
        return self._laws(self._windows(length, temperature) + self.window - 1, float(temperature))

    @validated
    def messages(self, temperature: Positive) -> Messages:
        """The transfer-matrix messages at a temperature, with log-weights -E / T; they serve all lengths."""
        return self._messages(temperature)

    def _log_weights(self, temperature: float) -> Tensor:
        log_weights = -self.energies / temperature
        if not bool(torch.isfinite(log_weights).all()):
            raise InputError(
                "temperature", temperature, f"E / T overflows: the largest energy is {self.max_energy}"
            )
        return log_weights

    def log_partition(self, length: int, temperature: float) -> float:
        """log Z of all V^L sequences."""
        return self.messages(temperature).log_partition(self._windows(length, temperature))

    @validated
    def free_energy(self, length: int, temperature: Positive) -> float:
        """F = -T log Z."""
        return -temperature * self.log_partition(length, temperature)

    def marginals(self, length: int, temperature: float) -> Tensor:
        """p(x_i) (L, V) float64 of every site."""
        messages, vocab = self.messages(temperature), self.vocab_size
        windows = self._windows(length, temperature)
        self._require_listable(length, self.window * vocab)

        def of_each_place(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            del residue
            distribution = messages.window_law(before, after).view([-1] + [vocab] * self.window)
            axes = range(1, self.window + 1)
            return torch.stack(
                [distribution.movedim(axis, 1).reshape(len(distribution), vocab, -1).sum(2) for axis in axes],
                1,
            )

        places = messages.by_window(windows, 1, 1, of_each_place)
        return torch.cat((places[:, 0], places[-1, 1:]))

    def window_marginals(self, length: int, temperature: float) -> Tensor:
        """p(x_i, ..., x_(i+W-1)) (L - W + 1, V, ..., V) float64 of every window."""
        messages, windows = self.messages(temperature), self._windows(length, temperature)
        self._require_listable(length, self.energies.numel())
        distributions = messages.by_window(
            windows, 1, 1, lambda before, after, _: messages.window_law(before, after)
        )
        return distributions.view([windows] + [self.vocab_size] * self.window)

    def mean_energy(self, length: int, temperature: float) -> float:
        """The expectation of H."""
        messages, energies = self.messages(temperature), self.energies.view(-1)

        def mean(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            del residue
            return messages.window_law(before, after) @ energies

        return float(messages.by_window(self._windows(length, temperature), 1, 1, mean).sum())

    def entropy(self, length: int, temperature: float) -> float:
        """S = (<H> - F) / T, in nats."""
        mean = self.mean_energy(length, temperature) / temperature
        return mean + self.log_partition(length, temperature)

    def correlation_length(self, temperature: float) -> float:
        """xi = 1 / log(lambda_1 / |lambda_2|) in sites, from the transfer matrix of an infinite chain.

        The two eigenvalues of largest modulus; where the second is complex, correlations oscillate under this
        envelope. 0 where the matrix has one nonzero eigenvalue, such as for W = 1: sites farther apart than a window
        are independent; and where float64 does not tell it from that, below (W - 1) / 30 sites. Raises `InputError`
        where the eigenvalues are closer than can be told apart.
        """
        log_weights = self.messages(temperature).log_weights
        return correlation_length(log_weights, self.vocab_size, self.window, temperature)

    def sample(self, n: int, length: int, temperature: float, seed: int = 0) -> Tensor:
        """Draw `n` independent sequences (n, L) int64 exactly; sequence i depends on `seed` and i alone."""
        return self.at(length, temperature).sample(n, seed)

    @validated
    def window_labels(self, position: Natural = 0) -> Tensor:
        """The label (V, ..., V) int64 of every window that begins at site `position`: its nearest pattern.

        Label p * period + f is pattern p in phase f, which predicts token P_p[(i + f) mod period] at site i; nearest
        by Hamming distance, the lowest label wins ties. The phase is counted from site 0, so that a sequence which
        follows a pattern keeps its label, unless the pattern shares a window with another or with itself.
        """
        stored = self._patterns()
        labels = stored.window_labels(position)
        return labels.view([self.vocab_size] * self.window)

    def followed(self, tokens: Tensor) -> Tensor:
        """Which pattern each window of `tokens` (rows, L) follows: labels (rows, L - W + 1) int64 as above."""
        return self._patterns().nearest(checked_tokens(tokens, self.vocab_size, self.window))[0]

    def domain_walls(self, tokens: Tensor) -> Tensor:
        """Where the label of a window is not that of the window before it, (rows, L - W) bool.

        Entry i is between windows i and i + 1. A slip of phase is a wall.
        """
        labels = self.followed(tokens)
        return labels[:, 1:] != labels[:, :-1]

    def wall_probabilities(self, length: int, temperature: float) -> Tensor:
        """P(domain wall) (L - W,) float64 between every two successive windows."""
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).probabilities(windows)

    def expected_domain_walls(self, length: int, temperature: float) -> float:
        """The expected number of positions where the nearest pattern (see `window_labels`) changes."""
        return float(self.wall_probabilities(length, temperature).sum())

    def run_length_distribution(self, length: int, temperature: float) -> Tensor:
        """P(the first coherent run has r windows) (L - W + 1,) float64, r = 1, 2, ...

        The run is the windows before the first wall; the last entry is the probability that there is no wall.
        """
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).log_run_lengths(windows).exp()

    def no_wall_probability(self, length: int, temperature: float) -> float:
        """P(all windows have one label)."""
        return math.exp(self.log_no_wall_probability(length, temperature))

    def log_no_wall_probability(self, length: int, temperature: float) -> float:
        """log P(all windows have one label), also where the probability underflows."""
        return self._walls(temperature).log_no_wall(self._windows(length, temperature))

    @validated
    def _windows(self, length: Count, temperature: Positive = 1.0) -> int:
        """How many windows a sequence has; raises `InputError` where the sum of their E, or of E / T, overflows."""
        if length < self.window:
            raise InputError(
                "length", length, f"a window of {self.window} sites does not fit: use at least {self.window}"
            )
        windows = length - self.window + 1
        if not math.isfinite(windows * self.max_energy / min(temperature, 1.0)):
            hint = f"the energies of {windows} windows, of up to {self.max_energy} each, overflow: use smaller ones"
            raise InputError("energies", self.max_energy, hint)
        return windows

    def _require_listable(self, length: int, numbers: int) -> None:
        """Raise `InputError` where so many `numbers` for each site would not fit."""
        if length * numbers > MAX_MESSAGES:
            hint = f"so many sites with {numbers} numbers each would not fit: use at most {MAX_MESSAGES // numbers}"
            raise InputError("length", length, hint)

    def _patterns(self) -> StoredPatterns:
        if self._stored is None:
            raise InputError(
                "patterns", None, "nothing is stored: use PottsChain(energies, patterns) or from_patterns"
            )
        return self._stored

    def _walls(self, temperature: float) -> Walls:
        return Walls(self._patterns(), self.messages(temperature))
