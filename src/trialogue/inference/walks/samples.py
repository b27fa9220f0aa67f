"""What a run returns: the samples, what they cost, and how the rows moved."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from trialogue.errors import InputError, NotValidError


class Cost(NamedTuple):
    """What a run cost in all: counts, and seconds of wall time.

    Rows share a forward pass, so that this many passes are fewer than the rows' own numbers add up to.
    """

    queries: int
    distinct_queries: int
    forward_passes: int
    positions: int
    verifier_calls: int
    seconds: float


@dataclass(frozen=True)
class Trace:
    """What the moves of a run were, one entry per row and step in which it changed, in the order of the steps.

    All (moves,) int64: the step of the run, the sample, the member of its group, the length before, the member it
    continued from, the length it kept of that, and the token it appended (-1 for none). Entries of one step happen
    at once: a source is meant as it was before the step.
    """

    step: Tensor
    sample: Tensor
    member: Tensor
    length: Tensor
    source: Tensor
    kept: Tensor
    token: Tensor


@dataclass(frozen=True)
class Samples:
    """What a run returns, in the order of its prompts; n samples of up to `capacity` tokens.

    `accepted` says that a sample is complete, has positive weight, and that the verifier, if there is one, gives
    it a positive value. `stopped` tells why a sample was cut off ("" where it was not): "failed" (no way on),
    "max_queries" or "max_steps". `queries` counts tokens asked of the oracle, `distinct_queries` those for
    prefixes never asked about before in this run, `verifier_calls` questions to the verifier: one per prefix judged,
    once per run, or one per visit for the values of all children where it gives them at once. `total` holds the same
    for the whole run.
    """

    tokens: Tensor
    """(n, capacity) int64: prompt and completion, right-padded with zeros"""
    lengths: Tensor
    """(n,) int64: length of prompt and completion"""
    prompt: Tensor
    """(n,) int64: index of the prompt"""
    prompt_lengths: Tensor
    """(n,) int64"""
    accepted: Tensor
    """(n,) bool"""
    log_prob: Tensor
    """(n,) float64: log-probability of the completion under the oracle, before truncation"""
    log_weight: Tensor
    """(n,) float64: log of target over proposal where the walk knows it, else 0"""
    queries: Tensor
    """(n,) int64"""
    distinct_queries: Tensor
    """(n,) int64"""
    forward_passes: Tensor
    """(n,) int64: passes of the oracle that the sample took part in"""
    positions: Tensor
    """(n,) int64: positions the oracle evaluated for the sample; what rows share counts for the one that asked first"""
    verifier_calls: Tensor
    """(n,) int64"""
    seconds: Tensor
    """(n,) float64: wall time, every step shared equally among the samples that were under way"""
    stopped: list[str]
    total: Cost
    trace: Trace | None = None
    decode: Callable[[Sequence[int]], str] | None = None
    """The text of a completion, where the oracle has a tokenization"""
    parser: Callable[[str], Any] | None = None
    """The value of an accepted text, where the verifier knows what texts stand for"""

    def sequences(self) -> list[tuple[int, ...]]:
        """Prompt and completion of each sample as a tuple of token ids."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(tokens[:length]) for tokens, length in rows]

    def completions(self) -> list[tuple[int, ...]]:
        """The completion of each sample as a tuple of token ids."""
        starts = self.prompt_lengths.tolist()
        return [tokens[start:] for tokens, start in zip(self.sequences(), starts, strict=True)]

    def texts(self) -> list[str]:
        """The text of each completion, up to the stop string where there is one.

        Raises `InputError` where the oracle has no tokenization.
        """
        if self.decode is None:
            raise InputError("texts", None, "the oracle has no tokenization: use `completions`")
        return [self.decode(completion) for completion in self.completions()]

    def parsed(self) -> list[Any]:
        """What the text of each accepted sample stands for: JSON values, instances of a model, calls; None of others.

        Raises `InputError` where no verifier of the run knows what texts stand for, or the oracle has no tokenization.
        """
        if self.parser is None:
            mend = "no verifier of the run knows what texts stand for: give a schema, a model or tools"
            raise InputError("parsed", None, mend)
        judged = zip(self.texts(), self.accepted.tolist(), strict=True)
        return [self.parser(text) if accepted else None for text, accepted in judged]

    def refusals(self) -> list[str | None]:
        """What is wrong with the text of each sample that is whole and not valid, where the run's verifier can tell."""
        if self.parser is None or self.decode is None:
            return [None] * len(self.lengths)
        judged = zip(self.texts(), self.accepted.tolist(), strict=True)
        return [None if accepted else _refusal(self.parser, text) for text, accepted in judged]


def _refusal(parser: Callable[[str], Any], text: str) -> str | None:
    try:
        parser(text)
    except NotValidError as error:
        return str(error)
    except ValueError:
        pass
    return None
