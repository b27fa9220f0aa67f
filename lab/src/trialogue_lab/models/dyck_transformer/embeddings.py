"""Embeddings of brackets by type and depth (equations 2.55 to 2.57), or of tokens.

The depth is the number of open brackets, including this pair. A closing bracket has the depth of its opening
bracket.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.dyck.states import pair_depths
from trialogue.errors import InputError

Embedding = Literal["pairs", "sums", "angles", "tokens"]


def state_of(token: int, pair_depth: int, depth: int) -> int:
    """Return the index of a bracket with its depth, called a state.

    Args:
        token: Token id of the bracket.
        pair_depth: Depth of the pair: number of open brackets, including this one, from 1 to `depth`.
        depth: Largest number of open brackets.
    """
    return token * depth + pair_depth - 1


def state_count(types: int, depth: int) -> int:
    """Return the number of states (brackets with their depth), 2 k D + 1 including the start token.

    Args:
        types: Number k of bracket types.
        depth: Largest number D of open brackets.
    """
    return 2 * types * depth + 1


def states(tokens: Tensor, lengths: Tensor, types: int, depth: int) -> Tensor:
    """Return the states of bracket strings.

    A state is the index of a bracket and its depth (see `state_of`).

    Args:
        tokens: Token ids (n, width).
        lengths: Lengths (n,) of the strings. Later positions have the state of the start token.
        types: Number of bracket types.
        depth: Largest number of open brackets.

    Returns:
        States (n, width + 1) int64 of the start token and all tokens.

    Raises:
        InputError: If a token is not a bracket, or a prefix exceeds `depth` or closes an unopened bracket.
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
    """Check that all tokens are brackets.

    Args:
        tokens: Token ids.
        types: Number of bracket types.

    Raises:
        InputError: If a token is not a bracket of one of these types.
    """
    wrong = tokens[(tokens < 0) | (tokens >= 2 * types)]
    if len(wrong):
        raise InputError("tokens", int(wrong[0]), f"use brackets from 0 to {2 * types - 1}")


def embedding_table(embedding: Embedding, types: int, depth: int, width: int) -> Tensor:
    """Return the embedding vector of every state, which is a bracket with its depth.

    Args:
        embedding: Kind of vectors. For k types and depth D, their width m is 2 k D + 1 for "pairs", 2 k + D +
            1 for "sums" and 2 k + 3 for "angles" (equations 2.55 to 2.57). "tokens" ignores the depth.
        types: Number k of bracket types.
        depth: Largest number D of open brackets.
        width: Width m of "tokens".

    Returns:
        Vectors (states, m) float64.
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
