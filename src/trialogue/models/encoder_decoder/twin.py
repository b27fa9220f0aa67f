"""Translation models that generate a target token by token, for one or many source sentences.

The cache of keys and values is the same as for a `Transformer`. Each source is encoded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.data.parallel.vocabulary import BOS, EOS, MASK, PAD, SPECIAL
from trialogue.errors import InputError
from trialogue.models.caching.attention_cache import AttentionCache, layer_norm, linear
from trialogue.models.encoder_decoder.network import EncodedSources, EncoderDecoder, append_eos, pad_sources
from trialogue.oracles import Autoregressive

_UNWRITABLE = (PAD, MASK, BOS)
"""Special tokens that the model reads but never predicts."""
_POSITIONS_AT_ONCE = 2048


class CausalTranslator:
    """Translation model that generates a translation token by token.

    Args:
        model: Encoder-decoder with a causal decoder.

    Raises:
        InputError: If the decoder is not causal.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        if not isinstance(model, EncoderDecoder) or not model.config.causal:
            raise InputError("model", type(model).__name__, "use an EncoderDecoder with causal=True")
        self.model = model.eval()

    def condition(self, source: Sequence[int]) -> ConditionedTwin:
        """Return an autoregressive model over the translations of one source.

        Args:
            source: Token ids without EOS.

        Raises:
            InputError: If the source is too long.
        """
        return self.condition_each([source])

    def condition_each(self, sources: Sequence[Sequence[int]]) -> ConditionedTwin:
        """Return an autoregressive model whose row i translates source i (modulo the number of sources).

        Args:
            sources: Token ids of each source, without EOS.

        Raises:
            InputError: If a source is too long.
        """
        with torch.no_grad():
            tokens = pad_sources(sources, self.model.config.max_length, self.model.config.vocab_size)
            return ConditionedTwin(self.model, self.model.encode(tokens.to(self.model.head.weight.device)))

    def log_probs(
        self, sources: Sequence[Sequence[int]], candidates: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[float]]:
        """Compute log-probabilities of candidate translations, including EOS, in one forward pass.

        Args:
            sources: Token ids of each source, without EOS.
            candidates: Token ids of the candidates of each source, without EOS.

        Returns:
            Log-probabilities of the candidates of each source.

        Raises:
            InputError: If a source or candidate is too long, if a candidate has a special token, or if there are
                different numbers of sources and lists of candidates.
        """
        if len(candidates) != len(sources):
            hint = f"use one list of candidates for each of the {len(sources)} sources"
            raise InputError("candidates", f"{len(candidates)} lists", hint)
        counts = [len(group) for group in candidates]
        texts = [text for group in candidates for text in group]
        if not texts:
            return [[] for _ in candidates]
        pieces = range(len(SPECIAL), self.model.config.vocab_size)
        wrong = next((token for text in texts for token in text if token not in pieces), None)
        if wrong is not None:
            raise InputError("candidates", wrong, f"use tokens from {pieces.start} to {pieces.stop - 1}")
        head = self.model.head.weight
        targets = append_eos(texts).to(head.device)
        inputs = torch.cat([torch.full_like(targets[:, :1], BOS), targets[:, :-1]], 1)
        which = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)).to(head.device)
        unwritable = torch.tensor(_UNWRITABLE, device=head.device)
        with torch.inference_mode():
            encoded = self.condition_each(sources).encoded
            read = encoded.repeat(len(texts)) if len(counts) == 1 else encoded.rows(which)
            written = targets != PAD
            states, tokens = self.model.decode(inputs, read)[written], targets[written]
            # With a large vocabulary, distributions at all positions would take gigabytes of memory.
            token_log_probs = torch.cat(
                [
                    _next_log_probs(F.linear(part, head), unwritable).gather(1, token[:, None])[:, 0]
                    for part, token in zip(
                        states.split(_POSITIONS_AT_ONCE), tokens.split(_POSITIONS_AT_ONCE), strict=True
                    )
                ]
            )
            sums = torch.zeros(targets.shape, dtype=torch.float64, device=head.device)
            sums[written] = token_log_probs.double()
        return [part.tolist() for part in sums.sum(1).cpu().split(counts)]


