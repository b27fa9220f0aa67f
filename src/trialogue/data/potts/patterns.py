"""Stored patterns of a Potts chain: periodic sequences, and which of them each window of a sequence is nearest to.

A label is a pair of a pattern p and a phase f, numbered p * period + f: at site i it predicts token
P_p[(i + f) mod period]. The phase is counted from site 0, so that a sequence which follows a pattern keeps its label.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.arrays import whole_tensor
from trialogue.data.potts.messages import require_fitting
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.validation import Count, check, integer_range, validated


class StoredPatterns:
    """N patterns, each the period of an infinite sequence of tokens below `vocab_size`; all of one length.

    Raises `InputError` for no or empty patterns, unequal lengths, and tokens that are none of the vocabulary's (by
    default the largest token that occurs is its last).
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
            raise InputError("patterns", lengths, "unequal lengths: give patterns of one length")
        self.period = lengths[0]
        stacked = torch.stack(self.patterns)
        if int(stacked.min()) < 0:
            raise InputError("patterns", int(stacked.min()), "use tokens from 0 on")
        if vocab_size is None:
            self.vocab_size = int(stacked.max()) + 1
            if self.vocab_size < 2:
                raise InputError(
                    "vocab_size", None, "the patterns know token 0 alone: say how many there are"
                )
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
        """The tokens (length,) that a label predicts from site `begin` on."""
        pattern, phase = divmod(label, self.period)
        return self.patterns[pattern][(begin + phase + torch.arange(length)) % self.period]

    def nearest(self, tokens: Tensor, begin: int = 0) -> tuple[Tensor, Tensor]:
        """The nearest label of every window of `tokens` (rows, L) from site `begin` on, and its Hamming distance.

        Both (rows, L - W + 1) int64; the lowest label wins ties.
        """
        windows = tokens.shape[1] - self.window + 1
        least = torch.full((len(tokens), windows), self.window + 1, dtype=torch.int64)
        label = torch.zeros_like(least)
        for candidate in range(self.labels):
            wrong = tokens != self.predicted(candidate, begin, tokens.shape[1])
            if windows == 1:
                distance = wrong.sum(1, keepdim=True)
            else:
                # As many steps for long windows as for short ones.
                upto = pad(wrong.cumsum(1), (1, 0))
                distance = upto[:, self.window :] - upto[:, :windows]
            nearer = distance < least
            label[nearer] = candidate
            least = torch.where(nearer, distance, least)
        return label, least

    def window_labels(self, position: int = 0) -> Tensor:
        """The nearest label (V^W,) int64 of every window at site `position`.

        Raises `InputError` where the windows are too many to list.
        """
        return self._of_all_windows(position)[0]

    def distances(self) -> Tensor:
        """The Hamming distance (V^W,) int64 of every window to the nearest pattern, in any phase."""
        return self._of_all_windows(0)[1]

    def _of_all_windows(self, position: int) -> tuple[Tensor, Tensor]:
        require_fitting(self.vocab_size, self.window)
        label, distance = self.nearest(whole_sequences(self.vocab_size, self.window), position)
        return label[:, 0], distance[:, 0]


def pattern_tokens(pattern: Sequence[int] | Tensor) -> Tensor:
    """The tokens (period,) int64 of one pattern; raises `InputError` for what is no sequence of token ids."""
    hint = "each pattern is a sequence of one or more token ids"
    tokens = whole_tensor("patterns", pattern, hint)
    if tokens.ndim != 1 or not len(tokens):
        raise InputError("patterns", tokens.tolist(), hint)
    return tokens.clone()
