"""Potts chains: sequences of tokens whose energy is a sum over windows, with exact statistics.

The energy is H(x) = sum over i = 0, ..., L - W of E(x_i, ..., x_(i+W-1)) with open ends, and p(x) ∝ exp(-H(x) / T).
These are the pseudo-convolutional Hamiltonians of Definition 1.3 of the document on Potts chains, with the same
energy for all windows. Tokens are 0, ..., V - 1. Energies and temperatures share a unit. Logarithms are natural.
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
    """Chain of tokens with an energy for each window of W consecutive tokens.

    The length and the temperature are arguments of the methods. The methods raise `InputError` if `length` is below W
    or the result would be too large, and if `temperature` is not positive or the sum of E / T over all windows
    overflows.

    Args:
        energies: Non-negative energy of each window, as a tensor (V, ..., V) with W axes. Converted to float64.
        patterns: Periodic sequences of token ids with a common length, used to locate domain walls. They do not need
            to be the patterns that the energies favor.

    Raises:
        InputError: If the axes have different sizes, an energy is negative or not finite, the patterns have different
            lengths or tokens outside the vocabulary, or the transfer matrix has too many nonzeros V^W.

    Example:
        >>> from trialogue.data import PottsChain
        >>> chain = PottsChain.from_patterns([[0, 1], [2, 2]], window=2)
        >>> chain.sample(2, length=8, temperature=0.4, seed=1)
        tensor([[2, 2, 2, 2, 2, 2, 2, 2],
                [0, 1, 0, 1, 0, 1, 0, 1]])
        >>> round(chain.expected_domain_walls(8, temperature=0.4), 3)
        0.767
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
        # Messages and tables are cached for the most recent temperatures and lengths.
        self._messages = lru_cache(4)(lambda temperature: Messages(self._log_weights(temperature)))
        self._distributions = lru_cache(4)(
            lambda sites, temperature: PottsDistribution(self.messages(temperature), sites)
        )

    def __reduce__(self) -> Any:
        """Pickle the chain without its caches."""
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
        """Create a chain whose low-energy sequences follow the given periodic patterns in any phase.

        The energy of a window is `penalty` times its Hamming distance to the nearest window of a pattern.

        Args:
            patterns: Periodic sequences of token ids with a common length.
            window: Number W of tokens in a window.
            penalty: Energy per mismatched token.
            vocab_size: Number V of tokens (default: one more than the largest token of the patterns).
        """
        stored = StoredPatterns(patterns, window, vocab_size)
        distances = stored.distances().view([stored.vocab_size] * stored.window)
        return cls(penalty * distances.double(), stored.patterns)

    @property
    def patterns(self) -> list[Tensor] | None:
        """The stored patterns, each (period,) int64, or None if the chain has no patterns."""
        return None if self._stored is None else list(self._stored.patterns)

    @property
    def max_energy(self) -> float:
        """The largest energy of a window, E^max of Definition 1.3."""
        return float(self.energies.max())

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy H(x) (rows,) float64 of `tokens` (rows, L), where L is at least W."""
        tokens = checked_tokens(tokens, self.vocab_size, self.window)
        self._windows(tokens.shape[1])
        return self.energies.view(-1)[window_numbers(tokens, self.vocab_size, self.window)].sum(1)

    def at(self, length: int, temperature: float) -> PottsDistribution:
        """Return the distribution of sequences of `length` tokens at a temperature."""
        sites = self._windows(length, temperature) + self.window - 1
        return self._distributions(sites, float(temperature))

    @validated
    def messages(self, temperature: Positive) -> Messages:
        """Return the transfer-matrix messages for the log-weights -E / T. They are shared by all lengths."""
        return self._messages(temperature)

    def _log_weights(self, temperature: float) -> Tensor:
        log_weights = -self.energies / temperature
        if not bool(torch.isfinite(log_weights).all()):
            hint = (
                f"use a higher temperature, because E / T overflows for the largest energy {self.max_energy}"
            )
            raise InputError("temperature", temperature, hint)
        return log_weights

    def log_partition(self, length: int, temperature: float) -> float:
        """Return the log of the partition function Z over all V^L sequences."""
        return self.messages(temperature).log_partition(self._windows(length, temperature))

    @validated
    def free_energy(self, length: int, temperature: Positive) -> float:
        """Return the free energy F = -T log Z."""
        return -temperature * self.log_partition(length, temperature)

    def marginals(self, length: int, temperature: float) -> Tensor:
        """Return the marginal distribution p(x_i) (L, V) float64 of every site."""
        messages, vocab = self.messages(temperature), self.vocab_size
        windows = self._windows(length, temperature)
        self._require_listable(length, self.window * vocab)

        def token_marginals(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            del residue
            joint = messages.window_distribution(before, after).view([-1] + [vocab] * self.window)
            axes = range(1, self.window + 1)
            return torch.stack(
                [joint.movedim(axis, 1).reshape(len(joint), vocab, -1).sum(2) for axis in axes], 1
            )

        by_window = messages.map_windows(windows, 1, 1, token_marginals)
        return torch.cat((by_window[:, 0], by_window[-1, 1:]))

    def window_marginals(self, length: int, temperature: float) -> Tensor:
        """Return the distribution p(x_i, ..., x_(i+W-1)) (L - W + 1, V, ..., V) float64 of every window."""
        messages, windows = self.messages(temperature), self._windows(length, temperature)
        self._require_listable(length, self.energies.numel())
        distributions = messages.map_windows(
            windows, 1, 1, lambda before, after, _: messages.window_distribution(before, after)
        )
        return distributions.view([windows] + [self.vocab_size] * self.window)

    def mean_energy(self, length: int, temperature: float) -> float:
        """Return the expected value of the energy H."""
        messages, energies = self.messages(temperature), self.energies.view(-1)

        def mean(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            del residue
            return messages.window_distribution(before, after) @ energies

        return float(messages.map_windows(self._windows(length, temperature), 1, 1, mean).sum())

    def entropy(self, length: int, temperature: float) -> float:
        """Return the entropy S = (<H> - F) / T in nats."""
        mean = self.mean_energy(length, temperature) / temperature
        return mean + self.log_partition(length, temperature)

    def correlation_length(self, temperature: float) -> float:
        """Return the correlation length 1 / log(lambda_1 / |lambda_2|) of the infinite chain, in sites.

        lambda_1 and lambda_2 are the two eigenvalues of the transfer matrix with the largest modulus. If lambda_2 is
        complex, correlations oscillate and decay with this length.

        Returns:
            The correlation length. It is 0 if only one eigenvalue is nonzero (for example, if W = 1), because sites
            farther apart than a window are then independent. Lengths below (W - 1) / 30 sites are also returned
            as 0, because float64 cannot distinguish them from this case.

        Raises:
            InputError: If the two eigenvalues are too close to resolve.
        """
        log_weights = self.messages(temperature).log_weights
        return correlation_length(log_weights, self.vocab_size, self.window, temperature)

    def sample(self, n: int, length: int, temperature: float, seed: int = 0) -> Tensor:
        """Sample `n` independent sequences (n, L) int64 exactly. Sequence i depends on `seed` and i only."""
        return self.at(length, temperature).sample(n, seed)

    @validated
    def window_labels(self, position: Natural = 0) -> Tensor:
        """Return the label (V, ..., V) int64 of the nearest pattern for every window that starts at `position`.

        Label p * period + f stands for pattern p in phase f, which predicts token P_p[(i + f) mod period] at site i.
        Distances are Hamming distances, and the lowest label wins ties. Phases are counted from site 0. A sequence
        that follows a pattern therefore has the same label everywhere, unless a window occurs more than once in the
        patterns.
        """
        stored = self._patterns()
        labels = stored.window_labels(position)
        return labels.view([self.vocab_size] * self.window)

    def followed(self, tokens: Tensor) -> Tensor:
        """Return the label (rows, L - W + 1) int64 of each window of `tokens` (rows, L). See `window_labels`."""
        return self._patterns().nearest(checked_tokens(tokens, self.vocab_size, self.window))[0]

    def domain_walls(self, tokens: Tensor) -> Tensor:
        """Return the positions (rows, L - W) bool where the label changes from one window to the next.

        Entry i compares windows i and i + 1. A change of phase also counts as a wall.
        """
        labels = self.followed(tokens)
        return labels[:, 1:] != labels[:, :-1]

    def wall_probabilities(self, length: int, temperature: float) -> Tensor:
        """Return the probability (L - W,) float64 of a domain wall between each pair of consecutive windows."""
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).probabilities(windows)

    def expected_domain_walls(self, length: int, temperature: float) -> float:
        """Return the expected number of domain walls."""
        return float(self.wall_probabilities(length, temperature).sum())

    def run_length_distribution(self, length: int, temperature: float) -> Tensor:
        """Return the distribution (L - W + 1,) float64 of the number r = 1, 2, ... of windows before the first wall.

        The last entry is the probability that the sequence has no wall.
        """
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).log_run_lengths(windows).exp()

    def no_wall_probability(self, length: int, temperature: float) -> float:
        """Return the probability that all windows have the same label."""
        return math.exp(self.log_no_wall_probability(length, temperature))

    def log_no_wall_probability(self, length: int, temperature: float) -> float:
        """Return the log-probability that all windows have the same label, without underflow."""
        return self._walls(temperature).log_no_wall(self._windows(length, temperature))

    @validated
    def _windows(self, length: Count, temperature: Positive = 1.0) -> int:
        """Return the number of windows of a sequence, after a check that its energy cannot overflow."""
        if length < self.window:
            hint = f"use a length of at least {self.window}, the number of tokens in a window"
            raise InputError("length", length, hint)
        windows = length - self.window + 1
        if not math.isfinite(windows * self.max_energy / min(temperature, 1.0)):
            hint = f"use smaller energies, because the sum over {windows} windows overflows"
            raise InputError("energies", self.max_energy, hint)
        return windows

    def _require_listable(self, length: int, numbers: int) -> None:
        """Raise `InputError` if a result with this many `numbers` per site would be too large."""
        if length * numbers > MAX_MESSAGES:
            hint = (
                f"use at most {MAX_MESSAGES // numbers} sites, because each needs {numbers} numbers in memory"
            )
            raise InputError("length", length, hint)

    def _patterns(self) -> StoredPatterns:
        if self._stored is None:
            raise InputError("patterns", None, "pass patterns to PottsChain, or use PottsChain.from_patterns")
        return self._stored

    def _walls(self, temperature: float) -> Walls:
        return Walls(self._patterns(), self.messages(temperature))
