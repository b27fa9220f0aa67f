"""Periodic patterns of a Potts chain, and the nearest pattern of each window of a sequence.

A label is a pair of a pattern and a phase, encoded as p * period + f for pattern p in phase f. It predicts token
P_p[(i + f) mod period] at site i. Phases are counted from site 0, so a sequence that follows a pattern has the same
label everywhere.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.arrays import integer_tensor
from trialogue.data.potts.messages import require_small_matrix
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.validation import Count, check, integer_range, validated


class StoredPatterns:
    """Periodic patterns of tokens, and the search for the pattern that each window of a sequence follows.

    A label numbers a pattern and its shift (phase): label p * period + f predicts the token at index (i + f)
    mod period of pattern p for site i.

    Args:
        patterns: One period of each pattern as token ids. All patterns have the same length.
        window: Number W of tokens in a window.
        vocab_size: Number V of tokens (default: one more than the largest token of the patterns).

    Attributes:
        patterns: Tokens (period,) int64 of each pattern.
        period: Number of tokens of one period.
        labels: Number of labels, the number of patterns times the period.

    Raises:
        InputError: If there are no patterns, a pattern is empty, their lengths differ, or a token is out of
            range.
    """

    @validated
    def __init__(
        self, patterns: Iterable[Sequence[int] | Tensor], window: Count, vocab_size: int | None = None
    ) -> None:
        if not isinstance(patterns, Iterable):
            raise InputError("patterns", patterns, "give a list of patterns, each a sequence of token ids")
        self.patterns = [pattern_tokens(pattern) for pattern in patterns]
        if not self.patterns:
            raise InputError("patterns", [], "give at least one pattern")
        lengths = sorted({len(pattern) for pattern in self.patterns})
        if len(lengths) > 1:
            raise InputError("patterns", lengths, "give patterns of equal length")
        self.period = lengths[0]
        stacked = torch.stack(self.patterns)
        if int(stacked.min()) < 0:
            raise InputError("patterns", int(stacked.min()), "use tokens from 0 on")
        if vocab_size is None:
            self.vocab_size = int(stacked.max()) + 1
            if self.vocab_size < 2:
                hint = "give the number of tokens, because the patterns contain only token 0"
                raise InputError("vocab_size", None, hint)
        else:
            self.vocab_size = check("vocab_size", vocab_size, integer_range(2))
        outside = stacked[stacked >= self.vocab_size]
        if len(outside):
            raise InputError(
                "patterns", int(outside[0]), f"use tokens from 0 to vocab_size - 1 = {self.vocab_size - 1}"
            )
        self.window = window
        self.labels = len(self.patterns) * self.period

    def predicted(self, label: int, begin: int, length: int) -> Tensor:
        """Return the tokens that a label predicts at consecutive sites.

        Args:
            label: Label p * period + f of pattern p in phase f.
            begin: First site.
            length: Number of sites.

        Returns:
            Tokens (length,) int64 of the pattern, starting at position (begin + f) mod period of the pattern.
        """
        pattern, phase = divmod(label, self.period)
        return self.patterns[pattern][(begin + phase + torch.arange(length)) % self.period]

    def nearest(self, tokens: Tensor, begin: int = 0) -> tuple[Tensor, Tensor]:
        """Return the nearest label of every window, and its Hamming distance.

        The distance counts the tokens of the window that differ from the tokens that the label predicts.

        Args:
            tokens: Sequences (rows, L) int64.
            begin: Site of the first token (default: 0).

        Returns:
            Labels and distances, each (rows, L - W + 1) int64. The lowest label wins ties.
        """
        windows = tokens.shape[1] - self.window + 1
        smallest = torch.full((len(tokens), windows), self.window + 1, dtype=torch.int64)
        label = torch.zeros_like(smallest)
        for candidate in range(self.labels):
            mismatch = tokens != self.predicted(candidate, begin, tokens.shape[1])
            if windows == 1:
                distance = mismatch.sum(1, keepdim=True)
            else:
                # Differences of cumulative sums cost the same for all window lengths.
                cumulative = pad(mismatch.cumsum(1), (1, 0))
                distance = cumulative[:, self.window :] - cumulative[:, :windows]
            nearer = distance < smallest
            label[nearer] = candidate
            smallest = torch.where(nearer, distance, smallest)
        return label, smallest

    def window_labels(self, position: int = 0) -> Tensor:
        """Return the nearest label of every possible window of W tokens.

        Args:
            position: Site of the first token of the window (default: 0).

        Returns:
            Labels (V^W,) int64, in the order of `itertools.product` over the tokens of the window.

        Raises:
            InputError: If there are too many windows to list.
        """
        return self._nearest_of_all_windows(position)[0]

    def distances(self) -> Tensor:
        """Return the Hamming distance of every possible window to the nearest pattern in any phase.

        Returns:
            Distances (V^W,) int64, in the order of `itertools.product` over the tokens of the window.
        """
        return self._nearest_of_all_windows(0)[1]

    def _nearest_of_all_windows(self, position: int) -> tuple[Tensor, Tensor]:
        require_small_matrix(self.vocab_size, self.window)
        label, distance = self.nearest(enumerate_sequences(self.vocab_size, self.window), position)
        return label[:, 0], distance[:, 0]


def pattern_tokens(pattern: Sequence[int] | Tensor) -> Tensor:
    """Convert one period of a pattern to a tensor.

    Args:
        pattern: Token ids of one period.

    Returns:
        Tokens (period,) int64, as a copy.

    Raises:
        InputError: If the pattern is not a nonempty sequence of token ids.
    """
    hint = "give each pattern as a sequence of one or more token ids"
    tokens = integer_tensor("patterns", pattern, hint)
    if tokens.ndim != 1 or not len(tokens):
        raise InputError("patterns", tokens.tolist(), hint)
    return tokens.clone()
