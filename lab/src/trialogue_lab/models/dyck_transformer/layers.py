"""A layer of equation 2.42: causal attention without 1 / sqrt(d), the norm LN_C and a ReLU network."""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue_lab.models.dyck_transformer.config import DyckTransformerConfig


class DyckAttention(nn.Module):
    """Single-head attention with softmax of (W_K x)^T (W_Q y) over keys x, without scaling, or uniform."""

    def __init__(self, width: int, value_width: int, shape: DyckTransformerConfig) -> None:
        super().__init__()
        self.query = nn.Linear(width, shape.key_width, bias=False)
        self.key = nn.Linear(width, shape.key_width, bias=False)
        self.value = nn.Linear(width, value_width, bias=False)
        self.causal, self.uniform = shape.causal, shape.uniform

    def forward(self, x: Tensor) -> Tensor:
        """Return the attention output (n, T, v) of the stream `x` (n, T, m)."""
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
        """Return the attention output (n, v) at the positions `places` (n,) only."""
        n, length, _ = x.shape
        query = self.query(x[torch.arange(n, device=x.device), places])
        scores = torch.einsum("nr,nir->ni", query, self.key(x))
        if self.uniform:
            scores = torch.zeros_like(scores)
        beyond = torch.arange(length, device=x.device) > places[:, None]
        weights = scores.masked_fill(beyond, -torch.inf).softmax(1)
        return torch.einsum("ni,niv->nv", weights, self.value(x))

    def weights(self, x: Tensor) -> Tensor:
        """Return attention weights (n, T, T); row i holds the weights of the query at position i."""
        scores = self.query(x) @ self.key(x).mT
        if self.uniform:
            scores = torch.zeros_like(scores)
        if self.causal:
            scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -torch.inf)
        return scores.softmax(-1)

    @property
    def is_uniform(self) -> bool:
        """Whether all keys have equal weight.

        This holds by configuration, or outside training if queries or keys are zero.
        """
        if self.uniform:
            return True
        return not self.training and not (bool(self.query.weight.any()) and bool(self.key.weight.any()))


class FlooredNorm(nn.Module):
    """LN_C: subtract the mean and divide by the larger of the norm and `floor`. A zero vector stays zero (LN_0).

    With `gain`, the result is multiplied by a learned gain that starts at sqrt(width), plus a bias, so it
    starts as the usual LayerNorm.
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
    """Attention, norm and network: g(LN(a) + x) (2.42), or with `norm` "sum" the GPT layer on s = a + x (2.85).

    The GPT layer is s + g(LN(s)), or LN(s) without g. Without a residual, x is omitted.
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
        """Map the stream (n, T, m) to the next stream (n, T, m')."""
        return self.behind(self.attention(x), x)

    def behind(self, attended: Tensor, x: Tensor) -> Tensor:
        """Apply norm, residual and network to the attention output of `x` (..., m)."""
        if not self.norm_of_sum:
            normed = self.norm(attended)
            out: Tensor = self.mlp(normed + x if self.residual else normed)
            return out
        total = attended + x if self.residual else attended
        out = self.mlp(self.norm(total))
        return out + total if len(self.mlp) else out
