"""Pretrained causal language models of Hugging Face as oracles, with a cache by row and position.

A model comes by hub id, folder, GGUF file, or the short name of one that was set up before.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, first_line
from trialogue.models.caching.cache_check import (
    CHECKED_LENGTH,
    Passes,
    cache_error,
    forward_digest,
    recurrent_state,
    stored_passes,
    tolerance,
    windows,
)
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.caching.position_cache import PositionCache
from trialogue.models.caching.pretrained_contexts import CachedContext, RecomputedContext
from trialogue.models.hub.adapters import unwrapped
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.findings import Findings
from trialogue.models.hub.generation_config import stated_settings
from trialogue.models.hub.opening import Pretrained, TextModel
from trialogue.models.packed.choice import packed_as, require_weights
from trialogue.models.packed.linear import WeightIsPackedError, formats_of
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Context
from trialogue.validation import Count, validated

_BATCH_SIZE = 16
_CHECKED_WINDOW = 64
_PASSES, _READS_WEIGHTS = "passes", "reads weights"


def load_pretrained(
    name: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    remote_code: bool = False,
    recompute: bool = False,
    batch_size: int = _BATCH_SIZE,
    packed: bool = True,
    weights: str = "float32",
) -> PretrainedOracle:
    """Load the model `name`: a hub id, a folder, a GGUF file, or the short name of a model that was set up before.

    `device` is the GPU where there is one. `dtype` is a name of torch's, or "auto" for that of the checkpoint. Code of
    the model's repository runs only with `remote_code`. `recompute` evaluates whole prefixes at every step, for models
    whose state cannot be rewound. `batch_size` is how many rows `generate` moves at once by default. `packed` lays out
    the weights for the processor where that helps; the model itself can then be neither trained nor saved.

    `weights` is the format that packed layers keep them in: "float32", "bfloat16", "int8" (a scale for every output),
    "int4" (a scale and an offset for every 32 weights of an output; output embeddings in int8), or "auto": what
    measures fastest on this processor among those whose next-token distributions stay within `LAW_DISTANCE` of float32
    (mean total variation over a short English text). "auto" keeps two copies, of 8 or 4 and of 16 bits, where many rows
    are multiplied faster so. Layers that a format does not fit keep the next wider one. Of a GGUF file int4 takes codes
    of Q4_0, Q4_1 and Q4_K over as they are, and rounds no other quantised type below int8. The oracle's `weights` says
    which formats are in use, and where they come from. What trying the model shows is kept for the next time, see
    `trialogue.models.hub.findings`. Residual stream, attention and cache are in float32.

    Raises `InputError` for a model that cannot be had, has no tokenizer, or cannot be rewound although `recompute` is
    off, for a device that is not there, for weights in a format that this processor or torch cannot multiply, and
    where memory does not suffice.
    """

    if not isinstance(name, str | Path) or not str(name):
        raise InputError(
            "name", name, "give a hub id, a folder, a GGUF file, or a name of `trialogue models list`"
        )
    checkpoint = PretrainedCheckpoint(name, device=device, dtype=dtype, remote_code=remote_code)
    return checkpoint.load(recompute=recompute, batch_size=batch_size, packed=packed, weights=weights)


class PretrainedCheckpoint(Pretrained):
    """The model `name` before its weights are read: what its config and its tokenizer tell. Arguments and errors are
    those of `load_pretrained`.

    `max_length` counts the positions that the model knows, None where it states none.
    """

    def __init__(self, name: str | Path, **settings: Any) -> None:
        self._files = Checkpoint("CausalLM", name, **settings)
        config = self._files.config.get_text_config(decoder=True)
        self.tokenization = Tokenization(self._files.tokenizer, getattr(config, "vocab_size", None))
        self.max_length: int | None = getattr(config, "max_position_embeddings", None)

    def load(
        self,
        *,
        recompute: bool = False,
        batch_size: int = _BATCH_SIZE,
        packed: bool = True,
        weights: str = "float32",
    ) -> PretrainedOracle:
        """Read the weights. The oracle's tokenization is this one, unless its head answers for more tokens or fewer."""
        name = self._files.name
        findings = self._files.findings(weights=weights, packed=packed, recompute=recompute)

        def oracle(model: Any) -> PretrainedOracle:
            settings: dict[str, Any] = {"recompute": recompute, "batch_size": batch_size}
            made = PretrainedOracle(model, self.tokenization, name=name, findings=findings, **settings)
            made.files = self._files
            return made

        require_weights(weights, packed, self._files.dtype, self._files.device)
        if packed and self._files.device.type == "cpu" and self._files.dtype in (torch.float32, "auto"):
            if not findings.get(_READS_WEIGHTS):
                model, blocks = self._files.unfilled()
                with suppress(WeightIsPackedError):  # its code reads a weight itself
                    packed_as(weights, model, self.tokenization, blocks, findings)
                    return oracle(model)
                del model, blocks
                findings.keep(_READS_WEIGHTS, True)
            if weights != "float32":
                warnings.warn(
                    f"{name}: its code reads weights itself, so they stay as they are", stacklevel=3
                )
        return oracle(self._files.model())


