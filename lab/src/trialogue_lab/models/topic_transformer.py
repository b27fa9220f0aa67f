"""The transformer of section 2.1 of the thesis, equations 2.5 to 2.7: no positions, norms or layers between attentions.

A document is read as how often it shows every word. Without positions all tokens of one word have the same state after
every layer, so that attention to words, weighted by their counts, is attention to tokens, exactly and for less.

Matrices and vectors are numbered as in the thesis: 0 is [MASK], i the word i - 1. Tokens are those of the data,
with the mask V behind them.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from trialogue.arrays import real_tensor
from trialogue.errors import InputError, whole_number
from trialogue.models.masked import MaskedNetwork, MaskReader
from trialogue.models.networks import register_network
from trialogue.models.one_hot import drawn_weights
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "topic-transformer"
_AT_ONCE = 2**22


@validated
@dataclass(frozen=True, kw_only=True)
class TopicTransformerConfig:
    """Shape of a `TopicTransformer`, and what of it is trained. Raises `InputError` where a field is out of range.

    `width` is that of states, None for V + 1, which "one-hot" embeddings must have. Attention is "trained" or "uniform"
    (W^K = W^Q = 0). "fixed" values are the identity until `fix_values` sets others. `tied` predictions are by the
    transposed embeddings (equation 2.6), otherwise by a matrix of their own (2.5). Biases are those of the prediction
    alone or those of keys, queries and values as well. A `residual` network adds to states what is attended to.
    `initial_scale` over sqrt(width) is the standard deviation of all initial weights: 0.01 begins near zero.
    """

    vocab_size: Count
    width: Count | None = None
    layers: Count = 1
    heads: Count = 1
    embeddings: Literal["trained", "one-hot"] = "trained"
    attention: Literal["trained", "uniform"] = "trained"
    values: Literal["trained", "fixed"] = "trained"
    tied: bool = True
    biases: Literal["none", "prediction", "all"] = "prediction"
    residual: bool = False
    initial_scale: Positive = 1.0

    def __post_init__(self) -> None:
        size = self.vocab_size + 1
        if self.embeddings == "one-hot" and self.width not in (None, size):
            raise InputError("width", self.width, f"one-hot embeddings have the width {size}: leave it out")
        if self.state_width % self.heads:
            raise InputError("heads", self.heads, f"use a divisor of the width {self.state_width}")

    @property
    def state_width(self) -> int:
        """The width of states."""
        return self.vocab_size + 1 if self.width is None else self.width


@register_network(_NAME, TopicTransformerConfig)
class TopicTransformer(nn.Module, MaskedNetwork, MaskReader):
    """The network of `config` with initial weights from the stream of `seed`; itself a masked oracle.

    `embedding` (V + 1, d) holds W^E transposed; of every layer `keys`, `queries` and `values` (d, d) are W^K, W^Q and
    W^V, whose rows are divided among heads. Documents of a batch may end early: -1 is no token.
    """

    sites = None
    mask: int

    @validated
    def __init__(self, config: InstanceOf[TopicTransformerConfig], seed: Natural = 0) -> None:
        super().__init__()
        self.config, self.vocab_size, self.mask = config, config.vocab_size, config.vocab_size
        size, width = config.vocab_size + 1, config.state_width
        self.batch_size, self.dtype = max(1, _AT_ONCE // (size * size)), torch.float32
        scale = config.initial_scale / math.sqrt(width)

        def drawn(shape: tuple[int, ...], *names: object) -> nn.Parameter:
            return nn.Parameter(drawn_weights(shape, seed, _NAME, *names) * scale)

        every, square = range(config.layers), (width, width)
        if config.embeddings == "trained":
            self.embedding = drawn((size, width), "embedding")
        else:
            self.register_buffer("embedding", torch.eye(size))
        attended = every if config.attention == "trained" else ()
        self.keys = nn.ParameterList(drawn(square, layer, "keys") for layer in attended)
        self.queries = nn.ParameterList(drawn(square, layer, "queries") for layer in attended)
        self.values = nn.ParameterList(
            drawn(square, layer, "values")
            if config.values == "trained"
            else nn.Parameter(torch.eye(width), requires_grad=False)
            for layer in every
        )
        self.prediction = None if config.tied else drawn((size, width), "prediction")
        self.bias = nn.Parameter(torch.zeros(size)) if config.biases != "none" else None
        all_biases = config.biases == "all"
        # A bias of keys shifts all scores of a query alike, and those of one layer's values are one of the prediction.
        self.query_biases = nn.ParameterList(torch.zeros(width) for _ in attended if all_biases)
        self.value_biases = nn.ParameterList(torch.zeros(width) for _ in every if all_biases)

    @property
    def data_tokens(self) -> int:
        """The number of words: all tokens but the mask."""
        return self.vocab_size

    def matrices(self) -> dict[str, list[Tensor]]:
        """The matrices by what they are for, of all layers: the embedding, keys, queries and values."""
        return {
            "embedding": [self.embedding],
            "keys": list(self.keys),
            "queries": list(self.queries),
            "values": list(self.values),
        }

    def fix_values(self, values: Tensor, layer: int = 0) -> None:
        """Set W^V (d, d) of a layer whose values are not trained."""
        if self.config.values != "fixed":
            raise InputError("values", self.config.values, 'make the network with values="fixed"')
        width = self.config.state_width
        matrix = real_tensor("values", values, f"give a matrix ({width}, {width})")
        if matrix.shape != (width, width):
            raise InputError("values", tuple(matrix.shape), f"give a matrix ({width}, {width})")
        held = self.values[whole_number("layer", layer, 0, self.config.layers - 1)]
        held.data.copy_(matrix)

    def counts(self, inputs: Tensor) -> Tensor:
        """How often (n, V + 1) `inputs` (n, N) show [MASK] and every word; -1 is left out."""
        places = torch.where(inputs < 0, self.vocab_size + 1, self.places(inputs))
        counts = torch.zeros(len(inputs), self.vocab_size + 2, device=inputs.device)
        return counts.scatter_add_(1, places, torch.ones_like(places, dtype=counts.dtype))[:, :-1]

    def places(self, tokens: Tensor) -> Tensor:
        """The numbers of `tokens` in the thesis: 0 for the mask, one more for words."""
        return (tokens + 1) % (self.vocab_size + 1)

    def forward(self, counts: Tensor, queries: Tensor) -> Tensor:
        """What is predicted (n, Q, V + 1) at tokens `queries` (n, Q), numbered as in the thesis, of documents.

        `counts` (n, V + 1) say how often each document shows [MASK] and every word.
        """
        weights = counts.to(self.embedding.dtype)
        states: Tensor = self.embedding
        for layer in range(self.config.layers):
            last = layer == self.config.layers - 1
            asked = queries if last else torch.arange(len(self.embedding), device=counts.device)[None]
            mixed = self._mixed(layer, states, asked, weights)
            if self.config.residual:
                mixed = mixed + self._at(states, asked)
            states = mixed
        if self.config.tied and self.config.embeddings == "one-hot":
            predicted = states
        else:
            predicted = states @ (self.embedding if self.prediction is None else self.prediction).T
        return predicted if self.bias is None else predicted + self.bias

    def attention(self, counts: Tensor) -> Tensor:
        """Weights (n, heads, V + 1, V + 1) of the first layer: of a token of the first word to one of the second.

        Those to all tokens of a document add up to one.
        """
        everywhere = torch.arange(len(self.embedding), device=counts.device)[None].expand(len(counts), -1)
        present = counts.to(self.embedding.dtype)
        shares = self._shares(0, self.embedding, everywhere, present)
        # Where a word is not there, its weight would be that of one token more.
        return shares / present.clamp_min(1)[:, None, None, :]

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, V) of the words at `sites` (q,) of `rows` (q,) of `inputs` (n, N), in the type of the weights."""
        queries = self.places(inputs[rows, sites])[:, None]
        return self(self.counts(inputs)[rows], queries)[:, 0, 1:]

    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, V) of the words at `sites` (q,) of `rows` (q,) of `inputs` (n, N)."""
        device = self.embedding.device
        return self.masked_logits(inputs.to(device), rows.to(device), sites.to(device))

    def _mixed(self, layer: int, states: Tensor, asked: Tensor, counts: Tensor) -> Tensor:
        """W^V of what is attended to (n, Q, d), the heads side by side."""
        values = states @ self.values[layer].T
        if len(self.value_biases):
            values = values + self.value_biases[layer]
        if self.config.attention == "uniform":
            shares = counts / counts.sum(1, keepdim=True)
            return (shares[:, None] @ values).expand(-1, asked.shape[1], -1)
        shares = self._shares(layer, states, asked, counts)
        heads = values.unflatten(-1, (self.config.heads, -1)).transpose(-2, -3)
        if states.ndim == 2:
            # One product for all documents of the batch, where they share their values.
            documents, asked_for = shares.shape[0], shares.shape[2]
            mixed = shares.transpose(0, 1).flatten(1, 2) @ heads
            return mixed.unflatten(1, (documents, asked_for)).movedim(0, 2).flatten(2)
        return (shares @ heads).transpose(1, 2).flatten(2)

    def _shares(self, layer: int, states: Tensor, asked: Tensor, counts: Tensor) -> Tensor:
        """What each query (n, heads, Q, V + 1) attends to of all tokens of a word together: it sums to one."""
        heads = self.config.heads
        if self.config.attention == "uniform":
            shares = counts / counts.sum(1, keepdim=True)
            return shares[:, None, None].expand(-1, heads, asked.shape[1], -1)
        queries = states @ self.queries[layer].T
        if len(self.query_biases):
            queries = queries + self.query_biases[layer]
        keys = (states @ self.keys[layer].T).unflatten(-1, (heads, -1)).transpose(-2, -3)
        queries = queries.unflatten(-1, (heads, -1)).transpose(-2, -3)
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        if states.ndim == 2:
            # All documents have the same scores: of every word they are taken once.
            scores = scores[:, asked].transpose(0, 1)
        elif asked.shape[0] == len(states):
            scores = scores.gather(2, asked[:, None, :, None].expand(-1, heads, -1, scores.shape[-1]))
        return (scores + counts.log()[:, None, None]).softmax(-1)

    def _at(self, states: Tensor, asked: Tensor) -> Tensor:
        """The states (n or 1, Q, d) of the words `asked`."""
        if states.ndim == 2:
            return states[asked]
        if asked.shape[0] != len(states):
            return states
        return states.gather(1, asked[:, :, None].expand(-1, -1, states.shape[-1]))
