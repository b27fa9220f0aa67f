"""Pretrained causal language models of Hugging Face as oracles, with a key-value cache."""

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
    SelfCheckResults,
    cache_error,
    forward_digest,
    parse_self_checks,
    recurrent_state,
    rounding_tolerance,
    sliding_windows,
)
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.caching.head_context import require_capacity_and_layers
from trialogue.models.caching.position_cache import PositionCache
from trialogue.models.caching.pretrained_contexts import CachedContext, RecomputedContext
from trialogue.models.hub.adapters import transformers_model
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.findings import SelfCheckStore
from trialogue.models.hub.generation_config import end_tokens, recommended_settings
from trialogue.models.hub.opening import Pretrained, TextModel
from trialogue.models.packed.choice import pack_weights, require_weights
from trialogue.models.packed.linear import WeightIsPackedError, describe_formats
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
    """Load a pretrained causal language model.

    The formats of `weights` are "float32", "bfloat16", "int8" (one scale per output), "int4" (a scale and an
    offset per group of 32 weights) and "auto", the fastest of these on this processor that hardly changes the
    next-token distributions (by `MAX_TOTAL_VARIATION` at most). Layers that do not support a format use the
    next wider one. 4-bit weights of a GGUF file are used unchanged by "int4". Self-checks of the model are
    stored for the next call.

    Args:
        name: Hub id, folder, GGUF file, or short name of a model that was set up with `trialogue models
            pull`.
        device: Device of the model (default: the GPU if available, otherwise the CPU).
        dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.
        remote_code: Allow code from the model's repository to run.
        recompute: Evaluate complete prefixes at every step, for models whose state cannot be rewound.
        batch_size: Default number of rows that `generate` evaluates together.
        packed: Rearrange weights for the processor if this is faster. A packed model cannot be trained or
            saved.
        weights: Format of packed weights.

    Returns:
        The model as an oracle, which samplers accept. Its attribute `weights` lists the formats in use.

    Raises:
        InputError: If the model cannot be loaded, if its state cannot be rewound and `recompute` is False, if
            a device or format is not supported, or if memory does not suffice.
    """
    if not isinstance(name, str | Path) or not str(name):
        raise InputError(
            "name", name, "give a hub id, a folder, a GGUF file, or a name from `trialogue models list`"
        )
    checkpoint = PretrainedCheckpoint(name, device=device, dtype=dtype, remote_code=remote_code)
    return checkpoint.load(recompute=recompute, batch_size=batch_size, packed=packed, weights=weights)


class PretrainedCheckpoint(Pretrained):
    """Pretrained causal language model whose weights have not been loaded.

    Args:
        name: Hub id, folder, GGUF file, or short name of a model.
        **settings: The arguments `device`, `dtype` and `remote_code` of `load_pretrained`.

    Attributes:
        tokenization: Tokenization of the model.
        max_length: Maximum number of positions, or None if the configuration sets no limit.

    Raises:
        InputError: If the model cannot be loaded or has no tokenizer.
    """

    def __init__(self, name: str | Path, **settings: Any) -> None:
        self._files = Checkpoint("CausalLM", name, **settings)
        self.tokenization = self._files.tokenization
        self.max_length: int | None = getattr(self._files.text_config, "max_position_embeddings", None)

    def load(
        self,
        *,
        recompute: bool = False,
        batch_size: int = _BATCH_SIZE,
        packed: bool = True,
        weights: str = "float32",
    ) -> PretrainedOracle:
        """Load the weights, and return the model as an oracle.

        The arguments are those of `load_pretrained`. The oracle shares this tokenization, unless the number of tokens
        of its output head differs.
        """
        name = self._files.name
        findings = self._files.findings(weights=weights, packed=packed, recompute=recompute)

        def oracle(model: Any) -> PretrainedOracle:
            settings: dict[str, Any] = {"recompute": recompute, "batch_size": batch_size}
            loaded = PretrainedOracle(model, self.tokenization, name=name, findings=findings, **settings)
            loaded.files = self._files
            return loaded

        require_weights(weights, packed, self._files.dtype, self._files.device)
        if packed and self._files.device.type == "cpu" and self._files.dtype in (torch.float32, "auto"):
            if not findings.get(_READS_WEIGHTS):
                model, blocks = self._files.load_for_inference()
                # Some models read a weight directly, which packed layers do not support.
                with suppress(WeightIsPackedError):
                    pack_weights(weights, model, self.tokenization, blocks, findings)
                    return oracle(model)
                del model, blocks
                findings.keep(_READS_WEIGHTS, True)
            if weights != "float32":
                warnings.warn(
                    f"{name}: its code reads weights itself, so they are not converted to {weights}",
                    stacklevel=3,
                )
        return oracle(self._files.model())


