"""Transformer of section 2.1 of the thesis, without positions, norms or MLPs (equations 2.5 to 2.7).

Without positions, equal words have equal hidden states. The network therefore reads the word counts of a
document instead of its tokens. As in the thesis, index 0 of all matrices is [MASK] and index i is word i - 1.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from trialogue.arrays import real_tensor
from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskedNetwork, MaskReader
from trialogue.models.networks.one_hot import sample_weights
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, check, integer_range, validated

_NAME = "topic-transformer"
_AT_ONCE = 2**22


@validated
@dataclass(frozen=True, kw_only=True)
class TopicTransformerConfig:
    """Shape of a `TopicTransformer`, and which of its weights are trained.

    Args:
        vocab_size: Number of words V.
        width: Width of the hidden states (default: V + 1, which "one-hot" embeddings require).
        layers: Number of attention layers.
        heads: Number of heads.
        embeddings: "trained", or "one-hot" for fixed one-hot vectors.
        attention: "trained", or "uniform" for equal weights of all tokens.
        values: "trained", or "fixed" for a value matrix that is the identity until `fix_values` is called.
        tied: Whether the output matrix is the transposed embedding (equation 2.6) instead of a separate
            matrix (equation 2.5).
        biases: "none", "prediction" for biases of the output only, or "all" for biases of queries and values
            too.
        residual: Whether the input of a layer is added to its output.
        initial_scale: Standard deviation of the initial weights times sqrt(width).

    Raises:
        InputError: If a field is out of range.
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
        """Width of the hidden states."""
        return self.vocab_size + 1 if self.width is None else self.width


