"""Blocks of sites, and the distribution by which one is drawn: described, checked and normalised for chains, fits and
theory.

A block is a set of sites that is redrawn, or masked, together. It is one of a list, or any set of so many sites; which
one of a list is uniform, by weights, or by a distribution that depends on the state (Definitions 4.1.2, 4.1.3 and 4.1.7
of the thesis).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import checked_law
from trialogue.validation import Count, Natural, check

Blocks = Tensor | NDArray[np.bool_] | Sequence[Sequence[int]]
"""Blocks of sites: (blocks, N) bool, or the sites of each, counted from 0."""

Weights = Tensor | Sequence[float]
"""What each block weighs (blocks,): probabilities up to a factor."""

StateLaw = Callable[[Tensor], Tensor]
"""From tokens (rows, N) int64 to the probability (rows, blocks) of each block."""


def sites_of_blocks(blocks: Blocks) -> tuple[tuple[int, ...], ...]:
    """The sites of each block.

    Raises `InputError` where there is no block, and for a block that has no sites, or not different ones.
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
            raise InputError("blocks", block, "a block is one or more different sites, counted from 0")
    return listed


def _masks(blocks: Blocks) -> Tensor | None:
    """`blocks` where they are an array of bool."""
    masks = torch.as_tensor(blocks) if isinstance(blocks, np.ndarray) else blocks
    return masks if isinstance(masks, Tensor) and masks.dtype == torch.bool else None


def block_masks(blocks: Blocks, sites: int) -> Tensor:
    """Blocks of N = `sites` sites as (blocks, N) bool.

    Raises `InputError` wherever `sites_of_blocks` does, and for other shapes and sites that do not exist.
    """
    masks = _masks(blocks)
    if masks is not None and masks.shape[1:] != (sites,):
        raise InputError("blocks", tuple(masks.shape), f"use the shape (blocks, {sites})")
    listed = sites_of_blocks(blocks)
    masks = torch.zeros(len(listed), sites, dtype=torch.bool)
    for mask, block in zip(masks, listed, strict=True):
        if max(block) >= sites:
            raise InputError("blocks", max(block), f"name sites from 0 to {sites - 1}")
        mask[list(block)] = True
    return masks


def checked_block_size(block_size: object, sites: int) -> int:
    """Return `block_size`; raises `InputError` unless it is a whole number from 1 to `sites`."""
    size = check("block_size", block_size, Count)
    if size > sites:
        raise InputError("block_size", size, f"there are {sites} sites: use at most {sites}")
    return size


def require_one_law(
    block_size: int | None, blocks: Blocks | None, weights: object, distribution: object, **others: object
) -> None:
    """Raise `InputError` unless the distribution of a block is described in exactly one way.

    One of `block_size`, `blocks` and the `others` is given; at most one of `weights` and `distribution`, and only with
    `blocks`: blocks of a size are all drawn alike, since their order, and so which weight is whose, would be anyone's
    guess.
    """
    ways = {"block_size": block_size, "blocks": blocks, **others}
    if sum(way is not None for way in ways.values()) != 1:
        raise InputError("block_size", block_size, f"give one of {', '.join(ways)}")
    if blocks is None and (weights is not None or distribution is not None):
        raise InputError(
            "blocks", None, "weights and an adaptive distribution are about blocks: give them too"
        )
    if weights is not None and distribution is not None:
        raise InputError("weights", weights, "give either weights or an adaptive distribution")


def weighted_law(weights: Weights | None, blocks: int) -> Tensor:
    """Probabilities (blocks,) float64 proportional to `weights` (blocks,), by default all equal.

    Raises `InputError` unless there is one for each block, all are finite, none is negative and not all are zero.
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


def adaptive_law(distribution: StateLaw, tokens: Tensor, blocks: int) -> Tensor:
    """p_K(K | x) (rows, blocks) float64 of the states `tokens` (rows, N); raises `InputError` where they are none."""
    if not callable(distribution):
        hint = "give a function from tokens (rows, N) to probabilities (rows, blocks)"
        raise InputError("distribution", type(distribution).__name__, hint)
    return checked_law("distribution", distribution(tokens), (len(tokens), blocks))


def require_covered(field: str, masks: Tensor) -> None:
    """Raise `InputError` where a site is in none of `masks` (n, N) bool, which are those that can be drawn."""
    never = (~masks.any(0)).nonzero()[:, 0].tolist()
    if never:
        raise InputError(field, never, "these sites are in no block that is ever drawn: cover every site")
