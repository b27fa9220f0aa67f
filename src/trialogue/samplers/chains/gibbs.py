"""Gibbs sampling of single positions and of blocks of positions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from trialogue.blocks import (
    StateDistribution,
    block_masks,
    block_probabilities,
    list_block_sites,
    require_covered,
    state_distribution,
    validate_block_size,
)
from trialogue.oracles import Chain, SequenceModel, Sequences, StepInfo, list_sites
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import (
    block_distribution,
    draw_block,
    require_vocab_size,
    site_distribution,
    write_block,
)
from trialogue.samplers.chains.subsets import choose_site, choose_subsets
from trialogue.validation import Count, check, validated


@dataclass(frozen=True)
class SingleSite(Chain[Sequences]):
    """Base class of Markov chains that update one position of the sequence (site) at a time.

    Args:
        order: Update one uniformly random site per step (random) or every site once in order (sweep) (default: random).
    """

    order: Literal["random", "sweep"] = "random"

    def scan(
        self, tokens: Tensor, choose: Choose, update: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Update one random site of each row, or every site in order, by a given function.

        Args:
            tokens: Tokens (rows, N) int64.
            choose: Function that draws one index per row in proportion to given weights.
            update: Function from tokens (rows, N) and one site (rows,) per row to the new tokens (rows,) at these
                sites.

        Returns:
            The new tokens (rows, N), and the share (rows,) of updates that changed a site.
        """
        rows, count = every_row(tokens), tokens.shape[1]
        if self.order == "random":
            visited = [choose_site(count, rows, choose)]
        else:
            visited = [torch.full_like(rows, site) for site in range(count)]
        changed = torch.zeros_like(rows, dtype=torch.float64)
        for sites in visited:
            value = update(tokens, sites)
            changed += value != tokens[rows, sites]
            tokens = tokens.scatter(1, sites[:, None], value[:, None])
        return tokens, changed / len(visited)


@validated
@dataclass(frozen=True)
class Gibbs(SingleSite):
    """Gibbs sampling: replace the token of a site by a draw from its distribution given the tokens of all other sites.

    A site is a position of the sequence.

    Args:
        order: Update one uniformly random site per step (random) or every site once in order (sweep) (default: random).
    """

    heat_bath = True

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Resample one random site of each row, or every site in order.

        Args:
            model: The model, which provides conditional distributions of sites.
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and empty statistics.
        """
        rows = every_row(state.tokens)
        tokens, _ = self.scan(
            state.tokens, choose, lambda tokens, sites: choose(site_distribution(model, tokens, sites), rows)
        )
        return Sequences(tokens), StepInfo()


@validated
@dataclass(frozen=True)
class BlockGibbs(Chain[Sequences]):
    """k-Gibbs: resample a uniformly random block of k sites jointly, given all other sites.

    A site is a position of the sequence, and a block is a set of sites. Definition 4.1.10 of the thesis, equation
    (4.3).

    Args:
        block_size: Number of sites of a block.

    Raises:
        InputError: If a block is larger than the sequence.
    """

    heat_bath = True

    block_size: Count

    def init(self, model: SequenceModel, tokens: Tensor) -> Sequences:
        """Return the initial state of the chain: the start sequences. Checks the size of the blocks.

        Args:
            model: The model.
            tokens: Start sequences (rows, N), one for each copy of the chain.

        Returns:
            The sequences as a state.

        Raises:
            InputError: If `block_size` is larger than N.
        """
        validate_block_size(self.block_size, tokens.shape[1])
        return super().init(model, tokens)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Draw a block of sites for each row, and resample its tokens jointly given all other tokens.

        Args:
            model: The model, which provides distributions of blocks.
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and the number (rows,) of resampled sites.
        """
        rows = every_row(state.tokens)
        block = choose_subsets(state.tokens.shape[1], self.block_size, rows, choose)
        return resample_block(model, state.tokens, block, choose)


