"""A corpus of stored patterns: sequences each of which follows one of them for ever, but for noise."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import torch
from annotated_types import Ge
from scipy.signal import max_len_seq
from torch import Tensor

from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle, whole_sequences
from trialogue.randomness import generator
from trialogue.validation import Natural, Probability, validated

MAX_CONTEXTS = 2**20
"""A law is not listed for more contexts."""
MAX_BITS = 24
"""Patterns of more than 2^24 tokens are refused."""
_ROWS_AT_ONCE = 2**14


@validated
def maximal_length_patterns(bits: Annotated[int, Ge(2)]) -> list[Tensor]:
    """A binary sequence of maximal length and its complement: two patterns of period 2^bits - 1, from 2 bits on.

    Every window of `bits` tokens but one occurs once in a period of each, and within a period each label differs from
    every other in (period - 1) / 2 tokens or more: short windows do not tell the patterns apart, and long ones do in
    spite of noise. Raises `InputError` for more than `MAX_BITS`.
    """
    if bits > MAX_BITS:
        raise InputError("bits", bits, f"a period has 2^{bits} - 1 tokens: use at most {MAX_BITS}")
    sequence = torch.from_numpy(max_len_seq(bits)[0]).long()
    return [sequence, 1 - sequence]


class PatternCorpus(PrefixOracle):
    """Sequences that follow one label for ever: what it predicts, or with probability `noise` another token.

    Patterns (tokens of one period each) and labels are those of `trialogue.data.potts.patterns.StoredPatterns`. The
    label is uniform, and so is a wrong token among the others. A sequence is coherent at any length, so that no model
    with a finite window has this law. As an oracle it answers exactly, by the posterior law of the label given the
    whole prefix.

    Raises `InputError` as `StoredPatterns` does, and for a noise that is not above 0 and below 1.
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
        """Tokens (labels, length) int64 that each label predicts."""
        return torch.stack([self._stored.predicted(label, 0, length) for label in range(self.labels)])

    @validated
    def sample(self, n: Natural, length: Natural, seed: Natural = 0) -> Tensor:
        """Draw `n` sequences (n, length) int64."""
        shape = n, length
        draws = generator(seed, "pattern corpus", "sample")
        label = torch.randint(self.labels, shape[:1], generator=draws)
        wrong = torch.rand(shape, generator=draws) < self.noise
        shift = torch.randint(1, self.vocab_size, shape, generator=draws)
        tokens = self.predictions(length)[label]
        return torch.where(wrong, (tokens + shift) % self.vocab_size, tokens)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        longest = int(lengths.max()) if len(lengths) else 0
        predicted = self.predictions(longest + 1)
        real = torch.arange(longest) < lengths[:, None]
        wrong = torch.stack(
            [((tokens[:, :longest] != one) & real).sum(1) for one in predicted[:, :longest]], 1
        )
        one_wrong = math.log(self.noise) - math.log(self.vocab_size - 1) - math.log1p(-self.noise)
        return self._law(wrong.double() * one_wrong, predicted.T[lengths])

    @validated
    def context_log_probs(self, window: Natural) -> Tensor:
        """Log-probabilities (V^window, V) float64 of the next token given the last `window` alone.

        They are what the best model with that window answers, wherever in a sequence the window lies; contexts in the
        order of `whole_sequences`. Raises `InputError` for windows of more than `MAX_CONTEXTS`.
        """
        if window * math.log(self.vocab_size) > math.log(MAX_CONTEXTS) + 1e-9:
            hint = (
                f"there are {self.vocab_size}^{window} contexts (at most {MAX_CONTEXTS}): use a shorter one"
            )
            raise InputError("window", window, hint)
        parts = whole_sequences(self.vocab_size, window).split(_ROWS_AT_ONCE)
        return torch.cat([self.next_log_probs(part, torch.full((len(part),), window)) for part in parts])

    @validated
    def label_log_probs(self, label: Natural, begin: Natural, length: Natural) -> Tensor:
        """Log-probabilities (length, V) float64 of the tokens of a sequence that follows `label`, from `begin` on.

        Raises `InputError` for a label that does not exist.
        """
        if label >= self.labels:
            raise InputError("label", label, f"the patterns have {self.labels} labels: use a lower one")
        predicted = self._stored.predicted(label, begin, length)[:, None]
        return self._law(torch.zeros(length, 1, dtype=torch.float64), predicted)

    def _law(self, log_weights: Tensor, predicted: Tensor) -> Tensor:
        """Log-law (n, V) of the next token by the log-weights of labels and what they predict (both (n, labels))."""
        posterior = log_weights.log_softmax(1)
        one_of_others = math.log(self.noise) - math.log(self.vocab_size - 1)
        laws = []
        for token in range(self.vocab_size):
            right = posterior.masked_fill(predicted != token, -math.inf).logsumexp(1)
            wrong = posterior.masked_fill(predicted == token, -math.inf).logsumexp(1)
            laws.append(torch.logaddexp(right + math.log1p(-self.noise), wrong + one_of_others))
        return torch.stack(laws, 1)
