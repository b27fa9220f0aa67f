"""Conversion of the logits processors of `model.generate` to functions that samplers can apply.

`generate` of transformers applies penalties first, then user-defined processors, then temperature and truncation. A
sampler applies the penalties and user-defined processors to the model's scores of each prefix without padding. It then
masks the scores with the verifier, and applies temperature and truncation.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import generation as hf
from transformers.generation import LogitNormalization
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor

from trialogue.errors import InputError, describe_error
from trialogue.models.wrappers.processed import Process

_WARPERS = {
    hf.TemperatureLogitsWarper: "temperature",
    hf.TopKLogitsWarper: "top_k",
    hf.TopPLogitsWarper: "top_p",
    hf.MinPLogitsWarper: "min_p",
}
_TOKEN_PROCESSORS = (
    *_WARPERS,
    LogitNormalization,
    hf.InfNanRemoveLogitsProcessor,
    hf.NoBadWordsLogitsProcessor,
    hf.NoRepeatNGramLogitsProcessor,
    hf.RepetitionPenaltyLogitsProcessor,
    hf.SequenceBiasLogitsProcessor,
    hf.SuppressTokensLogitsProcessor,
)
# These processors use only the length of the padded batch, not the tokens.
_LENGTH_PROCESSORS = (
    hf.ExponentialDecayLengthPenalty,
    hf.ForcedBOSTokenLogitsProcessor,
    hf.ForcedEOSTokenLogitsProcessor,
    hf.MinLengthLogitsProcessor,
    hf.MinNewTokensLengthLogitsProcessor,
    hf.SuppressTokensAtBeginLogitsProcessor,
)
_UNSUPPORTED_WARPERS = (
    hf.EpsilonLogitsWarper,
    hf.EtaLogitsWarper,
    hf.TopHLogitsWarper,
    hf.TypicalLogitsWarper,
)


def split_processors(processors: Sequence[Any], *, do_sample: bool) -> tuple[list[Any], dict[str, Any]]:
    """Split the logits processors of a call into two groups, before and after the verifier's mask.

    Trailing processors for temperature, top-k, top-p and min-p are applied after the mask.

    Args:
        processors: Logits processors, in their order of application.
        do_sample: Whether to sample. If False, the most likely token is chosen (temperature 0).

    Returns:
        The processors to apply before the mask, and keyword arguments of `trialogue.samplers.truncated` that
        replace the processors after the mask.

    Raises:
        InputError: If a processor of transformers keeps state, needs the whole batch, or truncates the
            distribution in another way than top-k, top-p and min-p.
    """
    before = list(processors)
    while before and type(before[-1]) is LogitNormalization:  # The sampler normalises in any case.
        before.pop()
    truncation: dict[str, Any] = {}
    order = list(_WARPERS)
    while before and type(before[-1]) in order and _is_default_warper(before[-1]):
        name = _WARPERS[type(before[-1])]
        order = order[: order.index(type(before[-1]))]
        truncation[name] = getattr(before.pop(), name)
    for processor in before:
        _require_supported(processor)
    return before, truncation if do_sample else {"temperature": 0.0}


def _is_default_warper(warper: Any) -> bool:
    """Return whether `warper` sets removed tokens to -inf and has no minimum number of tokens above 1."""
    minimum = getattr(warper, "min_tokens_to_keep", 1)
    return bool(minimum == 1 and getattr(warper, "filter_value", -torch.inf) == -torch.inf)


def _require_supported(processor: Any) -> None:
    """Raise `InputError` if a sampler cannot apply `processor`."""
    kind = type(processor)
    if kind in _UNSUPPORTED_WARPERS:
        hint = "use temperature, top_k, top_p or min_p instead"
    elif kind in (*_TOKEN_PROCESSORS, *_LENGTH_PROCESSORS, PrefixConstrainedLogitsProcessor):
        return
    elif kind.__module__.split(".")[0] == "transformers":
        hint = "leave it out: it needs state, an encoder or the whole batch, and samplers process single prefixes"
    else:
        return
    raise InputError("logits_processor", kind.__name__, hint)


def combine_processors(
    processors: Sequence[Any], prompts: Sequence[Sequence[int]], width: int, *, keeps_prompts: bool
) -> Process | None:
    """Combine logits processors into one function of a single prefix and its scores.

    Args:
        processors: Logits processors to apply, in this order.
        prompts: Token ids of the prompts of the batch, without padding.
        width: Length to which transformers pads the prompts on the left.
        keeps_prompts: Whether every prefix that the sampler evaluates begins with its prompt.

    Returns:
        The combined function, or None if there are no processors.

    Raises:
        InputError: If a processor depends on the index of the row or on the amount of padding, and the prefix
            does not determine them.
    """
    if not processors:
        return None
    padding = _Padding(prompts, width)
    steps = [_processing_step(processor, padding, keeps_prompts) for processor in processors]

    def process(prefix: Tensor, scores: Tensor) -> Tensor:
        for step in steps:
            scores = step(prefix, scores)
        return scores

    return process


def _processing_step(processor: Any, padding: "_Padding", keeps_prompts: bool) -> Process:
    """Return the function that applies `processor` to a prefix and its scores."""
    kind = type(processor)
    if kind in _LENGTH_PROCESSORS:
        padding.require_known(processor, keeps_prompts)
        return _with_processor_name(
            processor, lambda prefix, scores: processor(padding.padded(prefix), scores)
        )
    if kind is hf.RepetitionPenaltyLogitsProcessor:
        return _with_processor_name(processor, _repetition_penalty(processor, padding))
    if kind is PrefixConstrainedLogitsProcessor and len(padding.prompts) > 1:
        hint = "use a verifier instead or pass one prompt: it depends on the row index in the batch"
        raise InputError("logits_processor", kind.__name__, hint)
    return _with_processor_name(
        processor, processor if kind in _TOKEN_PROCESSORS else _StatelessProcessor(processor)
    )


def _repetition_penalty(processor: Any, padding: "_Padding") -> Process:
    """Return a copy of a repetition penalty for prefixes without padding."""
    ignored = processor.prompt_ignore_length
    if isinstance(ignored, Tensor):
        if ignored.tolist() != padding.per_prompt:
            hint = "use a custom processor: per-row prompt_ignore_length is supported only for padding"
            raise InputError("logits_processor", type(processor).__name__, hint)
        ignored = None
    if ignored and any(padding.per_prompt):
        hint = f"use prompts of equal length: it ignores the first {ignored} tokens, which include padding"
        raise InputError("logits_processor", type(processor).__name__, hint)
    return hf.RepetitionPenaltyLogitsProcessor(processor.penalty, prompt_ignore_length=ignored)


class _Padding:
    """Determines the number of padding tokens on the left of a prefix, from the prompt at its start."""

    def __init__(self, prompts: Sequence[Sequence[int]], width: int) -> None:
        self.prompts, self._width = [tuple(prompt) for prompt in prompts], width
        self.per_prompt = [width - len(prompt) for prompt in self.prompts]
        self._lengths = sorted(set(map(len, self.prompts)))
        self._distinct_prompts = set(self.prompts)

    def require_known(self, processor: Any, keeps_prompts: bool) -> None:
        """Raise `InputError` if the padding of a prefix cannot be determined."""
        if len(self._lengths) == 1:
            return
        longer = ((one, length) for one in self.prompts for length in self._lengths if length < len(one))
        if not keeps_prompts or any(one[:length] in self._distinct_prompts for one, length in longer):
            hint = "use one call per prompt length: it depends on the amount of padding"
            raise InputError("logits_processor", type(processor).__name__, hint)

    def padded(self, prefix: Tensor) -> Tensor:
        """Return `prefix` (1, length) with its left padding replaced by zeros."""
        tokens, length = tuple(prefix[0].tolist()), self._lengths[0]
        if len(self._lengths) > 1:
            length = next(one for one in self._lengths if tokens[:one] in self._distinct_prompts)
        return torch.nn.functional.pad(prefix, (self._width - length, 0))


class _StatelessProcessor:
    """Wrapper that raises `InputError` if a user-defined logits processor keeps state between calls.

    After the first call with a different prefix, the processor is called again with its first prefix, and both results
    must be equal.
    """

    def __init__(self, processor: Callable[[Tensor, Tensor], Tensor]) -> None:
        self._processor = processor
        self._first: tuple[Tensor, Tensor, Tensor] | None = None
        self._is_checked = False

    def __call__(self, prefix: Tensor, scores: Tensor) -> Tensor:
        given = None if self._is_checked else scores.clone()
        output = self._processor(prefix, scores)
        if given is None:
            return output
        if self._first is None:
            self._first = prefix, given, output.clone()
        elif not torch.equal(self._first[0], prefix):
            prefix, scores, before = self._first
            if not torch.equal(self._processor(prefix, scores), before):
                hint = (
                    "remove its state or use a verifier: two calls with the same prefix gave different scores"
                )
                raise InputError("logits_processor", type(self._processor).__name__, hint)
            self._is_checked = True
        return output


def _with_processor_name(processor: Any, step: Process) -> Process:
    """Return `step` with its exceptions converted to an `InputError` that contains the name of the processor."""

    def call_step(prefix: Tensor, scores: Tensor) -> Tensor:
        try:
            return step(prefix, scores)
        except InputError:
            raise
        except Exception as error:
            raise InputError("logits_processor", type(processor).__name__, describe_error(error)) from error

    return call_step
