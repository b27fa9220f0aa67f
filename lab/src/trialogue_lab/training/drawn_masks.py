"""One mask for every sample, drawn from a distribution of blocks."""

from typing import NamedTuple

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
from trialogue.randomness import generator
from trialogue.training.masking import uniform_masks


class DrawnMasks(NamedTuple):
    """`masks` (n, N) bool; where `blocks` (blocks, N) bool are listed, `block` (n,) is the number of each one's."""

    masks: Tensor
    blocks: Tensor | None = None
    block: Tensor | None = None

    def taken(self, rows: Tensor) -> "DrawnMasks":
        """The masks of the samples `rows` (m,)."""
        return DrawnMasks(self.masks[rows], self.blocks, None if self.block is None else self.block[rows])


def draw_masks(
    tokens: Tensor,
    block_size: int | None,
    blocks: Blocks | None,
    weights: Weights | None,
    distribution: StateLaw | None,
    seed: int,
    *names: object,
) -> DrawnMasks:
    """Draw a mask for each of `tokens` (n, N): Definitions 4.1.2, 4.1.3 and 4.1.7 of the thesis.

    Either `block_size` sites, uniformly, or one of `blocks`: uniformly, in proportion to `weights` (blocks,), or by a
    `distribution` that depends on the state. `seed` and `names` name the draws, as in `generator`.

    Raises `InputError` where the description is not exactly one of these, or never covers a site.
    """
    n, sites = tokens.shape
    require_one_law(block_size, blocks, weights, distribution)
    if blocks is None:
        size = checked_block_size(block_size, sites)
        return DrawnMasks(uniform_masks(n, sites, size, seed, *names))
    listed = block_masks(blocks, sites)
    random = generator(seed, *names)
    if distribution is not None:
        given = adaptive_law(distribution, tokens, len(listed))
        block = torch.multinomial(given, 1, generator=random)[:, 0]
    else:
        given = weighted_law(weights, len(listed))[None]
        block = torch.multinomial(given[0], n, replacement=True, generator=random)
    require_covered("blocks", listed[(given > 0).any(0)])
    return DrawnMasks(listed[block], listed, block)
