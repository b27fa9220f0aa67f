"""What a bracket's place says: the depth of its pair, and the innermost bracket that is open after it."""

import torch
from torch import Tensor

from trialogue.arrays import whole_tensor
from trialogue.compilation import over_rows
from trialogue.data.dyck.kernels import innermost
from trialogue.indices import require_int64


def pair_depths(tokens: Tensor) -> Tensor:
    """The depth (n, width) int64 of the opening bracket of each token's pair, that of what it opens or closes.

    `tokens` (n, width) are brackets, 2t opens and 2t + 1 closes type t; a bracket that closes nothing has depth 0 or
    less.
    """
    closing = tokens & 1
    return (1 - 2 * closing).cumsum(1) + closing


def innermost_types(tokens: Tensor) -> Tensor:
    """The type (n, width) int64 of the innermost bracket open after each of `tokens` (n, width), -1 if none is.

    Raises `InputError` unless the tokens are whole numbers of that shape.
    """
    tokens = whole_tensor("tokens", tokens, "give whole numbers (n, width)")
    require_int64("tokens", tokens, (None, None), "give whole numbers (n, width)")
    rows = tokens.cpu().contiguous()
    top = torch.empty_like(rows)
    over_rows(innermost, *rows.shape, rows.numpy(), top.numpy())
    return top.to(tokens.device)
