"""Transformer layer of equation 2.42: unscaled attention, the norm LN_C and a ReLU network."""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue_lab.models.dyck_transformer.config import DyckTransformerConfig


class DyckAttention(nn.Module):
    """Single-head attention without the scaling by 1 / sqrt(width).

    Weights are the softmax of (W_K x)^T (W_Q y) over keys x for the query y, or uniform.
    """

    def __init__(self, width: int, value_width: int, shape: DyckTransformerConfig) -> None:
        super().__init__()
        self.query = nn.Linear(width, shape.key_width, bias=False)
        self.key = nn.Linear(width, shape.key_width, bias=False)
        self.value = nn.Linear(width, value_width, bias=False)
        self.causal, self.uniform = shape.causal, shape.uniform

    def forward(self, x: Tensor) -> Tensor:
        """Compute the attention output (n, T, v) at all positions of the residual stream `x` (n, T, m)."""
        values = self.value(x)
        if self.is_uniform:
            if not self.causal:
                mean: Tensor = values.mean(1, keepdim=True).expand_as(values)
                return mean
            counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
            return values.cumsum(1) / counts[:, None]
        return F.scaled_dot_product_attention(
            self.query(x), self.key(x), values, is_causal=self.causal, scale=1.0
        )

    def at(self, x: Tensor, places: Tensor) -> Tensor:
        """Compute the attention output at one position of each sequence.

        Args:
            x: Residual stream (n, T, m).
            places: Position (n,) in each sequence.

        Returns:
            Attention output (n, v).
        """
        n, length, _ = x.shape
        query = self.query(x[torch.arange(n, device=x.device), places])
        scores = torch.einsum("nr,nir->ni", query, self.key(x))
        if self.uniform:
            scores = torch.zeros_like(scores)
        beyond = torch.arange(length, device=x.device) > places[:, None]
        weights = scores.masked_fill(beyond, -torch.inf).softmax(1)
        return torch.einsum("ni,niv->nv", weights, self.value(x))

    def weights(self, x: Tensor) -> Tensor:
        """Compute the attention weights of the residual stream `x` (n, T, m).

        Returns:
            Weights (n, T, T). Row i has the weights of the query at position i.
        """
        scores = self.query(x) @ self.key(x).mT
        if self.uniform:
            scores = torch.zeros_like(scores)
        if self.causal:
            scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -torch.inf)
        return scores.softmax(-1)

    @property
    def is_uniform(self) -> bool:
        """Whether all keys have equal weight."""
        if self.uniform:
            return True
        return not self.training and not (bool(self.query.weight.any()) and bool(self.key.weight.any()))


class FlooredNorm(nn.Module):
    """Layer norm that divides by max(|x|, C) instead of the standard deviation (LN_C of the thesis).

    The mean is subtracted first. A zero vector stays zero.

    Args:
        width: Width of the vectors.
        floor: Constant C, the smallest divisor.
        gain: Whether to multiply by a learned gain, which starts at sqrt(width), and to add a learned bias.
    """

    def __init__(self, width: int, floor: float, gain: bool) -> None:
        super().__init__()
        self.floor = floor
        self.gain = nn.Parameter(torch.full((width,), width**0.5)) if gain else None
        self.bias = nn.Parameter(torch.zeros(width)) if gain else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x` (..., width)."""
        centred = x - x.mean(-1, keepdim=True)
        tiny = torch.finfo(x.dtype).tiny
        normed = centred / centred.norm(dim=-1, keepdim=True).clamp_min(max(self.floor, tiny))
        return normed if self.gain is None else normed * self.gain + self.bias


class DyckLayer(nn.Module):
    """Transformer layer with single-head attention, a norm and a ReLU network.

    For the input x with attention output a, the output is g(LN(a) + x) if `shape.norm` is "attention"
    (equation 2.42). If it is "sum", the output is s + g(LN(s)) with s = a + x (equation 2.85), or LN(s)
    without a ReLU network. Without a residual, x is omitted.

    Args:
        width: Width of the input.
        value_width: Width of the attention output.
        mlp: Widths of the ReLU network g, empty for none.
        shape: Other settings of the transformer.
    """

    def __init__(
        self, width: int, value_width: int, mlp: Sequence[int], shape: DyckTransformerConfig
    ) -> None:
        super().__init__()
        self.attention = DyckAttention(width, value_width, shape)
        self.norm = FlooredNorm(value_width, shape.norm_floor, shape.learned_gain)
        self.residual, self.norm_of_sum = shape.residual, shape.norm == "sum"
        linears = [nn.Linear(*sizes) for sizes in itertools.pairwise((value_width, *mlp))]
        separated = [part for linear in linears for part in (nn.ReLU(), linear)]
        self.mlp = nn.Sequential(*separated[1:])

    def forward(self, x: Tensor) -> Tensor:
        """Map the residual stream (n, T, m) to the stream (n, T, m') after the layer."""
        return self.after_attention(self.attention(x), x)

    def after_attention(self, attended: Tensor, x: Tensor) -> Tensor:
        """Apply the norm, the residual and the ReLU network to the attention output."""
        if not self.norm_of_sum:
            normed = self.norm(attended)
            out: Tensor = self.mlp(normed + x if self.residual else normed)
            return out
        total = attended + x if self.residual else attended
        out = self.mlp(self.norm(total))
        return out + total if len(self.mlp) else out
