"""Masked-language-model training: which tokens are masked, by what they are replaced, and the loss.

A distribution of masks says which tokens of a sequence are to be predicted at one step of training; a replacement says
what the model reads there instead.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Interval
from torch import Tensor

from trialogue.arrays import Integers
from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskReader
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, Share, validated

Rate = Annotated[float, Interval(gt=0, le=1)]
"""A number above 0 and at most 1."""


@validated
def uniform_masks(rows: Natural, sites: Count, count: Natural, seed: int, *names: object) -> Tensor:
    """Masks (rows, sites) bool of `count` sites each, every such set equally likely; see `generator` for the names."""
    if count > sites:
        raise InputError("count", count, f"there are {sites} tokens: use at most {sites}")
    drawn = torch.rand(rows, sites, generator=generator(seed, *names), dtype=torch.float64)
    masked = drawn.topk(count, 1).indices
    return torch.zeros(rows, sites, dtype=torch.bool).scatter_(1, masked, True)


class MaskDistribution(ABC):
    """Which tokens of a sequence are masked, in how many copies of it."""

    def copies(self, sites: int) -> int:
        """How many copies of a sequence of `sites` tokens one step masks, each by itself: one, unless a distribution
        differs.
        """
        del sites
        return 1

    @abstractmethod
    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Masks (sequences * copies, sites) bool of one step, the copies of a sequence side by side."""


@validated
@dataclass(frozen=True)
class IndependentMasks(MaskDistribution):
    """Every token is masked with probability `rate`, independently: the usual distribution of BERT."""

    rate: Rate = 0.15

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Masks (sequences, sites) bool; some may be empty."""
        return torch.rand(sequences, sites, generator=generator(seed, "masks", step)) < self.rate


@validated
@dataclass(frozen=True)
class UniformMasks(MaskDistribution):
    """`count` tokens are masked together, every such set equally likely: with a count k, k-pseudolikelihood."""

    count: Count

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Masks (sequences, sites) bool; raises `InputError` where there are fewer sites than `count`."""
        return uniform_masks(sequences, sites, self.count, seed, "masks", step)


@validated
@dataclass(frozen=True)
class IndividualMasks(MaskDistribution):
    """A share `rate` of a sequence's tokens is masked, but never two at once: each in a copy of its own."""

    rate: Rate = 0.15

    def copies(self, sites: int) -> int:
        """`rate` times the number of tokens, to the nearest integer, and at least one."""
        return max(1, round(self.rate * sites))

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Masks (sequences * copies, sites) bool with one site each."""
        masked = uniform_masks(sequences, sites, self.copies(sites), seed, "masks", step).nonzero()[:, 1]
        return F.one_hot(masked, sites).bool()


@dataclass(frozen=True)
class CyclicMasks(MaskDistribution):
    """Step t masks site t of every sequence, counted around the sequence."""

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Masks (sequences, sites) bool with one site each; nothing is drawn."""
        del seed
        return (torch.arange(sites) == step % sites).repeat(sequences, 1)


@validated
@dataclass(frozen=True)
class Replacement:
    """What stands where a token is to be predicted: mask, another token drawn uniformly, or (the rest) the token.

    `Replacement(0.8, 0.1)` is that of BERT (Devlin et al. 2019). Only with mask tokens alone do a model's answers
    become the conditionals of the data, whatever the distribution of masks.
    """

    mask: Share = 1.0
    random: Share = 0.0

    def __post_init__(self) -> None:
        if self.mask + self.random > 1 + 1e-9:
            raise InputError("random", self.random, f"with mask={self.mask} the two are more than one")

    def replaced(
        self, tokens: Tensor, targets: Tensor, mask: int, vocab_size: int, seed: int, step: int
    ) -> Tensor:
        """`tokens` (rows, N) as the model reads them, where the `targets` (rows, N) bool are to be predicted."""
        random = generator(seed, "replacement", step)
        uniform = torch.rand(tokens.shape, generator=random)
        others = torch.randint(0, vocab_size, tokens.shape, generator=random)
        inputs = torch.where(targets & (uniform < self.mask + self.random), others, tokens)
        return inputs.masked_fill(targets & (uniform < self.mask), mask)


MASK = Replacement()
"""The mask, always."""

BERT = Replacement(0.8, 0.1)
"""80 % mask, 10 % random, 10 % as it was."""


@dataclass(frozen=True, eq=False)
class MaskedBatches:
    """What `masked_batches` makes: of a step, what the model reads, what it should answer, and where."""

    sequences: Tensor
    distribution: MaskDistribution
    batch_size: int
    replacement: Replacement
    seed: int
    vocab_size: int
    mask: int

    def __call__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs and tokens (batch_size, N) int64, and which tokens are to be predicted (batch_size, N) bool."""
        sites = self.sequences.shape[1]
        copies = self.distribution.copies(sites)
        random = generator(self.seed, "sequences", step)
        drawn = torch.randint(0, len(self.sequences), (self.batch_size // copies,), generator=random)
        tokens = self.sequences[drawn].repeat_interleave(copies, 0)
        targets = self.distribution.masks(len(drawn), sites, step, self.seed)
        inputs = self.replacement.replaced(tokens, targets, self.mask, self.vocab_size, self.seed, step)
        return inputs, tokens, targets


@validated
def masked_batches(
    sequences: Annotated[Tensor, Integers("sequences tokens", least=0)],
    model: InstanceOf[MaskReader],
    distribution: MaskDistribution,
    *,
    batch_size: Count,
    replacement: Replacement = MASK,
    seed: Natural = 0,
) -> MaskedBatches:
    """Batches for `train` with `masked_token_loss`: sequences drawn with replacement, each with a mask of its own.

    `sequences` (n, N) int64 are data tokens; `distribution` draws the masks and `replacement` says what the model reads
    under them. A batch is what the model reads, what it should answer, both (batch_size, N), and where (bool). It is a
    function of the step and the `seed`, so that a resumed run sees the same ones. Raises `InputError` for a causal
    model, for tokens that are not the data's, and for a batch size that the copies of a sequence do not divide.
    """
    if model.mask is None:
        raise InputError("causal", True, "a causal model reads no masks; use TransformerConfig(causal=False)")
    vocab_size, mask = model.data_tokens, model.mask
    if int(sequences.max()) >= vocab_size:
        raise InputError("sequences", int(sequences.max()), f"the model has tokens 0 to {vocab_size - 1}")
    copies = distribution.copies(sequences.shape[1])
    if batch_size % copies:
        hint = (
            f"{type(distribution).__name__} makes {copies} copies of a sequence: use a multiple of {copies}"
        )
        raise InputError("batch_size", batch_size, hint)
    return MaskedBatches(sequences, distribution, batch_size, replacement, seed, vocab_size, mask)


def masked_token_loss(model: MaskReader, inputs: Tensor, tokens: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy, in nats per target, of the tokens to be predicted; zero where there is none.

    `inputs` (n, N) are what the model reads, `tokens` (n, N) what it should answer at the `targets` (n, N) bool.
    """
    rows, sites = targets.nonzero().unbind(1)
    logits = model.masked_logits(inputs, rows, sites)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits, tokens[rows, sites], reduction="sum") / max(len(rows), 1)
