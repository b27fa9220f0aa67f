"""Attention-only transformers: one attention layer over the last S tokens, a skip connection and an unembedding.

The networks are from the document on memorization in attention-only transformers (equations 1 and 2). Only
the last position attends. There is no scaling, normalization or MLP. The variants in the experiments of the
document are options: several layers, an MLP after the heads, and heads that share one value map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn
from torch.nn import functional

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.models.networks.registry import register_network
from trialogue.oracles import PrefixOracle, enumerate_sequences
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated

_NUMBERS_AT_ONCE = 1 << 22
_NONE = -1


@validated
@dataclass(frozen=True, kw_only=True)
class AttentionOnlyConfig:
    """Architecture of an `AttentionOnly`. Symbols of the source are in parentheses.

    Args:
        vocab_size: Number of tokens (N).
        context: Number of tokens that the network reads (S).
        width: Width of the embeddings (d).
        heads: Attention heads per layer (H).
        head_width: Width of the values of a head (d_h).
        query_width: Width of queries and keys, `head_width` by default. With width 1, W_QK has rank one (Remark 2).
        stored: Number of contexts stored with the weights.
        layers: Number of attention layers.
        mlp_width: Hidden units of a GELU MLP after the heads of each layer. 0 disables the MLP.
        shared: Whether all heads of a layer share one map from the embeddings to `head_width` dimensions and one map
            back. `head_width` may then exceed `width`.

    Raises:
        InputError: If a field is out of range.
    """

    vocab_size: Annotated[int, Ge(2)]
    context: Count
    width: Count
    heads: Natural
    head_width: Count
    query_width: Count | None = None
    stored: Natural = 0
    layers: Count = 1
    mlp_width: Natural = 0
    shared: bool = False

    def __post_init__(self) -> None:
        for field in ("head_width", "query_width"):
            if not self.shared and (getattr(self, field) or 0) > self.width:
                hint = f"use 1 to width={self.width}, because a head cannot expand the embedding"
                raise InputError(field, getattr(self, field), hint)

    @property
    def head_input(self) -> int:
        """Input and output width of a head: d, or d_h if heads share a map."""
        return self.head_width if self.shared else self.width

    @property
    def key_width(self) -> int:
        """Width of the queries and keys of a head."""
        return self.query_width or self.head_width

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        heads = 2 * (self.key_width + self.head_width) * self.head_input * self.heads
        maps = 2 * self.head_width * self.width if self.shared else 0
        layer = heads + maps + 2 * self.mlp_width * self.width
        return self.width * (self.context + 2 * self.vocab_size) + self.layers * layer


@register_network("attention-only", AttentionOnlyConfig)
class AttentionOnly(nn.Module, PrefixOracle):
    """Attention-only transformer, which is also a model of the next token for samplers.

    It predicts the next token from the last S = `config.context` tokens. With x_s = e(t_s) + p_s, the
    attention weights of head h are a^h = softmax over s of x_S^T W_QK^h x_s, and the logits are W_U (x_S +
    sum over h of W_O^h W_V^h sum over s of a^h_s x_s). In the shapes below, N is the vocabulary size, d the
    embedding width, H the number of heads, d_h their width, k the query width, and m the MLP width.

    Args:
        config: Architecture.
        seed: Seed of the initial weights.

    Attributes:
        embedding: Token embeddings e, (N, d).
        positions: Position embeddings p, (S, d).
        query: Query matrices, (H, k, d). If heads share maps, d_h replaces d.
        key: Key matrices, (H, k, d). The product with the query matrices is W_QK.
        value: Value matrices W_V, (H, d_h, d).
        output: Output matrices W_O, (H, d, d_h).
        unembedding: Unembedding W_U, (N, d).
        compress: Shared map from the embeddings, (layers, d_h, d).
        decompress: Shared map back, (layers, d, d_h).
        widen: First matrix of the MLPs, (layers, m, d).
        narrow: Second matrix of the MLPs, (layers, d, m).
        contexts: Contexts for which the network was constructed, (stored, S) int64.
        answered: Number of contexts evaluated by the oracle, counted only if contexts are stored.
        unstored: Number of these contexts that are not stored.
    """

    query: nn.Parameter
    key: nn.Parameter
    value: nn.Parameter
    contexts: Tensor

    @validated
    def __init__(self, config: InstanceOf[AttentionOnlyConfig], seed: Natural = 0) -> None:
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        self.answered = self.unstored = 0
        self._known: set[tuple[int, ...]] = set()
        width, input_width, value_width = config.width, config.head_input, config.head_width
        layers, heads = config.layers, config.layers * config.heads

        def random_weights(name: str, deviation: float, *shape: int) -> nn.Parameter:
            random = generator(seed, "attention-only", name)
            return nn.Parameter(torch.empty(shape).normal_(generator=random) * deviation)

        self.embedding = random_weights("embedding", 1.0, config.vocab_size, width)
        self.positions = random_weights("positions", 1.0, config.context, width)
        for name, rows in (("query", config.key_width), ("key", config.key_width), ("value", value_width)):
            setattr(self, name, random_weights(name, 1 / math.sqrt(input_width), heads, rows, input_width))
        self.output = random_weights(
            "output", 1 / math.sqrt(max(1, config.heads) * value_width), heads, input_width, value_width
        )
        if config.shared:
            self.compress = random_weights("compress", 1 / math.sqrt(width), layers, value_width, width)
            self.decompress = random_weights(
                "decompress", 1 / math.sqrt(value_width), layers, width, value_width
            )
        if config.mlp_width:
            self.widen = random_weights("widen", 1 / math.sqrt(width), layers, config.mlp_width, width)
            self.narrow = random_weights(
                "narrow", 1 / math.sqrt(config.mlp_width), layers, width, config.mlp_width
            )
        self.unembedding = random_weights("unembedding", 1 / math.sqrt(width), config.vocab_size, width)
        self.register_buffer("contexts", torch.full((config.stored, config.context), _NONE))

    @property
    def remarks(self) -> Sequence[str]:
        """Warning about queries for contexts that are not stored, if any."""
        if not self.unstored:
            return ()
        return (
            f"{self.unstored:,} of {self.answered:,} queries were about contexts that the model does not store",
        )

    def forward(self, contexts: Tensor) -> Tensor:
        """Compute the logits of the token after each context.

        Args:
            contexts: Token ids (n, S) int64 of the last S tokens before the predicted token.

        Returns:
            Logits (n, N), where N is the size of the vocabulary.
        """
        states = self.inputs(contexts)
        for layer in range(self.config.layers - 1):
            seen = range(1, self.config.context + 1)
            states = torch.stack([self._last_state(states[:, :count], layer) for count in seen], 1)
        return self._last_state(states, self.config.layers - 1) @ self.unembedding.T

    def inputs(self, contexts: Tensor) -> Tensor:
        """Return the inputs of the first layer, the sums of token and position embeddings.

        Args:
            contexts: Token ids (n, S) int64 of S context tokens.

        Returns:
            Inputs (n, S, d), where d is the width of the embeddings.
        """
        embedded: Tensor = self.embedding[contexts] + self.positions
        return embedded

    def values(self, inputs: Tensor, layer: int = 0) -> Tensor:
        """Compute the output of each attention head of a layer at the last position, before the output matrix.

        Args:
            inputs: Hidden states x, (n, S, d).
            layer: Index of the layer.

        Returns:
            Attended values, (n, H, d_h).
        """
        heads = self._heads(layer)
        if self.config.shared:
            inputs = inputs @ self.compress[layer].T
        queries = torch.einsum("nd,hkd->nhk", inputs[:, -1], self.query[heads])
        seen = torch.einsum("nhk,hkd->nhd", queries, self.key[heads])
        attention = (seen @ inputs.transpose(1, 2)).softmax(-1)
        return torch.einsum("nhd,hvd->nhv", attention @ inputs, self.value[heads])

    def _heads(self, layer: int) -> slice:
        return slice(layer * self.config.heads, (layer + 1) * self.config.heads)

    def _last_state(self, states: Tensor, layer: int) -> Tensor:
        """Return the hidden state (n, d) of the last position after a layer with inputs `states` (n, s, d)."""
        values = self.values(states, layer)
        # One matrix product sums over the heads.
        written = values.flatten(1) @ self.output[self._heads(layer)].transpose(1, 2).flatten(0, 1)
        return self._with_mlp(self._add_heads(states[:, -1], written, layer), layer)

    def _add_heads(self, state: Tensor, written: Tensor, layer: int) -> Tensor:
        """Add the output `written` of the heads to the state (..., d) of the last position.

        `written` has d dimensions, or d_h with shared maps.
        """
        return state + (written @ self.decompress[layer].T if self.config.shared else written)

    def _with_mlp(self, state: Tensor, layer: int) -> Tensor:
        """Add the output of the MLP, if any, to `state` (..., d)."""
        if not self.config.mlp_width:
            return state
        return state + functional.gelu(state @ self.widen[layer].T) @ self.narrow[layer].T

    def whole_logits(self) -> Tensor:
        """Compute logits (N^S, N) after every context, in the order of `enumerate_sequences`."""
        shape = self.config
        size = shape.vocab_size
        if shape.layers > 1 or shape.context != 2:
            contexts: Tensor = enumerate_sequences(size, shape.context, self.embedding.device)
            return self.forward(contexts)
        tokens = self.embedding + self.positions[:, None]
        inputs = tokens @ self.compress[0].T if shape.shared else tokens
        first, last = inputs
        queries = torch.einsum("jd,hkd->jhk", last, self.query)
        seen = torch.einsum("jhk,hkd->jhd", queries, self.key)
        own = (seen @ last[:, :, None]).squeeze(-1)
        # Attention weight on the first token, for each first token, last token and head.
        share = ((first @ seen.flatten(0, 1).T).view(size, size, shape.heads) - own).sigmoid()
        single = torch.einsum("std,hed->sthe", inputs, self.output @ self.value)
        written = share @ single[0] - (share.transpose(0, 1) @ single[1]).transpose(0, 1) + single[1].sum(1)
        states = self._with_mlp(self._add_heads(tokens[1], written, 0), 0)
        logits: Tensor = states.flatten(0, 1) @ self.unembedding.T
        return logits

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Compute log-probabilities of the next token.

        Args:
            tokens: Token ids, (n, capacity) int64.
            lengths: Length of each prefix, (n,) int64.

        Returns:
            Log-probabilities, (n, N).

        Raises:
            InputError: If a prefix has fewer than S tokens.
        """
        context = self.config.context
        if len(lengths) and int(lengths.min()) < context:
            hint = f"the model reads the last {context} tokens; use a prompt of at least {context} tokens"
            raise InputError("lengths", int(lengths.min()), hint)
        places = torch.arange(context, device=tokens.device)
        return self.context_log_probs(tokens.gather(1, lengths[:, None] - context + places))

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the last S tokens (n, S) int64 of each prefix, padded with -1 at the start."""
        context = self.config.context
        before = torch.nn.functional.pad(tokens, (context, 0), value=_NONE)
        return before.gather(1, lengths[:, None] + torch.arange(context, device=tokens.device))

    def context_log_probs(self, contexts: Tensor) -> Tensor:
        """Compute the log-probabilities (n, N) of the token after each of `contexts` (n, S), in batches.

        Raises:
            InputError: If the shape is wrong, or if a token is outside the vocabulary.
        """
        hint = f"use token ids from 0 to {self.vocab_size - 1}, of shape (n, {self.config.context})"
        contexts = integer_tensor("contexts", contexts, hint)
        if contexts.ndim != 2 or contexts.shape[1] != self.config.context:
            raise InputError("contexts", tuple(contexts.shape), hint)
        wrong = contexts[(contexts < 0) | (contexts >= self.vocab_size)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), hint)
        if self.config.stored:
            self.answered += len(contexts)
            self.unstored += int((~self.holds(contexts)).sum())
        answers = [torch.empty(0, self.vocab_size, dtype=self.embedding.dtype, device=contexts.device)]
        with torch.no_grad():
            for part in self._batches(contexts):
                answers.append(self(part.to(self.embedding.device)).log_softmax(-1).to(contexts.device))
        return torch.cat(answers)

    def features(self, contexts: Tensor) -> Tensor:
        """Compute features of contexts such that the logits are a linear function of them, without gradients.

        Args:
            contexts: Token ids, (n, S) int64.

        Returns:
            Values of all heads followed by x_S, (n, H d_h + d).

        Raises:
            InputError: If the network has several layers or an MLP, so that logits are not linear in these features.
        """
        if self.config.layers != 1 or self.config.mlp_width:
            hint = "logits are linear in the values of heads only for one layer without an MLP"
            raise InputError("config", self.config, hint)
        with torch.no_grad():
            parts = [self.inputs(part) for part in self._batches(contexts)]
            rows = [torch.cat((self.values(part).flatten(1), part[:, -1]), 1) for part in parts]
        return torch.cat(rows)

    def remember(self, contexts: Tensor) -> None:
        """Store the contexts (T, S) int64 whose next-token distributions the network was constructed to return."""
        self.config = replace(self.config, stored=len(contexts))
        self.contexts = contexts.clone()
        self._known = set()

    def holds(self, contexts: Tensor) -> Tensor:
        """Return whether each of `contexts` (n, S) is stored, (n,) bool."""
        if len(self._known) < self.config.stored:
            self._known = set(map(tuple, self.contexts.tolist()))
        return torch.tensor([tuple(row) in self._known for row in contexts.tolist()], dtype=torch.bool)

    def _batches(self, contexts: Tensor) -> Iterator[Tensor]:
        """Split `contexts` into batches that need about 32 MiB of memory each."""
        shape = self.config
        numbers = shape.heads * (shape.head_input + shape.context) + shape.vocab_size
        numbers += shape.context * shape.width + shape.mlp_width
        yield from contexts.split(max(1, _NUMBERS_AT_ONCE // numbers))