@dataclass(frozen=True)
class _Blocks(Chain[Sequences]):
    """Base class of Markov chains that resample one block of sites per step, out of a fixed list of blocks.

    A site is a position of the sequence. The blocks are given as tuples of sites or as a mask (blocks, N) bool.
    """

    blocks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Store the blocks as tuples of sites."""
        object.__setattr__(self, "blocks", list_block_sites(self.blocks))

    def init(self, model: SequenceModel, tokens: Tensor) -> Sequences:
        """Return the initial state, after checking that the blocks of positive probability cover every site.

        Args:
            model: The model.
            tokens: Start (rows, N) of each copy of the chain.

        Returns:
            The tokens as a state.

        Raises:
            InputError: If a site belongs to no block of positive probability, or a block contains a site that does not
                exist.
        """
        require_covered("blocks", _masks(self.blocks, tokens.shape[1])[self._has_positive_weight()])
        return super().init(model, tokens)

    def _has_positive_weight(self) -> Tensor:
        """Return whether each block (blocks,) bool is chosen with positive probability."""
        return torch.ones(len(self.blocks), dtype=torch.bool)

    def _select_blocks(self, index: Tensor, sites: int) -> Tensor:
        """Return the blocks with the given indices (rows,) as masks (rows, N) bool."""
        return _masks(self.blocks, sites).to(index.device)[index]


@lru_cache(maxsize=16)
def _masks(blocks: tuple[tuple[int, ...], ...], sites: int) -> Tensor:
    return block_masks(blocks, sites)


@lru_cache(maxsize=16)
def _distribution(weights: tuple[float, ...] | None, blocks: int) -> Tensor:
    return block_probabilities(weights, blocks)


@dataclass(frozen=True)
class BlockDynamics(_Blocks):
    """Resample a random block of sites given all other sites, where each block has a fixed probability.

    A block is a set of sites (positions). Its tokens are drawn jointly from the model's distribution given
    the tokens outside of it (weighted block dynamics, Definition 4.1.6 of the thesis).

    Args:
        blocks: Collections of sites, or (blocks, N) bool.
        weights: One non-negative number per block, proportional to its probability (default: equal weights).

    Raises:
        InputError: If a site belongs to no block of positive weight.
    """

    heat_bath = True

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Store the blocks and the weights as tuples, after validation."""
        super().__post_init__()
        block_probabilities(self.weights, len(self.blocks))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(map(float, self.weights)))

    def _has_positive_weight(self) -> Tensor:
        return _distribution(self.weights, len(self.blocks)) > 0

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Draw a block for each row, and resample its tokens jointly given all other tokens.

        Args:
            model: The model, which provides distributions of blocks.
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and the number (rows,) of resampled sites.
        """
        tokens = state.tokens
        log_probs = _distribution(self.weights, len(self.blocks)).log().to(tokens.device)
        index = choose(log_probs.expand(len(tokens), -1), every_row(tokens))
        return resample_block(model, tokens, self._select_blocks(index, tokens.shape[1]), choose)


@dataclass(frozen=True)
class AdaptiveBlockDynamics(_Blocks):
    """Resample a random block of sites, where the probability of a block depends on the current sequence.

    A block K is a set of sites (positions), drawn with probability p_K(K | x) for the current tokens x. Its
    new tokens are drawn in proportion to p(x) p_K(K | x), where p is the model (equation 4.1 and Definition
    4.1.8 of the thesis). The factor p_K ensures that the chain keeps the distribution p.

    Args:
        blocks: Collections of sites, or (blocks, N) bool.
        distribution: Function from tokens (rows, N) to the probabilities (rows, blocks) of the blocks.

    Raises:
        InputError: If the blocks do not cover every site, or the probabilities are not a distribution.
    """

    distribution: StateDistribution

    def __post_init__(self) -> None:
        """Raise `InputError` if the blocks are invalid or `distribution` is not a function."""
        super().__post_init__()
        check("distribution", self.distribution, StateDistribution)

    def _log_probs(self, tokens: Tensor) -> Tensor:
        return state_distribution(self.distribution, tokens, len(self.blocks)).log().to(tokens.device)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Draw a block for each row by `distribution`, and resample its tokens jointly given all other tokens.

        Args:
            model: The model, which provides distributions of blocks.
            state: Tokens (rows, N) of the independent copies of the chain.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            The new tokens, and the number (rows,) of resampled sites.
        """
        tokens, rows = state.tokens, every_row(state.tokens)
        index = choose(self._log_probs(tokens), rows)
        sites, held = list_sites(self._select_blocks(index, tokens.shape[1]))

        def tilt(sequences: Tensor, rows: Tensor) -> Tensor:
            return self._log_probs(sequences).gather(1, index[rows, None])[:, 0]

        value = choose(block_distribution(model, tokens, sites, held, tilt), rows)
        drawn = write_block(tokens, sites, held, value, require_vocab_size(model))
        return Sequences(drawn), StepInfo(block_size=(~held).sum(1))


def resample_block(
    model: SequenceModel, tokens: Tensor, block: Tensor, choose: Choose
) -> tuple[Sequences, StepInfo]:
    """Resample a block of sites (positions) of each row jointly, given all other tokens.

    Args:
        model: The model, which provides distributions of blocks.
        tokens: Tokens (rows, N) int64.
        block: Sites (rows, N) bool of the block.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        The new tokens, and the number (rows,) of resampled sites.
    """
    return Sequences(draw_block(model, tokens, block, choose)), StepInfo(block_size=block.sum(1))
