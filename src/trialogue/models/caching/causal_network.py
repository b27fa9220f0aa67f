"""What an attention cache evaluates of a network: its parts and its shape."""

from typing import Protocol

from torch import Tensor, nn


class AttentionShape(Protocol):
    """What a cache must know of the shape of a network."""

    @property
    def width(self) -> int:
        """Width of the residual stream."""

    @property
    def heads(self) -> int:
        """Heads of a block."""

    @property
    def mlp_width(self) -> int:
        """Width of the MLP."""

    @property
    def positions(self) -> str:
        """How positions enter: those of "learned" are vectors that are added to the embeddings."""

    @property
    def attention_window(self) -> int | None:
        """How many positions a position attends to in each block; None is all that are not in its future."""

    @property
    def scaled_attention(self) -> bool:
        """Whether scores of attention are divided by the square root of a head's width."""


class CausalNetwork(Protocol):
    """The parts of a causal network that a cache evaluates, as `Transformer` names them."""

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
        """Residual stream (..., width) at layer 0 of input ids `tokens` (...) at `positions` (...)."""
