"""Block laws: which sites are masked in which state, what the rest says about them, and the chain this makes.

A block K is the set of masked sites. A law p_K(K | x) says how K is drawn: the same in every state (weighted), or
depending on the state (adaptive). States of `sites` tokens are counted as `itertools.product` lists them, first
site slowest. Everything here is exact and costs time in the number of states.
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
    StateLaw,
    Weights,
    adaptive_law,
    block_masks,
    checked_block_size,
    require_covered,
    require_one_law,
    weighted_law,
)
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.probabilities import checked_law
from trialogue.validation import Count, InstanceOf, validated

AdaptiveLaw = StateLaw | Tensor
"""A law that depends on the state, as a function, or as the probabilities (states, blocks) of all states."""
_MOST_BLOCKS = 100_000


class Fibres(NamedTuple):
    """States that agree outside one block, as rows, and what they weigh.

    `states` (rests, completions) int64 numbers the states, `weights` (rests, completions) is p(x) p_K(K | x) for
    this K, and `conditionals` p(x_K | x_{-K}, K): rows sum to one, or are zero where K is never drawn.
    """

    states: Tensor
    weights: Tensor
    conditionals: Tensor


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """The law p_K(K | x) of the masked block: `blocks` (blocks, sites) bool, `given` (states or 1, blocks) float64.

    `given` has one row where the law does not depend on the state. Made by `block_law`, which checks it.
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
        """Whether the law depends on the state."""
        return self.given.shape[0] > 1

    def each_state(self) -> Tensor:
        """p_K(K | x) as (states, blocks)."""
        return self.given.expand(self.states, -1)

    def completions(self, block: int) -> Tensor:
        """States (rests, completions) int64 that agree outside block number `block`, one row for each rest."""
        masked = self.blocks[block]
        axes = [*torch.nonzero(~masked)[:, 0].tolist(), *torch.nonzero(masked)[:, 0].tolist()]
        grid = torch.arange(self.states).view((self.vocab_size,) * self.sites).permute(axes)
        return grid.reshape(-1, self.vocab_size ** int(masked.sum()))

    def fibres(self, probabilities: Tensor) -> Iterator[Fibres]:
        """The fibres of every block in turn under p = `probabilities` (states,)."""
        given = self.each_state()
        for block in range(len(self.blocks)):
            states = self.completions(block)
            weights = (probabilities * given[:, block])[states]
            totals = weights.sum(1, keepdim=True)
            yield Fibres(states, weights, weights / totals.where(totals > 0, 1.0))


@validated
def uniform_blocks(sites: Count, block_size: int) -> Tensor:
    """All blocks of `block_size` of `sites` sites, (binom(sites, block_size), sites) bool, lexicographic.

    Raises `InputError` where the block is empty or larger than the sequence, or the blocks are too many to list.
    """
    block_size = checked_block_size(block_size, sites)
    count = math.comb(sites, block_size)
    if count > _MOST_BLOCKS:
        hint = f"{sites} sites have {count} such blocks, above {_MOST_BLOCKS}: use a smaller model"
        raise InputError("block_size", block_size, hint)
    members = torch.tensor(list(combinations(range(sites), block_size)))
    return torch.zeros(count, sites, dtype=torch.bool).scatter_(1, members, True)


class Described(TypedDict, total=False):
    """A description of the masked block, as `block_law` reads it."""

    blocks: Blocks | None
    weights: Weights | None
    distribution: AdaptiveLaw | None


@validated
def block_law(
    sites: Count,
    vocab_size: Count,
    *,
    block_size: int | None = None,
    blocks: Blocks | None = None,
    weights: Weights | None = None,
    distribution: AdaptiveLaw | None = None,
) -> BlockLaw:
    """The law of the block from how it is described (Definitions 4.1.2, 4.1.3 and 4.1.7 of the thesis).

    `block_size` k: all blocks of that size, uniformly. `blocks`, as (blocks, sites) bool or lists of sites: those,
    uniformly, or in proportion to `weights` (blocks,), or adaptively with `distribution`: probabilities (states,
    blocks), or a function from tokens (rows, sites) int64 to probabilities (rows, blocks). Its rows sum to one.

    Raises `InputError` where the description is not exactly one of these, the probabilities are none, or the law
    never covers a site.
    """
    require_one_law(block_size, blocks, weights, distribution)
    if block_size is not None:
        masks = uniform_blocks(sites, block_size)
    else:
        assert blocks is not None
        masks = block_masks(blocks, sites)
    if distribution is None:
        given = weighted_law(weights, len(masks))[None]
    elif callable(distribution):
        given = adaptive_law(distribution, whole_sequences(vocab_size, sites), len(masks))
    else:
        given = checked_law("distribution", distribution, (int(vocab_size**sites), len(masks)))
    require_covered("blocks", masks[(given > 0).any(0)])
    return BlockLaw(masks, given, vocab_size)


@validated
def block_dynamics(probabilities: Tensor, distribution: InstanceOf[BlockLaw]) -> Tensor:
    """Transition matrix (states, states) of block dynamics on X (Definitions 4.1.6 and 4.1.8).

    P(x, x') = sum_K p_K(K | x) 1[x_{-K} = x'_{-K}] p(x'_K | x_{-K}, K): with an adaptive law this is the chain of
    the X-marginal, reversible under p = `probabilities` (states,).
    """
    probabilities = law_of_states(probabilities, distribution.states)
    matrix = torch.zeros(distribution.states, distribution.states, dtype=torch.float64)
    given = distribution.each_state()
    for block, fibres in enumerate(distribution.fibres(probabilities)):
        drawn = given[:, block][fibres.states]
        matrix[fibres.states[:, :, None], fibres.states[:, None, :]] += (
            drawn[:, :, None] * fibres.conditionals[:, None, :]
        )
    return matrix


@validated
def joint_block_dynamics(probabilities: Tensor, distribution: InstanceOf[BlockLaw]) -> Tensor:
    """Transition matrix of eq. (4.26) on pairs (X, K), (states * blocks, states * blocks), K counting fastest.

    It redraws X_K from p(. | x_{-K}, K) and keeps K, so it is reducible: its eigenvalue one is multiple. Pairs of
    probability zero stay where they are.
    """
    probabilities = law_of_states(probabilities, distribution.states)
    blocks = len(distribution.blocks)
    matrix = torch.eye(distribution.states * blocks, dtype=torch.float64)
    for block, fibres in enumerate(distribution.fibres(probabilities)):
        possible = fibres.weights.sum(1) > 0
        pairs = fibres.states[possible] * blocks + block
        conditionals = fibres.conditionals[possible]
        matrix[pairs[:, :, None], pairs[:, None, :]] = conditionals[:, None, :].expand(-1, pairs.shape[1], -1)
    return matrix


@validated
def conditionals(probabilities: Tensor, distribution: InstanceOf[BlockLaw]) -> Tensor:
    """p(x_K | x_{-K}, K) as (states, blocks), with the law of K in it: eq. (4.1)."""
    probabilities = law_of_states(probabilities, distribution.states)
    table = torch.empty(distribution.states, len(distribution.blocks), dtype=torch.float64)
    for block, fibres in enumerate(distribution.fibres(probabilities)):
        table[fibres.states, block] = fibres.conditionals
    return table


def law_of_states(probabilities: Tensor, states: int, field: str = "probabilities") -> Tensor:
    """The probabilities (states,) as float64; raises `InputError` where they are not a law on that many states."""
    return checked_law(field, probabilities, (states,))
