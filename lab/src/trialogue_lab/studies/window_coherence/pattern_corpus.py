"""A corpus of stored patterns: each sequence follows one of them without end, with noise."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import torch
from annotated_types import Interval
from scipy.signal import max_len_seq
from torch import Tensor

from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle, enumerate_sequences
from trialogue.randomness import generator
from trialogue.validation import Natural, Probability, validated

MAX_CONTEXTS = 2**20
"""Maximum number of contexts for which next-token distributions are enumerated."""
MAX_BITS = 24
"""Maximum number of bits of a pattern, which has 2^bits - 1 tokens."""
_BATCH_CONTEXTS = 2**14


@validated
def make_maximal_length_patterns(bits: Annotated[int, Interval(ge=2, le=MAX_BITS)]) -> list[Tensor]:
    """Return a maximal-length binary sequence and its complement, each of period 2^bits - 1.

    Short windows cannot distinguish the two patterns: all windows of `bits` tokens except one occur exactly
    once per period in both. Long windows can, even with noise.

    Args:
        bits: Number of bits, from 2 to `MAX_BITS`.

    Returns:
        Two tensors (period,), int64.

    Raises:
        InputError: `bits` is below 2 or above `MAX_BITS`.

    Example:
        >>> sequence, complement = make_maximal_length_patterns(3)
        >>> len(sequence)
        7
    """
    sequence = torch.from_numpy(max_len_seq(bits)[0]).long()
    return [sequence, 1 - sequence]


class PatternCorpus(PrefixOracle):
    """Corpus of noisy sequences, each of which follows a periodic pattern forever.

    A sequence starts at a random position of a random pattern. This pair (pattern, initial position) is
    called its label. With probability `noise`, a token is replaced by a random different token. The corpus is
    also an exact language model, which predicts the next token from the complete prefix.

    Args:
        patterns: Tokens of one period of each pattern.
        noise: Probability of a wrong token, between 0 and 1 (exclusive).
        vocab_size: Number of token values (default: the number that the patterns use).

    Raises:
        InputError: If `StoredPatterns` rejects the patterns, or if `noise` is out of range.
    """

    @validated
    def __init__(
        self, patterns: Iterable[Sequence[int] | Tensor], noise: Probability, vocab_size: int | None = None
    ) -> None:
        stored = StoredPatterns(patterns, 1, vocab_size)
        self.patterns, self.period, self.labels = stored.patterns, stored.period, stored.labels
        self.vocab_size, self.noise, self._stored = stored.vocab_size, noise, stored

    @validated
    def predictions(self, length: Natural) -> Tensor:
        """Return the noise-free tokens of all labels.

        A label is a pattern with an initial position.

        Args:
            length: Number of tokens.

        Returns:
            Token ids (labels, length), int64.
        """
        return torch.stack([self._stored.predicted(label, 0, length) for label in range(self.labels)])

    @validated
    def sample(self, n: Natural, length: Natural, seed: Natural = 0) -> Tensor:
        """Sample sequences.

        Each one starts at a random position of a random pattern, and has random wrong tokens.

        Args:
            n: Number of sequences.
            length: Number of tokens of a sequence.
            seed: Seed of the sequences.

        Returns:
            Token ids (n, length), int64.
        """
        shape = n, length
        draws = generator(seed, "pattern corpus", "sample")
        label = torch.randint(self.labels, shape[:1], generator=draws)
        wrong = torch.rand(shape, generator=draws) < self.noise
        shift = torch.randint(1, self.vocab_size, shape, generator=draws)
        tokens = self.predictions(length)[label]
        return torch.where(wrong, (tokens + shift) % self.vocab_size, tokens)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return next-token log-probabilities after prefixes.

        Args:
            tokens: Token ids (n, capacity).
            lengths: Lengths (n,) of the prefixes.

        Returns:
            Log-probabilities (n, vocab), float64.
        """
        longest = int(lengths.max()) if len(lengths) else 0
        predicted = self.predictions(longest + 1)
        real = torch.arange(longest) < lengths[:, None]
        wrong = torch.stack(
            [((tokens[:, :longest] != one) & real).sum(1) for one in predicted[:, :longest]], 1
        )
        one_wrong = math.log(self.noise) - math.log(self.vocab_size - 1) - math.log1p(-self.noise)
        return self._mixture_log_probs(wrong.double() * one_wrong, predicted.T[lengths])

    @validated
    def context_log_probs(self, window: Natural) -> Tensor:
        """Return the exact next-token log-probabilities given the last `window` tokens only.

        They are the best possible predictions with this window.

        Args:
            window: Number of tokens of a context.

        Returns:
            Log-probabilities (V^window, V), float64, of contexts in the order of `enumerate_sequences`.

        Raises:
            InputError: There are more than `MAX_CONTEXTS` contexts.
        """
        if window * math.log(self.vocab_size) > math.log(MAX_CONTEXTS) + 1e-9:
            hint = f"use a shorter window: {self.vocab_size}^{window} contexts are more than {MAX_CONTEXTS}"
            raise InputError("window", window, hint)
        parts = enumerate_sequences(self.vocab_size, window).split(_BATCH_CONTEXTS)
        return torch.cat([self.next_log_probs(part, torch.full((len(part),), window)) for part in parts])

    @validated
    def label_log_probs(self, label: Natural, begin: Natural, length: Natural) -> Tensor:
        """Return next-token log-probabilities of a sequence whose pattern and initial position are known.

        Args:
            label: Index of the pair of pattern and initial position.
            begin: Position of the first token in the sequence.
            length: Number of tokens.

        Returns:
            Log-probabilities (length, V), float64, of the tokens at positions `begin` to `begin + length - 1`.

        Raises:
            InputError: If the label does not exist.
        """
        if label >= self.labels:
            raise InputError("label", label, f"use a label below {self.labels}")
        predicted = self._stored.predicted(label, begin, length)[:, None]
        return self._mixture_log_probs(torch.zeros(length, 1, dtype=torch.float64), predicted)

    def _mixture_log_probs(self, log_weights: Tensor, predicted: Tensor) -> Tensor:
        """Return next-token log-probabilities (n, V) of a mixture of labels.

        `log_weights` (n, labels) are log-weights of the labels, and `predicted` (n, labels) their predicted tokens.
        """
        posterior = log_weights.log_softmax(1)
        one_of_others = math.log(self.noise) - math.log(self.vocab_size - 1)
        log_probs = []
        for token in range(self.vocab_size):
            right = posterior.masked_fill(predicted != token, -math.inf).logsumexp(1)
            wrong = posterior.masked_fill(predicted == token, -math.inf).logsumexp(1)
            log_probs.append(torch.logaddexp(right + math.log1p(-self.noise), wrong + one_of_others))
        return torch.stack(log_probs, 1)
