"""Pre-norm transformer, causal or bidirectional. A causal transformer is an autoregressive oracle.

The blocks are the same as in GPT-2 (Radford et al. 2019): LayerNorm, attention, residual, LayerNorm, GELU MLP,
residual. The special tokens follow the data tokens. With the `vocab_size` of the config, token `vocab_size` is EOS and
`vocab_size + 1` is BOS, which is read at position 0. A bidirectional transformer also reads the mask token
`vocab_size + 2`. BOS and the mask token are never predicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.caching.attention_cache import AttentionCache, attended_positions
from trialogue.models.caching.causal_network import AttentionShape
from trialogue.models.networks.masked import MaskReader
from trialogue.models.networks.registry import register_network
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated

Positions = Literal["learned", "linear", "none"]
Activation = Literal["gelu", "relu"]


@validated
@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Architecture of a `Transformer`.

    Args:
        vocab_size: Number of data tokens, without special tokens.
        layers: Number of blocks.
        heads: Attention heads per block.
        width: Width of the residual stream, a multiple of `heads`.
        mlp_width: Hidden units of each MLP.
        max_length: Maximum number of data tokens in a sequence.
        positions: "learned" adds a vector per position. "linear" appends position / (max_length + 1) as the last
            coordinate of the embedding. "none" uses no position information.
        causal: Whether attention is causal.
        attention_window: Number of positions that a causal position attends to, including itself. None is unlimited.
        scaled_attention: Whether to divide attention scores by the square root of the head width. GPT-Neo does not.

    Raises:
        InputError: If a field is out of range.
    """

    vocab_size: Count
    layers: Count = 2
    heads: Count = 4
    width: Count = 64
    mlp_width: Count = 256
    max_length: Count = 32
    positions: Positions = "learned"
    causal: bool = True
    attention_window: Count | None = None
    scaled_attention: bool = True

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise InputError("width", self.width, f"use a multiple of heads={self.heads}")
        if self.positions == "linear" and self.width < 2:
            raise InputError("width", self.width, "linear positions take one coordinate; use at least 2")
        if self.attention_window is not None and not self.causal:
            hint = "only causal models have an attention window; leave it out"
            raise InputError("attention_window", self.attention_window, hint)

    @property
    def receptive_field(self) -> int | None:
        """Number of last input ids that a prediction depends on, possibly including BOS. None if unlimited.

        Each block extends the receptive field by `attention_window` - 1 positions.
        """
        return None if self.attention_window is None else 1 + self.layers * (self.attention_window - 1)


