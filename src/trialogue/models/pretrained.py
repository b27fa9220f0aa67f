"""Pretrained causal language models of Hugging Face as oracles, with a cache by row and position.

A model comes by hub id, folder, GGUF file, or the short name of one that was set up before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.models.checkpoint_loading import first_line, load_checkpoint
from trialogue.models.position_cache import Place, PositionCache
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Context

_BATCH_SIZE = 16
_POSITIONS_AT_ONCE = 4096
_PADDING_SHARE = 1.25
_CHECKED_LENGTH = 6
_CHECKED_WINDOW = 64
# Of `_cache_error`: a position that holds the wrong keys makes 0.2 and more, rounding 0.03 in bfloat16 and 1e-5 in
# float32.
_TOLERANCE = {torch.bfloat16: 0.15, torch.float16: 0.03}


def load_pretrained(
    name: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    remote_code: bool = False,
    recompute: bool = False,
    batch_size: int = _BATCH_SIZE,
) -> PretrainedOracle:
    """Load the model `name`: a hub id, a folder, a GGUF file, or the short name of a model that was set up before.

    `device` is the GPU where there is one. `dtype` is a name of torch's, or "auto" for that of the checkpoint. Code of
    the model's repository runs only with `remote_code`. `recompute` evaluates whole prefixes at every step, for models
    whose state cannot be rewound. `batch_size` is how many rows `generate` moves at once by default.

    Raises `InputError` for a model that cannot be had, has no tokenizer, or cannot be rewound although `recompute` is
    off, and for a device that is not there.
    """
    model, tokenizer = load_checkpoint("CausalLM", name, device=device, dtype=dtype, remote_code=remote_code)
    return PretrainedOracle(model, tokenizer, name=str(name), recompute=recompute, batch_size=batch_size)


class PretrainedOracle:
    """The causal Hugging Face model `model` with its `tokenizer` as a `trialogue.oracles.Autoregressive`.

    Prefixes are token ids as the tokenizer gives them: nothing is put before them, so a prompt holds at least one
    token. `vocab_size` counts what the model answers for, `max_length` the positions it knows (None where it states
    none), `layers` its blocks. Where the model has several tokens that end a sequence, `eos` answers for all of them.

    A model whose cached passes cannot start anywhere (a recurrent state, a sliding window that is shorter than the
    sequences, or passes that prove to differ from fresh ones) is refused with the reason, unless `recompute` is set:
    then every question evaluates the whole prefix. `batch_size` is how many rows `generate` moves at once by default.
    Raises `InputError` so, and for a tokenizer that is not fast.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        recompute: bool = False,
        batch_size: int = _BATCH_SIZE,
    ) -> None:
        self.model = model.eval()
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.recompute = recompute
        self.batch_size = whole_number("batch_size", batch_size, 1)
        config = model.config.get_text_config(decoder=True)
        self.head = model.get_output_embeddings()
        if self.head is None or getattr(config, "is_encoder_decoder", False):
            raise InputError("model", self.name, "it is no causal language model")
        self.body = model.base_model
        self.vocab_size: int = self.head.weight.shape[0]
        self.tokenization = (
            tokenizer if isinstance(tokenizer, Tokenization) else Tokenization(tokenizer, self.vocab_size)
        )
        self.eos, self.other_ends = self._ends()
        self.max_length: int | None = getattr(config, "max_position_embeddings", None)
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.device, self.dtype = self.head.weight.device, self.head.weight.dtype
        self.plain_head = self._head_is_plain()
        self.window: int | None = None
        if not recompute:
            kind = _recurrent(model, config)
            if kind:
                mend = (
                    f"its state ({kind}) cannot be rewound; recompute=True evaluates whole prefixes instead"
                )
                raise InputError("model", self.name, mend)
            stated, possible = _windows(config)
            self.window = stated
            self._require_right_cache()
            self.window = min((w for w in (stated, *filter(self._binds, possible)) if w), default=None)

    def _ends(self) -> tuple[int | None, tuple[int, ...]]:
        """The token that ends a sequence, and others that mean the same."""
        stated = getattr(getattr(self.model, "generation_config", None), "eos_token_id", None)
        ends = [] if stated is None else [stated] if isinstance(stated, int) else list(stated)
        eos = self.tokenization.eos if self.tokenization.eos is not None else next(iter(ends), None)
        return eos, tuple(sorted({end for end in ends if end != eos and end < self.vocab_size}))

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Make room for `rows` sequences of up to `capacity` tokens, recording the hidden states of `layers`.

        Raises `InputError` where the capacity exceeds the model's positions or its sliding window, or a layer is
        neither -1 (what the head reads) nor in 0..layers - 1 (the residual stream after that many blocks).
        """
        if self.max_length is not None and capacity > self.max_length:
            mend = f"{self.name} knows {self.max_length} positions; shorten prompts or max_new_tokens"
            raise InputError("capacity", capacity, mend)
        if self.window is not None and capacity > self.window:
            mend = f"{self.name} attends within a sliding window of {self.window} tokens, and what has left it cannot "
            raise InputError(
                "capacity", capacity, mend + "be rewound: generate less, or load with recompute=True"
            )
        for layer in layers:
            if not -1 <= layer < self.layers:
                mend = f"must be -1 (what the head reads) or in 0..{self.layers - 1}"
                raise InputError("layers", layer, mend)
        kept = tuple(layer for layer in layers if layer != -1)
        if self.recompute:
            return _Recomputed(self, capacity, kept)
        return _Cached(self, capacity, kept, PositionCache(self.layers, rows, capacity))

    def _head_is_plain(self) -> bool:
        """Whether logits are the output embeddings of the last hidden state, and nothing else."""
        tokens = self._probe_tokens(1)
        with torch.inference_mode():
            logits = self.model(input_ids=tokens, use_cache=False).logits
            own = self.head(self.body(input_ids=tokens, use_cache=False).last_hidden_state)
        return bool(torch.allclose(own.float(), logits.float(), rtol=1e-3, atol=1e-3))

    def _probe_tokens(self, rows: int, length: int = 6) -> Tensor:
        steps = torch.arange(rows * length, device=self.device).view(rows, length)
        return (steps * 7919 + 3) % self.vocab_size

    def _require_right_cache(self) -> None:
        """Raise unless ragged rows that rewind give what fresh passes give."""
        again = "recompute=True evaluates whole prefixes instead"
        bounds = [bound for bound in (self.window, self.max_length) if bound is not None]
        try:
            found = self._cache_error(min([_CHECKED_LENGTH, *bounds]))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # what a model makes of masks and positions that it does not expect
            mend = f"it takes no passes over ragged rows ({first_line(error)}); {again}"
            raise InputError("model", self.name, mend) from error
        # Of NaN `<=` is false, as it should be.
        if not found <= _TOLERANCE.get(self.dtype, 1e-3):
            mend = f"its cached passes differ from fresh ones; {again}"
            raise InputError("model", self.name, mend)

    def _binds(self, window: int) -> bool:
        """Whether cached passes are wrong, or too long to try, for sequences longer than `window`."""
        if self.max_length is not None and self.max_length <= window:
            return False
        if window > _CHECKED_WINDOW:
            return True
        length = max(window + 2, _CHECKED_LENGTH)
        bounds = [bound for bound in (self.window, self.max_length) if bound is not None]
        return not self._cache_error(min([length, *bounds])) <= _TOLERANCE.get(self.dtype, 1e-3)

    def _cache_error(self, length: int) -> float:
        """How far answers of rewound ragged rows of up to `length` tokens are from those of fresh passes.

        The root mean square over the vocabulary of the difference of log-probabilities, in standard deviations of the
        fresh ones, so that it means the same for a flat law as for a peaked one; the greatest of six answers.
        """
        tokens, rows = self._probe_tokens(2, length).cpu(), torch.tensor([0, 1])
        last = torch.tensor([length, length - 2]).clamp_min(1)
        wrong = tokens.clone()
        wrong[:, 2:] = (wrong[:, 2:] + 1) % self.vocab_size
        # Together in a pass: rows that begin at different places, that end at different places, and single tokens.
        schedule = [
            (torch.tensor([2, 3]), (last.max() - 1).clamp_min(1).expand(2)),
            (torch.tensor([3, 2]), last),
            (last, last),
        ]
        worst = 0.0
        with torch.inference_mode():
            cached: Context = _Cached(self, length, (), PositionCache(self.layers, 2, length))
            fresh: Context = _Recomputed(self, length, ())
            cached.features(wrong, torch.zeros_like(last), last, rows)
            for start, stop in schedule:
                answers, expected = (
                    context.log_probs(context.features(tokens, start.minimum(stop), stop, rows)).double()
                    for context in (cached, fresh)
                )
                for answer, law in zip(answers, expected, strict=True):
                    known = law.isfinite()
                    difference = (answer - law)[known].square().mean().sqrt()
                    error = float(difference / law[known].std().clamp_min(torch.finfo(torch.float32).tiny))
                    worst = error if math.isnan(error) else max(worst, error)
        return worst


def _recurrent(model: Any, config: Any) -> str:
    """What kind of state of the model cannot be rewound, if any."""
    if getattr(model, "_is_stateful", False):
        return "recurrent"
    attention = {"full_attention", "sliding_attention", "chunked_attention"}
    others = sorted(set(getattr(config, "layer_types", None) or ()) - attention)
    return ", ".join(others)


def _windows(config: Any) -> tuple[int | None, list[int]]:
    """The length up to which all layers attend to everything by what `config` states, and what else may be such one.

    The first is None where they always do.
    """
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds == {"full_attention"} or not getattr(config, "use_sliding_window", True):
        return None, []
    stated = [getattr(config, "sliding_window", None)]
    if "chunked_attention" in kinds:
        stated.append(getattr(config, "attention_chunk_size", None))
    if "local" in (getattr(config, "attention_layers", None) or ()):
        stated.append(getattr(config, "window_size", None))
    possible = {
        value
        for name, value in config.to_dict().items()
        if "window" in name and not name.endswith(("layers", "pattern")) and type(value) is int and value > 0
    }
    return min((window for window in stated if window), default=None), sorted(possible - {*stated})


class _Pretrained:
    """What the contexts of a pretrained model share: what is kept of a pass, and what is read off it.

    Features are (n, width * (1 + len(layers))): the last hidden state, then those after each of `layers` blocks. A
    model whose head does more than multiply keeps its logits in front.
    """

    first = 1

    def __init__(self, oracle: PretrainedOracle, capacity: int, layers: tuple[int, ...]) -> None:
        self._oracle, self._capacity, self._layers = oracle, capacity, layers
        self._logits = 0 if oracle.plain_head else oracle.vocab_size
        self.passes = 0

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token, in float32 (float64 for a float64 model)."""
        oracle = self._oracle
        logits = features[:, : self._logits] if self._logits else oracle.head(features[:, : oracle.width])
        answers = torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))
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
            answer = oracle.body(input_ids=ids, output_hidden_states=states, **settings)
            parts = [answer.last_hidden_state[rows, last]]
        else:
            answer = oracle.model(input_ids=ids, output_hidden_states=True, **settings)
            parts = [answer.logits[rows, last], answer.hidden_states[-1][rows, last]]
        parts += [answer.hidden_states[layer][rows, last] for layer in self._layers]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]

    def _checked(self, stop: Tensor) -> None:
        if int(stop.min()) < 1:
            mend = "a pretrained model continues at least one token: begin the prompt with its BOS"
            raise InputError("prompts", "(empty)", mend)
        if int(stop.max()) > self._capacity:
            mend = f"length {int(stop.max())} was asked for; open a larger context"
            raise InputError("capacity", self._capacity, mend)

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


