"""The transformer of the thesis that predicts balanced brackets (equations 2.42 to 2.46 and 2.85)."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.models.networks.registry import register_network
from trialogue.oracles import PrefixOracle
from trialogue.randomness import generator
from trialogue.validation import InstanceOf, Natural, validated
from trialogue_lab.models.dyck_transformer.config import DyckTransformerConfig
from trialogue_lab.models.dyck_transformer.embeddings import embedding_table, require_brackets, states
from trialogue_lab.models.dyck_transformer.layers import DyckAttention, DyckLayer

_NAME = "dyck-transformer"
_NUMBERS_AT_ONCE = 2**23
POSITION_SCALE = 6000
"""Divisor of positions in the position embedding "linear"."""


@register_network(_NAME, DyckTransformerConfig)
class DyckTransformer(nn.Module, PrefixOracle):
    """Transformer on Dyck languages (balanced brackets) that predicts the next bracket.

    Token 2t opens a bracket of type t, and 2t + 1 closes it. The start token is added internally, and the embedding is
    not trained.

    Args:
        config: Shape of the network.
        seed: Seed of the initial weights.
    """

    table: Tensor

    @validated
    def __init__(self, config: InstanceOf[DyckTransformerConfig], seed: Natural = 0) -> None:
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        self.eos = 2 * config.types if config.ends else None
        table = embedding_table(config.embedding, config.types, config.depth, config.width)
        width = table.shape[1]
        if config.positions == "linear" and config.embedding != "tokens":
            width += 1
        layers = []
        # Torch would initialize weights with its global random generator, so they are created without values.
        with torch.device("meta"):
            for mlp in config.mlps:
                value_width = width if config.residual else config.width
                if config.norm == "sum" and mlp and mlp[-1] != value_width:
                    hint = f"with a residual, the output must have the width {value_width} of the stream"
                    raise InputError("mlps", config.mlps, hint)
                layers.append(DyckLayer(width, value_width, mlp, config))
                width = mlp[-1] if mlp else value_width
            self.layers = nn.ModuleList(layers)
            self.head = nn.Linear(width, config.vocab_size)
        self.to_empty(device=torch.get_default_device())
        if config.double:
            self.double()
        dtype = torch.float64 if config.double else torch.float32
        self.register_buffer("table", table.to(dtype), persistent=False)
        self._initialise(seed)

    @torch.no_grad()
    def _initialise(self, seed: int) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(len(parameter) ** 0.5 if name.endswith("gain") else 0.0)
                continue
            drawn = torch.empty(parameter.shape, dtype=torch.float64)
            drawn.normal_(std=self.config.initial_scale, generator=generator(seed, _NAME, name))
            parameter.copy_(drawn)

    @property
    def attention(self) -> DyckAttention:
        """The attention of the last layer."""
        return self.stack[-1].attention

    @property
    def stack(self) -> list[DyckLayer]:
        """The layers in order."""
        return [layer for layer in self.layers if isinstance(layer, DyckLayer)]

    def embed(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed the start token and the tokens of bracket strings.

        Args:
            tokens: Token ids (n, width).
            lengths: Lengths (n,) of the strings. None if they have no padding.

        Returns:
            Residual stream (n, width + 1, m).

        Raises:
            InputError: If a token is not a bracket. For embeddings of the depth, also if a prefix exceeds the largest
                depth or closes an unopened bracket.
        """
        if tokens.ndim != 2:
            raise InputError("tokens", tuple(tokens.shape), "give integers of the shape (rows, width)")
        n, width = tokens.shape
        lengths = torch.full((n,), width, device=tokens.device) if lengths is None else lengths
        shape = self.config
        if shape.embedding == "tokens":
            counted = torch.arange(width, device=tokens.device) < lengths[:, None]
            require_brackets(tokens[counted], shape.types)
            rows = tokens.where(counted, 2 * shape.types) * shape.depth
            rows = torch.cat((rows.new_full((n, 1), 2 * shape.types * shape.depth), rows), 1)
        else:
            rows = states(tokens, lengths, shape.types, shape.depth)
        x = self.table[rows]
        if shape.positions == "linear":
            place = torch.arange(width + 1, device=tokens.device) / POSITION_SCALE
            place = place.to(x.dtype).expand(n, -1)[..., None]
            x = torch.cat((x[..., :-1] if shape.embedding == "tokens" else x, place), -1)
        return x

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the logits of the next token after the start token and after every token.

        Args:
            tokens: Token ids (n, width).
            lengths: Lengths (n,) of the strings. Later tokens are padding, and the logits after them are not
                meaningful. None if there is no padding.

        Returns:
            Logits (n, width + 1, vocab).
        """
        x = self.embed(tokens, lengths)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(x)
        return logits

    def attention_weights(self, tokens: Tensor) -> list[Tensor]:
        """Return the attention weights of each layer.

        Args:
            tokens: Token ids (n, width).

        Returns:
            One tensor (n, T, T) per layer, where T = width + 1 includes the start token.
        """
        x, found = self.embed(tokens), []
        for layer in self.stack:
            found.append(layer.attention.weights(x))
            x = layer(x)
        return found

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return next-token log-probabilities after prefixes, computed in batches and without gradients.

        Args:
            tokens: Token ids (n, capacity).
            lengths: Lengths (n,) of the prefixes.

        Returns:
            Log-probabilities (n, vocab).

        Raises:
            InputError: If tokens or lengths are invalid, or attention is not causal.
        """
        tokens = integer_tensor("tokens", tokens, "give integers of the shape (rows, width)")
        n, width = (*tokens.shape, 0, 0)[:2]
        hint = f"must be {n} whole numbers in 0..{width}"
        lengths = integer_tensor("lengths", lengths, hint)
        if lengths.shape != (n,) or (n and not 0 <= int(lengths.min()) <= int(lengths.max()) <= width):
            raise InputError("lengths", lengths.tolist(), hint)
        if not self.config.causal:
            raise InputError(
                "causal", False, "a network without causal attention has no next-token distribution"
            )
        with torch.no_grad():
            answers = [self._answers(tokens[rows], lengths[rows]) for rows in self._parts(lengths)]
        return torch.cat(answers) if answers else torch.empty(0, self.vocab_size, dtype=self.table.dtype)

    def _answers(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        tokens = tokens[:, : int(lengths.max())].to(self.table.device)
        lengths = lengths.to(self.table.device)
        x = self.embed(tokens, lengths)
        *below, last = self.stack
        for layer in below:
            x = layer(x)
        own = x[torch.arange(len(x), device=x.device), lengths]
        scores: Tensor = self.head(last.after_attention(last.attention.at(x, lengths), own))
        return scores.log_softmax(-1).to(tokens.device)

    def _parts(self, lengths: Tensor) -> Iterator[Tensor]:
        """Split a batch of sequences into smaller batches that fit the processor cache, and yield their row indices."""
        widest = max(self.table.shape[1], *(max((*mlp, 1)) for mlp in self.config.mlps[:-1]), 1)
        step = max(1, _NUMBERS_AT_ONCE // (widest * (int(lengths.max()) + 1))) if len(lengths) else 1
        yield from torch.arange(len(lengths)).split(step)
