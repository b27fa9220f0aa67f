"""A plain pre-norm transformer, causal or bidirectional, and itself an autoregressive oracle when causal.

Blocks are those of GPT-2 (Radford et al. 2019): LayerNorm, attention, residual, LayerNorm, GELU MLP, residual.
The beginning and the end of a sequence lie beyond the tokens of the data: token `vocab_size` of the config is EOS,
`vocab_size + 1` is BOS, which is read at position 0 and never predicted. A bidirectional one has a third, MASK, token
`vocab_size + 2`: read where a token is to be predicted from its surroundings, and never predicted either.
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
    """Shape of a `Transformer`. Raises `InputError` where a field is out of range.

    `vocab_size` counts the tokens of the data, without BOS and EOS; `max_length` is the number of data tokens of
    the longest sequence. `positions`: "learned" adds one vector per position 0..max_length + 1; "linear" appends
    the scalar position / (max_length + 1) as the last coordinate of the embedding, whose tokens then have
    width - 1 coordinates; "none" adds nothing. `attention_window` is the number of positions that a position of a
    causal model attends to in each block, itself among them; None is all that are not in its future.
    `scaled_attention` divides scores by the square root of a head's width; GPT-Neo's are not.
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
            raise InputError("width", self.width, f"must be a multiple of heads={self.heads}")
        if self.positions == "linear" and self.width < 2:
            raise InputError("width", self.width, "linear positions take one coordinate: use at least 2")
        if self.attention_window is not None and not self.causal:
            hint = "only a causal model has one: leave it out"
            raise InputError("attention_window", self.attention_window, hint)

    @property
    def receptive_field(self) -> int | None:
        """The number of input ids, the last one among them, that an answer depends on; None where it is not bounded.

        Each block reaches `attention_window` - 1 positions further back than the one before it. Of the sequences' own
        tokens an answer sees as many; BOS is one of the ids as long as it is that near.
        """
        return None if self.attention_window is None else 1 + self.layers * (self.attention_window - 1)


