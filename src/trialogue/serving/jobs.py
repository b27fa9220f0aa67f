"""Jobs of the worker, and the events that it reports."""

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
    """Current text of an unfinished choice.

    Attributes:
        choice: Index of the choice.
        text: Text so far.
    """

    choice: int
    text: str


class FinishedChoice(NamedTuple):
    """Finished sample of a choice.

    Attributes:
        choice: Index of the choice.
        sample: The sample.
        verdict: Outcome of the sample.
    """

    choice: int
    sample: Sample
    verdict: SampleOutcome


class Failed(NamedTuple):
    """Error that ends a request."""

    refused: Refused


Event = PartialChoice | FinishedChoice | Failed


@dataclass(eq=False)
class Job:
    """Running or waiting request.

    Args:
        request: The request.
        verifiers: Verifiers of the request.
        notify: Function called with each event in the thread of the worker.
        submissions: Submissions of the prompts, with the index of the first choice of each.
        shown: Last text reported for each choice.
        alone: Whether the job has a run that no other job may join.
        run: Run that the job has joined, or None.
        decode: Function that decodes the tokens of a completion, or None before the first use.
    """

    request: CompletionRequest
    verifiers: RequestVerifiers
    notify: Callable[[Event], None]
    submissions: dict[Submission, int] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    alone: bool = False
    run: OpenRun | None = None
    decode: Callable[[list[int]], str] | None = None

    @property
    def terms(self) -> Terms:
        """Settings that, besides prompt and seed, determine the samples."""
        request = self.request
        return Terms(
            self.verifiers.verifier,
            request.max_new_tokens,
            stop=request.body.stop_strings,
            **request.sampling.truncation,
        )
