"""BERT's masking as distributions: what a model reads of a document, in the infinite and in a single position."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.validation import Share, validated


@validated
@dataclass(frozen=True, kw_only=True)
class BertMasking:
    """Every position is to be predicted with probability `p_mask`; what is read there (thesis, section 2.1.1):

    the word itself with probability `p_correct`, a uniformly random word with `p_random`, and [MASK] otherwise.
    Distributions of what is read are numbered as in the thesis: 0 is [MASK], i the word i - 1. Raises `InputError` for
    what are no probabilities, and where `p_correct` and `p_random` exceed one together.
    """

    p_mask: Share = 0.15
    p_correct: Share = 0.1
    p_random: Share = 0.1

    def __post_init__(self) -> None:
        if self.p_correct + self.p_random > 1 + 1e-12:
            hint = f"with p_correct={self.p_correct} the two are more than one: use at most {1 - self.p_correct:g}"
            raise InputError("p_random", self.p_random, hint)

    @property
    def p_hidden(self) -> float:
        """The probability that [MASK] is read where a word is to be predicted."""
        return max(0.0, 1 - self.p_correct - self.p_random)

    def read_where_masked(self, words: Tensor) -> Tensor:
        """Distributions (..., V + 1) of what is read where a word of the distributions `words` (..., V) is to be
        predicted.
        """
        read = self.p_correct * words + self.p_random / words.shape[-1]
        return torch.cat((torch.full_like(read[..., :1], self.p_hidden), read), -1)

    def read(self, words: Tensor) -> Tensor:
        """Distributions (..., V + 1) of what is read at any position, of words with the distributions `words`
        (..., V).
        """
        plain = torch.cat((torch.zeros_like(words[..., :1]), words), -1)
        return (1 - self.p_mask) * plain + self.p_mask * self.read_where_masked(words)
