"""Distribution of the tokens that BERT reads after its random masking."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.validation import Share, validated


@validated
@dataclass(frozen=True, kw_only=True)
class BertMasking:
    """Random masking of BERT: probabilities of masking, and of the replacement of masked tokens.

    See section 2.1.1 of the thesis. Each position of a document is masked with probability `p_mask`. The input token at
    a masked position is the original word, a uniformly random word or [MASK]. At other positions it is the original
    word. In distributions of input tokens, index 0 is [MASK] and index i is word i - 1, as in the thesis.

    Args:
        p_mask: Probability that a position is masked.
        p_correct: Probability of the original word at a masked position.
        p_random: Probability of a random word at a masked position. [MASK] has the remaining probability.

    Raises:
        InputError: If a probability is out of range, or the sum of `p_correct` and `p_random` is above 1.
    """

    p_mask: Share = 0.15
    p_correct: Share = 0.1
    p_random: Share = 0.1

    def __post_init__(self) -> None:
        if self.p_correct + self.p_random > 1 + 1e-12:
            hint = f"use at most {1 - self.p_correct:g} with p_correct={self.p_correct}"
            raise InputError("p_random", self.p_random, hint)

    @property
    def p_hidden(self) -> float:
        """Probability of [MASK] at a masked position."""
        return max(0.0, 1 - self.p_correct - self.p_random)

    def read_where_masked(self, words: Tensor) -> Tensor:
        """Return the distribution of the input token at a masked position.

        Args:
            words: Distributions (..., V) of the original word over the vocabulary.

        Returns:
            Probabilities (..., V + 1) of [MASK] and of each word.
        """
        read = self.p_correct * words + self.p_random / words.shape[-1]
        return torch.cat((torch.full_like(read[..., :1], self.p_hidden), read), -1)

    def read(self, words: Tensor) -> Tensor:
        """Return the distribution of the input token at a position that may be masked or not.

        Args:
            words: Distributions (..., V) of the original word over the vocabulary.

        Returns:
            Probabilities (..., V + 1) of [MASK] and of each word.
        """
        plain = torch.cat((torch.zeros_like(words[..., :1]), words), -1)
        return (1 - self.p_mask) * plain + self.p_mask * self.read_where_masked(words)
