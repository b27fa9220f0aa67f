"""Jobs of the worker thread, and the events that it sends to requests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from trialogue.generation.output.outcomes import SampleOutcome
from trialogue.samplers import OpenRun, Sample, Terms
from trialogue.samplers.prefix.engine import Submission
from trialogue.serving.errors import RequestError
from trialogue.serving.requests import CompletionRequest
from trialogue.serving.verifiers import RequestVerifiers


class PartialChoice(NamedTuple):
    """Event that reports the current text of an unfinished sample.

    Attributes:
        choice: Index of the sample in the response.
        text: The text so far.
    """

    choice: int
    text: str


class FinishedChoice(NamedTuple):
    """Event that reports a finished sample.

    Attributes:
        choice: Index of the sample in the response.
        sample: The sample.
        verdict: Whether the sample is accepted, and why it ended.
    """

    choice: int
    sample: Sample
    verdict: SampleOutcome


class FailedRequest(NamedTuple):
    """Event that reports an error. It ends the request.

    Attributes:
        refused: The error.
    """

    refused: RequestError


Event = PartialChoice | FinishedChoice | FailedRequest


@dataclass(eq=False)
class Job:
    """A request that waits for the worker thread or is being processed by it.

    A run is a batch of sequences that one sampler extends together. Several jobs with the same sampler share a run.

    Args:
        request: The request.
        verifiers: Verifiers of the request.
        notify: Function called with each event, in the thread of the worker.
        submissions: Prompts that were added to the run. The value is the index of the first sample of each prompt in
            the response.
        shown: Text that was last reported for each sample, by its index in the response.
        alone: Whether no other job may join the run of this job.
        run: Run to which the job belongs, or None while it waits.
        decode: Function that converts token ids of a completion to text. None before the first use.
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
        """Settings that, together with prompt and seed, determine the samples."""
        request = self.request
        return Terms(
            self.verifiers.verifier,
            request.max_new_tokens,
            stop=request.body.stop_strings,
            **request.sampling.truncation,
        )
