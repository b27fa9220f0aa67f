"""Training of masked language models: choice of masked tokens, batches, and the loss.

A mask distribution chooses the tokens of a sequence to predict in a training step. A replacement chooses the tokens
that the model reads at these positions (sites).
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
    """Sample masks of exactly `count` sites, with all sets of sites equally likely.

    Args:
        rows: Number of masks.
        sites: Number of sites per mask.
        count: Number of masked sites in each row.
        seed: Seed of the random stream.
        *names: Names of the random stream. Different names give independent random numbers for the same seed.

    Returns:
        Masks, (rows, sites) bool.

    Raises:
        InputError: If `count` exceeds `sites`.
    """
    if count > sites:
        raise InputError("count", count, f"there are {sites} tokens: use at most {sites}")
    drawn = torch.rand(rows, sites, generator=generator(seed, *names), dtype=torch.float64)
    masked = drawn.topk(count, 1).indices
    return torch.zeros(rows, sites, dtype=torch.bool).scatter_(1, masked, True)


class MaskDistribution(ABC):
    """Base class of distributions that choose which tokens are masked in a training step."""

    def copies(self, sites: int) -> int:
        """Return how many copies of a sequence are in a batch, each with a separate mask (default: 1).

        The sequence has `sites` tokens.
        """
        del sites
        return 1

    @abstractmethod
    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Sample the masks of a training step.

        Args:
            sequences: Number of different sequences.
            sites: Number of tokens per sequence.
            step: Training step.
            seed: Seed of the random stream.

        Returns:
            Masks, (sequences * copies, sites) bool, with the copies of a sequence in consecutive rows.
        """


@validated
@dataclass(frozen=True)
class IndependentMasks(MaskDistribution):
    """Mask each token independently with probability `rate`, as in BERT."""

    rate: Rate = 0.15

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Sample masks (sequences, sites) bool. A mask may be empty."""
        return torch.rand(sequences, sites, generator=generator(seed, "masks", step)) < self.rate


@validated
@dataclass(frozen=True)
class UniformMasks(MaskDistribution):
    """Mask a uniformly random set of `count` tokens, as in k-pseudolikelihood with k = `count`."""

    count: Count

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Sample masks (sequences, sites) bool with `count` sites each.

        Raises:
            InputError: If `count` exceeds `sites`.
        """
        return uniform_masks(sequences, sites, self.count, seed, "masks", step)


@validated
@dataclass(frozen=True)
class IndividualMasks(MaskDistribution):
    """Mask a fraction `rate` of the tokens of a sequence, each in a separate copy of the sequence."""

    rate: Rate = 0.15

    def copies(self, sites: int) -> int:
        """Return `rate * sites`, rounded to the nearest integer and at least 1."""
        return max(1, round(self.rate * sites))

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Sample masks (sequences * copies, sites) bool with one site each."""
        masked = uniform_masks(sequences, sites, self.copies(sites), seed, "masks", step).nonzero()[:, 1]
        return F.one_hot(masked, sites).bool()


@validated
@dataclass(frozen=True)
class AnyCount(MaskDistribution):
    """Mask a uniformly random number of tokens, as in masked diffusion. All sets of this size are equally likely.

    A model that is trained on such masks can reveal a sequence in every order and in any number of passes.

    Args:
        prompt: Number of tokens at the start of a sequence that are never masked (default: 0).
    """

    prompt: Natural = 0

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Sample masks (sequences, sites) bool with 1 to `sites - prompt` masked sites each.

        Raises:
            InputError: If no token follows the prompt.
        """
        free = sites - self.prompt
        if free < 1:
            raise InputError("prompt", self.prompt, f"there are {sites} tokens: use at most {sites - 1}")
        random = generator(seed, "masks", step)
        counts = torch.randint(1, free + 1, (sequences, 1), generator=random)
        ranks = torch.rand(sequences, free, generator=random, dtype=torch.float64).argsort(1).argsort(1)
        return F.pad(ranks < counts, (self.prompt, 0))


@dataclass(frozen=True)
class CyclicMasks(MaskDistribution):
    """Mask one site per step, in cyclic order: site t modulo N at step t, for sequences of N tokens."""

    def masks(self, sequences: int, sites: int, step: int, seed: int) -> Tensor:
        """Return masks (sequences, sites) bool with one site each. They do not depend on `seed`."""
        del seed
        return (torch.arange(sites) == step % sites).repeat(sequences, 1)


