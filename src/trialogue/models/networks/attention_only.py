"""Attention-only transformers: one layer of heads that read the last S tokens, a skip connection, an unembedding.

Equations 1 and 2 of the document on memorization in attention-only transformers. With x_s = e(t_s) + p_s the heads
attend from the last position alone, a^h = softmax over s of x_S^T W_QK^h x_s, and the logits of the next token are
W_U (x_S + sum over h of W_O^h W_V^h sum over s of a^h_s x_s). There is no scale, no normalisation, and no MLP.

What the document's experiments vary are options: several layers, an MLP behind the heads, and heads that share one
map of the embeddings to d_h numbers, which is how the published curves were measured where d_h is not d.
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

from trialogue.arrays import whole_tensor
from trialogue.errors import InputError
from trialogue.models.networks.registry import register_network
from trialogue.oracles import PrefixOracle, whole_sequences
from trialogue.randomness import generator
from trialogue.validation import Count, InstanceOf, Natural, validated

_NUMBERS_AT_ONCE = 1 << 22
_NONE = -1


@validated
@dataclass(frozen=True, kw_only=True)
class AttentionOnlyConfig:
    """Shape of an `AttentionOnly`. Raises `InputError` where a field is out of range.

    `context` tokens of `vocab_size` are read, S and N in the source; embeddings have `width` numbers, d, and each of
    `heads` has values of `head_width`, d_h, and queries of `query_width`, by default as many: with one, W_QK has rank
    one (Remark 2). `stored` is how many contexts the network keeps beside its weights, as those that it answers for.

    `layers` are one after the other, each of so many heads. `mlp_width` numbers, through GELU, make an MLP behind the
    heads of every layer; 0 is none. Where `shared`, all heads of a layer read the embeddings through one map to
    `head_width` numbers, which may then be more than `width`, and write through one map back.
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
                hint = f"use 1 to width={self.width}, because a head maps the embedding to no more numbers"
                raise InputError(field, getattr(self, field), hint)

    @property
    def head_input(self) -> int:
        """How many numbers a head reads and writes at a position: d, and d_h where heads share a map."""
        return self.head_width if self.shared else self.width

    @property
    def asked(self) -> int:
        """How many numbers the queries and keys of a head have."""
        return self.query_width or self.head_width

    @property
    def parameters(self) -> int:
        """Numbers of the network: d (S + 2 N + 4 d_h H), and d (S + 2 N + 2 (d_h + 1) H) where W_QK has rank one.

        Of one layer with per-head values and no MLP, that is. A layer has 2 d_h d more where heads share a map, and
        then 4 d_h^2 H for heads; 2 d m for an MLP of m.
        """
        heads = 2 * (self.asked + self.head_width) * self.head_input * self.heads
        maps = 2 * self.head_width * self.width if self.shared else 0
        layer = heads + maps + 2 * self.mlp_width * self.width
        return self.width * (self.context + 2 * self.vocab_size) + self.layers * layer


