"""Candidates for a translation, ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, NamedTuple

from annotated_types import Interval


class Hypothesis(NamedTuple):
    """A candidate: its tokens, without EOS, the sum of their log-probabilities, and what it is ranked by."""

    tokens: list[int]
    log_prob: float
    score: float


class Translation(NamedTuple):
    """What came of one source."""

    hypotheses: list[Hypothesis]
    """From the best score to the least; no two of the same tokens"""
    passes: int
    """Passes of the decoder that it took part in; that of the encoder is not counted"""

    @property
    def best(self) -> list[int]:
        """The tokens of the best hypothesis; none where there is none."""
        return self.hypotheses[0].tokens if self.hypotheses else []


NOTHING = Translation([Hypothesis([], 0.0, 0.0)], 0)
"""The translation of an empty source."""

Alpha = Annotated[float, Interval(ge=0, le=100)]
"""Exponent of `brevity`."""


def brevity(length: int, alpha: float) -> float:
    """What a sum of log-probabilities of so many tokens is divided by: ((5 + length) / 6)^alpha (Wu et al. 2016)."""
    return float(((5 + length) / 6) ** alpha)


def without_repeats(tokens: Sequence[int]) -> list[int]:
    """The `tokens` but for each that equals the one before it."""
    return [token for token, _ in groupby(tokens)]


def ranked(
    candidates: Iterable[tuple[list[int], float]], alpha: float, drop_repeats: bool
) -> list[Hypothesis]:
    """Hypotheses of tokens and the sums of their log-probabilities, best first, each tokens once.

    `drop_repeats` leaves out each token that equals the one before it, after they were scored.
    """
    best: dict[tuple[int, ...], Hypothesis] = {}
    for tokens, log_prob in candidates:
        score = log_prob / brevity(len(tokens), alpha)
        kept = without_repeats(tokens) if drop_repeats else tokens
        known = best.get(tuple(kept))
        if known is None or known.score < score:
            best[tuple(kept)] = Hypothesis(kept, log_prob, score)
    return sorted(best.values(), key=lambda hypothesis: -hypothesis.score)
