"""The stopping criteria of a call: where its completions end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import EosTokenCriteria, MaxLengthCriteria, StopStringCriteria
from transformers.generation import ConfidenceCriteria

from trialogue.errors import InputError, reason
from trialogue.samplers.prefix.batch import SequenceStop, Stop


@dataclass
class StoppingRules:
    """Where completions end: at `max_length` columns of the batch, at one of `ends`, or where one of `stop` says so."""

    max_length: int
    ends: list[int] = field(default_factory=list)
    stop: list[str | Stop] = field(default_factory=list)


def stopped_by(criteria: Sequence[Any], max_length: int, device: torch.device) -> StoppingRules:
    """What the `criteria` of a call say; those of the user's own are asked row by row, without padding.

    The least of their lengths counts; `max_length` is where none says how long sequences may become, `device` where
    criteria find the tokens. Raises `InputError` for one that needs scores.
    """
    lengths = [criterion.max_length for criterion in criteria if type(criterion) is MaxLengthCriteria]
    stopped = StoppingRules(min(lengths, default=max_length))
    for criterion in criteria:
        if type(criterion) is MaxLengthCriteria:
            continue
        if type(criterion) is EosTokenCriteria:
            stopped.ends += criterion.eos_token_id.tolist()
        elif type(criterion) is StopStringCriteria:
            stopped.stop += criterion.stop_strings
        elif isinstance(criterion, ConfidenceCriteria):
            hint = "it needs scores, which a sampler has none of while it runs: leave it out"
            raise InputError("stopping_criteria", type(criterion).__name__, hint)
        else:
            stopped.stop.append(_asked(criterion, device))
    return stopped


def _asked(criterion: Any, device: torch.device) -> SequenceStop:
    """`criterion` as a function of prompt and completion; of a prompt alone it is not asked."""

    def stop(sequence: tuple[int, ...], start: int) -> bool:
        if len(sequence) == start:
            return False
        try:
            answer = criterion(torch.tensor([sequence], device=device), None)
            return bool(torch.as_tensor(answer).any())
        except Exception as error:
            raise InputError("stopping_criteria", type(criterion).__name__, reason(error)) from error

    return SequenceStop(stop)