class _Cached(_Pretrained):
    """A `trialogue.oracles.Context` over a cache by row and position; token i of a row is at its position i - 1."""

    recomputes = False

    def __init__(
        self, oracle: PretrainedOracle, capacity: int, layers: tuple[int, ...], cache: PositionCache
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
        groups = self._together(counts)
        parts = [self._evaluate(tokens[group], first[group], stop[group], rows[group]) for group in groups]
        features = parts[0].new_empty(len(rows), parts[0].shape[1])
        for group, part in zip(groups, parts, strict=True):
            features[group.to(part.device)] = part
        return features

    def _evaluate(self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Features (n, features) after evaluating indices `first..stop - 1` of `tokens` (n, capacity)."""
        device, counts = self._oracle.device, stop - first
        longest, reach = int(counts.max()), int(stop.max())
        positions = first[:, None] + torch.arange(longest)
        ids = tokens.gather(1, positions.clamp_max(tokens.shape[1] - 1))
        # Padding lies behind a row's last token; what it would store must not fall on what a later rewind may need.
        kept = torch.where(positions < stop[:, None], positions, self._cache.padding)
        consecutive = bool((rows[1:] - rows[:-1] == 1).all())
        level = longest == 1 and int(stop.min()) == reach
        place = Place(
            rows.to(device),
            kept.to(device),
            int(rows[0]) if consecutive else -1,
            reach - 1 if level and consecutive else -1,
            reach,
        )
        # A learned table of positions ends with the longest sequence, and padding may lie behind it.
        positions, counts = positions.minimum(stop[:, None] - 1).to(device), counts.to(device)
        return self._pass(
            ids.to(device),
            counts - 1,
            attention_mask=None if level else self._mask(positions, reach),
            position_ids=positions,
            past_key_values=self._cache.at(place),
            use_cache=True,
        )

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
        return _Cached(self._oracle, stop, self._layers, self._cache.fork(rows, stop))


class _Recomputed(_Pretrained):
    """A `trialogue.oracles.Context` that keeps nothing: every question evaluates its whole prefix."""

    recomputes = True

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate the prefixes of length `stop`; `start` and `rows` do not matter."""
        del start, rows
        self._checked(stop)
        features: Tensor | None = None
        for group in self._together(stop):
            lengths = stop[group].to(self._oracle.device)
            ids = tokens[group, : int(lengths.max())].to(self._oracle.device)
            # Causal: what is padding, to the right, is not seen.
            part = self._pass(ids, lengths - 1, use_cache=False)
            if features is None:
                features = part.new_empty(len(stop), part.shape[1])
            features[group.to(part.device)] = part
        assert features is not None
        return features

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Nothing is kept, so nothing is copied."""

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Nothing is kept, so nothing is shared."""
        del rows
        return _Recomputed(self._oracle, stop, self._layers)