class TransformerBlock(nn.Module):
    """Pre-norm attention and MLP, each added to the residual stream."""

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
        """Residual stream (n, T, width) to the next; `mask` is boolean, True where a key may be attended."""
        return self._fed(self._attended(x, mask, causal))

    def at(self, x: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """What `forward` gives (q, width) at `sites` (q,) of `rows` (q,), where all of a row may be attended."""
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
        return self._fed(x[rows, sites] + self._dropped(self.projection(attended.reshape(len(rows), width))))

    def _attended(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The residual stream after attention."""
        n, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = self._attend(q, k, v, mask, causal).transpose(1, 2)
        return x + self._dropped(self.projection(attended.reshape(n, length, width)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=self.scale)

    def _fed(self, x: Tensor) -> Tensor:
        """The residual stream after the MLP."""
        hidden = self.up(self.mlp_norm(x))
        hidden = F.relu(hidden) if self.activation == "relu" else F.gelu(hidden, approximate="tanh")
        return x + self._dropped(self.down(hidden))

    def _dropped(self, added: Tensor) -> Tensor:
        """What is added to the residual stream; in training each number of it is zero with probability `dropout`."""
        return F.dropout(added, self.dropout, self.training) if self.dropout else added


@torch.no_grad()
def draw_weights(network: nn.Module, layers: int, seed: int, stream: str) -> None:
    """Initialise a network of so many `layers` as GPT-2 is, from the `stream` of that name of `seed`."""
    for name, parameter in network.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(float(name.endswith("norm.weight")))
            continue
        residual = name.endswith(("projection.weight", "down.weight"))
        std = 0.02 / math.sqrt(2 * layers) if residual else 0.02
        # One stream per parameter, so that a weight does not depend on which others the network has.
        drawn = torch.empty(parameter.shape, device="cpu")
        parameter.copy_(drawn.normal_(std=std, generator=generator(seed, stream, name)))


@register_network("transformer", TransformerConfig)
class Transformer(nn.Module, Autoregressive, MaskReader):
    """The network of `config`, initialised as GPT-2 is, from the stream of `seed`.

    A causal one answers as an oracle: there `vocab_size` counts the data's tokens and EOS,
    and `max_length` (None where positions have no bound) counts the longest sequence with its EOS.
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
        # Weights that torch would draw by itself would come from the global generator.
        with torch.device("meta"):
            self.token_embedding = nn.Embedding(config.vocab_size + 3 - config.causal, token_width)
            if config.positions == "learned":
                self.position_embedding = nn.Embedding(config.max_length + 2, config.width)
            self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.layers))
            self.final_norm = nn.LayerNorm(config.width)
            self.head = nn.Linear(config.width, self.vocab_size, bias=False)
        self.to_empty(device=torch.get_default_device())
        draw_weights(self, config.layers, seed, "transformer")

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Residual stream (..., width) at layer 0 of input ids `tokens` (...) at `positions` (...)."""
        x = F.embedding(tokens, self.token_embedding.weight)
        if self.config.positions == "learned":
            x = x + F.embedding(positions, self.position_embedding.weight)
        elif self.config.positions == "linear":
            scalar = positions[..., None] / (self.config.max_length + 1)
            x = torch.cat((x, scalar.to(x.dtype).expand(*x.shape[:-1], 1)), -1)
        return x

    def hidden_states(self, tokens: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
        """Residual streams (n, T, width) after 0, 1, ..., layers blocks, and last the final LayerNorm's output.

        `tokens` (n, T) are input ids with BOS first; `lengths` (n,) count the ids that are real, so that a
        bidirectional model does not attend to padding (a causal one never sees what lies to its right).
        Raises `InputError` where T is longer than the learned positions.
        """
        streams, mask = self._embedded(tokens, lengths)
        for block in self.blocks:
            streams.append(block(streams[-1], mask, self.config.causal and mask is None))
        return [*streams, self.final_norm(streams[-1])]

    def _embedded(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[list[Tensor], Tensor | None]:
        """The first of the `hidden_states`, and which keys may be attended, None where no mask is needed for that."""
        length = tokens.shape[1]
        if self.max_length is not None and length > self.max_length + 1:
            hint = f"the model has {self.max_length + 1} positions, with BOS and EOS: give shorter sequences"
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
        """The number of tokens of the data, without BOS, EOS and mask."""
        return self.config.vocab_size

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, data tokens) at `sites` (q,) of `rows` (q,) of `inputs` (n, N), in which mask tokens may stand.

        The last block computes nothing elsewhere, where there is at most one site for each row.
        """
        if self.config.causal or len(rows) > len(inputs):
            states = self.hidden_states(inputs)[-1][rows, sites]
        else:
            (states,), _ = self._embedded(inputs)
            *below, last = self.blocks
            assert isinstance(last, TransformerBlock)
            for block in below:
                states = block(states, None, False)
            states = self.final_norm(last.at(states, rows, sites))
        logits: Tensor = self.head(states)
        return logits[:, : self.data_tokens]

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits (n, T, data tokens + EOS) for input ids `tokens` (n, T); see `hidden_states`."""
        logits: Tensor = self.head(self.hidden_states(tokens, lengths)[-1])
        return logits

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> AttentionCache:
        """Make room for `rows` sequences of up to `capacity` tokens, recording the hidden states of `layers`.

        Raises `InputError` where the model is bidirectional, the capacity exceeds the learned positions, or a
        layer is neither -1 (what the head reads) nor in 0..layers (the residual stream after that many blocks).
        """
        if not self.config.causal:
            raise InputError("causal", False, "a bidirectional model has no next-token distribution")
        if self.max_length is not None and capacity > self.max_length:
            hint = f"the model reads at most {self.max_length} tokens (EOS included); shorten prompts or max_length"
            raise InputError("capacity", capacity, hint)
        for layer in layers:
            if not -1 <= layer <= self.config.layers:
                raise InputError("layers", layer, f"must be -1 or in 0..{self.config.layers}")
        return AttentionCache(self, rows, capacity, tuple(layers))
