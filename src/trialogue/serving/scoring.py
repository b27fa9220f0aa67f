"""Evaluations of finished samples: log-probabilities of tokens and of prompts, and confidence of JSON fields."""

from collections.abc import Sequence

from trialogue.generation.field_confidence import confidence_record_parts
from trialogue.generation.output.outcomes import SampleOutcome
from trialogue.models.hub.opening import TextModel
from trialogue.samplers import Sample
from trialogue.samplers.scoring import score_tokens
from trialogue.serving.evaluations import Parts
from trialogue.serving.jobs import FinishedChoice, Job, TokenScores

_POSITIONS_AT_ONCE = 1 << 13


def evaluate_choices(job: Job, finished: Sequence[FinishedChoice], model: TextModel, rows: int) -> Parts:
    """Compute the log-probabilities and the confidence of the finished samples of a request, if it needs them.

    Args:
        job: The request.
        finished: All of its samples.
        model: Model of the server.
        rows: Maximum number of sequences per forward pass.

    Yields:
        None after each forward pass.

    Returns:
        The samples with their scores.
    """
    body = job.request.body
    if job.request.is_scored:
        finished = yield from _score(job, finished, model, rows)
    if body.confidence:
        verifier = next(one.verifier for one in job.verifiers.built if one.kind.is_json)
        scored = list[FinishedChoice]()
        for one in finished:
            prompt, tokens = job.request.prompts[one.choice // body.n], one.sample.tokens
            found = yield from confidence_record_parts(model, prompt, tokens, verifier, body.seed)
            scored.append(one._replace(confidence=found))
        finished = scored
    return finished


def _score(job: Job, finished: Sequence[FinishedChoice], model: TextModel, rows: int) -> Parts:
    """Compute the log-probabilities of the samples of a request, and of its prompts if it echoes them."""
    request = job.request
    prompts = [request.prompts[one.choice // request.body.n] for one in finished]
    sequences = [[*prompt, *one.sample.tokens] for prompt, one in zip(prompts, finished, strict=True)]
    firsts = [0 if request.echoes else len(prompt) for prompt in prompts]
    scores = [
        TokenScores(tokens[first:], [None] * (len(tokens) - first), [()] * (len(tokens) - first))
        for tokens, first in zip(sequences, firsts, strict=True)
    ]
    for part in score_tokens(
        model,
        sequences,
        [max(1, first) for first in firsts],
        num_top=request.body.num_top_tokens,
        batch_size=rows_at_once(sequences, rows),
    ):
        columns = part.log_probs.tolist(), part.top.tolist(), part.top_log_probs.tolist()
        for (place, index), log_prob, top, top_log_probs in zip(part.places, *columns, strict=True):
            own = index - firsts[place]
            scores[place].log_probs[own] = log_prob
            scores[place].top[own] = tuple(zip(top, top_log_probs, strict=True))
        yield
    return [one._replace(scores=own) for one, own in zip(finished, scores, strict=True)]


def rows_at_once(sequences: Sequence[Sequence[int]], rows: int) -> int:
    """Return the number of sequences per forward pass, which bounds its memory.

    Args:
        sequences: Token ids of the sequences.
        rows: Maximum number of sequences.
    """
    return max(1, min(rows, _POSITIONS_AT_ONCE // max(map(len, sequences))))


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