class PretrainedOracle(TextModel):
    """Causal language model of Hugging Face, for use with samplers.

    Prefixes are token ids from the tokenizer, without additional tokens. An empty prompt stands for the BOS
    token. The probabilities of all tokens that end a sequence are merged into `eos`.

    Args:
        model: Causal language model of transformers, or a `PeftModel`.
        tokenizer: Fast tokenizer of transformers, or a `Tokenization`.
        name: Name in messages and results (default: the name in the model's configuration).
        recompute: Evaluate complete prefixes in every call. Required for models whose cache cannot remove
            tokens.
        batch_size: Default number of rows that `generate` evaluates together.
        findings: Stored results of earlier self-checks of the same model. Missing results are added to it.

    Attributes:
        vocab_size: Number of tokens that have a logit.
        max_length: Maximum number of positions, or None if the configuration sets no limit.
        layers: Number of blocks.
        window: Sliding-window length that limits the capacity of contexts, or None.
        weights: Formats of the linear layers, with their shares.
        generation_config: Generation settings that the publisher of the model recommends.

    Raises:
        InputError: If the model is not a causal language model, if its cache cannot remove tokens and
            `recompute` is False, or if the tokenizer is not fast.
    """

    prompts_go_on = True  # GPT-2 starts every text with its end-of-sequence token.
    files: Checkpoint | None = None
    """Checkpoint that the model was loaded from, or None if the model was passed as an object."""

    @validated
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        recompute: bool = False,
        batch_size: Count = _BATCH_SIZE,
        findings: SelfCheckStore | None = None,
    ) -> None:
        self.model = model = transformers_model(model).eval()
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.recompute = recompute
        self.batch_size = batch_size
        config = model.config.get_text_config(decoder=True)
        self.head = model.get_output_embeddings()
        if self.head is None or getattr(config, "is_encoder_decoder", False):
            raise InputError(
                "model", self.name, "it is not a causal language model. Use a model with a causal head"
            )
        self.body = model.base_model
        self.vocab_size: int = getattr(self.head, "out_features", None) or self.head.weight.shape[0]
        self.tokenization = (
            tokenizer.resize(self.vocab_size)
            if isinstance(tokenizer, Tokenization)
            else Tokenization(tokenizer, self.vocab_size)
        )
        bos = self.tokenization.bos
        self.empty_prompt = None if bos is None else (bos,)
        self.eos, self.other_ends = end_tokens(model, self.tokenization.eos, self.vocab_size)
        self.max_length: int | None = getattr(config, "max_position_embeddings", None)
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.device, self.dtype = model.device, model.dtype
        self.generation_config = recommended_settings(model)
        self.weights = describe_formats(model)
        self.window: int | None = None
        self.decoder: DecoderPass | None = None
        state_kind = None if recompute else recurrent_state(model, config)
        if state_kind:
            hint = f"its state ({state_kind}) cannot be rewound. Use recompute=True to evaluate complete prefixes"
            raise InputError("model", self.name, hint)
        findings = findings or SelfCheckStore()
        checked = parse_self_checks(findings.get(_PASSES), forward_digest(model))
        if checked is None:
            checked = self._check_passes(config)
            findings.keep(_PASSES, checked._asdict())
        self.plain_head, self.window = checked.plain_head, checked.window
        if checked.decoder and self.decoder is None:
            self.decoder = DecoderPass.create(self.body)

    def _check_passes(self, config: Any) -> SelfCheckResults:
        """Run the self-checks, and raise `InputError` if cached passes differ from uncached passes."""
        self.plain_head = self._has_plain_head()
        if not self.recompute:
            self.window, possible_windows = sliding_windows(config)
            self._require_correct_cache()
            self.window = min(
                (w for w in (self.window, *filter(self._is_binding_window, possible_windows)) if w),
                default=None,
            )
        return SelfCheckResults(
            self.plain_head, self.decoder is not None, self.window, forward_digest(self.model)
        )

    def describe(self) -> dict[str, str]:
        """Return a description of the model for the records of results.

        Returns:
            The name under "model", the weight formats under "weights", and `Checkpoint.identity` under "files".
            Computing the identity reads all weight files once.
        """
        files = "" if self.files is None else self.files.identity
        return {"model": self.name, "weights": self.weights, "files": files}

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Create a context for `rows` sequences of up to `capacity` tokens.

        Args:
            rows: Number of sequences.
            capacity: Maximum number of tokens per sequence.
            layers: Layers whose hidden states are recorded. Layer i is the residual stream after i blocks, and -1 is
                the input of the output head.

        Raises:
            InputError: If `capacity` exceeds the positions or the sliding window of the model, or if a layer is not in
                -1..layers - 1.
        """
        recorded_layers = require_capacity_and_layers(self, capacity, layers)
        if self.recompute:
            return RecomputedContext(self, capacity, recorded_layers)
        return CachedContext(self, capacity, recorded_layers, PositionCache(self.layers, rows, capacity))

    def _has_plain_head(self) -> bool:
        """Return whether logits are the product of the last hidden state and the output embeddings."""
        # Models may treat a single token differently.
        longest = min(CHECKED_LENGTH, self.max_length or CHECKED_LENGTH)
        return all(self._logits_match_head(self._probe_tokens(1, length)) for length in (1, longest))

    def _logits_match_head(self, tokens: Tensor) -> bool:
        with torch.inference_mode():
            logits = self.model(input_ids=tokens, use_cache=False).logits
            from_body = self.head(self.body(input_ids=tokens, use_cache=False).last_hidden_state)
        return bool(torch.allclose(from_body.float(), logits.float(), rtol=1e-3, atol=1e-3))

    def _probe_tokens(self, rows: int, length: int) -> Tensor:
        steps = torch.arange(rows * length, device=self.device).view(rows, length)
        return (steps * 7919 + 3) % self.vocab_size

    def _require_correct_cache(self) -> None:
        """Raise `InputError` if cached passes are wrong, and set `decoder` if its passes are correct."""
        fix = "Use recompute=True to evaluate complete prefixes"
        self.decoder = DecoderPass.create(self.body) if self.plain_head else None
        if self.decoder is not None:
            # A layer may be unsupported although its class has a supported name.
            with suppress(RuntimeError, AttributeError, TypeError):
                if self._is_cache_correct(CHECKED_LENGTH):
                    return
            self.decoder = None
        try:
            is_correct = self._is_cache_correct(CHECKED_LENGTH)
        except (torch.OutOfMemoryError, WeightIsPackedError):
            raise
        except Exception as error:  # Models raise various errors for unsupported masks and positions.
            hint = f"it does not support rows of different lengths ({first_line(error)}). {fix}"
            raise InputError("model", self.name, hint) from error
        if not is_correct:
            raise InputError("model", self.name, f"its cached passes differ from uncached ones. {fix}")

    def _is_binding_window(self, window: int) -> bool:
        """Return whether cached passes are wrong, or cannot be checked, for sequences longer than `window`."""
        if self.max_length is not None and self.max_length <= window:
            return False
        return window > _CHECKED_WINDOW or not self._is_cache_correct(max(window + 2, CHECKED_LENGTH))

    def _is_cache_correct(self, length: int) -> bool:
        bounds = [bound for bound in (self.window, self.max_length) if bound is not None]
        return self._cache_error(min([length, *bounds])) <= rounding_tolerance(self)

    def _cache_error(self, length: int) -> float:
        return cache_error(self, self._probe_tokens(2, length))
