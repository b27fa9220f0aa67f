"""The autoregressive twin as an oracle: of one source for samplers, of many for translating them together.

Its keys and values lie by row and position as those of any `Transformer`; what it reads of the source is evaluated
once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.data.parallel.vocabulary import BOS, EOS, MASK, PAD, SPECIAL
from trialogue.errors import InputError
from trialogue.models.caching.attention_cache import AttentionCache, linear, normed
from trialogue.models.encoder_decoder.network import Encoded, EncoderDecoder, ended, source_rows
from trialogue.oracles import Autoregressive

_NEVER = (PAD, MASK, BOS)
"""Read, and never written."""
_PLACES = 2048


class CausalTranslator:
    """The causal `model`, which answers for a translation when it is told the source.

    Raises `InputError` for a model whose decoder is not causal.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        if not isinstance(model, EncoderDecoder) or not model.config.causal:
            raise InputError("model", type(model).__name__, "give an EncoderDecoder whose decoder is causal")
        self.model = model.eval()

    def condition(self, source: Sequence[int]) -> ConditionedTwin:
        """The oracle of translations of `source`, tokens without EOS; raises `InputError` where it is too long."""
        return self.condition_each([source])

    def condition_each(self, sources: Sequence[Sequence[int]]) -> ConditionedTwin:
        """The oracle whose storage row i, modulo their number, translates source i."""
        with torch.no_grad():
            tokens = source_rows(sources, self.model.config.max_length, self.model.config.vocab_size)
            return ConditionedTwin(self.model, self.model.encode(tokens.to(self.model.head.weight.device)))

    def log_probs(
        self, sources: Sequence[Sequence[int]], candidates: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[float]]:
        """Log-probabilities of the `candidates` of each source, tokens without EOS, that of EOS with them.

        All are evaluated in one pass. Raises `InputError` for a source or a candidate that is too long, for a token
        that the model does not write, and where there are not as many of both.
        """
        if len(candidates) != len(sources):
            hint = f"give the candidates of each of the {len(sources)} sources"
            raise InputError("candidates", f"those of {len(candidates)} sources", hint)
        counts = [len(texts) for texts in candidates]
        told = [text for texts in candidates for text in texts]
        if not told:
            return [[] for _ in candidates]
        pieces = range(len(SPECIAL), self.model.config.vocab_size)
        wrong = next((token for text in told for token in text if token not in pieces), None)
        if wrong is not None:
            raise InputError("candidates", wrong, f"use tokens from {pieces.start} to {pieces.stop - 1}")
        head = self.model.head.weight
        targets = ended(told).to(head.device)
        inputs = torch.cat([torch.full_like(targets[:, :1], BOS), targets[:, :-1]], 1)
        which = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)).to(head.device)
        never = torch.tensor(_NEVER, device=head.device)
        with torch.inference_mode():
            encoded = self.condition_each(sources).encoded
            read = encoded.repeated(len(told)) if len(counts) == 1 else encoded.rows(which)
            written = targets != PAD
            states, tokens = self.model.decode(inputs, read)[written], targets[written]
            # Distributions of all places at once would take gigabytes where the vocabulary is large.
            given = torch.cat(
                [
                    _next_log_probs(F.linear(part, head), never).gather(1, token[:, None])[:, 0]
                    for part, token in zip(states.split(_PLACES), tokens.split(_PLACES), strict=True)
                ]
            )
            sums = torch.zeros(targets.shape, dtype=torch.float64, device=head.device)
            sums[written] = given.double()
        return [part.tolist() for part in sums.sum(1).cpu().split(counts)]


class ConditionedTwin(Autoregressive):
    """An oracle of translations of `encoded`; where there are several sources, row i is of source i modulo them.

    Rows of several sources must not be copied to each other, which samplers do: they are given one source.
    """

    def __init__(self, model: EncoderDecoder, encoded: Encoded) -> None:
        self.model, self.encoded = model, encoded
        self.vocab_size, self.eos = model.config.vocab_size, EOS
        self.max_length: int = model.config.max_length + 1

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> SourceCache:
        """Make room for `rows` translations of up to `capacity` tokens, recording the hidden states of `layers`.

        Raises `InputError` where the capacity exceeds the model's positions, or a layer is not one of its decoder.
        """
        if capacity > self.max_length:
            hint = f"the model writes at most {self.max_length} tokens (EOS included); shorten max_length"
            raise InputError("capacity", capacity, hint)
        for layer in layers:
            if not -1 <= layer <= self.model.config.decoder_layers:
                raise InputError("layers", layer, f"must be -1 or in 0..{self.model.config.decoder_layers}")
        which = torch.arange(rows) % len(self.encoded.states)
        return SourceCache(self.model, self.encoded, which, capacity, tuple(layers))


class SourceCache(AttentionCache):
    """The context of a decoder whose row i also reads source `which[i]` of `encoded`."""

    def __init__(
        self,
        model: EncoderDecoder,
        encoded: Encoded,
        which: Tensor,
        capacity: int,
        layers: Sequence[int],
        store: Tensor | None = None,
    ) -> None:
        super().__init__(model, len(which), capacity, layers, store)
        self._decoder, self._encoded = model, encoded
        self._which = which.to(self._rows.device)
        self._maps = [_maps(block) for block in model.blocks]
        self._source_mask = encoded.mask if bool((encoded.mask != 0).any()) else None
        self._never = torch.tensor(_NEVER, device=self._rows.device)

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token, a piece or EOS."""
        return _next_log_probs(F.linear(self.hidden(features, -1), self._head), self._never)

    def fork(self, rows: Tensor, stop: int) -> SourceCache:
        """Return an independent context for up to `stop` tokens whose row i starts as this context's row `rows[i]`."""
        which, store = self._which[rows.to(self._rows.device)], self._forked(rows, stop)
        return SourceCache(self._decoder, self._encoded, which, stop, self._layers, store)

    def _read(self, layer: int, x: Tensor, rows: Tensor) -> Tensor:
        """The residual stream after attention to the source."""
        norm, queries, projection = self._maps[layer]
        keys, values = self._encoded.keys_values[layer]
        q = linear(normed(x, norm), queries).view(-1, *self._split)
        if len(keys) == 1:
            # All rows ask one source: their queries are as many positions of one row.
            mask = self._source_mask
            read = F.scaled_dot_product_attention(q.transpose(0, 1)[None], keys, values, attn_mask=mask)
            read = read[0].transpose(0, 1)
        else:
            which, mask = self._which[rows], self._source_mask
            read = F.scaled_dot_product_attention(
                q[:, :, None], keys[which], values[which], attn_mask=None if mask is None else mask[which]
            )
        return linear(read.reshape(x.shape), projection).add_(x)


def _next_log_probs(logits: Tensor, never: Tensor) -> Tensor:
    """Log-probabilities of the next token, none of `never`, of its `logits` (n, vocab)."""
    logits = logits.index_fill(1, never, -torch.inf)
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _maps(block: nn.Module) -> tuple[tuple[Tensor, Tensor], ...]:
    """LayerNorm (weight, bias), and linear maps (bias, transposed weight), of what a block reads of the source."""
    parts = dict(block.named_children())
    held = [parts[name] for name in ("source_norm", "source_queries", "source_projection")]
    (norm, queries, projection) = [dict(part.named_parameters()) for part in held]
    return (
        (norm["weight"].detach(), norm["bias"].detach()),
        (queries["bias"].detach(), queries["weight"].detach().t()),
        (projection["bias"].detach(), projection["weight"].detach().t()),
    )