class PretrainedOracle(TextModel):
    """The causal Hugging Face model `model` with its `tokenizer` as a `trialogue.oracles.Autoregressive`.

    Prefixes are token ids as the tokenizer gives them: nothing is put before them. An empty prompt stands for the BOS
    of the tokenizer, and is refused if there is none. `vocab_size` counts what the model answers for, `max_length` the
    positions it knows (None where it states none), `layers` its blocks, `weights` the formats of its linear layers and
    their shares. Where the model has several tokens that end a sequence, `eos` answers for all of them.

    A model whose cached passes cannot start anywhere (a recurrent state, a sliding window that is shorter than the
    sequences, or passes that prove to differ from fresh ones) is refused with the reason, unless `recompute` is set:
    then every question evaluates the whole prefix. `batch_size` is how many rows `generate` moves at once by default.
    What trying passes shows is taken from the `findings` of the same model, or added to them. Raises `InputError` so,
    and for a tokenizer that is not fast.
    """

    prompts_go_on = True  # GPT-2 begins every text with the token that ends it
    files: Checkpoint | None = None
    """Where it was loaded from; None of a model that was handed over"""

    @validated
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        recompute: bool = False,
        batch_size: Count = _BATCH_SIZE,
        findings: Findings | None = None,
    ) -> None:
        # Of a model of peft the adapted model, whose layers the adapter is in.
        self.model = model = unwrapped(model).eval()
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.recompute = recompute
        self.batch_size = batch_size
        config = model.config.get_text_config(decoder=True)
        self.head = model.get_output_embeddings()
        if self.head is None or getattr(config, "is_encoder_decoder", False):
            raise InputError("model", self.name, "it is no causal language model")
        self.body = model.base_model
        self.vocab_size: int = getattr(self.head, "out_features", None) or self.head.weight.shape[0]
        if isinstance(tokenizer, Tokenization) and tokenizer.vocab_size != self.vocab_size:
            tokenizer = tokenizer.tokenizer
        self.tokenization: Tokenization = (
            tokenizer if isinstance(tokenizer, Tokenization) else Tokenization(tokenizer, self.vocab_size)
        )
        bos = self.tokenization.bos
        self.empty_prompt = None if bos is None else (bos,)
        self.eos, self.other_ends = self._ends()
        self.max_length: int | None = getattr(config, "max_position_embeddings", None)
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.device, self.dtype = model.device, model.dtype
        self.generation_config = stated_settings(model)
        self.weights = formats_of(model)
        self.window: int | None = None
        self.decoder: DecoderPass | None = None
        kind = None if recompute else recurrent_state(model, config)
        if kind:
            hint = f"its state ({kind}) cannot be rewound; recompute=True evaluates whole prefixes instead"
            raise InputError("model", self.name, hint)
        findings = findings or Findings()
        known = stored_passes(findings.get(_PASSES), forward_digest(model))
        if known is None:
            known = self._tried(config)
            findings.keep(_PASSES, known._asdict())
        self.plain_head, self.window = known.plain_head, known.window
        if known.decoder and self.decoder is None:
            self.decoder = DecoderPass.of(self.body)

    def _tried(self, config: Any) -> Passes:
        """What passes of the model turn out to be; raises `InputError` where cached ones differ from fresh ones."""
        self.plain_head = self._head_is_plain()
        if not self.recompute:
            self.window, possible = windows(config)
            self._require_right_cache()
            self.window = min((w for w in (self.window, *filter(self._binds, possible)) if w), default=None)
        return Passes(self.plain_head, self.decoder is not None, self.window, forward_digest(self.model))

    def described(self) -> dict[str, str]:
        """What a result says of the model that it is of: `model`, its name, `weights`, their formats, and `files`.

        `files` is what `Checkpoint.identity` knows them by, which reads them all once.
        """
        files = "" if self.files is None else self.files.identity
        return {"model": self.name, "weights": self.weights, "files": files}

    def _ends(self) -> tuple[int | None, tuple[int, ...]]:
        """The token that ends a sequence, and others that mean the same."""
        stated = getattr(getattr(self.model, "generation_config", None), "eos_token_id", None)
        ends = [] if stated is None else [stated] if isinstance(stated, int) else list(stated)
        # Others are how some say that there is none.
        ends = [end for end in ends if 0 <= end < self.vocab_size]
        eos = self.tokenization.eos if self.tokenization.eos is not None else next(iter(ends), None)
        return eos, tuple(sorted(set(ends) - {eos}))

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Make room for `rows` sequences of up to `capacity` tokens, recording the hidden states of `layers`.

        Raises `InputError` where the capacity exceeds the model's positions or its sliding window, or a layer is
        neither -1 (what the head reads) nor in 0..layers - 1 (the residual stream after that many blocks).
        """
        if self.max_length is not None and capacity > self.max_length:
            hint = f"{self.name} knows {self.max_length} positions; shorten prompts or max_new_tokens"
            raise InputError("capacity", capacity, hint)
        if self.window is not None and capacity > self.window:
            hint = f"{self.name} attends within a sliding window of {self.window} tokens, and what has left it cannot "
            raise InputError(
                "capacity", capacity, hint + "be rewound: generate less, or load with recompute=True"
            )
        for layer in layers:
            if not -1 <= layer < self.layers:
                hint = f"must be -1 (what the head reads) or in 0..{self.layers - 1}"
                raise InputError("layers", layer, hint)
        kept = tuple(layer for layer in layers if layer != -1)
        if self.recompute:
            return RecomputedContext(self, capacity, kept)
        return CachedContext(self, capacity, kept, PositionCache(self.layers, rows, capacity))

    def _head_is_plain(self) -> bool:
        """Whether logits are the output embeddings of the last hidden state, and nothing else."""
        # Code of a model may take another way for a single token.
        return all(self._head_multiplies(self._probe_tokens(1, length)) for length in (1, CHECKED_LENGTH))

    def _head_multiplies(self, tokens: Tensor) -> bool:
        with torch.inference_mode():
            logits = self.model(input_ids=tokens, use_cache=False).logits
            from_body = self.head(self.body(input_ids=tokens, use_cache=False).last_hidden_state)
        return bool(torch.allclose(from_body.float(), logits.float(), rtol=1e-3, atol=1e-3))

    def _probe_tokens(self, rows: int, length: int) -> Tensor:
        steps = torch.arange(rows * length, device=self.device).view(rows, length)
        return (steps * 7919 + 3) % self.vocab_size

    def _require_right_cache(self) -> None:
        """Raise unless ragged rows that rewind give what fresh passes give; `decoder` only where it does too."""
        again = "recompute=True evaluates whole prefixes instead"
        self.decoder = DecoderPass.of(self.body) if self.plain_head else None
        if self.decoder is not None:
            with suppress(RuntimeError, AttributeError, TypeError):  # a layer that is not what its name says
                if self._cache_is_right(CHECKED_LENGTH):
                    return
            self.decoder = None
        try:
            right = self._cache_is_right(CHECKED_LENGTH)
        except (torch.OutOfMemoryError, WeightIsPackedError):
            raise
        except Exception as error:  # what a model makes of masks and positions that it does not expect
            hint = f"it takes no passes over ragged rows ({first_line(error)}); {again}"
            raise InputError("model", self.name, hint) from error
        if not right:
            raise InputError("model", self.name, f"its cached passes differ from fresh ones; {again}")

    def _binds(self, window: int) -> bool:
        """Whether cached passes are wrong, or too long to try, for sequences longer than `window`."""
        if self.max_length is not None and self.max_length <= window:
            return False
        return window > _CHECKED_WINDOW or not self._cache_is_right(max(window + 2, CHECKED_LENGTH))

    def _cache_is_right(self, length: int) -> bool:
        bounds = [bound for bound in (self.window, self.max_length) if bound is not None]
        return self._cache_error(min([length, *bounds])) <= tolerance(self)

    def _cache_error(self, length: int) -> float:
        return cache_error(self, self._probe_tokens(2, length))