@validated
@dataclass(frozen=True)
class Replacement:
    """Probabilities of the tokens that a model reads at masked positions, as in BERT.

    The token is unchanged with the remaining probability 1 - mask - random. BERT uses `Replacement(0.8, 0.1)` (Devlin
    et al. 2019). A model learns the conditionals of the data only with `mask=1`.

    Args:
        mask: Probability of the mask token.
        random: Probability of a uniformly random token.

    Raises:
        InputError: If the two probabilities sum to more than 1.
    """

    mask: Share = 1.0
    random: Share = 0.0

    def __post_init__(self) -> None:
        if self.mask + self.random > 1 + 1e-9:
            raise InputError(
                "random",
                self.random,
                f"the sum with mask={self.mask} exceeds 1; use at most {1 - self.mask:g}",
            )

    def replaced(
        self, tokens: Tensor, targets: Tensor, mask: int, vocab_size: int, seed: int, step: int
    ) -> Tensor:
        """Replace tokens at the sites to predict.

        Args:
            tokens: Token ids, (rows, N) int64.
            targets: Sites to predict, (rows, N) bool.
            mask: Id of the mask token.
            vocab_size: Number of tokens from which random tokens are sampled.
            seed: Seed of the random stream.
            step: Training step.

        Returns:
            Tokens that the model reads, (rows, N) int64.
        """
        random = generator(seed, "replacement", step)
        uniform = torch.rand(tokens.shape, generator=random)
        others = torch.randint(0, vocab_size, tokens.shape, generator=random)
        inputs = torch.where(targets & (uniform < self.mask + self.random), others, tokens)
        return inputs.masked_fill(targets & (uniform < self.mask), mask)


MASK = Replacement()
"""Always the mask token."""

BERT = Replacement(0.8, 0.1)
"""80 % mask token, 10 % random token, 10 % unchanged."""


@dataclass(frozen=True, eq=False)
class MaskedBatches:
    """Batches of masked sequences, as a function of the training step. Created by `masked_batches`."""

    sequences: Tensor
    distribution: MaskDistribution
    batch_size: int
    replacement: Replacement
    seed: int
    vocab_size: int
    mask: int

    def __call__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the batch for `step`.

        Returns:
            Inputs of the model (batch_size, N) int64, original tokens (batch_size, N) int64, and the sites to predict
            (batch_size, N) bool.
        """
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
    """Create batches for `train` with `masked_token_loss`.

    Each batch samples sequences with replacement and masks each copy independently. It depends only on the step and
    the seed, so that a resumed run sees the same batches.

    Args:
        sequences: Data tokens, (n, N) int64.
        model: Masked model that will be trained on the batches.
        distribution: Distribution of the masks.
        batch_size: Rows per batch, a multiple of the number of copies that `distribution` makes.
        replacement: Distribution of the tokens that the model reads at masked sites.
        seed: Seed for the sequences, masks and replacements.

    Raises:
        InputError: If the model is causal, if a token is outside its vocabulary, or if `batch_size` is not a multiple
            of the number of copies.
    """
    if model.mask is None:
        raise InputError(
            "causal", True, "a causal model has no mask token; use TransformerConfig(causal=False)"
        )
    vocab_size, mask = model.data_tokens, model.mask
    if int(sequences.max()) >= vocab_size:
        raise InputError("sequences", int(sequences.max()), f"use token ids from 0 to {vocab_size - 1}")
    copies = distribution.copies(sequences.shape[1])
    if batch_size % copies:
        hint = (
            f"{type(distribution).__name__} makes {copies} copies of a sequence: use a multiple of {copies}"
        )
        raise InputError("batch_size", batch_size, hint)
    return MaskedBatches(sequences, distribution, batch_size, replacement, seed, vocab_size, mask)


def masked_token_loss(model: MaskReader, inputs: Tensor, tokens: Tensor, targets: Tensor) -> Tensor:
    """Compute the mean cross-entropy of the tokens to predict, in nats per token.

    Args:
        model: Masked model.
        inputs: Tokens that the model reads, (n, N) int64.
        tokens: Original tokens, (n, N) int64.
        targets: Sites to predict, (n, N) bool.

    Returns:
        Scalar loss, or 0 if there are no sites to predict.
    """
    rows, sites = targets.nonzero().unbind(1)
    logits = model.masked_logits(inputs, rows, sites)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits, tokens[rows, sites], reduction="sum") / max(len(rows), 1)
