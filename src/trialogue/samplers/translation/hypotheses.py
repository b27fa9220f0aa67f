"""Candidate translations of a sentence, ranked by score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, NamedTuple

from annotated_types import Interval


class Hypothesis(NamedTuple):
    """Candidate of a translation.

    Attributes:
        tokens: Token ids without the end-of-sequence token.
        log_prob: Sum of the log-probabilities of the tokens.
        score: Log-probability divided by `length_penalty`, which increases with the number of tokens. Candidates are
            ranked by it.
    """

    tokens: list[int]
    log_prob: float
    score: float


class Translation(NamedTuple):
    """Translation of one source sentence.

    Attributes:
        hypotheses: Distinct candidates in descending order of score.
        passes: Number of sequential evaluations of the decoder, without the evaluation of the encoder.
    """

    hypotheses: list[Hypothesis]
    passes: int

    @property
    def best(self) -> list[int]:
        """Tokens of the best hypothesis, empty if there is none."""
        return self.hypotheses[0].tokens if self.hypotheses else []


NOTHING = Translation([Hypothesis([], 0.0, 0.0)], 0)
"""The translation of an empty source."""

Alpha = Annotated[float, Interval(ge=0, le=100)]
"""Exponent of `length_penalty`."""


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, the divisor of log-probabilities that removes the preference for short outputs.

    This is the length normalisation of Wu et al. (2016).

    Args:
        length: Number of tokens.
        alpha: Exponent, 0 for no normalisation.
    """
    return float(((5 + length) / 6) ** alpha)


def remove_repeats(tokens: Sequence[int]) -> list[int]:
    """Return the tokens without those that equal the token directly before them."""
    return [token for token, _ in groupby(tokens)]


def rank_hypotheses(
    candidates: Iterable[tuple[list[int], float]], alpha: float, drop_repeats: bool
) -> list[Hypothesis]:
    """Rank candidates by their length-normalised log-probability, and remove duplicates.

    Args:
        candidates: Tokens and sum of log-probabilities of each candidate.
        alpha: Exponent of the length normalisation, 0 for none.
        drop_repeats: Remove tokens that equal the token before them, after scoring.

    Returns:
        Distinct hypotheses in descending order of score.
    """
    best: dict[tuple[int, ...], Hypothesis] = {}
    for tokens, log_prob in candidates:
        score = log_prob / length_penalty(len(tokens), alpha)
        kept = remove_repeats(tokens) if drop_repeats else tokens
        known = best.get(tuple(kept))
        if known is None or known.score < score:
            best[tuple(kept)] = Hypothesis(kept, log_prob, score)
    return sorted(best.values(), key=lambda hypothesis: -hypothesis.score)
