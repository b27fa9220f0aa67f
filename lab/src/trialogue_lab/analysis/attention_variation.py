"""What can be seen of a network in its attention to brackets, and how much of that another seed changes.

For networks of several seeds:

    patterns = torch.stack([network.attention_weights(tokens)[1][0] for network in networks])     # (seeds, T, T)
    mean_variation(patterns), causal_baseline(patterns.shape[-1])
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from trialogue.arrays import Integers, Reals
from trialogue.errors import InputError
from trialogue.validation import Count, InstanceOf, validated
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

Pattern = Annotated[Tensor, Reals()]
"""Attention weights, of any number of sequences."""


@validated
def variation(first: Pattern, second: Pattern) -> Tensor:
    """|A - B|_F^2 (...) of attention patterns (..., T, T).

    Raises `InputError` where they are not square, or of different lengths.
    """
    for field, pattern in (("first", first), ("second", second)):
        if pattern.ndim < 2 or pattern.shape[-1] != pattern.shape[-2]:
            raise InputError(field, tuple(pattern.shape), "an attention pattern has the shape (..., T, T)")
    if first.shape[-1] != second.shape[-1]:
        hint = (
            f"it is compared with one of {first.shape[-1]} positions: ask both networks about the same tokens"
        )
        raise InputError("second", tuple(second.shape), hint)
    return (first - second).square().sum((-2, -1))


@validated
def mean_variation(patterns: Pattern) -> float:
    """The mean of `variation` over all pairs of `patterns` (n, T, T), at least two."""
    if patterns.ndim != 3 or len(patterns) < 2:
        raise InputError("patterns", tuple(patterns.shape), "give at least two patterns, (n, T, T)")
    left, right = torch.combinations(torch.arange(len(patterns))).T
    return float(variation(patterns[left], patterns[right]).mean())


@validated
def causal_baseline(length: Count) -> float:
    """Expected variation of two patterns of `length` positions whose rows are uniform laws on what is not ahead.

    The row of m positions is uniform on the simplex and adds 2 (m - 1) / (m (m + 1)): 2 H_n + 4 / (n + 1) - 4 in all.
    """
    return 2 * sum(1 / m for m in range(1, length + 1)) + 4 / (length + 1) - 4


@validated
def stack_likeness(attention: Pattern, tokens: Annotated[Tensor, Integers("n T", least=0)]) -> float:
    """The share of closing brackets that leave one open and attend most to the innermost bracket that is open.

    `attention` (n, T, T) has a row for the starting token and each of `tokens` (n, T - 1), which are prefixes of Dyck
    words. NaN where no bracket is such. Raises `InputError` for attention of another length.
    """
    n, width = tokens.shape
    if tuple(attention.shape) != (n, width + 1, width + 1):
        hint = f"{width} tokens and the starting token have patterns of the shape {(n, width + 1, width + 1)}"
        raise InputError("attention", tuple(attention.shape), hint)
    depths = (1 - 2 * (tokens & 1)).cumsum(1)
    place = torch.arange(width, device=tokens.device)
    # The innermost open bracket behind a token is the last opening one whose depth is that behind the token.
    candidate = (
        (depths[:, None] == depths[:, :, None]) & (tokens[:, None] % 2 == 0) & (place <= place[:, None])
    )
    innermost = torch.where(candidate, place, -1).max(-1).values
    asked = (tokens % 2 == 1) & (depths > 0)
    most = attention[:, 1:].argmax(-1) - 1
    return float((most == innermost)[asked].double().mean())


@validated
def with_uniform_attention(network: InstanceOf[DyckTransformer]) -> DyckTransformer:
    """A copy of `network` whose attention is uniform in every layer, all else as it is: in eval mode."""
    twin = DyckTransformer(replace(network.config, uniform=True))
    twin.load_state_dict(network.state_dict())
    return twin.to(network.table.device).eval()
