"""Validation of the arguments of a call of `model.generate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation import GenerationMode

from trialogue.errors import InputError
from trialogue.generation.custom_generate.criteria import StoppingRules, read_stopping_criteria
from trialogue.generation.custom_generate.processors import combine_processors, split_processors
from trialogue.models.wrappers.processed import Process
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.weighted_rejection import WeightedRejection

# Arguments that transformers adds automatically, or that have no effect on a sampler.
_WITHOUT_EFFECT = ("use_cache", "logits_to_keep", "tokenizer", "cache_position")
_UNSUPPORTED_OUTPUTS = ("output_attentions", "output_hidden_states")
_CHECKED = ("attention_mask", "inputs_embeds", "past_key_values", "position_ids", *_UNSUPPORTED_OUTPUTS)


@dataclass(frozen=True)
class GenerateCall:
    """Arguments of one call of `model.generate`, converted for the samplers of this library.

    Args:
        prompts: Token ids of each prompt, without padding.
        width: Length in tokens to which the prompts are padded on the left.
        num_samples: Number of samples per prompt.
        stopped: Conditions at which completions end.
        process: Function that changes the model's scores before the verifier's mask is applied, or None.
        truncation: Keyword arguments of `trialogue.samplers.truncated`.
        greedy: Whether to choose the most likely token at each step.
        scores: Whether to return the processed scores of each step.
        logits: Whether to return the logits of each step.
        dictionary: Whether to return a `SamplerOutput` instead of a tensor of token ids.
        pad_token: Token id for padding, or None.
    """

    prompts: list[list[int]]
    width: int
    num_samples: int
    stopped: StoppingRules
    process: Process | None
    truncation: dict[str, Any]
    greedy: bool
    scores: bool
    logits: bool
    dictionary: bool
    pad_token: int | None

    @property
    def max_new_tokens(self) -> int:
        """Maximum number of tokens per completion."""
        return self.stopped.max_length - self.width

    @property
    def removes_tokens(self) -> bool:
        """Whether some tokens get probability zero, by greedy decoding, top-k, top-p or min-p."""
        return self.greedy or bool(set(self.truncation) - {"temperature"})


def read_call(
    model: Any,
    input_ids: Tensor,
    processors: Sequence[Any],
    criteria: Sequence[Any],
    config: GenerationConfig,
    model_kwargs: Mapping[str, Any],
    sampler: Sampler[Any],
) -> GenerateCall:
    """Validate the arguments of a `model.generate` call, and convert them to a `GenerateCall`.

    Args:
        model: The model on which `generate` was called.
        input_ids: Token ids of the prompts, padded on the left, shape (rows, width).
        processors: Logits processors, in their order of application.
        criteria: Stopping criteria.
        config: Generation settings of the call.
        model_kwargs: Remaining keyword arguments for the model.
        sampler: Sampler that will generate the completions.

    Returns:
        The arguments in the form that samplers use.

    Raises:
        InputError: If `sampler` does not support one of the arguments.
    """
    if model.config.is_encoder_decoder:
        raise InputError("model", type(model).__name__, "use a causal language model")
    mode = config.get_generation_mode()
    if mode not in (GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH):
        raise InputError(
            "generation mode", mode.value, "use sampling or greedy search, without beams or assistant models"
        )
    _require_outputs(config, sampler)
    _require_token_inputs(input_ids, model_kwargs)
    dictionary, greedy = bool(config.return_dict_in_generate), not config.do_sample
    if greedy and not (sampler.masks_first or sampler.uses == "nothing"):
        hint = f"{type(sampler).__name__} does not support greedy decoding: use True"
        raise InputError("do_sample", False, hint)
    rows = _prompts(input_ids, model_kwargs.get("attention_mask"))
    num_samples = config.num_return_sequences or 1
    before, truncation = split_processors(processors, do_sample=not greedy)
    return GenerateCall(
        prompts=rows[::num_samples],
        width=input_ids.shape[1],
        num_samples=num_samples,
        stopped=read_stopping_criteria(criteria, config.max_length, input_ids.device),
        process=combine_processors(before, rows, input_ids.shape[1], keeps_prompts=sampler.keeps_prompts),
        truncation=truncation,
        greedy=greedy,
        scores=dictionary and bool(config.output_scores),
        logits=dictionary and bool(config.output_logits),
        dictionary=dictionary,
        pad_token=config.pad_token_id,
    )


def _require_outputs(config: GenerationConfig, sampler: Sampler[Any]) -> None:
    """Raise `InputError` if the call requests an output that `sampler` cannot produce."""
    if not config.return_dict_in_generate:
        return
    for name in _UNSUPPORTED_OUTPUTS:
        if getattr(config, name, False):
            raise InputError(name, True, "samplers do not return this output: leave it out")
    if config.output_scores and (sampler.goes_back or isinstance(sampler, WeightedRejection)):
        hint = (
            f"{type(sampler).__name__} does not sample each token from one distribution: leave it out "
            "or use output_logits"
        )
        raise InputError("output_scores", True, hint)


def _require_token_inputs(input_ids: Tensor, model_kwargs: Mapping[str, Any]) -> None:
    """Raise `InputError` unless the inputs are token ids at positions counted from 0, without a cache."""
    if model_kwargs.get("inputs_embeds") is not None:
        raise InputError("inputs_embeds", "a tensor", "use input_ids: samplers work on token ids")
    past = model_kwargs.get("past_key_values")
    if past is not None and past.get_seq_length() > 0:
        hint = "leave it out: the sampler creates a new cache"
        raise InputError("past_key_values", type(past).__name__, hint)
    mask, positions = model_kwargs.get("attention_mask"), model_kwargs.get("position_ids")
    if positions is not None:
        real = torch.ones_like(input_ids) if mask is None else mask
        counted = (real.cumsum(-1) - 1).to(positions.device)
        same = positions.shape[-1] == counted.shape[-1] and bool((positions == counted)[real > 0].all())
        if not same:
            hint = "leave it out: the sampler counts positions from 0"
            raise InputError("position_ids", tuple(positions.shape), hint)
    for name, value in model_kwargs.items():
        if name in (*_CHECKED, *_WITHOUT_EFFECT) or value is None or value is False:
            continue
        raise InputError(
            name, type(value).__name__, "leave it out: the sampler passes only token ids to the model"
        )


def _prompts(input_ids: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    """Return the token ids of each row without left padding."""
    rows: list[list[int]] = input_ids.tolist()
    if attention_mask is None:
        return rows
    mask = attention_mask.cpu()
    if mask.shape != input_ids.shape or bool((mask[:, 1:] < mask[:, :-1]).any()):
        hint = 'pad on the left: tokenizer.padding_side = "left"'
        raise InputError("attention_mask", tuple(mask.shape), hint)
    return [row[-kept:] if kept else [] for row, kept in zip(rows, mask.sum(1).tolist(), strict=True)]
