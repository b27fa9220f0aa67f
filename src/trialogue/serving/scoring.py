"""Log-probabilities of the tokens of finished samples and of their prompts, from one more forward pass."""

from collections.abc import Collection, Sequence

import torch

from trialogue.generation.output.outcomes import SampleOutcome
from trialogue.models.hub.opening import TextModel
from trialogue.samplers import Sample
from trialogue.samplers.scoring import score_tokens
from trialogue.serving.jobs import FinishedChoice, Job, TokenScores

_POSITIONS_AT_ONCE = 1 << 13


class ScoringQueue:
    """Evaluations of the finished samples of requests, in parts between which the worker serves other requests.

    Args:
        model: Model of the server.
        rows: Maximum number of sequences per forward pass.
    """

    def __init__(self, model: TextModel, rows: int) -> None:
        self._model, self._rows = model, rows
        self._waiting: dict[Job, _Scoring] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def jobs(self) -> Collection[Job]:
        """Requests whose samples are being evaluated, oldest first."""
        return self._waiting.keys()

    @property
    def first(self) -> Job:
        """Request that `advance` evaluates."""
        return next(iter(self._waiting))

    def add(self, job: Job, finished: Sequence[FinishedChoice]) -> None:
        """Add a request.

        Args:
            job: The request.
            finished: All of its samples.
        """
        self._waiting[job] = _Scoring(job, finished, self._model, self._rows)

    def remove(self, job: Job) -> None:
        """Remove a request, if it is in the queue.

        Args:
            job: The request.
        """
        self._waiting.pop(job, None)

    def clear(self) -> None:
        """Remove all requests."""
        self._waiting.clear()

    def advance(self) -> list[FinishedChoice] | None:
        """Take the next forward pass for the first request.

        Returns:
            Its samples with their scores if this was the last one, otherwise None.
        """
        return self._waiting[self.first].advance()


class _Scoring:
    """Evaluation of the finished samples of one request."""

    def __init__(self, job: Job, finished: Sequence[FinishedChoice], model: TextModel, rows: int) -> None:
        request, self._finished = job.request, finished
        prompts = [request.prompts[one.choice // request.body.n] for one in finished]
        sequences = [[*prompt, *one.sample.tokens] for prompt, one in zip(prompts, finished, strict=True)]
        self._first = [0 if request.echoes else len(prompt) for prompt in prompts]
        self._scores = [
            TokenScores(tokens[first:], [None] * (len(tokens) - first), [()] * (len(tokens) - first))
            for tokens, first in zip(sequences, self._first, strict=True)
        ]
        self._parts = score_tokens(
            model,
            sequences,
            [max(1, first) for first in self._first],
            num_top=request.body.num_top_tokens,
            batch_size=max(1, min(rows, _POSITIONS_AT_ONCE // max(map(len, sequences)))),
        )

    def advance(self) -> list[FinishedChoice] | None:
        """Take the next forward pass. Return the samples with their scores if there is none left."""
        with torch.inference_mode():
            part = next(self._parts, None)
        if part is None:
            pairs = zip(self._finished, self._scores, strict=True)
            return [one._replace(scores=scores) for one, scores in pairs]
        columns = part.log_probs.tolist(), part.top.tolist(), part.top_log_probs.tolist()
        for (place, index), log_prob, top, top_log_probs in zip(part.places, *columns, strict=True):
            own = index - self._first[place]
            self._scores[place].log_probs[own] = log_prob
            self._scores[place].top[own] = tuple(zip(top, top_log_probs, strict=True))
        return None


def empty_choices(job: Job) -> list[FinishedChoice]:
    """Return the samples of a request for no new tokens, which are empty.

    Args:
        job: The request.
    """
    outcome = SampleOutcome("max_new_tokens", True, None, None)
    n = job.request.body.n
    return [
        FinishedChoice(
            choice, Sample(choice % n, choice // n, (), "", accepted=True, token_log_probs=()), outcome
        )
        for choice in range(job.request.choices)
    ]
