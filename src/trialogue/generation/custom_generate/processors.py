"""The logits processors of a call: what comes before the mask, and what cuts behind it.

`generate` of transformers puts penalties and the like first, then the user's own processors, and what sharpens and cuts
the distribution last. A sampler does the first to the model's scores, prefix by prefix and without padding, masks, and
cuts.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import generation as hf
from transformers.generation import LogitNormalization
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor

from trialogue.errors import InputError, reason
from trialogue.models.wrappers.processed import Process

_WARPERS = {
    hf.TemperatureLogitsWarper: "temperature",
    hf.TopKLogitsWarper: "top_k",
    hf.TopPLogitsWarper: "top_p",
    hf.MinPLogitsWarper: "min_p",
}
_OF_TOKENS = (
    *_WARPERS,
    LogitNormalization,
    hf.InfNanRemoveLogitsProcessor,
    hf.NoBadWordsLogitsProcessor,
    hf.NoRepeatNGramLogitsProcessor,
    hf.RepetitionPenaltyLogitsProcessor,
    hf.SequenceBiasLogitsProcessor,
    hf.SuppressTokensLogitsProcessor,
)
# They count the columns of the whole batch, padding included, and look at no token.
_OF_LENGTHS = (
    hf.ExponentialDecayLengthPenalty,
    hf.ForcedBOSTokenLogitsProcessor,
    hf.ForcedEOSTokenLogitsProcessor,
    hf.MinLengthLogitsProcessor,
    hf.MinNewTokensLengthLogitsProcessor,
    hf.SuppressTokensAtBeginLogitsProcessor,
)
_CUTS = (hf.EpsilonLogitsWarper, hf.EtaLogitsWarper, hf.TopHLogitsWarper, hf.TypicalLogitsWarper)


def split(processors: Sequence[Any], *, do_sample: bool) -> tuple[list[Any], dict[str, Any]]:
    """What of the `processors` of a call comes before the mask, and the arguments of `truncated` for the others.

    Raises `InputError` for those of transformers that keep state or need the batch as a whole, and for cuts that are
    none of top-k, top-p and min-p.
    """
    before = list(processors)
    while before and type(before[-1]) is LogitNormalization:  # a distribution is normalised anyway
        before.pop()
    truncation: dict[str, Any] = {}
    order = list(_WARPERS)
    while before and type(before[-1]) in order and _is_plain(before[-1]):
        name = _WARPERS[type(before[-1])]
        order = order[: order.index(type(before[-1]))]
        truncation[name] = getattr(before.pop(), name)
    for processor in before:
        _require_honourable(processor)
    return before, truncation if do_sample else {"temperature": 0.0}


def _is_plain(warper: Any) -> bool:
    """Whether it removes tokens, and keeps no more of them than it says."""
    least = getattr(warper, "min_tokens_to_keep", 1)
    return bool(least == 1 and getattr(warper, "filter_value", -torch.inf) == -torch.inf)


def _require_honourable(processor: Any) -> None:
    kind = type(processor)
    if kind in _CUTS:
        hint = "a sampler cuts by temperature, top_k, top_p and min_p: leave it out"
    elif kind in (*_OF_TOKENS, *_OF_LENGTHS, PrefixConstrainedLogitsProcessor):
        return
    elif kind.__module__.split(".")[0] == "transformers":
        hint = "it needs state, an encoder or the batch as a whole, and a sampler asks about prefixes: leave it out"
    else:
        return
    raise InputError("logits_processor", kind.__name__, hint)


def process_of(
    processors: Sequence[Any], prompts: Sequence[Sequence[int]], width: int, *, keeps_prompts: bool
) -> Process | None:
    """The function of a prefix and its scores that does what `processors` do; None where there are none.

    `prompts` are those of the batch without padding, which transformers pads on the left to `width`. Raises
    `InputError` for what cannot be told from a prefix: which row of the batch it is of, or how much padding that has.
    """
    if not processors:
        return None
    padding = _Padding(prompts, width)
    steps = [_step(processor, padding, keeps_prompts) for processor in processors]

    def process(prefix: Tensor, scores: Tensor) -> Tensor:
        for step in steps:
            scores = step(prefix, scores)
        return scores

    return process


def _step(processor: Any, padding: "_Padding", keeps_prompts: bool) -> Process:
    kind = type(processor)
    if kind in _OF_LENGTHS:
        padding.require_known(processor, keeps_prompts)
        return _reported(processor, lambda prefix, scores: processor(padding.padded(prefix), scores))
    if kind is hf.RepetitionPenaltyLogitsProcessor:
        return _reported(processor, _penalty(processor, padding))
    if kind is PrefixConstrainedLogitsProcessor and len(padding.prompts) > 1:
        hint = "of a batch it must know which row a prefix is of: put the rule into a verifier, or give one prompt"
        raise InputError("logits_processor", kind.__name__, hint)
    return _reported(processor, processor if kind in _OF_TOKENS else _Repeated(processor))


def _penalty(processor: Any, padding: "_Padding") -> Process:
    """A repetition penalty for prefixes without padding: that is what it was told to ignore."""
    ignored = processor.prompt_ignore_length
    if isinstance(ignored, Tensor):
        if ignored.tolist() != padding.of_rows:
            hint = "it ignores other tokens than padding row by row: put that into a processor of your own"
            raise InputError("logits_processor", type(processor).__name__, hint)
        ignored = None
    if ignored and any(padding.of_rows):
        hint = f"it ignores {ignored} tokens of rows that begin with padding: give prompts of one length"
        raise InputError("logits_processor", type(processor).__name__, hint)
    return hf.RepetitionPenaltyLogitsProcessor(processor.penalty, prompt_ignore_length=ignored)


class _Padding:
    """How much transformers pads on the left of prefixes, by the prompts that they begin with."""

    def __init__(self, prompts: Sequence[Sequence[int]], width: int) -> None:
        self.prompts, self._width = [tuple(prompt) for prompt in prompts], width
        self.of_rows = [width - len(prompt) for prompt in self.prompts]
        self._lengths = sorted(set(map(len, self.prompts)))
        self._known = set(self.prompts)

    def require_known(self, processor: Any, keeps_prompts: bool) -> None:
        """Raise `InputError` unless prefixes tell how they are padded."""
        if len(self._lengths) == 1:
            return
        longer = ((one, length) for one in self.prompts for length in self._lengths if length < len(one))
        if not keeps_prompts or any(one[:length] in self._known for one, length in longer):
            hint = "it counts tokens, and of prompts of different lengths one begins with another"
            hint = f"{hint}: give them in calls of their own"
            raise InputError("logits_processor", type(processor).__name__, hint)

    def padded(self, prefix: Tensor) -> Tensor:
        """`prefix` (1, length) behind as many zeros as it has padding."""
        tokens, length = tuple(prefix[0].tolist()), self._lengths[0]
        if len(self._lengths) > 1:
            length = next(one for one in self._lengths if tokens[:one] in self._known)
        return torch.nn.functional.pad(prefix, (self._width - length, 0))


class _Repeated:
    """A processor of the user's own, which is asked again about its first prefix once it has seen another.

    One that keeps state between calls would answer for a batch that samplers do not have.
    """

    def __init__(self, processor: Callable[[Tensor, Tensor], Tensor]) -> None:
        self._processor = processor
        self._first: tuple[Tensor, Tensor, Tensor] | None = None
        self._settled = False

    def __call__(self, prefix: Tensor, scores: Tensor) -> Tensor:
        given = None if self._settled else scores.clone()
        answer = self._processor(prefix, scores)
        if given is None:
            return answer
        if self._first is None:
            self._first = prefix, given, answer.clone()
        elif not torch.equal(self._first[0], prefix):
            prefix, scores, before = self._first
            if not torch.equal(self._processor(prefix, scores), before):
                hint = (
                    "it answers otherwise when it is asked again about the same prefix: a sampler goes back and "
                    "forth, "
                )
                hint += "so keep no state in it, or put the rule into a verifier"
                raise InputError("logits_processor", type(self._processor).__name__, hint)
            self._settled = True
        return answer


def _reported(processor: Any, step: Process) -> Process:
    """`step`, what it raises in one line that names the processor."""

    def reported(prefix: Tensor, scores: Tensor) -> Tensor:
        try:
            return step(prefix, scores)
        except InputError:
            raise
        except Exception as error:
            raise InputError("logits_processor", type(processor).__name__, reason(error)) from error

    return reported
