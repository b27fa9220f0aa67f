"""Jobs of the worker thread, and the events that it sends to requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

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
        num_tokens: Number of its tokens.
    """

    choice: int
    text: str
    num_tokens: int


class TokenScores(NamedTuple):
    """Log-probabilities of some consecutive tokens under the model, without temperature and truncation.

    Attributes:
        tokens: Ids of the n tokens.
        log_probs: Log-probability of each token, or None for a token without a token before it.
        top: For each token, ids and log-probabilities of the most probable tokens at its place, in descending order.
    """

    tokens: Sequence[int]
    log_probs: list[float | None]
    top: list[Sequence[tuple[int, float]]]


class FinishedChoice(NamedTuple):
    """Event that reports a finished sample.

    Attributes:
        choice: Index of the sample in the response.
        sample: The sample.
        verdict: Whether the sample is accepted, and why it ended.
        scores: Log-probabilities of the tokens of the sample, and of the prompt if the response contains it. None if
            only those are needed that were computed while the sample was generated.
        confidence: Result of `confidence_record`. Empty if it is not requested.
    """

    choice: int
    sample: Sample
    verdict: SampleOutcome
    scores: TokenScores | None = None
    confidence: Mapping[str, Any] = MappingProxyType({})


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
        unscored: Finished samples that wait for further evaluations: log-probabilities or the confidence of fields.
    """

    request: CompletionRequest
    verifiers: RequestVerifiers
    notify: Callable[[Event], None]
    submissions: dict[Submission, int] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    alone: bool = False
    run: OpenRun | None = None
    decode: Callable[[list[int]], str] | None = None
    unscored: list[FinishedChoice] = field(default_factory=list)

    @property
    def terms(self) -> Terms:
        """Settings that, together with prompt and seed, determine the samples."""
        request = self.request
        return Terms(
            self.verifiers.verifier,
            request.max_new_tokens,
            stop=request.body.stop_strings,
            stop_tokens=request.stop_tokens,
            penalties=request.penalties,
            **request.sampling.truncation,
        )