class TransformerBlock(nn.Module):
    """Pre-norm block of self-attention and an MLP, each added to the residual stream.

    Args:
        config: Widths, number of heads and scaling of the attention.
    """

    activation: Activation = "gelu"
    dropout: float = 0.0

    def __init__(self, config: AttentionShape) -> None:
        super().__init__()
        self.heads, self.scale = config.heads, None if config.scaled_attention else 1.0
        self.attention_norm = nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.projection = nn.Linear(config.width, config.width)
        self.mlp_norm = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, config.mlp_width)
        self.down = nn.Linear(config.mlp_width, config.width)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Apply the block.

        Args:
            x: Residual stream, (n, T, width).
            mask: Bool mask that broadcasts to (n, heads, T, T), True where a query can attend to a key.
            causal: Whether attention is causal. It cannot be combined with `mask`.

        Returns:
            Residual stream after the block, (n, T, width).
        """
        return self._add_mlp(self._add_attention(x, mask, causal))

    def at(self, x: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Apply the block with unmasked attention, and return its output at some positions only.

        Args:
            x: Residual stream, (n, T, width).
            rows: Rows of the outputs, (q,) int64.
            sites: Sites of the outputs, (q,) int64.

        Returns:
            Residual stream after the block at these sites, (q, width).
        """
        n, length, width = x.shape
        normed, weight, bias = self.attention_norm(x), self.qkv.weight, self.qkv.bias
        k, v = (
            F.linear(normed, weight[width:], bias[width:])
            .view(n, length, 2, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        q = F.linear(normed[rows, sites], weight[:width], bias[:width])
        q = q.view(len(rows), self.heads, 1, width // self.heads)
        attended = F.scaled_dot_product_attention(q, k[rows], v[rows], scale=self.scale)
        return self._add_mlp(
            x[rows, sites] + self._apply_dropout(self.projection(attended.reshape(len(rows), width)))
        )

    def _add_attention(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Return the residual stream after attention."""
        n, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = self._attend(q, k, v, mask, causal).transpose(1, 2)
        return x + self._apply_dropout(self.projection(attended.reshape(n, length, width)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=self.scale)

    def _add_mlp(self, x: Tensor) -> Tensor:
        """Return the residual stream after the MLP."""
        hidden = self.up(self.mlp_norm(x))
        hidden = F.relu(hidden) if self.activation == "relu" else F.gelu(hidden, approximate="tanh")
        return x + self._apply_dropout(self.down(hidden))

    def _apply_dropout(self, added: Tensor) -> Tensor:
        """Apply dropout to a term that is added to the residual stream."""
        return F.dropout(added, self.dropout, self.training) if self.dropout else added


def empty_embedding(count: int, width: int) -> nn.Embedding:
    """Return an embedding without initial weights.

    The default initialisation imports `torch._dynamo` on the meta device, which takes a second.

    Args:
        count: Number of embedded ids.
        width: Width of the embedding.
    """
    return nn.Embedding.from_pretrained(torch.empty(count, width), freeze=False)


@torch.no_grad()
def draw_weights(network: nn.Module, layers: int, seed: int, stream: str) -> None:
    """Create the weights of a network on the default device, and initialise them as in GPT-2.

    Args:
        network: Network with parameters on the meta device.
        layers: Number of blocks, which determines the scale of residual projections.
        seed: Seed of the weights.
        stream: Name of the random stream.
    """
    device = torch.get_default_device()
    # In contrast to `to_empty`, this does not import sympy.
    created = {name: torch.empty(of.shape, device=device) for name, of in network.named_parameters()}
    network.load_state_dict(created, assign=True)
    for name, parameter in network.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(float(name.endswith("norm.weight")))
            continue
        residual = name.endswith(("projection.weight", "down.weight"))
        std = 0.02 / math.sqrt(2 * layers) if residual else 0.02
        # Each parameter has a separate stream, so that it does not depend on the other parameters.
        drawn = torch.empty(parameter.shape, device="cpu")
        parameter.copy_(drawn.normal_(std=std, generator=generator(seed, stream, name)))


@register_network("transformer", TransformerConfig)
class Transformer(nn.Module, Autoregressive, MaskReader):
    """Pre-norm transformer as in GPT-2. If it is causal, it is also an autoregressive model for samplers.

    Args:
        config: Architecture.
        seed: Seed of the initial weights.

    Attributes:
        vocab_size: Number of data tokens plus EOS.
        eos: Id of the EOS token.
        bos: Id of the BOS token.
        mask: Id of the mask token, or None for a causal transformer.
        max_length: Maximum sequence length including EOS, or None without learned positions.
    """

    @validated
    def __init__(self, config: InstanceOf[TransformerConfig], seed: Natural = 0) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size + 1
        self.eos: int = config.vocab_size
        self.bos = config.vocab_size + 1
        self.mask = None if config.causal else config.vocab_size + 2
        self.max_length = config.max_length + 1 if config.positions == "learned" else None
        token_width = config.width - (config.positions == "linear")
        # Modules are created on the meta device, because the default initialisation uses the global generator.
        with torch.device("meta"):
            self.token_embedding = empty_embedding(config.vocab_size + 3 - config.causal, token_width)
            if config.positions == "learned":
                self.position_embedding = empty_embedding(config.max_length + 2, config.width)
            self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.layers))
            self.final_norm = nn.LayerNorm(config.width)
            self.head = nn.Linear(config.width, self.vocab_size, bias=False)
        draw_weights(self, config.layers, seed, "transformer")

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed input ids.

        Args:
            tokens: Input ids, (...) int64.
            positions: Position of each id, (...) int64.

        Returns:
            Residual stream before the first block, (..., width).
        """
        x = F.embedding(tokens, self.token_embedding.weight)
        if self.config.positions == "learned":
            x = x + F.embedding(positions, self.position_embedding.weight)
        elif self.config.positions == "linear":
            scalar = positions[..., None] / (self.config.max_length + 1)
            x = torch.cat((x, scalar.to(x.dtype).expand(*x.shape[:-1], 1)), -1)
        return x

    def hidden_states(self, tokens: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
        """Compute the hidden states of all layers.

        Args:
            tokens: Input ids, starting with BOS for a causal transformer, (n, T) int64.
            lengths: Number of ids without padding, (n,) int64. A bidirectional transformer does not attend to padding.

        Returns:
            Residual streams after 0, 1, ..., `layers` blocks and the output of the final LayerNorm, each (n, T, width).

        Raises:
            InputError: If T exceeds the number of learned positions.
        """
        streams, mask = self._embedded(tokens, lengths)
        for block in self.blocks:
            streams.append(block(streams[-1], mask, self.config.causal and mask is None))
        return [*streams, self.final_norm(streams[-1])]

    def _embedded(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[list[Tensor], Tensor | None]:
        """Return the embeddings and the attention mask, or None if no mask is needed."""
        length = tokens.shape[1]
        if self.max_length is not None and length > self.max_length + 1:
            hint = (
                f"the model has {self.max_length + 1} positions including BOS and EOS; use shorter sequences"
            )
            raise InputError("tokens", tuple(tokens.shape), hint)
        positions = torch.arange(length, device=tokens.device)
        mask, window = None, self.config.attention_window
        if lengths is not None and not self.config.causal:
            mask = (positions < lengths[:, None])[:, None, None]
        if window is not None:
            mask = attended_positions(length, window, tokens.device)
        return [self.embed(tokens, positions)], mask

    @property
    def data_tokens(self) -> int:
        """Number of data tokens, without special tokens."""
        return self.config.vocab_size

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute logits of the data tokens at some sites.

        Args:
            inputs: Input ids, which may include mask tokens, (n, N) int64.
            rows: Rows of the sites, (q,) int64.
            sites: Sites to predict, (q,) int64.

        Returns:
            Logits, (q, data_tokens).
        """
        if self.config.causal or len(rows) > len(inputs):
            states = self.hidden_states(inputs)[-1][rows, sites]
        else:
            # The last block is evaluated only at the requested sites, which is faster for few sites.
            (states,), _ = self._embedded(inputs)
            *below, last = self.blocks
            assert isinstance(last, TransformerBlock)
            for block in below:
                states = block(states, None, False)
            states = self.final_norm(last.at(states, rows, sites))
        logits: Tensor = self.head(states)
        return logits[:, : self.data_tokens]

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute logits of the data tokens and EOS.

        Args:
            tokens: Input ids, as in `hidden_states`, (n, T) int64.
            lengths: Number of ids without padding, (n,) int64.

        Returns:
            Logits, (n, T, vocab_size).
        """
        logits: Tensor = self.head(self.hidden_states(tokens, lengths)[-1])
        return logits

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> AttentionCache:
        """Create an attention cache.

        Args:
            rows: Number of sequences.
            capacity: Maximum number of tokens per sequence.
            layers: Layers whose hidden states are recorded: -1 for the input of the output head, or k for the residual
                stream after k blocks.

        Raises:
            InputError: If the model is bidirectional, if the capacity exceeds the learned positions, or if a layer does
                not exist.
        """
        if not self.config.causal:
            raise InputError("causal", False, "a bidirectional model has no next-token distribution")
        if self.max_length is not None and capacity > self.max_length:
            hint = f"the model reads at most {self.max_length} tokens including EOS; shorten prompts or max_length"
            raise InputError("capacity", capacity, hint)
        for layer in layers:
            if not -1 <= layer <= self.config.layers:
                raise InputError("layers", layer, f"use -1, or 0 to {self.config.layers}")
        return AttentionCache(self, rows, capacity, tuple(layers))
