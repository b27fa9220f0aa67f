"""Attention-only transformers: one layer of heads that read the last S tokens, a skip connection, an unembedding.

Equations 1 and 2 of the document on memorization in attention-only transformers. With x_s = e(t_s) + p_s the heads
attend from the last position alone, a^h = softmax over s of x_S^T W_QK^h x_s, and the logits of the next token are
W_U (x_S + sum over h of W_O^h W_V^h sum over s of a^h_s x_s). There is no scale, no normalisation, and no MLP.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from trialogue.errors import InputError, whole_number
from trialogue.models.networks import register_network
from trialogue.oracles import PrefixOracle
from trialogue.randomness import generator

_NUMBERS_AT_ONCE = 1 << 22
_NONE = -1


@dataclass(frozen=True, kw_only=True)
class AttentionOnlyConfig:
    """Shape of an `AttentionOnly`. Raises `InputError` where a field is out of range.

    `context` tokens of `vocab_size` are read, S and N in the source; embeddings have `width` numbers, d, and each of
    `heads` has values of `head_width`, d_h, and queries of `query_width`, by default as many: with one, W_QK has rank
    one (Remark 2). `stored` is how many contexts the network keeps beside its weights, as those that it answers for.
    """

    vocab_size: int
    context: int
    width: int
    heads: int
    head_width: int
    query_width: int | None = None
    stored: int = 0

    def __post_init__(self) -> None:
        for field, least in (("vocab_size", 2), ("context", 1), ("width", 1), ("heads", 0), ("stored", 0)):
            object.__setattr__(self, field, whole_number(field, getattr(self, field), least))
        for field in ("head_width", "query_width"):
            value = getattr(self, field)
            if field == "head_width" or value is not None:
                mend = f"use 1 to width={self.width}: a head maps the embedding to no more numbers"
                object.__setattr__(self, field, whole_number(field, value, 1, self.width, mend))

    @property
    def parameters(self) -> int:
        """Numbers of the network: d (S + 2 N + 4 d_h H), and d (S + 2 N + 2 (d_h + 1) H) where W_QK has rank one."""
        inner = (self.query_width or self.head_width) + self.head_width
        return self.width * (self.context + 2 * self.vocab_size + 2 * inner * self.heads)


@register_network("attention-only", AttentionOnlyConfig)
class AttentionOnly(nn.Module, PrefixOracle):
    """The network of `config` with initial weights from the stream of `seed`; itself an oracle of the next token.

    Weights: `embedding` e (N, d), `positions` p (S, d), `query` and `key` (H, k, d), whose products are W_QK, `value`
    (H, d_h, d), `output` (H, d, d_h) and `unembedding` W_U (N, d). As an oracle it answers from the last S tokens, in
    the type of its weights and without gradients, and refuses prefixes that are shorter. `contexts` (stored, S) int64
    are those that it was built for; `answered` counts answers, and `unstored` those for other contexts.
    """

    contexts: Tensor

    def __init__(self, config: AttentionOnlyConfig, seed: int = 0) -> None:
        if not isinstance(config, AttentionOnlyConfig):
            raise InputError("config", config, "give an AttentionOnlyConfig")
        super().__init__()
        self.config, self.vocab_size = config, config.vocab_size
        self.answered = self.unstored = 0
        self._known: set[tuple[int, ...]] = set()
        width, heads = config.width, config.heads
        asked, given = config.query_width or config.head_width, config.head_width
        small = 1 / math.sqrt(width)

        def drawn(name: str, deviation: float, *shape: int) -> nn.Parameter:
            random = generator(seed, "attention-only", name)
            return nn.Parameter(torch.empty(shape).normal_(generator=random) * deviation)

        self.embedding = drawn("embedding", 1.0, config.vocab_size, width)
        self.positions = drawn("positions", 1.0, config.context, width)
        self.query = drawn("query", small, heads, asked, width)
        self.key = drawn("key", small, heads, asked, width)
        self.value = drawn("value", small, heads, given, width)
        self.output = drawn("output", 1 / math.sqrt(max(1, heads) * given), heads, width, given)
        self.unembedding = drawn("unembedding", small, config.vocab_size, width)
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
        inputs = self.inputs(contexts)
        values = self.values(inputs)
        # One product adds up what the heads write.
        written = values.flatten(1) @ self.output.transpose(1, 2).flatten(0, 1)
        logits: Tensor = (inputs[:, -1] + written) @ self.unembedding.T
        return logits

    def inputs(self, contexts: Tensor) -> Tensor:
        """x (n, S, d): token and position embeddings of `contexts` (n, S)."""
        embedded: Tensor = self.embedding[contexts] + self.positions
        return embedded

    def values(self, inputs: Tensor) -> Tensor:
        """W_V A (n, H, d_h) of `inputs` x (n, S, d): what each head has read from the last position."""
        queries = torch.einsum("nd,hkd->nhk", inputs[:, -1], self.query)
        seen = torch.einsum("nhk,hkd->nhd", queries, self.key)
        attention = (seen @ inputs.transpose(1, 2)).softmax(-1)
        return torch.einsum("nhd,hvd->nhv", attention @ inputs, self.value)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, N) of the token after the first `lengths` (n,) of `tokens` (n, capacity).

        Raises `InputError` for prefixes of less than S tokens.
        """
        context = self.config.context
        if len(lengths) and int(lengths.min()) < context:
            mend = f"the model reads the last {context} tokens: give a prompt of as many"
            raise InputError("lengths", int(lengths.min()), mend)
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
        wrong = contexts[(contexts < 0) | (contexts >= self.vocab_size)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"the model has tokens 0 to {self.vocab_size - 1}")
        if self.config.stored:
            self.answered += len(contexts)
            self.unstored += int((~self.holds(contexts)).sum())
        answers = [torch.empty(0, self.vocab_size, dtype=self.embedding.dtype, device=contexts.device)]
        with torch.no_grad():
            for part in self._parts(contexts):
                answers.append(self(part.to(self.embedding.device)).log_softmax(-1).to(contexts.device))
        return torch.cat(answers)

    def features(self, contexts: Tensor) -> Tensor:
        """What the unembedding is linear in (n, H d_h + d): values of all heads, then x_S; without gradients."""
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
        numbers = shape.heads * (shape.width + shape.context) + shape.context * shape.width + shape.vocab_size
        yield from contexts.split(max(1, _NUMBERS_AT_ONCE // numbers))