class ConditionedTwin(Autoregressive):
    """Autoregressive model over the translations of given source sentences.

    Row i translates source i modulo the number of sources. Samplers copy rows to each other, so they must use a model
    with a single source.

    Args:
        model: Encoder-decoder with a causal decoder.
        encoded: Encoded sources.
    """

    def __init__(self, model: EncoderDecoder, encoded: EncodedSources) -> None:
        self.model, self.encoded = model, encoded
        self.vocab_size, self.eos = model.config.vocab_size, EOS
        self.max_length: int = model.config.max_length + 1

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> SourceCache:
        """Create a key-value cache for decoding.

        Args:
            rows: Number of translations.
            capacity: Maximum number of tokens per translation.
            layers: Decoder layers whose hidden states are recorded: -1 for the input of the output head, or k for the
                residual stream after k blocks.

        Raises:
            InputError: If the capacity exceeds the maximum length, or if a layer does not exist.
        """
        if capacity > self.max_length:
            hint = f"the model writes at most {self.max_length} tokens including EOS; shorten max_length"
            raise InputError("capacity", capacity, hint)
        for layer in layers:
            if not -1 <= layer <= self.model.config.decoder_layers:
                raise InputError("layers", layer, f"use -1, or 0 to {self.model.config.decoder_layers}")
        which = torch.arange(rows) % len(self.encoded.states)
        return SourceCache(self.model, self.encoded, which, capacity, tuple(layers))


class SourceCache(AttentionCache):
    """Key-value cache of a causal decoder, in which row i translates the source with index `which[i]`.

    Args:
        model: Encoder-decoder with a causal decoder.
        encoded: Encoded sources.
        which: Index of the source of each row, (rows,) int64.
        capacity: Maximum number of tokens per row.
        layers: Decoder layers whose hidden states are recorded.
        store: Initial keys and values. Empty by default.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        encoded: EncodedSources,
        which: Tensor,
        capacity: int,
        layers: Sequence[int],
        store: Tensor | None = None,
    ) -> None:
        super().__init__(model, len(which), capacity, layers, store)
        self._decoder, self._encoded = model, encoded
        self._which = which.to(self._rows.device)
        self._cross_attention_weights = [_cross_attention_weights(block) for block in model.blocks]
        self._source_mask = encoded.mask if bool((encoded.mask != 0).any()) else None
        self._unwritable = torch.tensor(_UNWRITABLE, device=self._rows.device)

    def log_probs(self, features: Tensor) -> Tensor:
        """Compute log-probabilities (n, vocab_size) of the next token, a subword token or EOS."""
        return _next_log_probs(F.linear(self.hidden(features, -1), self._head), self._unwritable)

    def fork(self, rows: Tensor, stop: int) -> SourceCache:
        """Return an independent context for up to `stop` tokens whose row i starts as this context's row `rows[i]`."""
        which, store = self._which[rows.to(self._rows.device)], self._forked(rows, stop)
        return SourceCache(self._decoder, self._encoded, which, stop, self._layers, store)

    def _read(self, layer: int, x: Tensor, rows: Tensor) -> Tensor:
        """Return the residual stream after cross-attention."""
        norm, queries, projection = self._cross_attention_weights[layer]
        keys, values = self._encoded.keys_values[layer]
        q = linear(layer_norm(x, norm), queries).view(-1, *self._split)
        if len(keys) == 1:
            # With a single source, the queries of all rows are treated as positions of one row.
            mask = self._source_mask
            read = F.scaled_dot_product_attention(q.transpose(0, 1)[None], keys, values, attn_mask=mask)
            read = read[0].transpose(0, 1)
        else:
            which, mask = self._which[rows], self._source_mask
            read = F.scaled_dot_product_attention(
                q[:, :, None], keys[which], values[which], attn_mask=None if mask is None else mask[which]
            )
        return linear(read.reshape(x.shape), projection).add_(x)


def _next_log_probs(logits: Tensor, unwritable: Tensor) -> Tensor:
    """Return log-probabilities (n, vocab_size) in which the tokens `unwritable` have probability 0."""
    logits = logits.index_fill(1, unwritable, -torch.inf)
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _cross_attention_weights(block: nn.Module) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return the parameters of the LayerNorm and the linear maps of cross-attention.

    A LayerNorm is (weight, bias), and a linear map is (bias, transposed weight).
    """
    parts = dict(block.named_children())
    modules = [parts[name] for name in ("source_norm", "source_queries", "source_projection")]
    (norm, queries, projection) = [dict(part.named_parameters()) for part in modules]
    return (
        (norm["weight"].detach(), norm["bias"].detach()),
        (queries["bias"].detach(), queries["weight"].detach().t()),
        (projection["bias"].detach(), projection["weight"].detach().t()),
    )
