"""Blocks of sites, and probabilities of choosing each block.

A block is a set of sites (positions of a sequence) that are resampled or masked together. It is drawn from a list, or
from all sets of a given size. The distribution over a list is uniform, given by weights, or a function of the state
(Definitions 4.1.2, 4.1.3 and 4.1.7 of the thesis).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import validate_distribution
from trialogue.validation import Count, Natural, check

Blocks = Tensor | NDArray[np.bool_] | Sequence[Sequence[int]]
"""Blocks of sites: (blocks, N) bool, or the sites of each block, counted from 0."""

Weights = Tensor | Sequence[float]
"""Weights (blocks,) of the blocks, proportional to their probabilities."""

StateDistribution = Callable[[Tensor], Tensor]
"""Function from tokens (rows, N) int64 to the probabilities (rows, blocks) of the blocks."""


def list_block_sites(blocks: Blocks) -> tuple[tuple[int, ...], ...]:
    """Convert blocks to tuples of sites.

    Raises:
        InputError: If there is no block, or a block is empty or contains a site twice.
    """
    masks = _masks(blocks)
    if masks is not None:
        if masks.ndim != 2:
            raise InputError("blocks", tuple(masks.shape), "use the shape (blocks, N)")
        listed = tuple(tuple(block.nonzero()[:, 0].tolist()) for block in masks)
    else:
        try:
            listed = tuple(tuple(check("blocks", site, Natural) for site in block) for block in blocks)
        except TypeError:
            raise InputError("blocks", blocks, "give a list of blocks, each a list of sites") from None
    if not listed:
        raise InputError("blocks", [], "give at least one block")
    for block in listed:
        if not block or len(set(block)) < len(block):
            raise InputError(
                "blocks", block, "give one or more different sites for each block, counted from 0"
            )
    return listed


def _masks(blocks: Blocks) -> Tensor | None:
    """Return `blocks` as a tensor if it is a bool array, else None."""
    masks = torch.as_tensor(blocks) if isinstance(blocks, np.ndarray) else blocks
    return masks if isinstance(masks, Tensor) and masks.dtype == torch.bool else None


def block_masks(blocks: Blocks, sites: int) -> Tensor:
    """Convert blocks of `sites` sites to masks (blocks, N) bool.

    Raises:
        InputError: If `list_block_sites` would raise it, the shape differs, or a site does not exist.
    """
    masks = _masks(blocks)
    if masks is not None and masks.shape[1:] != (sites,):
        raise InputError("blocks", tuple(masks.shape), f"use the shape (blocks, {sites})")
    listed = list_block_sites(blocks)
    masks = torch.zeros(len(listed), sites, dtype=torch.bool)
    for mask, block in zip(masks, listed, strict=True):
        if max(block) >= sites:
            raise InputError("blocks", max(block), f"use sites from 0 to {sites - 1}")
        mask[list(block)] = True
    return masks


def validate_block_size(block_size: object, sites: int) -> int:
    """Return `block_size`. Raises `InputError` unless it is an integer from 1 to `sites`."""
    size = check("block_size", block_size, Count)
    if size > sites:
        raise InputError("block_size", size, f"use at most {sites}, the number of sites")
    return size


def require_one_distribution(
    block_size: int | None, blocks: Blocks | None, weights: object, distribution: object, **others: object
) -> None:
    """Raise `InputError` unless the distribution of a block is defined in exactly one way.

    The ways are: `block_size` for all blocks of this size, `blocks` with optional `weights` or
    `distribution`, or one of the `others`.
    """
    ways = {"block_size": block_size, "blocks": blocks, **others}
    if sum(way is not None for way in ways.values()) != 1:
        raise InputError("block_size", block_size, f"give one of {', '.join(ways)}")
    if blocks is None and (weights is not None or distribution is not None):
        raise InputError("blocks", None, "give the blocks that the weights or the distribution refer to")
    if weights is not None and distribution is not None:
        raise InputError("weights", weights, "give either weights or an adaptive distribution")


def block_probabilities(weights: Weights | None, blocks: int) -> Tensor:
    """Return probabilities (blocks,) float64 proportional to `weights` (blocks,) (default: equal weights).

    Raises:
        InputError: Unless there is one finite non-negative weight per block, and one is positive.
    """
    if weights is None:
        return torch.full((blocks,), 1 / blocks, dtype=torch.float64)
    hint = f"give {blocks} non-negative finite weights, not all zero: one for each block"
    numbers = real_tensor("weights", weights, hint)
    if numbers.shape != (blocks,):
        raise InputError("weights", tuple(numbers.shape), hint)
    wrong = numbers[~((numbers >= 0) & numbers.isfinite())]
    if len(wrong) or not bool(numbers.any()):
        raise InputError("weights", float(wrong[0]) if len(wrong) else 0.0, hint)
    if bool(numbers.sum().isinf()):
        numbers = numbers / numbers.max()
    return numbers / numbers.sum()


def state_distribution(distribution: StateDistribution, tokens: Tensor, blocks: int) -> Tensor:
    """Return the probabilities (rows, blocks) float64 of the blocks given the states `tokens` (rows, N).

    Raises:
        InputError: If `distribution` is not a function, or its result is not a distribution.
    """
    if not callable(distribution):
        hint = "give a function from tokens (rows, N) to probabilities (rows, blocks)"
        raise InputError("distribution", type(distribution).__name__, hint)
    return validate_distribution("distribution", distribution(tokens), (len(tokens), blocks))


def require_covered(field: str, masks: Tensor) -> None:
    """Raise `InputError` if a site belongs to no block. `masks` (n, N) bool are the blocks of positive probability."""
    never = (~masks.any(0)).nonzero()[:, 0].tolist()
    if never:
        raise InputError(
            field, never, "these sites are in no block of positive probability; cover every site"
        )
