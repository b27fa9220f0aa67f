"""Contexts of pretrained models: what is evaluated together, what is kept of a pass, and what is read off it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.caching.position_cache import CachePlace, PositionCache
from trialogue.oracles import Context

_POSITIONS_AT_ONCE = 4096
_PADDING_SHARE = 1.25


class CausalModel(Protocol):
    """The parts of a causal Hugging Face model that a context evaluates, as `PretrainedOracle` names them.

    `model` is the whole and `body` what gives `width` hidden states, of which the output embeddings `head` make logits,
    and nothing else where it is a `plain_head`. `decoder`, where there is one, gives the states with fewer operators.
    `other_ends` are tokens that mean the same as `eos`.
    """

    model: Any
    body: Any
    head: Any
    plain_head: bool
    decoder: DecoderPass | None
    vocab_size: int
    width: int
    layers: int
    eos: int | None
    other_ends: tuple[int, ...]
    device: torch.device
    dtype: torch.dtype


class PretrainedContext(Context):
    """What the contexts of a pretrained model share: what is kept of a pass, and what is read off it.

    Features are (n, width * (1 + len(layers))): the last hidden state, then those after each of `layers` blocks. A
    model whose head does more than multiply keeps its logits in front.
    """

    first = 1
    passes: int

    def __init__(self, oracle: CausalModel, capacity: int, layers: tuple[int, ...]) -> None:
        self._oracle, self._capacity, self._layers = oracle, capacity, layers
        self._logits = 0 if oracle.plain_head else oracle.vocab_size
        self.passes = 0

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token, in float32 (float64 for a float64 model)."""
        return self.law_of(self.scores(features))

    def scores(self, features: Tensor) -> Tensor:
        """Logits (n, vocab) of the next token, every end of sequence by itself."""
        oracle = self._oracle
        return features[:, : self._logits] if self._logits else oracle.head(features[:, : oracle.width])

    def law_of(self, scores: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) by logits, `eos` in place of all tokens that end a sequence."""
        oracle = self._oracle
        answers = torch.log_softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32))
        if oracle.other_ends and oracle.eos is not None:
            ends = [oracle.eos, *oracle.other_ends]
            answers[:, oracle.eos] = answers[:, ends].logsumexp(1)
            answers[:, oracle.other_ends] = -torch.inf
        return answers

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Residual stream (n, width) after `layer` blocks; -1 is what the head reads."""
        width = self._oracle.width
        if layer == -1:
            return features[:, self._logits : self._logits + width]
        if layer not in self._layers:
            raise InputError("layer", layer, f"not recorded; open the context with layers=({layer},)")
        first = self._logits + width * (1 + self._layers.index(layer))
        return features[:, first : first + width]

    def _pass(self, ids: Tensor, last: Tensor, **settings: Any) -> Tensor:
        """Features (n, features) at index `last` (n,) of each row of input `ids` (n, m)."""
        oracle = self._oracle
        states = bool(self._layers)
        self.passes += 1
        rows = torch.arange(len(ids), device=ids.device)
        if oracle.plain_head:
            streams = self._streams(ids, states, settings)
            parts = [streams[-1][rows, last]]
        else:
            answer = oracle.model(input_ids=ids, output_hidden_states=True, **settings)
            streams = answer.hidden_states
            parts = [answer.logits[rows, last], streams[-1][rows, last]]
        parts += [streams[layer][rows, last] for layer in self._layers]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]

    def _streams(self, ids: Tensor, every: bool, settings: dict[str, Any]) -> Sequence[Tensor]:
        """Residual streams (n, m, width) of input `ids` (n, m): the last is what the head reads.

        With `every`, the others are those before each block.
        """
        answer = self._oracle.body(input_ids=ids, output_hidden_states=every, **settings)
        return (*(answer.hidden_states or ())[:-1], answer.last_hidden_state)

    def prefix_states(
        self, tokens: Tensor, start: int, lengths: Sequence[Sequence[int]], layers: Sequence[int]
    ) -> Tensor:
        """Hidden states (n, len(layers), width) of all prefixes of `tokens` (rows, capacity), off one pass.

        `lengths` names the prefixes of each row, shortest first. Positions below `start` of storage row i, that of
        row i, are as an earlier call or a copy left them, and no prefix is shorter. Not all that is evaluated is kept:
        the context cannot be asked for more afterwards.
        """
        stop = torch.tensor([prefixes[-1] for prefixes in lengths])
        self._checked(stop)
        first = torch.full_like(stop, 0 if self.recomputes else max(start - 1, 0))
        if start:
            ids, settings = self._inputs(tokens, first, stop, torch.arange(len(stop)))
        else:
            ids, settings = self._whole_inputs(tokens, stop)
        self.passes += 1
        streams = self._streams(ids, True, settings)
        rows = [row for row, prefixes in enumerate(lengths) for _ in prefixes]
        # A prefix of i tokens ends at index i - 1; padding lies to the right, where a causal network does not look.
        last = [length - 1 - int(first[row]) for row, prefixes in enumerate(lengths) for length in prefixes]
        return torch.stack([streams[layer][rows, last] for layer in layers], 1)

    @abstractmethod
    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        """Input ids, and what else the network is given, to evaluate indices `first..stop - 1` of each row."""

    def _whole_inputs(self, tokens: Tensor, stop: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """The same for whole prefixes, of which nothing is kept."""
        # Causal: what is padding, to the right, is not seen.
        return tokens[:, : int(stop.max())].to(self._oracle.device), {"use_cache": False}

    def _checked(self, stop: Tensor) -> None:
        if int(stop.min()) < 1:
            hint = "a pretrained model continues at least one token: begin the prompt with its BOS"
            raise InputError("prompts", "(empty)", hint)
        if int(stop.max()) > self._capacity:
            hint = f"length {int(stop.max())} was asked for; open a larger context"
            raise InputError("capacity", self._capacity, hint)

    def _by_groups(self, counts: Tensor, evaluate: Callable[[Tensor], Tensor]) -> Tensor:
        """Features (n, features) of rows with `counts` (n,) positions each, where `evaluate` gives those of a group."""
        groups = self._together(counts)
        parts = [evaluate(group) for group in groups]
        order = torch.cat(groups).argsort()
        return torch.cat(parts)[order.to(parts[0].device)]

    def _together(self, counts: Tensor) -> list[Tensor]:
        """Indices of rows to evaluate together, longest first: little padding, and no pass too large to hold."""
        order = counts.argsort(descending=True)
        groups: list[Tensor] = []
        begin, real = 0, 0
        for place, count in enumerate(counts[order].tolist()):
            longest = int(counts[order[begin]])
            padded = longest * (place + 1 - begin)
            if place > begin and (padded > _PADDING_SHARE * (real + count) or padded > _POSITIONS_AT_ONCE):
                groups.append(order[begin:place])
                begin, real = place, 0
            real += count
        return [*groups, order[begin:]]


class CachedContext(PretrainedContext):
    """A context over a cache by row and position; token i of a row is at its position i - 1."""

    def __init__(
        self, oracle: CausalModel, capacity: int, layers: tuple[int, ...], cache: PositionCache
    ) -> None:
        super().__init__(oracle, capacity, layers)
        self._cache = cache
        self._range = torch.arange(capacity + 1, device=oracle.device)

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row (see `trialogue.oracles.Context`)."""
        self._checked(stop)
        first = (start - 1).clamp_min(0)
        counts = stop - first
        if int(counts.max()) == 1 or len(rows) == 1:
            return self._evaluate(tokens, first, stop, rows)

        def evaluated(group: Tensor) -> Tensor:
            return self._evaluate(tokens[group], first[group], stop[group], rows[group])

        return self._by_groups(counts, evaluated)

    def _evaluate(self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Features (n, features) after evaluating indices `first..stop - 1` of `tokens` (n, capacity)."""
        ids, settings = self._inputs(tokens, first, stop, rows)
        return self._pass(ids, (stop - first - 1).to(ids.device), **settings)

    def _streams(self, ids: Tensor, every: bool, settings: dict[str, Any]) -> Sequence[Tensor]:
        decoder = self._oracle.decoder
        if decoder is None or not settings["use_cache"] or not decoder.as_loaded():
            return super()._streams(ids, every, settings)
        return decoder(ids, settings["position_ids"], settings["attention_mask"], self._cache.layers)

    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        device, counts = self._oracle.device, stop - first
        longest, reach = int(counts.max()), int(stop.max())
        positions = first[:, None] + torch.arange(longest)
        ids = tokens.gather(1, positions.clamp_max(tokens.shape[1] - 1))
        # Padding lies behind a row's last token; what it would store must not fall on what a later rewind may need.
        kept = torch.where(positions < stop[:, None], positions, self._cache.padding)
        consecutive = bool((rows[1:] - rows[:-1] == 1).all())
        level = longest == 1 and int(stop.min()) == reach
        place = CachePlace(
            rows.to(device),
            kept.to(device),
            int(rows[0]) if consecutive else -1,
            reach - 1 if level and consecutive else -1,
            reach,
        )
        # A learned table of positions ends with the longest sequence, and padding may lie behind it.
        positions = positions.minimum(stop[:, None] - 1).to(device)
        return ids.to(device), {
            "attention_mask": None if level else self._mask(positions, reach),
            "position_ids": positions,
            "past_key_values": self._cache.at(place),
            "use_cache": True,
        }

    def _mask(self, positions: Tensor, reach: int) -> Tensor:
        """What is added to the scores (n, 1, m, reach): nothing for what is past, the least number for the rest."""
        dtype = self._oracle.dtype
        future = self._range[:reach] > positions[:, None, :, None]
        return torch.zeros(future.shape, dtype=dtype, device=future.device).masked_fill_(
            future, torch.finfo(dtype).min
        )

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop` of storage rows `rows` those of `source` (both (n,))."""
        self._cache.copy(source, rows, max(start - 1, 0), stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context for up to `stop` tokens whose row i starts as this one's row `rows[i]`."""
        return CachedContext(self._oracle, stop, self._layers, self._cache.fork(rows, stop))


class RecomputedContext(PretrainedContext):
    """A context that keeps nothing: every question evaluates its whole prefix."""

    recomputes = True

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate the prefixes of length `stop`; `start` and `rows` do not matter."""
        del start, rows
        self._checked(stop)

        def evaluated(group: Tensor) -> Tensor:
            ids, settings = self._whole_inputs(tokens[group], stop[group])
            return self._pass(ids, (stop[group] - 1).to(ids.device), **settings)

        return self._by_groups(stop, evaluated)

    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        del first, rows
        return self._whole_inputs(tokens, stop)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Nothing is kept, so nothing is copied."""

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Nothing is kept, so nothing is shared."""
        del rows
        return RecomputedContext(self._oracle, stop, self._layers)
