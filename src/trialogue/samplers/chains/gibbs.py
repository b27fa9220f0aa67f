"""Chains that redraw sites from their conditional distribution: heat bath, single sites and blocks drawn jointly."""

from collections.abc import Callable
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
from trialogue.oracles import Chain, SequenceModel, Sequences, StepInfo, sites_of
from trialogue.oracles.whole import every_row
from trialogue.randomness import Choose
from trialogue.samplers.chains.conditionals import (
    draw_block,
    listed_law,
    site_law,
    vocab_of,
    with_block,
)
from trialogue.samplers.chains.subsets import choose_site, choose_subsets
from trialogue.validation import Count, check, validated


@dataclass(frozen=True)
class SingleSite(Chain[Sequences]):
    """A chain that updates one site at a time: a uniformly random one ("random"), or each once in order ("sweep")."""

    order: Literal["random", "sweep"] = "random"

    def scan(
        self, tokens: Tensor, choose: Choose, update: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Update the sites of one step; return the tokens (rows, N) and the share (rows,) of updates that changed one.

        `update(tokens (rows, N), sites (rows,))` returns the new token (rows,) at one site of each row.
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
    """Heat bath of single sites: x_i ~ p(. | all others).

    A step of order "random" updates one uniformly random site of each chain; a step of order "sweep" updates every
    site once, from the first to the last.
    """

    heat_bath = True

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Redraw one site, or each once."""
        rows = every_row(state.tokens)
        tokens, _ = self.scan(
            state.tokens, choose, lambda tokens, sites: choose(site_law(model, tokens, sites), rows)
        )
        return Sequences(tokens), StepInfo()


@validated
@dataclass(frozen=True)
class BlockGibbs(Chain[Sequences]):
    """k-Gibbs: a uniformly random block of `block_size` sites is drawn jointly given the rest.

    Definition 4.1.10 of the thesis, equation (4.3). Raises `InputError` for a block larger than the sequence.
    """

    heat_bath = True

    block_size: Count

    def init(self, model: SequenceModel, tokens: Tensor) -> Sequences:
        """Nothing more to keep."""
        checked_block_size(self.block_size, tokens.shape[1])
        return super().init(model, tokens)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Redraw one block."""
        rows = every_row(state.tokens)
        block = choose_subsets(state.tokens.shape[1], self.block_size, rows, choose)
        return redrawn(model, state.tokens, block, choose)


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

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Redraw one block."""
        tokens = state.tokens
        log_law = _law(self.weights, len(self.blocks)).log().to(tokens.device)
        index = choose(log_law.expand(len(tokens), -1), every_row(tokens))
        return redrawn(model, tokens, self._blocks_of(index, tokens.shape[1]), choose)


@dataclass(frozen=True)
class AdaptiveBlockDynamics(_Blocks):
    """Adaptive block dynamics: block K ~ `distribution`(X), then X_K ~ p(. | X_-K, K), which knows that K was chosen.

    Definition 4.1.8 of the thesis: p(x_K | x_-K, K) ∝ p(x) p_K(K | x), equation (4.1). `distribution` gives the
    probabilities (rows, blocks) of the blocks at `tokens` (rows, N). The joint distribution of a block is listed.
    Raises `InputError` for blocks that do not cover every site, and for a distribution that is none.
    """

    distribution: StateLaw

    def __post_init__(self) -> None:
        """Raise `InputError` if the blocks are invalid or `distribution` is not a function."""
        super().__post_init__()
        check("distribution", self.distribution, StateLaw)

    def _log_law(self, tokens: Tensor) -> Tensor:
        return adaptive_law(self.distribution, tokens, len(self.blocks)).log().to(tokens.device)

    def step(self, model: SequenceModel, state: Sequences, choose: Choose) -> tuple[Sequences, StepInfo]:
        """Redraw one block."""
        tokens, rows = state.tokens, every_row(state.tokens)
        index = choose(self._log_law(tokens), rows)
        sites, held = sites_of(self._blocks_of(index, tokens.shape[1]))

        def tilt(sequences: Tensor, rows: Tensor) -> Tensor:
            return self._log_law(sequences).gather(1, index[rows, None])[:, 0]

        value = choose(listed_law(model, tokens, sites, held, tilt), rows)
        drawn = with_block(tokens, sites, held, value, vocab_of(model))
        return Sequences(drawn), StepInfo(block_size=(~held).sum(1))


def redrawn(
    model: SequenceModel, tokens: Tensor, block: Tensor, choose: Choose
) -> tuple[Sequences, StepInfo]:
    """Draw the sites in `block` (rows, N) bool jointly, given the rest of `tokens` (rows, N)."""
    return Sequences(draw_block(model, tokens, block, choose)), StepInfo(block_size=block.sum(1))
