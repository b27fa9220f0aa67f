"""What is asked of the worker, and what it tells of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from trialogue.generation.output.outcomes import SampleOutcome
from trialogue.samplers import OpenRun, Sample, Terms
from trialogue.samplers.prefix.engine import Submission
from trialogue.serving.errors import Refused
from trialogue.serving.requests import CompletionRequest
from trialogue.serving.verifiers import RequestVerifiers


class PartialChoice(NamedTuple):
    """The text so far of the choice number `choice`."""

    choice: int
    text: str


class FinishedChoice(NamedTuple):
    """A finished sample as the choice number `choice`, and what is said of it."""

    choice: int
    sample: Sample
    verdict: SampleOutcome


class Failed(NamedTuple):
    """Why a request has no answer."""

    refused: Refused


Event = PartialChoice | FinishedChoice | Failed


@dataclass(eq=False)
class Job:
    """A request under way, judged by `verifiers`; `tell` is called with what happens, in the worker's thread."""

    request: CompletionRequest
    verifiers: RequestVerifiers
    tell: Callable[[Event], None]
    submissions: dict[Submission, int] = field(default_factory=dict)
    """The submissions of the prompts, with the choice that each begins with"""
    shown: dict[int, str] = field(default_factory=dict)
    alone: bool = False
    run: OpenRun | None = None
    decode: Callable[[list[int]], str] | None = None

    @property
    def terms(self) -> Terms:
        """What decides its samples, beside prompt and seed."""
        request = self.request
        return Terms(
            self.verifiers.verifier,
            request.max_new_tokens,
            stop=request.body.stops,
            **request.sampling.truncation,
        )
