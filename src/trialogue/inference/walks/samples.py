"""What a run returns: the samples, what they cost, and how the rows moved."""

from dataclasses import dataclass

from torch import Tensor


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
    once per run, or one per visit for the values of all children where it gives them at once.
    """

    tokens: Tensor
    """(n, capacity) int64: prompt and completion, right-padded with zeros"""
    lengths: Tensor
    """(n,) int64: length of prompt and completion"""
    prompt_lengths: Tensor
    """(n,) int64"""
    accepted: Tensor
    """(n,) bool"""
    log_weight: Tensor
    """(n,) float64: log of target over proposal where the walk knows it, else 0"""
    queries: Tensor
    """(n,) int64"""
    distinct_queries: Tensor
    """(n,) int64"""
    verifier_calls: Tensor
    """(n,) int64"""
    stopped: list[str]
    forward_passes: int
    positions: int
    seconds: float
    trace: Trace | None = None

    def sequences(self) -> list[tuple[int, ...]]:
        """Prompt and completion of each sample as a tuple of token ids."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(tokens[:length]) for tokens, length in rows]
