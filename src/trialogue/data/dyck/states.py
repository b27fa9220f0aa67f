"""Nesting depth of each bracket, and type of the innermost open bracket after it."""

import torch
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.compilation import run_over_rows
from trialogue.data.dyck.kernels import find_innermost_types
from trialogue.indices import require_int64


def pair_depths(tokens: Tensor) -> Tensor:
    """Return the depth of the pair of brackets that each token belongs to.

    The outermost pair has depth 1. An unmatched closing bracket has a depth of at most 0.

    Args:
        tokens: Brackets (n, width). Token 2t opens a bracket of type t, and token 2t + 1 closes it.

    Returns:
        Depths (n, width) int64.
    """
    closing = tokens & 1
    return (1 - 2 * closing).cumsum(1) + closing


def innermost_types(tokens: Tensor) -> Tensor:
    """Return the type of the innermost bracket that is open after each token.

    A closing bracket of any type closes the innermost open bracket.

    Args:
        tokens: Brackets (n, width) int64. Token 2t opens a bracket of type t, and token 2t + 1 closes it.

    Returns:
        Types (n, width) int64, or -1 if no bracket is open.

    Raises:
        InputError: If the tokens are not integers or not a matrix.
    """
    tokens = integer_tensor("tokens", tokens, "give whole numbers (n, width)")
    require_int64("tokens", tokens, (None, None), "give whole numbers (n, width)")
    rows = tokens.cpu().contiguous()
    top = torch.empty_like(rows)
    run_over_rows(find_innermost_types, *rows.shape, rows.numpy(), top.numpy())
    return top.to(tokens.device)