@register_network("attention-only", AttentionOnlyConfig)
class AttentionOnly(nn.Module, PrefixOracle):
    """The network of `config` with initial weights from the stream of `seed`; itself an oracle of the next token.

    Weights: `embedding` e (N, d), `positions` p (S, d), `query` and `key` (H, k, d), whose products are W_QK, `value`
    (H, d_h, d), `output` (H, d, d_h) and `unembedding` W_U (N, d). Heads of several layers stand one after the other.
    Where heads share a map it is `compress` (layers, d_h, d), and `decompress` (layers, d, d_h) back, and heads have
    d_h in the place of d; an MLP of m is `widen` (layers, m, d) and `narrow` (layers, d, m). As an oracle the network
    answers from the last S tokens, in the type of its weights and without gradients, and refuses prefixes that are
    shorter. `contexts` (stored, S) int64 are those that it was built for; `answered` counts answers, and `unstored`
    those for other contexts.
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
        width, read, given = config.width, config.head_input, config.head_width
        layers, heads = config.layers, config.layers * config.heads

        def drawn(name: str, deviation: float, *shape: int) -> nn.Parameter:
            random = generator(seed, "attention-only", name)
            return nn.Parameter(torch.empty(shape).normal_(generator=random) * deviation)

        self.embedding = drawn("embedding", 1.0, config.vocab_size, width)
        self.positions = drawn("positions", 1.0, config.context, width)
        for name, rows in (("query", config.asked), ("key", config.asked), ("value", given)):
            setattr(self, name, drawn(name, 1 / math.sqrt(read), heads, rows, read))
        self.output = drawn("output", 1 / math.sqrt(max(1, config.heads) * given), heads, read, given)
        if config.shared:
            self.compress = drawn("compress", 1 / math.sqrt(width), layers, given, width)
            self.decompress = drawn("decompress", 1 / math.sqrt(given), layers, width, given)
        if config.mlp_width:
            self.widen = drawn("widen", 1 / math.sqrt(width), layers, config.mlp_width, width)
            self.narrow = drawn("narrow", 1 / math.sqrt(config.mlp_width), layers, width, config.mlp_width)
        self.unembedding = drawn("unembedding", 1 / math.sqrt(width), config.vocab_size, width)
        self.register_buffer("contexts", torch.full((config.stored, config.context), _NONE))

    @property
    def remarks(self) -> Sequence[str]:
        """How many answers were for contexts that it was not built for, where there were any."""
        if not self.unstored:
            return ()
        return (
            f"{self.unstored:,} of {self.answered:,} queries were about contexts that the model does not store",
        )

    def forward(self, contexts: Tensor) -> Tensor:
        """Logits (n, N) of the token after `contexts` (n, S) int64."""
        states = self.inputs(contexts)
        for layer in range(self.config.layers - 1):
            seen = range(1, self.config.context + 1)
            states = torch.stack([self._last_state(states[:, :count], layer) for count in seen], 1)
        return self._last_state(states, self.config.layers - 1) @ self.unembedding.T

    def inputs(self, contexts: Tensor) -> Tensor:
        """x (n, S, d): token and position embeddings of `contexts` (n, S)."""
        embedded: Tensor = self.embedding[contexts] + self.positions
        return embedded

    def values(self, inputs: Tensor, layer: int = 0) -> Tensor:
        """W_V A (n, H, d_h) of `inputs` x (n, S, d): what each head of a layer has read from the last position."""
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
        """The state (n, d) of the last position after a layer, of all `states` (n, s, d) before it."""
        values = self.values(states, layer)
        # One product adds up what the heads write.
        written = values.flatten(1) @ self.output[self._heads(layer)].transpose(1, 2).flatten(0, 1)
        return self._with_mlp(self._added(states[:, -1], written, layer), layer)

    def _added(self, state: Tensor, written: Tensor, layer: int) -> Tensor:
        """`state` (..., d) and what its heads have `written` (..., d), or d_h numbers for their common map."""
        return state + (written @ self.decompress[layer].T if self.config.shared else written)

    def _with_mlp(self, state: Tensor, layer: int) -> Tensor:
        """`state` (..., d) and what the layer's MLP adds to it, where there is one."""
        if not self.config.mlp_width:
            return state
        return state + functional.gelu(state @ self.widen[layer].T) @ self.narrow[layer].T

    def whole_logits(self) -> Tensor:
        """Logits (N^S, N) after every context, in the order of `whole_sequences`: `forward` of all of them.

        One layer on pairs of tokens is faster than that: what a head makes of a pair is a mean of what it makes of
        single tokens, and scores too are products of single ones.
        """
        shape = self.config
        size = shape.vocab_size
        if shape.layers > 1 or shape.context != 2:
            contexts: Tensor = whole_sequences(size, shape.context, self.embedding.device)
            return self.forward(contexts)
        tokens = self.embedding + self.positions[:, None]
        read = tokens @ self.compress[0].T if shape.shared else tokens
        first, last = read
        queries = torch.einsum("jd,hkd->jhk", last, self.query)
        seen = torch.einsum("jhk,hkd->jhd", queries, self.key)
        own = (seen @ last[:, :, None]).squeeze(-1)
        # Of first token, last token and head: how much of its attention the first token has.
        share = ((first @ seen.flatten(0, 1).T).view(size, size, shape.heads) - own).sigmoid()
        single = torch.einsum("std,hed->sthe", read, self.output @ self.value)
        written = share @ single[0] - (share.transpose(0, 1) @ single[1]).transpose(0, 1) + single[1].sum(1)
        states = self._with_mlp(self._added(tokens[1], written, 0), 0)
        logits: Tensor = states.flatten(0, 1) @ self.unembedding.T
        return logits

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, N) of the token after the first `lengths` (n,) of `tokens` (n, capacity).

        Raises `InputError` for prefixes of less than S tokens.
        """
        context = self.config.context
        if len(lengths) and int(lengths.min()) < context:
            hint = f"the model reads the last {context} tokens: give a prompt of as many"
            raise InputError("lengths", int(lengths.min()), hint)
        places = torch.arange(context, device=tokens.device)
        return self.answers(tokens.gather(1, lengths[:, None] - context + places))

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The last S tokens (n, S) int64 of each prefix, -1 before the first."""
        context = self.config.context
        before = torch.nn.functional.pad(tokens, (context, 0), value=_NONE)
        return before.gather(1, lengths[:, None] + torch.arange(context, device=tokens.device))

    def answers(self, contexts: Tensor) -> Tensor:
        """Log-probabilities (n, N) of the token after `contexts` (n, S), without gradients, some rows at a time.

        Raises `InputError` for tokens that the model does not have.
        """
        hint = f"use token ids from 0 to {self.vocab_size - 1}, of shape (n, {self.config.context})"
        contexts = whole_tensor("contexts", contexts, hint)
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
            for part in self._parts(contexts):
                answers.append(self(part.to(self.embedding.device)).log_softmax(-1).to(contexts.device))
        return torch.cat(answers)

    def features(self, contexts: Tensor) -> Tensor:
        """What logits are linear in (n, H d_h + d): values of all heads, then x_S; without gradients.

        Raises `InputError` for more layers, and behind an MLP, where they are not.
        """
        if self.config.layers != 1 or self.config.mlp_width:
            hint = (
                "features exist for one layer without an MLP: there logits are linear in the values of heads"
            )
            raise InputError("config", self.config, hint)
        with torch.no_grad():
            parts = [self.inputs(part) for part in self._parts(contexts)]
            rows = [torch.cat((self.values(part).flatten(1), part[:, -1]), 1) for part in parts]
        return torch.cat(rows)

    def remember(self, contexts: Tensor) -> None:
        """Keep `contexts` (T, S) int64 beside the weights, as those that the network was built for."""
        self.config = replace(self.config, stored=len(contexts))
        self.contexts = contexts.clone()
        self._known = set()

    def holds(self, contexts: Tensor) -> Tensor:
        """Which (n,) bool of `contexts` (n, S) the network was built for."""
        if len(self._known) < self.config.stored:
            self._known = set(map(tuple, self.contexts.tolist()))
        return torch.tensor([tuple(row) in self._known for row in contexts.tolist()], dtype=torch.bool)

    def _parts(self, contexts: Tensor) -> Iterator[Tensor]:
        """`contexts` in parts whose attention takes some 32 MiB."""
        shape = self.config
        numbers = shape.heads * (shape.head_input + shape.context) + shape.vocab_size
        numbers += shape.context * shape.width + shape.mlp_width
        yield from contexts.split(max(1, _NUMBERS_AT_ONCE // numbers))
