"""Block distributions: how the set of masked sites is chosen, its conditionals, and its Markov chain.

A block K is the set of masked sites. The distribution p_K(K | x) is the same in every state (weighted) or
depends on the state (adaptive). States of `sites` tokens are in the order of `itertools.product`, with the
first site varying slowest. All results are exact, at a cost proportional to the number of states.
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
    checked_block_size,
    require_covered,
    require_one_distribution,
    state_distribution,
)
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.probabilities import checked_distribution
from trialogue.validation import Count, InstanceOf, validated

AdaptiveDistribution = StateDistribution | Tensor
"""Distribution that depends on the state, given as a function or as probabilities (states, blocks)."""
_MOST_BLOCKS = 100_000


class Fibers(NamedTuple):
    """Groups of states that agree outside one block.

    Attributes:
        states: State indices (rests, completions) int64.
        weights: p(x) p_K(K | x) for this block, (rests, completions).
        conditionals: p(x_K | x_{-K}, K). Rows sum to one, or are zero if K is never chosen.
    """

    states: Tensor
    weights: Tensor
    conditionals: Tensor


@dataclass(frozen=True, eq=False)
class BlockDistribution:
    """Distribution p_K(K | x) of the masked block; use `block_distribution` to create it.

    Attributes:
        blocks: Masks (blocks, sites) bool.
        given: Probabilities (states, blocks) float64, or (1, blocks) if they do not depend on the state.
        vocab_size: Number of tokens per site.
    """

    blocks: Tensor
    given: Tensor
    vocab_size: int

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.blocks.shape[1]

    @property
    def states(self) -> int:
        """Number of states, vocab_size ** sites."""
        return int(self.vocab_size**self.sites)

    @property
    def adaptive(self) -> bool:
        """Whether the distribution depends on the state."""
        return self.given.shape[0] > 1

    def each_state(self) -> Tensor:
        """Return p_K(K | x) with shape (states, blocks)."""
        return self.given.expand(self.states, -1)

    def completions(self, block: int) -> Tensor:
        """Return the states (rests, completions) int64 that agree outside one block, one row for each rest."""
        masked = self.blocks[block]
        axes = [*torch.nonzero(~masked)[:, 0].tolist(), *torch.nonzero(masked)[:, 0].tolist()]
        grid = torch.arange(self.states).view((self.vocab_size,) * self.sites).permute(axes)
        return grid.reshape(-1, self.vocab_size ** int(masked.sum()))

    def fibers(self, probabilities: Tensor) -> Iterator[Fibers]:
        """Yield the fibers of each block for p = `probabilities` (states,)."""
        given = self.each_state()
        for block in range(len(self.blocks)):
            states = self.completions(block)
            weights = (probabilities * given[:, block])[states]
            totals = weights.sum(1, keepdim=True)
            yield Fibers(states, weights, weights / totals.where(totals > 0, 1.0))


@validated
def uniform_blocks(sites: Count, block_size: int) -> Tensor:
    """Return all blocks of `block_size` sites in lexicographic order.

    Args:
        sites: Number of sites.
        block_size: Number of masked sites.

    Returns:
        Masks (binom(sites, block_size), sites) bool.

    Raises:
        InputError: If the block size is out of range, or there are more than 100,000 blocks.
    """
    block_size = checked_block_size(block_size, sites)
    count = math.comb(sites, block_size)
    if count > _MOST_BLOCKS:
        hint = f"{sites} sites have {count} such blocks, above {_MOST_BLOCKS}: use a smaller model"
        raise InputError("block_size", block_size, hint)
    members = torch.tensor(list(combinations(range(sites), block_size)))
    return torch.zeros(count, sites, dtype=torch.bool).scatter_(1, members, True)


class Described(TypedDict, total=False):
    """Arguments of `block_distribution` that describe a block distribution."""

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
    """Create a block distribution (thesis, Definitions 4.1.2, 4.1.3 and 4.1.7).

    Args:
        sites: Number of sites.
        vocab_size: Number of tokens per site.
        block_size: Size k of uniformly chosen blocks.
        blocks: Possible blocks, as masks (blocks, sites) or lists of sites. Uniform by default.
        weights: Unnormalized probabilities of `blocks`, shape (blocks,).
        distribution: Adaptive probabilities (states, blocks), or a function from tokens (rows, sites) int64
            to probabilities (rows, blocks). Rows sum to one.

    Raises:
        InputError: If the arguments do not describe exactly one distribution, probabilities are invalid, or a
            site is never masked.
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
        given = state_distribution(distribution, whole_sequences(vocab_size, sites), len(masks))
    else:
        given = checked_distribution("distribution", distribution, (int(vocab_size**sites), len(masks)))
    require_covered("blocks", masks[(given > 0).any(0)])
    return BlockDistribution(masks, given, vocab_size)


@validated
def block_dynamics(probabilities: Tensor, distribution: InstanceOf[BlockDistribution]) -> Tensor:
    """Return the transition matrix of block dynamics on X (Definitions 4.1.6 and 4.1.8).

    P(x, x') = sum_K p_K(K | x) 1[x_{-K} = x'_{-K}] p(x'_K | x_{-K}, K). For an adaptive distribution, this is
    the chain of the X-marginal, which is reversible with respect to p.

    Args:
        probabilities: Probabilities p (states,).
        distribution: Distribution of the block.

    Returns:
        Matrix (states, states) float64.
    """
    probabilities = checked_state_distribution(probabilities, distribution.states)
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
    """Return the transition matrix of equation 4.26 on pairs (X, K), with K varying fastest.

    The chain redraws X_K from p(. | x_{-K}, K) and keeps K. It is reducible, so its eigenvalue one is not
    simple. Pairs of probability zero do not move.

    Returns:
        Matrix (states * blocks, states * blocks) float64.
    """
    probabilities = checked_state_distribution(probabilities, distribution.states)
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
    """Return p(x_K | x_{-K}, K) (states, blocks), which depends on the distribution of K (equation 4.1)."""
    probabilities = checked_state_distribution(probabilities, distribution.states)
    table = torch.empty(distribution.states, len(distribution.blocks), dtype=torch.float64)
    for block, fibers in enumerate(distribution.fibers(probabilities)):
        table[fibers.states, block] = fibers.conditionals
    return table


def checked_state_distribution(probabilities: Tensor, states: int, field: str = "probabilities") -> Tensor:
    """Return probabilities (states,) as float64.

    Raises:
        InputError: If they are not a distribution over `states` states.
    """
    return checked_distribution(field, probabilities, (states,))
