"""Attention of networks that read brackets: differences between training seeds, and similarity to a stack."""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from trialogue.arrays import Integers, Reals
from trialogue.errors import InputError
from trialogue.validation import Count, InstanceOf, validated
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

Pattern = Annotated[Tensor, Reals()]
"""Attention weights (..., T, T)."""


@validated
def variation(first: Pattern, second: Pattern) -> Tensor:
    """Return the squared Frobenius distance between attention patterns.

    Args:
        first: Attention patterns (..., T, T).
        second: Attention patterns (..., T, T), for the same tokens.

    Returns:
        |A - B|_F^2 for each pair of patterns (...).

    Raises:
        InputError: If the patterns are not square or have different lengths.

    Example:
        patterns = [network.attention_weights(tokens)[1] for network in networks]
        variation(patterns[0], patterns[1]).mean(), causal_baseline(tokens.shape[1] + 1)
    """
    for field, pattern in (("first", first), ("second", second)):
        if pattern.ndim < 2 or pattern.shape[-1] != pattern.shape[-2]:
            raise InputError(field, tuple(pattern.shape), "use attention patterns of the shape (..., T, T)")
    if first.shape[-1] != second.shape[-1]:
        hint = (
            f"must have {first.shape[-1]} positions, as the first one: use the same tokens for both networks"
        )
        raise InputError("second", tuple(second.shape), hint)
    return (first - second).square().sum((-2, -1))


@validated
def causal_baseline(length: Count) -> float:
    """Return the expected value of `variation` for two random causal attention patterns.

    Use it as a baseline: trained networks with a smaller `variation` are more similar than chance. In a
    random pattern, the weights of position m are drawn uniformly from all probability vectors over m
    positions. The result is 2 H_n + 4 / (n + 1) - 4, where H_n is the n-th harmonic number.

    Args:
        length: Number of positions n.
    """
    return 2 * sum(1 / m for m in range(1, length + 1)) + 4 / (length + 1) - 4


@validated
def stack_likeness(attention: Pattern, tokens: Annotated[Tensor, Integers("n T", least=0)]) -> float:
    """Return the share of closing brackets that attend most to the innermost bracket that remains open.

    A parser with a stack reads the type of this bracket from the top of the stack.

    Args:
        attention: Attention weights (n, T, T), with one row for the start token and one for each token.
        tokens: Prefixes of balanced bracket strings (n, T - 1), int64.

    Returns:
        Fraction of the closing brackets after which another bracket remains open. NaN if there are no such closing
        brackets.

    Raises:
        InputError: If the attention weights have another length.
    """
    n, width = tokens.shape
    if tuple(attention.shape) != (n, width + 1, width + 1):
        hint = f"use patterns of the shape {(n, width + 1, width + 1)} for the start token and {width} tokens"
        raise InputError("attention", tuple(attention.shape), hint)
    depths = (1 - 2 * (tokens & 1)).cumsum(1)
    place = torch.arange(width, device=tokens.device)
    # The innermost bracket that is open after a token is the last opening one with the same depth.
    candidate = (
        (depths[:, None] == depths[:, :, None]) & (tokens[:, None] % 2 == 0) & (place <= place[:, None])
    )
    innermost = torch.where(candidate, place, -1).max(-1).values
    counted = (tokens % 2 == 1) & (depths > 0)
    most = attention[:, 1:].argmax(-1) - 1
    return float((most == innermost)[counted].double().mean())


@validated
def with_uniform_attention(network: InstanceOf[DyckTransformer]) -> DyckTransformer:
    """Return a copy of `network` in eval mode, with uniform attention in every layer."""
    copy = DyckTransformer(replace(network.config, uniform=True))
    copy.load_state_dict(network.state_dict())
    return copy.to(network.table.device).eval()