@register_network(_NAME, TopicTransformerConfig)
class TopicTransformer(nn.Module, MaskedNetwork, MaskReader):
    """Transformer without positions that predicts masked words of a document from its word counts.

    The attributes `embedding` (V + 1, d), and `keys`, `queries` and `values` (d, d) per layer, hold the
    weights. They are transposed compared with W^E, W^K, W^Q and W^V of the thesis. Documents are padded with
    -1.

    Args:
        config: Shape of the network.
        seed: Seed of the initial weights.
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
            return nn.Parameter(sample_weights(shape, seed, _NAME, *names) * scale)

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
        # A bias of the keys has no effect, because it shifts all scores of a query equally. With one layer, biases of
        # the values are equivalent to a bias of the prediction.
        self.query_biases = nn.ParameterList(torch.zeros(width) for _ in attended if all_biases)
        self.value_biases = nn.ParameterList(torch.zeros(width) for _ in every if all_biases)

    @property
    def data_tokens(self) -> int:
        """Number of words V, without the mask token."""
        return self.vocab_size

    def matrices(self) -> dict[str, list[Tensor]]:
        """Return the weight matrices by name.

        Returns:
            "embedding" with one matrix, and "keys", "queries" and "values" with one matrix per layer.
        """
        return {
            "embedding": [self.embedding],
            "keys": list(self.keys),
            "queries": list(self.queries),
            "values": list(self.values),
        }

    def fix_values(self, values: Tensor, layer: int = 0) -> None:
        """Set the value matrix W^V of a layer in a network whose config has `values="fixed"`.

        Args:
            values: The matrix (d, d), where d is the width of the hidden states.
            layer: Index of the layer.

        Raises:
            InputError: If the network trains its values, or the matrix has another shape.
        """
        if self.config.values != "fixed":
            raise InputError("values", self.config.values, 'make the network with values="fixed"')
        width = self.config.state_width
        matrix = real_tensor("values", values, f"give a matrix ({width}, {width})")
        if matrix.shape != (width, width):
            raise InputError("values", tuple(matrix.shape), f"give a matrix ({width}, {width})")
        held = self.values[check("layer", layer, integer_range(0, self.config.layers - 1))]
        held.data.copy_(matrix)

    def counts(self, inputs: Tensor) -> Tensor:
        """Count the tokens of each document.

        Args:
            inputs: Token ids (n, N) with the mask token V at masked positions, padded with -1.

        Returns:
            Counts (n, V + 1) of [MASK] (column 0) and of each word.
        """
        places = torch.where(inputs < 0, self.vocab_size + 1, self.places(inputs))
        counts = torch.zeros(len(inputs), self.vocab_size + 2, device=inputs.device)
        return counts.scatter_add_(1, places, torch.ones_like(places, dtype=counts.dtype))[:, :-1]

    def places(self, tokens: Tensor) -> Tensor:
        """Convert token ids to row numbers of the matrices: 0 for [MASK], and i + 1 for word i."""
        return (tokens + 1) % (self.vocab_size + 1)

    def forward(self, counts: Tensor, queries: Tensor) -> Tensor:
        """Compute the output logits at query tokens of documents.

        Args:
            counts: Counts (n, V + 1) of [MASK] and each word in each document.
            queries: Query tokens (n, Q), where 0 is [MASK] and i + 1 is word i.

        Returns:
            Logits (n, Q, V + 1).
        """
        weights = counts.to(self.embedding.dtype)
        states: Tensor = self.embedding
        for layer in range(self.config.layers):
            last = layer == self.config.layers - 1
            asked = queries if last else torch.arange(len(self.embedding), device=counts.device)[None]
            mixed = self._attention_output(layer, states, asked, weights)
            if self.config.residual:
                mixed = mixed + self._select_words(states, asked)
            states = mixed
        if self.config.tied and self.config.embeddings == "one-hot":
            predicted = states
        else:
            predicted = states @ (self.embedding if self.prediction is None else self.prediction).T
        return predicted if self.bias is None else predicted + self.bias

    def attention(self, counts: Tensor) -> Tensor:
        """Compute the attention weights of the first layer between single tokens.

        The weights of a query for all tokens of a document, which can contain a word several times, sum to one.

        Args:
            counts: Counts (n, V + 1) of [MASK] and each word in each document.

        Returns:
            Attention weights (n, heads, V + 1, V + 1).
        """
        everywhere = torch.arange(len(self.embedding), device=counts.device)[None].expand(len(counts), -1)
        present = counts.to(self.embedding.dtype)
        shares = self._attention_weights(0, self.embedding, everywhere, present)
        # For a word that is absent, this is the weight that one additional token of it would have.
        return shares / present.clamp_min(1)[:, None, None, :]

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute the logits of the words at masked positions.

        Args:
            inputs: Token ids (n, N) with the mask token V at masked positions, padded with -1.
            rows: Document (q,) of each position.
            sites: Index (q,) of each position in its document.

        Returns:
            Logits (q, V) in the dtype of the weights.
        """
        queries = self.places(inputs[rows, sites])[:, None]
        return self(self.counts(inputs)[rows], queries)[:, 0, 1:]

    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute the logits of the words at masked positions (see `masked_logits`).

        Args:
            inputs: Token ids (n, N) with the mask token V at masked positions, padded with -1.
            rows: Document (q,) of each position.
            sites: Index (q,) of each position in its document.

        Returns:
            Logits (q, V).
        """
        device = self.embedding.device
        return self.masked_logits(inputs.to(device), rows.to(device), sites.to(device))

    def _attention_output(self, layer: int, states: Tensor, asked: Tensor, counts: Tensor) -> Tensor:
        """Return the attention output (n, Q, d) of all heads, before the output matrix, for the words `asked`."""
        values = states @ self.values[layer].T
        if len(self.value_biases):
            values = values + self.value_biases[layer]
        if self.config.attention == "uniform":
            shares = counts / counts.sum(1, keepdim=True)
            return (shares[:, None] @ values).expand(-1, asked.shape[1], -1)
        shares = self._attention_weights(layer, states, asked, counts)
        heads = values.unflatten(-1, (self.config.heads, -1)).transpose(-2, -3)
        if states.ndim == 2:
            # One product for all documents of the batch, where they share their values.
            documents, asked_for = shares.shape[0], shares.shape[2]
            mixed = shares.transpose(0, 1).flatten(1, 2) @ heads
            return mixed.unflatten(1, (documents, asked_for)).movedim(0, 2).flatten(2)
        return (shares @ heads).transpose(1, 2).flatten(2)

    def _attention_weights(self, layer: int, states: Tensor, asked: Tensor, counts: Tensor) -> Tensor:
        """Return how much attention (n, heads, Q, V + 1) each query pays to each word, summed over its occurrences."""
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
            # All documents have the same scores, so they are computed once for every word.
            scores = scores[:, asked].transpose(0, 1)
        elif asked.shape[0] == len(states):
            scores = scores.gather(2, asked[:, None, :, None].expand(-1, heads, -1, scores.shape[-1]))
        return (scores + counts.log()[:, None, None]).softmax(-1)

    def _select_words(self, states: Tensor, asked: Tensor) -> Tensor:
        """Return the vectors (n or 1, Q, d) of the words `asked`."""
        if states.ndim == 2:
            return states[asked]
        if asked.shape[0] != len(states):
            return states
        return states.gather(1, asked[:, :, None].expand(-1, -1, states.shape[-1]))
