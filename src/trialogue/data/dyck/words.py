"""Complete Dyck words of bounded depth and of any length up to a bound, each followed by an end of sequence."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
from annotated_types import Interval, MultipleOf
from torch import Tensor

from trialogue.compilation import over_rows
from trialogue.data.dyck.kernels import first_ends
from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.states import innermost_types
from trialogue.oracles import PrefixOracle
from trialogue.randomness import seed_of
from trialogue.validation import Count, Natural, Probability, validated


class DyckWords(PrefixOracle):
    """The distribution of whole words: sampler and exact autoregressive oracle.

    A word is a run of the process of equation 2.39 that begins with a bracket and, wherever all are closed, ends with
    probability `end_prob`; conditioned on having at most `longest` brackets. Token 2t opens a bracket of type t, token
    2t + 1 closes it, and `eos`, the last one, ends the word.
    """

    @validated
    def __init__(
        self,
        longest: Annotated[int, Interval(ge=2), MultipleOf(2)] = 28,
        type_probs: Sequence[float] = (0.5, 0.5),
        open_prob: float = 0.5,
        max_depth: Count = 4,
        end_prob: Probability = 0.5,
    ) -> None:
        """Make the distribution of words of 2 to `longest` brackets.

        Raises `InputError` as `Dyck` does; unless `longest` is even; unless 0 < `end_prob` < 1.
        """
        self.longest, self.end_prob = longest, end_prob
        self.brackets = Dyck(self.longest, type_probs, open_prob, max_depth, complete=False)
        self.eos: int = self.brackets.vocab_size
        self.vocab_size, self.max_length = self.eos + 1, self.longest + 1
        self._laws = self._table(open_prob, max_depth)

    def __repr__(self) -> str:
        dyck = self.brackets
        return (
            f"DyckWords(longest={self.longest}, type_probs={dyck.type_probs}, open_prob={dyck.open_prob}, "
            f"max_depth={dyck.max_depth}, end_prob={self.end_prob})"
        )

    def _table(self, open_prob: float, max_depth: int) -> np.ndarray:
        """Probabilities (longest + 1, depths, 3) to open, close, end: `longest` left is the beginning.

        They are those of the process, times the probability to end in time after each, normalised.
        """
        depths = max_depth + 1
        step = np.tile((open_prob, 1 - open_prob, 0.0), (depths, 1))
        step[0], step[-1] = (1 - self.end_prob, 0, self.end_prob), (0, 1, 0)
        table, in_time = np.zeros((self.longest + 1, depths, 3)), np.zeros(depths)
        for left in range(self.longest + 1):
            if left == self.longest:
                step[0] = (1, 0, 0)
            opened, closed = np.append(in_time[1:], 0), np.append(0, in_time[:-1])
            table[left] = step * np.stack((opened, closed, np.ones(depths)), 1)
            in_time = table[left].sum(1)
            table[left] /= np.where(in_time > 0, in_time, 1)[:, None]
        return table

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> tuple[Tensor, Tensor]:
        """Draw words: tokens (n, longest) int64, right-padded with zeros, without `eos`, and lengths (n,) int64.

        Word i depends on `seed` and i alone: runs of the process that do not end in time are drawn again.
        """
        tokens, lengths = torch.zeros(n, self.longest, dtype=torch.int64), torch.full((n,), -1)
        threshold = np.uint64(math.ldexp(self.end_prob, 63))
        attempt = 0
        while len(open_rows := (lengths < 0).nonzero()[:, 0]):
            rows = int(open_rows[-1]) + 1
            drawn = self.brackets.sample(rows, seed_of(seed, "dyck words", attempt))
            ends = np.empty(rows, np.int64)
            of_ends = np.uint64(seed_of(seed, "ends of dyck words", attempt))
            over_rows(first_ends, rows, self.longest, of_ends, threshold, drawn.numpy(), ends)
            tokens[open_rows], lengths[open_rows] = drawn[open_rows], torch.from_numpy(ends)[open_rows]
            attempt += 1
        beyond = torch.arange(self.longest) >= lengths[:, None]
        return tokens.masked_fill_(beyond, 0), lengths

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab_size) float64 of the next token.

        Where no word begins with the prefix, which ends included are not, the distribution says nothing: the uniform
        distribution.
        """
        viable = self.brackets.is_prefix(tokens, lengths)
        brackets = self._counted(tokens, lengths, viable)
        depth = (brackets >= 0).mul(1 - 2 * (brackets & 1)).sum(1)
        left = (self.longest - lengths).clamp(0, self.longest)
        distribution = torch.from_numpy(self._laws).to(tokens.device)[left, depth]
        answer = torch.zeros(len(distribution), self.vocab_size, dtype=torch.float64, device=tokens.device)
        types = torch.tensor(self.brackets.type_probs, dtype=torch.float64, device=tokens.device)
        answer[:, 0 : self.eos : 2] = distribution[:, :1] * types
        opened = innermost_types(brackets.clamp_min(0))
        top = opened.gather(1, (lengths[:, None] - 1).clamp_min(0))[:, 0] if tokens.shape[1] else lengths * 0
        answer.scatter_(1, 2 * top[:, None].clamp_min(0) + 1, distribution[:, 1:2])
        answer[:, self.eos] = distribution[:, 2]
        answer[~viable | (answer.sum(1) == 0)] = 1 / self.vocab_size
        return answer.log()

    def is_member(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Whether (n,) bool the first `lengths` (n,) of `tokens` are a word of the distribution, without its end."""
        viable = self.brackets.is_prefix(tokens, lengths)
        brackets = self._counted(tokens, lengths, viable)
        closed = (brackets >= 0).mul(1 - 2 * (brackets & 1)).sum(1) == 0
        return viable & closed & (lengths > 0)

    @staticmethod
    def _counted(tokens: Tensor, lengths: Tensor, viable: Tensor) -> Tensor:
        """`tokens` (n, width) of viable rows, -1 behind their lengths and in other rows."""
        behind = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        return tokens.masked_fill(behind | ~viable[:, None], -1)
