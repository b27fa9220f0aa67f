"""Chains that redraw sites from their conditional distribution: heat bath, single sites and blocks drawn jointly."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from trialogue.blocks import (
    StateLaw,
    adaptive_law,
    block_masks,
    checked_block_size,
    require_covered,
    sites_of_blocks,
    weighted_law,
)
from trialogue.errors import one_of, whole_number
from trialogue.oracles import Chain, SequenceModel, Sequences, sites_of
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import (
    draw_block,
    every_row,
    listed_law,
    site_law,
    vocab_of,
    with_block,
)
from trialogue.samplers.chains.subsets import choose_site, choose_subsets


@dataclass(frozen=True)
class Gibbs(Chain[Sequences]):
    """Heat bath of single sites: x_i ~ p(. | all others).

    A step of order "random" updates one uniformly random site of each chain; a step of order "sweep" updates every
    site once, from the first to the last.
    """

    heat_bath = True

    order: Literal["random", "sweep"] = "random"

    def __post_init__(self) -> None:
        """Raise `InputError` for an order that is neither."""
        checked_order(self.order)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> Sequences:
        """Redraw one site, or each once."""
        tokens = state.tokens
        for sites in scanned(self.order, tokens, choose):
            rows = every_row(tokens)
            value = choose(site_law(model, tokens, sites), rows)
            tokens = tokens.scatter(1, sites[:, None], value[:, None])
        return Sequences(tokens)


@dataclass(frozen=True)
class BlockGibbs(Chain[Sequences]):
    """k-Gibbs: a uniformly random block of `block_size` sites is drawn jointly given the rest.

    Definition 4.1.10 of the thesis, equation (4.3). Raises `InputError` for a block larger than the sequence.
    """

    heat_bath = True

    block_size: int

    def __post_init__(self) -> None:
        """Raise `InputError` for a block without sites."""
        whole_number("block_size", self.block_size, 1)

    def init(self, model: SequenceModel, tokens: Tensor) -> Sequences:
        """Nothing more to keep."""
        checked_block_size(self.block_size, tokens.shape[1])
        return super().init(model, tokens)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> Sequences:
        """Redraw one block."""
        rows = every_row(state.tokens)
        block = choose_subsets(state.tokens.shape[1], self.block_size, rows, choose)
        return Sequences(draw_block(model, state.tokens, block, choose))


@dataclass(frozen=True)
class _Blocks(Chain[Sequences]):
    """A chain that redraws one of a fixed collection of `blocks`, each a collection of sites; or (blocks, N) bool."""

    blocks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Keep the blocks as tuples of sites; raise `InputError` wherever `sites_of_blocks` does."""
        object.__setattr__(self, "blocks", sites_of_blocks(self.blocks))

    def init(self, model: SequenceModel, tokens: Tensor) -> Sequences:
        """Raise `InputError` unless the blocks that may be drawn cover every site, and no other."""
        require_covered("blocks", _masks(self.blocks, tokens.shape[1])[self._drawn()])
        return super().init(model, tokens)

    def _drawn(self) -> Tensor:
        """Which blocks (blocks,) bool may be drawn at all."""
        return torch.ones(len(self.blocks), dtype=torch.bool)

    def _blocks_of(self, index: Tensor, sites: int) -> Tensor:
        """The blocks that `index` (rows,) names, as (rows, N) bool."""
        return _masks(self.blocks, sites).to(index.device)[index]


@lru_cache(maxsize=16)
def _masks(blocks: tuple[tuple[int, ...], ...], sites: int) -> Tensor:
    return block_masks(blocks, sites)


@lru_cache(maxsize=16)
def _law(weights: tuple[float, ...] | None, blocks: int) -> Tensor:
    return weighted_law(weights, blocks)


@dataclass(frozen=True)
class BlockDynamics(_Blocks):
    """Weighted block dynamics: block K with probability p_K (proportional to `weights`), then X_K ~ p(. | X_-K).

    Definition 4.1.6 of the thesis. `blocks` are collections of sites, or (blocks, N) bool, and `weights` one
    non-negative number for each (by default all equal). Raises `InputError` for blocks that never cover a site.
    """

    heat_bath = True

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Raise `InputError` wherever `weighted_law` does."""
        super().__post_init__()
        weighted_law(self.weights, len(self.blocks))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(map(float, self.weights)))

    def _drawn(self) -> Tensor:
        return _law(self.weights, len(self.blocks)) > 0

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> Sequences:
        """Redraw one block."""
        tokens = state.tokens
        log_law = _law(self.weights, len(self.blocks)).log().to(tokens.device)
        index = choose(log_law.expand(len(tokens), -1), every_row(tokens))
        return Sequences(draw_block(model, tokens, self._blocks_of(index, tokens.shape[1]), choose))


@dataclass(frozen=True)
class AdaptiveBlockDynamics(_Blocks):
    """Adaptive block dynamics: block K ~ `distribution`(X), then X_K ~ p(. | X_-K, K), which knows that K was chosen.

    Definition 4.1.8 of the thesis: p(x_K | x_-K, K) ∝ p(x) p_K(K | x), equation (4.1). `distribution` gives the
    probabilities (rows, blocks) of the blocks at `tokens` (rows, N). The joint distribution of a block is listed.
    Raises `InputError` for blocks that do not cover every site, and for a distribution that is none.
    """

    distribution: StateLaw

    def _log_law(self, tokens: Tensor) -> Tensor:
        return adaptive_law(self.distribution, tokens, len(self.blocks)).log().to(tokens.device)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> Sequences:
        """Redraw one block."""
        tokens, rows = state.tokens, every_row(state.tokens)
        index = choose(self._log_law(tokens), rows)
        sites, held = sites_of(self._blocks_of(index, tokens.shape[1]))

        def tilt(sequences: Tensor, rows: Tensor) -> Tensor:
            return self._log_law(sequences).gather(1, index[rows, None])[:, 0]

        value = choose(listed_law(model, tokens, sites, held, tilt), rows)
        return Sequences(with_block(tokens, sites, held, value, vocab_of(model)))


def checked_order(order: str) -> None:
    """Raise `InputError` unless `order` is one that `scanned` knows."""
    one_of("order", order, ("random", "sweep"), 'use "random" or "sweep"')


def scanned(order: str, tokens: Tensor, choose: Choose) -> list[Tensor]:
    """The sites (rows,) of each row that one step visits, one after another."""
    rows, sites = tokens.shape
    if order == "random":
        return [choose_site(sites, every_row(tokens), choose)]
    return [torch.full((rows,), site, device=tokens.device) for site in range(sites)]
