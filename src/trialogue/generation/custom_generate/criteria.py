"""Stopping criteria of a `generate` call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import EosTokenCriteria, MaxLengthCriteria, StopStringCriteria
from transformers.generation import ConfidenceCriteria

from trialogue.errors import InputError, describe_error
from trialogue.samplers.prefix.batch import SequenceStop, Stop


@dataclass
class StoppingRules:
    """Conditions at which completions end.

    Args:
        max_length: Maximum length of the padded sequence, prompt included.
        ends: Token ids that end a sequence.
        stop: Stop strings and stop functions.
    """

    max_length: int
    ends: list[int] = field(default_factory=list)
    stop: list[str | Stop] = field(default_factory=list)


def read_stopping_criteria(criteria: Sequence[Any], max_length: int, device: torch.device) -> StoppingRules:
    """Convert stopping criteria of transformers to conditions of samplers.

    User-defined criteria are called for single rows, without padding and without scores.

    Args:
        criteria: Stopping criteria of the call. The smallest maximum length applies.
        max_length: Maximum length, prompt included, if no criterion sets one.
        device: Device of the token tensors that are passed to user-defined criteria.

    Returns:
        Maximum length, end tokens, stop strings and stop functions.

    Raises:
        InputError: If a criterion needs scores.
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
            hint = "leave it out: it needs scores, which are not available while the sampler runs"
            raise InputError("stopping_criteria", type(criterion).__name__, hint)
        else:
            stopped.stop.append(_as_stop(criterion, device))
    return stopped


def _as_stop(criterion: Any, device: torch.device) -> SequenceStop:
    """Convert `criterion` into a stop function, which returns False for an empty completion."""

    def stop(sequence: tuple[int, ...], start: int) -> bool:
        if len(sequence) == start:
            return False
        try:
            stops = criterion(torch.tensor([sequence], device=device), None)
            return bool(torch.as_tensor(stops).any())
        except Exception as error:
            raise InputError("stopping_criteria", type(criterion).__name__, describe_error(error)) from error

    return SequenceStop(stop)
