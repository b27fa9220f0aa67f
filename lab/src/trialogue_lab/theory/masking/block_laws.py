"""Random choices of masked positions, the conditional distributions they define, and their Markov chains.

A state is a sequence of `sites` tokens, and a block K is a set of positions that are masked together. The
probability p_K(K | x) of a block may depend on the state x (adaptive) or not (weighted). States are listed in
the order of `itertools.product`. All results are exact.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor

from trialogue.blocks import (
    Blocks,
    StateDistribution,
    Weights,
    block_masks,
    block_probabilities,
    require_covered,
    require_one_distribution,
    state_distribution,
    validate_block_size,
)
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.probabilities import validate_distribution
from trialogue.validation import Count, InstanceOf, validated

AdaptiveDistribution = StateDistribution | Tensor
"""Probabilities of masks that depend on the sequence, as a function or an array (states, blocks)."""
_MOST_BLOCKS = 100_000


class Fibers(NamedTuple):
    """Groups of sequences that differ only at the masked positions K.

    Each row of the arrays is a group, with one column for every choice of the masked tokens.

    Attributes:
        states: Indices of the sequences (groups, group size) int64.
        weights: Joint probability p(x) p_K(K | x) of each sequence x and the mask, shape (groups, group
            size).
        conditionals: Probability of the masked tokens given all others, p(x_K | x_{-K}, K), shape (groups,
            group size). Rows sum to one, or are zero if K is never chosen in the group.
    """

    states: Tensor
    weights: Tensor
    conditionals: Tensor


@dataclass(frozen=True, eq=False)
class BlockDistribution:
    """Distribution of the set of masked positions ("block"), which may depend on the sequence.

    Create it with `block_distribution`.

    Attributes:
        blocks: Possible blocks as masks (blocks, sites) bool.
        given: Probabilities of the blocks for each possible sequence, shape (states, blocks) float64. The
            shape is (1, blocks) if they do not depend on the sequence.
        vocab_size: Number of tokens per position.
    """

    blocks: Tensor
    given: Tensor
    vocab_size: int

    @property
    def sites(self) -> int:
        """Number of positions in a sequence."""
        return self.blocks.shape[1]

    @property
    def states(self) -> int:
        """Number of possible sequences, vocab_size ** sites."""
        return int(self.vocab_size**self.sites)

    @property
    def adaptive(self) -> bool:
        """Whether the probabilities of the masks depend on the sequence."""
        return self.given.shape[0] > 1

    def each_state(self) -> Tensor:
        """Return the probability of each block for each sequence, always with shape (states, blocks)."""
        return self.given.expand(self.states, -1)

    def completions(self, block: int) -> Tensor:
        """Group the sequences that differ only at the masked positions of one block.

        Args:
            block: Index of the block.

        Returns:
            State indices (groups, group size) int64. The sequences of a row have the same unmasked tokens.
        """
        masked = self.blocks[block]
        axes = [*torch.nonzero(~masked)[:, 0].tolist(), *torch.nonzero(masked)[:, 0].tolist()]
        grid = torch.arange(self.states).view((self.vocab_size,) * self.sites).permute(axes)
        return grid.reshape(-1, self.vocab_size ** int(masked.sum()))

    def fibers(self, probabilities: Tensor) -> Iterator[Fibers]:
        """Yield, for each block, the groups of sequences that differ only at its masked positions.

        Args:
            probabilities: Probabilities (states,) of the sequences.

        Yields:
            State indices, joint probabilities and conditional probabilities of one block (see `Fibers`).
        """
        given = self.each_state()
        for block in range(len(self.blocks)):
            states = self.completions(block)
            weights = (probabilities * given[:, block])[states]
            totals = weights.sum(1, keepdim=True)
            yield Fibers(states, weights, weights / totals.where(totals > 0, 1.0))


@validated
def uniform_blocks(sites: Count, block_size: int) -> Tensor:
    """Return all masks of `block_size` positions in lexicographic order.

    Args:
        sites: Number of positions.
        block_size: Number of masked positions.

    Returns:
        Masks (binom(sites, block_size), sites) bool.

    Raises:
        InputError: If the block size is out of range, or there are more than 100,000 masks.
    """
    block_size = validate_block_size(block_size, sites)
    count = math.comb(sites, block_size)
    if count > _MOST_BLOCKS:
        hint = f"{sites} sites have {count} such blocks, above {_MOST_BLOCKS}: use a smaller model"
        raise InputError("block_size", block_size, hint)
    members = torch.tensor(list(combinations(range(sites), block_size)))
    return torch.zeros(count, sites, dtype=torch.bool).scatter_(1, members, True)


class BlockOptions(TypedDict, total=False):
    """Keyword arguments of `block_distribution` that define how the masked positions are chosen."""

    blocks: Blocks | None
    weights: Weights | None
    distribution: AdaptiveDistribution | None


@validated
def block_distribution(
    sites: Count,
    vocab_size: Count,
    *,
    block_size: int | None = None,
    blocks: Blocks | None = None,
    weights: Weights | None = None,
    distribution: AdaptiveDistribution | None = None,
) -> BlockDistribution:
    """Create a distribution of the set of masked positions (thesis, Definitions 4.1.2, 4.1.3 and 4.1.7).

    Give either `block_size`, or `blocks` with optional `weights`, or `blocks` with `distribution`. A block is a set of
    positions (sites) that are masked together.

    Args:
        sites: Number of positions.
        vocab_size: Number of tokens per position.
        block_size: Number k of masked positions. All blocks of this size are equally likely.
        blocks: Possible blocks, as masks (blocks, sites) or lists of positions; equally likely by default.
        weights: Unnormalized probabilities of `blocks`, shape (blocks,).
        distribution: Probabilities of `blocks` that depend on the sequence, shape (states, blocks), or a function from
            tokens (rows, sites) int64 to probabilities (rows, blocks). Rows sum to one.

    Raises:
        InputError: If the arguments do not describe exactly one distribution, probabilities are invalid, or a position
            is never masked.
    """
    require_one_distribution(block_size, blocks, weights, distribution)
    if block_size is not None:
        masks = uniform_blocks(sites, block_size)
    else:
        assert blocks is not None
        masks = block_masks(blocks, sites)
    if distribution is None:
        given = block_probabilities(weights, len(masks))[None]
    elif callable(distribution):
        given = state_distribution(distribution, enumerate_sequences(vocab_size, sites), len(masks))
    else:
        given = validate_distribution("distribution", distribution, (int(vocab_size**sites), len(masks)))
    require_covered("blocks", masks[(given > 0).any(0)])
    return BlockDistribution(masks, given, vocab_size)


@validated
def block_dynamics(probabilities: Tensor, distribution: InstanceOf[BlockDistribution]) -> Tensor:
    """Return the transition matrix of a Gibbs sampler that resamples random sets of positions.

    Each step samples a set K of positions, whose distribution may depend on the current sequence x. It then
    resamples the tokens x_K from p(x_K | x_{-K}, K), where x_{-K} are all other tokens (Definitions 4.1.6 and
    4.1.8).

    Args:
        probabilities: Probabilities p (states,) of the sequences.
        distribution: Distribution of K.

    Returns:
        Transition matrix (states, states) float64, reversible with respect to p.
    """
    probabilities = check_state_distribution(probabilities, distribution.states)
    matrix = torch.zeros(distribution.states, distribution.states, dtype=torch.float64)
    given = distribution.each_state()
    for block, fibers in enumerate(distribution.fibers(probabilities)):
        drawn = given[:, block][fibers.states]
        matrix[fibers.states[:, :, None], fibers.states[:, None, :]] += (
            drawn[:, :, None] * fibers.conditionals[:, None, :]
        )
    return matrix


@validated
def joint_block_dynamics(probabilities: Tensor, distribution: InstanceOf[BlockDistribution]) -> Tensor:
    """Return the transition matrix of a sampler that always resamples the same set of masked positions.

    Its states are pairs of a sequence and a set K of masked positions. Each step resamples the masked tokens x_K from
    p(x_K | x_{-K}, K) and keeps K (equation 4.26).

    Args:
        probabilities: Probabilities p (states,) of the sequences.
        distribution: Distribution of K.

    Returns:
        Transition matrix (states * blocks, states * blocks) float64. The index of a pair is state * blocks +
        block.
    """
    probabilities = check_state_distribution(probabilities, distribution.states)
    blocks = len(distribution.blocks)
    matrix = torch.eye(distribution.states * blocks, dtype=torch.float64)
    for block, fibers in enumerate(distribution.fibers(probabilities)):
        possible = fibers.weights.sum(1) > 0
        pairs = fibers.states[possible] * blocks + block
        conditionals = fibers.conditionals[possible]
        matrix[pairs[:, :, None], pairs[:, None, :]] = conditionals[:, None, :].expand(-1, pairs.shape[1], -1)
    return matrix


@validated
def conditionals(probabilities: Tensor, distribution: InstanceOf[BlockDistribution]) -> Tensor:
    """Return the conditional probability p(x_K | x_{-K}, K) of the masked tokens for every sequence and mask.

    K is the set of masked positions and x_{-K} are all other tokens (equation 4.1). If the choice of K
    depends on the sequence, it affects the probability.

    Args:
        probabilities: Probabilities p (states,) of the sequences.
        distribution: Distribution of K.

    Returns:
        Conditional probabilities (states, blocks) float64.
    """
    probabilities = check_state_distribution(probabilities, distribution.states)
    table = torch.empty(distribution.states, len(distribution.blocks), dtype=torch.float64)
    for block, fibers in enumerate(distribution.fibers(probabilities)):
        table[fibers.states, block] = fibers.conditionals
    return table


def check_state_distribution(probabilities: Tensor, states: int, field: str = "probabilities") -> Tensor:
    """Check that probabilities (states,) are a distribution, and return them as float64.

    Args:
        probabilities: Probabilities (states,).
        states: Number of states.
        field: Name of the argument, for the error message.

    Raises:
        InputError: If they are not a distribution over `states` states.
    """
    return validate_distribution(field, probabilities, (states,))
