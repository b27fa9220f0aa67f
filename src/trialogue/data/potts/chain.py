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
    require_small_matrix,
    validate_tokens,
    window_numbers,
)
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.data.potts.spectrum import correlation_length
from trialogue.data.potts.walls import Walls
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, NonNegative, Positive, validated


class PottsChain:
    """Chain of tokens with an energy for each window of W consecutive tokens.

    The energy H(x) of a sequence x is the sum of the energies of its windows. At temperature T, its
    probability is proportional to exp(-H(x) / T). The length of the sequence and the temperature are
    arguments of the methods.

    A chain can store periodic patterns. Each window of a sequence is then labeled with the nearest pattern
    and its shift (phase), by Hamming distance. A domain wall is a pair of consecutive windows with different
    labels.

    Args:
        energies: Non-negative energy of each window, as a tensor (V, ..., V) with W axes, where V is the
            number of tokens. Converted to float64.
        patterns: Stored patterns. Each is one period of a periodic sequence of token ids, and all have the
            same length. They define the labels of windows and do not change the energies (default: no
            patterns).

    Raises:
        InputError: If an energy or a pattern is invalid, or there are too many possible windows V^W. Methods
            raise it if the length is below W, the temperature is not positive, or the result would be too
            large.

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
        require_small_matrix(self.vocab_size, self.window)
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
        """Create a chain whose low-energy sequences follow the given periodic patterns, with any shift.

        The energy of a window is `penalty` times its Hamming distance to the nearest window of any pattern.

        Args:
            patterns: One period of each pattern as token ids. All patterns have the same length.
            window: Number W of tokens in a window (default: 3).
            penalty: Energy per mismatched token (default: 1).
            vocab_size: Number V of tokens (default: one more than the largest token of the patterns).

        Returns:
            The chain, which stores the patterns.
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
        """The largest energy of a window. Definition 1.3 of the document on Potts chains calls it E^max."""
        return float(self.energies.max())

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy H(x) of each sequence.

        Args:
            tokens: Token ids (rows, L) of the sequences, with L at least W.

        Returns:
            Sum of the energies of all windows (rows,) float64. It is not divided by a temperature.
        """
        tokens = validate_tokens(tokens, self.vocab_size, self.window)
        self._windows(tokens.shape[1])
        return self.energies.view(-1)[window_numbers(tokens, self.vocab_size, self.window)].sum(1)

    def at(self, length: int, temperature: float) -> PottsDistribution:
        """Return the distribution p(x) ∝ exp(-H(x) / T) for a fixed length and temperature.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.

        Returns:
            Distribution with exact conditionals and samples. The four most recent results are cached.
        """
        sites = self._windows(length, temperature) + self.window - 1
        return self._distributions(sites, float(temperature))

    @validated
    def messages(self, temperature: Positive) -> Messages:
        """Return the transfer-matrix messages at one temperature.

        The messages do not depend on the length of the chain. The four most recent results are cached.

        Args:
            temperature: Temperature T. The log-weight of a window with energy E is -E / T.
        """
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
        """Return log Z, where Z is the sum of exp(-H(x) / T) over all V^L sequences.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        return self.messages(temperature).log_partition(self._windows(length, temperature))

    @validated
    def free_energy(self, length: int, temperature: Positive) -> float:
        """Return the free energy -T log Z, in the unit of the energies.

        The partition function Z is the sum of exp(-H(x) / T) over all sequences.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        return -temperature * self.log_partition(length, temperature)

    def marginals(self, length: int, temperature: float) -> Tensor:
        """Return the marginal distribution p(x_i) of the token at every site.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.

        Returns:
            Probabilities (L, V) float64. Row i belongs to site i.
        """
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
        """Return the joint distribution p(x_i, ..., x_(i+W-1)) of the tokens of every window.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.

        Returns:
            Probabilities (L - W + 1, V, ..., V) float64 with one axis per token of the window.
        """
        messages, windows = self.messages(temperature), self._windows(length, temperature)
        self._require_listable(length, self.energies.numel())
        distributions = messages.map_windows(
            windows, 1, 1, lambda before, after, _: messages.window_distribution(before, after)
        )
        return distributions.view([windows] + [self.vocab_size] * self.window)

    def mean_energy(self, length: int, temperature: float) -> float:
        """Return the expected value of the energy H(x).

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        messages, energies = self.messages(temperature), self.energies.view(-1)

        def mean(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            del residue
            return messages.window_distribution(before, after) @ energies

        return float(messages.map_windows(self._windows(length, temperature), 1, 1, mean).sum())

    def entropy(self, length: int, temperature: float) -> float:
        """Return the entropy of the distribution in nats: the mean energy minus the free energy, divided by T.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        mean = self.mean_energy(length, temperature) / temperature
        return mean + self.log_partition(length, temperature)

    def correlation_length(self, temperature: float) -> float:
        """Return the correlation length of the infinite chain, in sites.

        It is 1 / log(lambda_1 / |lambda_2|), where lambda_1 and lambda_2 are the two eigenvalues of the
        transfer matrix with the largest modulus.

        Args:
            temperature: Temperature T, in the unit of the energies.

        Returns:
            The correlation length, or 0 if distant sites are independent. Lengths below (W - 1) / 30 sites
            are also returned as 0.

        Raises:
            InputError: If the two eigenvalues are too close to resolve.
        """
        log_weights = self.messages(temperature).log_weights
        return correlation_length(log_weights, self.vocab_size, self.window, temperature)

    def sample(self, n: int, length: int, temperature: float, seed: int = 0) -> Tensor:
        """Sample independent sequences exactly.

        Args:
            n: Number of sequences.
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
            seed: Random seed (default: 0). Sequence i depends on the seed and on i only.

        Returns:
            Token ids (n, L) int64.
        """
        return self.at(length, temperature).sample(n, seed)

    @validated
    def window_labels(self, position: Natural = 0) -> Tensor:
        """Return the label of every possible window that starts at site `position`.

        The label of pattern p in phase f is the number p * period + f. It predicts the token at index (i + f)
        mod period of the pattern for site i. A window gets the label whose predicted tokens have the smallest
        Hamming distance to it. The lowest label wins ties.

        Args:
            position: Site of the first token of the window (default: 0).

        Returns:
            Labels (V, ..., V) int64 with one axis per token of the window.
        """
        stored = self._patterns()
        labels = stored.window_labels(position)
        return labels.view([self.vocab_size] * self.window)

    def followed(self, tokens: Tensor) -> Tensor:
        """Return the label of each window, which is the pattern and phase with the smallest Hamming distance to it.

        Args:
            tokens: Token ids (rows, L) of sequences that start at site 0.

        Returns:
            Labels (rows, L - W + 1) int64.
        """
        return self._patterns().nearest(validate_tokens(tokens, self.vocab_size, self.window))[0]

    def domain_walls(self, tokens: Tensor) -> Tensor:
        """Locate the domain walls, where the label changes from one window to the next.

        The label of a window is the pattern and phase with the smallest Hamming distance to it.

        Args:
            tokens: Token ids (rows, L) of sequences that start at site 0.

        Returns:
            Bools (rows, L - W). Entry i is true if windows i and i + 1 have different labels.
        """
        labels = self.followed(tokens)
        return labels[:, 1:] != labels[:, :-1]

    def wall_probabilities(self, length: int, temperature: float) -> Tensor:
        """Return the probability of a domain wall between each pair of consecutive windows.

        A domain wall is a pair of consecutive windows with different labels. The label of a window is the pattern and
        phase with the smallest Hamming distance to it.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.

        Returns:
            Probabilities (L - W,) float64. Entry i belongs to windows i and i + 1.
        """
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).probabilities(windows)

    def expected_domain_walls(self, length: int, temperature: float) -> float:
        """Return the expected number of domain walls in a sequence.

        A domain wall is a pair of consecutive windows with different labels. The label of a window is the pattern and
        phase with the smallest Hamming distance to it.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        return float(self.wall_probabilities(length, temperature).sum())

    def run_length_distribution(self, length: int, temperature: float) -> Tensor:
        """Return the distribution of the number of windows before the first domain wall.

        A domain wall is a pair of consecutive windows with different labels. The label of a window is the pattern and
        phase with the smallest Hamming distance to it.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.

        Returns:
            Probabilities (L - W + 1,) float64. Entry r - 1 is the probability that the first r windows have the same
            label and window r + 1 has a different one. The last entry is the probability of no wall.
        """
        windows = self._windows(length, temperature)
        self._require_listable(length, 1)
        return self._walls(temperature).log_run_lengths(windows).exp()

    def no_wall_probability(self, length: int, temperature: float) -> float:
        """Return the probability that a sequence follows a single stored pattern from its first to its last token.

        Each window of W tokens is labeled with the stored pattern, and its phase, that differs from it in the fewest
        tokens. A position at which the label changes is called a domain wall. The result is the probability of a
        sequence without domain walls.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
        return math.exp(self.log_no_wall_probability(length, temperature))

    def log_no_wall_probability(self, length: int, temperature: float) -> float:
        """Return the natural logarithm of `no_wall_probability`, without underflow.

        Args:
            length: Number L of tokens of a sequence, at least W.
            temperature: Temperature T, in the unit of the energies.
        """
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
