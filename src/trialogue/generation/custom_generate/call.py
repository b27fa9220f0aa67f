"""What one call of `generate` asks of a sampler, read and checked before anything is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation import GenerationMode

from trialogue.errors import InputError
from trialogue.generation.custom_generate.criteria import StoppingRules, stopped_by
from trialogue.generation.custom_generate.processors import process_of, split
from trialogue.models.wrappers.processed import Process
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.weighted_rejection import WeightedRejection

# What transformers adds by itself, or what makes no difference to a sampler.
_WITHOUT_EFFECT = ("use_cache", "logits_to_keep", "tokenizer", "cache_position")
_NEVER_KEPT = ("output_attentions", "output_hidden_states")
_CHECKED = ("attention_mask", "inputs_embeds", "past_key_values", "position_ids", *_NEVER_KEPT)


@dataclass(frozen=True)
class Call:
    """What is drawn: `num_samples` of each of `prompts`, which are padded on the left to `width` tokens.

    `stopped` is where completions end, `process` what the scores pass through, `truncation` the arguments of
    `truncated`; `greedy`, `scores`, `logits` and `dictionary` are whether the likeliest token is taken and what is
    returned.
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
        """The most tokens of a completion."""
        return self.stopped.max_length - self.width

    @property
    def cuts(self) -> bool:
        """Whether temperature 0, top-k or the like leave tokens out."""
        return self.greedy or bool(set(self.truncation) - {"temperature"})


def read_call(
    model: Any,
    input_ids: Tensor,
    processors: Sequence[Any],
    criteria: Sequence[Any],
    config: GenerationConfig,
    model_kwargs: Mapping[str, Any],
    sampler: Sampler[Any],
) -> Call:
    """What a call says; raises `InputError` for whatever of it `sampler` cannot honour."""
    if model.config.is_encoder_decoder:
        raise InputError("model", type(model).__name__, "it is no causal language model")
    mode = config.get_generation_mode()
    if mode not in (GenerationMode.SAMPLE, GenerationMode.GREEDY_SEARCH):
        raise InputError(
            "generation mode", mode.value, "a sampler draws by itself: leave out beams and assistants"
        )
    _require_outputs(config, sampler)
    _require_own_tokens(input_ids, model_kwargs)
    dictionary, greedy = bool(config.return_dict_in_generate), not config.do_sample
    if greedy and not (sampler.masks_first or sampler.uses == "nothing"):
        hint = f"{type(sampler).__name__} needs more than the likeliest token: use True"
        raise InputError("do_sample", False, hint)
    rows = _prompts(input_ids, model_kwargs.get("attention_mask"))
    num_samples = config.num_return_sequences or 1
    before, truncation = split(processors, do_sample=not greedy)
    return Call(
        prompts=rows[::num_samples],
        width=input_ids.shape[1],
        num_samples=num_samples,
        stopped=stopped_by(criteria, config.max_length, input_ids.device),
        process=process_of(before, rows, input_ids.shape[1], keeps_prompts=sampler.keeps_prompts),
        truncation=truncation,
        greedy=greedy,
        scores=dictionary and bool(config.output_scores),
        logits=dictionary and bool(config.output_logits),
        dictionary=dictionary,
        pad_token=config.pad_token_id,
    )


def _require_outputs(config: GenerationConfig, sampler: Sampler[Any]) -> None:
    """Raise `InputError` for what a sampler has none of, and `generate` is to return."""
    if not config.return_dict_in_generate:
        return
    for name in _NEVER_KEPT:
        if getattr(config, name, False):
            raise InputError(
                name, True, "a sampler asks for distributions and keeps no such thing: leave it out"
            )
    if config.output_scores and (sampler.goes_back or isinstance(sampler, WeightedRejection)):
        hint = (
            f"{type(sampler).__name__} takes tokens back, or draws them until one is accepted: leave it out, "
        )
        raise InputError("output_scores", True, hint + "or use output_logits")


def _require_own_tokens(input_ids: Tensor, model_kwargs: Mapping[str, Any]) -> None:
    """Raise `InputError` unless the model is asked about the tokens alone, from position 0."""
    if model_kwargs.get("inputs_embeds") is not None:
        raise InputError("inputs_embeds", "a tensor", "give input_ids: a sampler is on tokens")
    past = model_kwargs.get("past_key_values")
    if past is not None and past.get_seq_length() > 0:
        hint = "leave it out: a sampler keeps a cache of its own"
        raise InputError("past_key_values", type(past).__name__, hint)
    mask, positions = model_kwargs.get("attention_mask"), model_kwargs.get("position_ids")
    if positions is not None:
        real = torch.ones_like(input_ids) if mask is None else mask
        counted = (real.cumsum(-1) - 1).to(positions.device)
        same = positions.shape[-1] == counted.shape[-1] and bool((positions == counted)[real > 0].all())
        if not same:
            hint = "leave it out: a sampler counts tokens from 0"
            raise InputError("position_ids", tuple(positions.shape), hint)
    for name, value in model_kwargs.items():
        if name in (*_CHECKED, *_WITHOUT_EFFECT) or value is None or value is False:
            continue
        raise InputError(name, type(value).__name__, "leave it out: a sampler gives the model tokens alone")


def _prompts(input_ids: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    """The token ids of each row without its padding, which must be on the left."""
    rows: list[list[int]] = input_ids.tolist()
    if attention_mask is None:
        return rows
    mask = attention_mask.cpu()
    if mask.shape != input_ids.shape or bool((mask[:, 1:] < mask[:, :-1]).any()):
        hint = 'pad on the left: tokenizer.padding_side = "left"'
        raise InputError("attention_mask", tuple(mask.shape), hint)
    return [row[-kept:] if kept else [] for row, kept in zip(rows, mask.sum(1).tolist(), strict=True)]
