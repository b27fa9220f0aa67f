"""One sample of a run, and the text representation of samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trialogue.errors import InputError

Parser = Callable[[str], Any]

_SHOWN = 10
_WIDEST = 100


@dataclass(frozen=True)
class Sample:
    """One sample of a run: a completion of a prompt, with its costs.

    A sample that is not `finished` has only the fields `index`, `prompt`, `tokens` and `text`.

    Args:
        index: Index of the sample in the run.
        prompt: Index of its prompt.
        tokens: Token ids of the completion, without the prompt.
        text: Text of the completion, or None if the model has no tokenization.
        finished: Whether the sample is finished. Only `stream` with `partial=True` yields others.
        accepted: Whether the sample is complete, has positive weight, and a positive value if there is a verifier.
        stopped: Why the sample ended early: "failed", "max_queries", "max_steps", or "" if it did not.
        remark: How the sampler ended the sample, if its documentation says so.
        error: Message of the error by which the verifier rejected the sample, if any.
        log_prob: Log-probability of the completion under the model, before truncation.
        log_weight: Logarithm of target over proposal for weighted samplers, otherwise 0.
        token_log_probs: Log-probability of each token of the completion, if it was requested.
        queries: Number of model calls. One call evaluates one prefix.
        distinct_queries: Number of model calls on prefixes that occur for the first time in the run.
        forward_passes: Number of forward passes that included the sample.
        positions: Number of token positions evaluated for the sample.
        verifier_calls: Number of verifier calls.
        seconds: Wall time in seconds. The time of each step is divided equally among the active samples.
        parser: Function that converts the text to a Python value, if the verifier defines one.
    """

    index: int
    prompt: int
    tokens: tuple[int, ...]
    text: str | None
    finished: bool = True
    accepted: bool = False
    stopped: str = ""
    error: str | None = None
    remark: str | None = None
    log_prob: float = 0.0
    log_weight: float = 0.0
    token_log_probs: Sequence[float] | None = None
    queries: int = 0
    distinct_queries: int = 0
    forward_passes: int = 0
    positions: int = 0
    verifier_calls: int = 0
    seconds: float = 0.0
    parser: Parser | None = field(default=None, repr=False, compare=False)

    @property
    def parsed(self) -> Any:
        """The Python value of the text, such as parsed JSON. None if the sample is not accepted.

        Raises:
            InputError: If the verifier does not define values.
        """
        if self.parser is None:
            hint = "the verifier does not define values; use a JSON schema, a pydantic model or tools"
            raise InputError("parsed", None, hint)
        return self.parser(self.text or "") if self.accepted else None


def format_samples(samples: Iterable[Sample], number: int, accepted: int, queries: int) -> str:
    """Format samples as text, with one line for each of the first ten samples.

    Args:
        samples: The samples.
        number: Number of samples.
        accepted: Number of accepted samples.
        queries: Number of model calls.

    Returns:
        A summary line, followed by lines of index, log-weight or "rejected", and the completion.
    """
    lines = [
        f"{sample.index:>6}  {_verdict(sample)}  {_content(sample)}" for sample in islice(samples, _SHOWN)
    ]
    rest = [f"{'':>6}  ... and {number - _SHOWN} more"] if number > _SHOWN else []
    return "\n".join([f"Samples: {number}, {accepted} accepted, {queries} queries", *lines, *rest])


def _verdict(sample: Sample) -> str:
    return f"{sample.log_weight:+9.2f}" if sample.accepted else f"{'rejected':>9}"


def _content(sample: Sample) -> str:
    content = repr(sample.tokens if sample.text is None else sample.text)
    content = content if len(content) <= _WIDEST else f"{content[:_WIDEST]}…"
    why = sample.error or sample.remark or sample.stopped
    return f"{content}  [{why}]" if why else content
