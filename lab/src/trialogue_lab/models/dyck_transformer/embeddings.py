"""What the second layer reads: embeddings of brackets by type and depth, equations 2.55 to 2.57, or of tokens alone.

A closing bracket is indexed by the depth of its opening one. Indexed by the depth behind it, as printed, (2.55) gives
the bracket that closes type t at depth 0 the vector of the one that opens type t at depth D.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.dyck.states import pair_depths
from trialogue.errors import InputError

Embedding = Literal["pairs", "sums", "angles", "tokens"]


def state_of(token: int, pair_depth: int, depth: int) -> int:
    """The number of the state of a bracket whose pair opens at `pair_depth`, 1 to `depth`."""
    return token * depth + pair_depth - 1


def state_count(types: int, depth: int) -> int:
    """How many states there are: 2 k D of brackets, and last that of the starting token."""
    return 2 * types * depth + 1


def states(tokens: Tensor, lengths: Tensor, types: int, depth: int) -> Tensor:
    """States (n, width + 1) int64 of the starting token and of `tokens` (n, width); behind `lengths` that of the start.

    Raises `InputError` for a token that is no bracket, and for a prefix that goes deeper than `depth` or below 0.
    """
    n, width = tokens.shape
    counted = torch.arange(width, device=tokens.device) < lengths[:, None]
    require_brackets(tokens[counted], types)
    at = pair_depths(tokens.where(counted, 0))
    outside = counted & ((at < 1) | (at > depth))
    if bool(outside.any()):
        row = int(outside.any(1).nonzero()[0])
        place = int(outside[row].nonzero()[0])
        what = "closes what is not open" if int(at[row, place]) < 1 else f"is nested deeper than {depth}"
        shown = tokens[row, : place + 1].tolist()
        raise InputError("tokens", shown, f"its last bracket {what}: give prefixes of depth 0 to {depth}")
    start = state_count(types, depth) - 1
    found = (tokens * depth + at - 1).where(counted, start)
    return torch.cat((found.new_full((n, 1), start), found), 1)


def require_brackets(tokens: Tensor, types: int) -> None:
    """Raise `InputError` unless all `tokens` are brackets of `types` types."""
    wrong = tokens[(tokens < 0) | (tokens >= 2 * types)]
    if len(wrong):
        raise InputError("tokens", int(wrong[0]), f"use brackets from 0 to {2 * types - 1}")


def embedding_table(embedding: Embedding, types: int, depth: int, width: int) -> Tensor:
    """The vectors (states, m) float64 of an embedding, one row for each of the states.

    "pairs" (2.55): m = 2 k D + 1; "sums" (2.56): m = 2 k + D + 1; "angles" (2.57): m = 2 k + 3; the starting token
    has a coordinate of its own. "tokens" are those of 2 k + 1 tokens, whatever their depth, in `width` coordinates.
    """
    count = state_count(types, depth)
    if embedding == "pairs":
        return torch.eye(count, dtype=torch.float64)
    number = torch.arange(count - 1)
    token = F.one_hot(torch.cat((number // depth, torch.tensor([2 * types]))), 2 * types + 1).double()
    if embedding == "tokens":
        return F.pad(token, (0, width - token.shape[1]))
    pair_depth = number % depth + 1
    if embedding == "sums":
        place = F.one_hot(pair_depth - 1, depth).double()
    else:
        behind = (pair_depth - (number // depth) % 2).double()
        angle = torch.atan(behind / (depth + 2 - behind))
        place = torch.stack((angle.cos(), angle.sin()), 1)
    return torch.cat((token, F.pad(place, (0, 0, 0, 1))), 1)
