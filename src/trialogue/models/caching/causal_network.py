"""Protocols of the networks that `AttentionCache` can evaluate."""

from typing import Protocol

from torch import Tensor, nn


class AttentionShape(Protocol):
    """Protocol of the sizes of a network that a key-value cache needs."""

    @property
    def width(self) -> int:
        """Width of the residual stream."""

    @property
    def heads(self) -> int:
        """Number of attention heads per block."""

    @property
    def mlp_width(self) -> int:
        """Width of the MLP."""

    @property
    def positions(self) -> str:
        """Kind of position encoding, where "learned" stands for vectors that are added to the token embeddings."""

    @property
    def attention_window(self) -> int | None:
        """Number of most recent positions that each position attends to, or None for all previous positions."""

    @property
    def scaled_attention(self) -> bool:
        """Whether attention scores are divided by the square root of the head width."""


class CausalNetwork(Protocol):
    """Protocol of causal networks that a key-value cache can evaluate, with the attribute names of `Transformer`."""

    bos: int
    token_embedding: nn.Embedding
    position_embedding: nn.Embedding
    blocks: nn.ModuleList
    final_norm: nn.LayerNorm
    head: nn.Linear

    @property
    def config(self) -> AttentionShape:
        """The network's shape."""

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return the residual stream (..., width) at layer 0 for input ids `tokens` (...) at `positions` (...)."""
