"""One mask for every sample, drawn from a law of blocks, and what makes numbers such a law."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.oracles import Blocks, block_masks
from trialogue.probabilities import checked_law
from trialogue.randomness import generator
from trialogue.training.masking import uniform_masks

StateLaw = Callable[[Tensor], Tensor]
"""From tokens (rows, N) int64 to the probability (rows, blocks) of each block."""


class DrawnMasks(NamedTuple):
    """`masks` (n, N) bool; where `blocks` (blocks, N) bool are listed, `chosen` (n,) is the number of each one's."""

    masks: Tensor
    blocks: Tensor | None = None
    chosen: Tensor | None = None

    def taken(self, rows: Tensor) -> "DrawnMasks":
        """The masks of the samples `rows` (m,)."""
        return DrawnMasks(self.masks[rows], self.blocks, None if self.chosen is None else self.chosen[rows])


def draw_masks(
    tokens: Tensor,
    block_size: int | None,
    blocks: Blocks | None,
    weights: Tensor | Sequence[float] | None,
    law: StateLaw | None,
    seed: int,
    *names: object,
) -> DrawnMasks:
    """Draw a mask for each of `tokens` (n, N): Definitions 4.1.2, 4.1.3 and 4.1.7 of the thesis.

    Either `block_size` sites, uniformly, or one of `blocks`: uniformly, with `weights` (blocks,), or by a `law` that
    depends on the state. Probabilities sum to one. `seed` and `names` name the draws, as in `generator`.

    Raises `InputError` where the description is not exactly one of these, or never covers a site.
    """
    n, sites = tokens.shape
    if (block_size is None) == (blocks is None):
        raise InputError("block_size", block_size, "give either block_size or blocks")
    if weights is not None and law is not None:
        raise InputError("weights", weights, "give either weights or an adaptive law")
    if blocks is None:
        if weights is not None or law is not None:
            raise InputError("blocks", None, "weights and an adaptive law are about blocks: give them too")
        size = whole_number("block_size", block_size, 1)
        if size > sites:
            raise InputError("block_size", size, f"there are {sites} sites: use at most {sites}")
        return DrawnMasks(uniform_masks(n, sites, size, seed, *names))
    listed = block_masks(blocks, sites)
    random = generator(seed, *names)
    if law is not None:
        given = block_probabilities(law, tokens, listed)
        chosen = torch.multinomial(given, 1, generator=random)[:, 0]
    else:
        uniform = [1 / len(listed)] * len(listed)
        given = checked_law("weights", uniform if weights is None else weights, (len(listed),))[None]
        chosen = torch.multinomial(given[0], n, replacement=True, generator=random)
    require_covered("blocks", listed[(given > 0).any(0)])
    return DrawnMasks(listed[chosen], listed, chosen)


def block_probabilities(law: StateLaw, tokens: Tensor, blocks: Tensor) -> Tensor:
    """p_K(K | x) (rows, blocks) float64 of the states `tokens` (rows, N); raises `InputError` where they are none."""
    if not callable(law):
        mend = "give a function from tokens (rows, N) to probabilities (rows, blocks)"
        raise InputError("law", type(law).__name__, mend)
    return checked_law("law", law(tokens), (len(tokens), len(blocks)))


def require_covered(field: str, masks: Tensor) -> None:
    """Raise `InputError` where a site is in none of `masks` (n, N) bool, which are those that can be drawn."""
    never = (~masks.any(0)).nonzero()[:, 0].tolist()
    if never:
        raise InputError(field, never, "these sites are never masked: cover every site")
