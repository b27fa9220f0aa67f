"""One sample of a run, and how samples show themselves."""

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
    """One sample: what `Samples` holds of all of them, of this one as Python's own numbers.

    `index` is its place among the run's samples, `prompt` that of its prompt; `tokens` are the completion and `text`
    is what it says (None where the oracle has no tokenization). One that is not `finished` yet shows how far it has
    come, and nothing else.
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
        """What the text stands for: a JSON value, an instance of a model, a call; None where it is not accepted.

        Raises `InputError` where its verifier does not know what texts stand for.
        """
        if self.parser is None:
            hint = "its verifier does not know what texts stand for: give a schema, a model or tools"
            raise InputError("parsed", None, hint)
        return self.parser(self.text or "") if self.accepted else None


def shown(samples: Iterable[Sample], number: int, accepted: int, queries: int) -> str:
    """The first of `samples` in a line each, below how many there are, were `accepted`, and asked for."""
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
