"""Complete Dyck words of bounded depth and length, each followed by an end-of-sequence token."""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
from annotated_types import Interval, MultipleOf
from torch import Tensor

from trialogue.compilation import run_over_rows
from trialogue.data.dyck.kernels import draw_word_lengths
from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.states import innermost_types
from trialogue.oracles import PrefixOracle
from trialogue.randomness import derive_seed
from trialogue.validation import Count, Natural, Probability, validated


class DyckWords(PrefixOracle):
    """Distribution of complete Dyck words (well-nested brackets) of random length.

    A word is generated from left to right. Whenever all brackets are closed, it ends with probability
    `end_prob` (equation 2.39 of the thesis). Words with more than `longest` brackets are excluded. Token 2t
    opens a bracket of type t, token 2t + 1 closes it, and the last token of the vocabulary, `eos`, ends the
    word.

    Args:
        longest: Maximum number of brackets, an even number.
        type_probs: Positive probability of each bracket type. They sum to 1.
        open_prob: Probability that the next token opens a bracket, if it could also close one.
        max_depth: Maximum number of open brackets.
        end_prob: Probability that the word ends after a token that closes all brackets, above 0 and below 1.

    Raises:
        InputError: If an argument is invalid.
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
        self.longest, self.end_prob = longest, end_prob
        self.brackets = Dyck(self.longest, type_probs, open_prob, max_depth, complete=False)
        self.eos: int = self.brackets.vocab_size
        self.vocab_size, self.max_length = self.eos + 1, self.longest + 1
        self._step_probs = self._table(open_prob, max_depth)

    def __repr__(self) -> str:
        dyck = self.brackets
        return (
            f"DyckWords(longest={self.longest}, type_probs={dyck.type_probs}, open_prob={dyck.open_prob}, "
            f"max_depth={dyck.max_depth}, end_prob={self.end_prob})"
        )

    def _table(self, open_prob: float, max_depth: int) -> np.ndarray:
        """Return the probabilities (longest + 1, depths, 3) of open, close and end by remaining length and depth."""
        # Each step of the process is weighted by the probability that the word then ends in time.
        depths = max_depth + 1
        step = np.tile((open_prob, 1 - open_prob, 0.0), (depths, 1))
        step[0], step[-1] = (1 - self.end_prob, 0, self.end_prob), (0, 1, 0)
        table, in_time = np.zeros((self.longest + 1, depths, 3)), np.zeros(depths)
        for remaining in range(self.longest + 1):
            if remaining == self.longest:
                step[0] = (1, 0, 0)
            opened, closed = np.append(in_time[1:], 0), np.append(0, in_time[:-1])
            table[remaining] = step * np.stack((opened, closed, np.ones(depths)), 1)
            in_time = table[remaining].sum(1)
            table[remaining] /= np.where(in_time > 0, in_time, 1)[:, None]
        return table

    @validated
    def sample(self, n: Natural, seed: Natural = 0) -> tuple[Tensor, Tensor]:
        """Sample independent words.

        Words with more than `longest` brackets are rejected and sampled again.

        Args:
            n: Number of words.
            seed: Random seed (default: 0). Word i depends on the seed and on i only.

        Returns:
            Tokens (n, longest) int64 without `eos`, right-padded with zeros, and lengths (n,) int64.
        """
        tokens, lengths = torch.zeros(n, self.longest, dtype=torch.int64), torch.full((n,), -1)
        threshold = np.uint64(math.ldexp(self.end_prob, 63))
        attempt = 0
        while len(pending := (lengths < 0).nonzero()[:, 0]):
            rows = int(pending[-1]) + 1
            sampled = self.brackets.sample(rows, derive_seed(seed, "dyck words", attempt))
            ends = np.empty(rows, np.int64)
            end_seed = np.uint64(derive_seed(seed, "ends of dyck words", attempt))
            run_over_rows(draw_word_lengths, rows, self.longest, end_seed, threshold, sampled.numpy(), ends)
            tokens[pending], lengths[pending] = sampled[pending], torch.from_numpy(ends)[pending]
            attempt += 1
        is_padding = torch.arange(self.longest) >= lengths[:, None]
        return tokens.masked_fill_(is_padding, 0), lengths

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities of the next token after each prefix.

        The distribution is uniform for a prefix that starts no word, for example a prefix that contains `eos`.

        Args:
            tokens: Prefixes (n, width) int64, right-padded.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Log-probabilities (n, vocab_size) float64.
        """
        viable = self.brackets.is_prefix(tokens, lengths)
        brackets = self._mask_padding(tokens, lengths, viable)
        depth = (brackets >= 0).mul(1 - 2 * (brackets & 1)).sum(1)
        remaining = (self.longest - lengths).clamp(0, self.longest)
        step = torch.from_numpy(self._step_probs).to(tokens.device)[remaining, depth]
        probs = torch.zeros(len(step), self.vocab_size, dtype=torch.float64, device=tokens.device)
        types = torch.tensor(self.brackets.type_probs, dtype=torch.float64, device=tokens.device)
        probs[:, 0 : self.eos : 2] = step[:, :1] * types
        opened = innermost_types(brackets.clamp_min(0))
        top = opened.gather(1, (lengths[:, None] - 1).clamp_min(0))[:, 0] if tokens.shape[1] else lengths * 0
        probs.scatter_(1, 2 * top[:, None].clamp_min(0) + 1, step[:, 1:2])
        probs[:, self.eos] = step[:, 2]
        probs[~viable | (probs.sum(1) == 0)] = 1 / self.vocab_size
        return probs.log()

    def is_member(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return whether each row is a complete word.

        Args:
            tokens: Words (n, width) int64 without `eos`, right-padded.
            lengths: Lengths (n,) int64 of the words.

        Returns:
            Bools (n,).
        """
        viable = self.brackets.is_prefix(tokens, lengths)
        brackets = self._mask_padding(tokens, lengths, viable)
        closed = (brackets >= 0).mul(1 - 2 * (brackets & 1)).sum(1) == 0
        return viable & closed & (lengths > 0)

    @staticmethod
    def _mask_padding(tokens: Tensor, lengths: Tensor, viable: Tensor) -> Tensor:
        """Return `tokens` (n, width) with -1 after the length of each row and in rows that are not viable."""
        is_padding = torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None]
        return tokens.masked_fill(is_padding | ~viable[:, None], -1)
