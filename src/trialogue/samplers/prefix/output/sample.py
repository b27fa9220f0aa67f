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
    """One sample of a run. Fields have the meaning of the fields of `Samples`, as Python numbers.

    `tokens` and `text` are the completion without the prompt. `text` is None if the model has no tokenization. A
    sample that is not `finished` has only the fields `index`, `prompt`, `tokens` and `text`.
    """

    index: int
    prompt: int
    tokens: tuple[int, ...]
    text: str | None
    finished: bool = True
    accepted: bool = False
    stopped: str = ""
    error: str | None = None
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


def shown(samples: Iterable[Sample], number: int, accepted: int, queries: int) -> str:
    """Return a summary of samples and their number, with one line for each of the first samples."""
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
    why = sample.error or sample.stopped
    return f"{content}  [{why}]" if why else content
