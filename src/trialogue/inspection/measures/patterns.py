"""Coherence in text patterns: what a model writes behind repetitions of a short text, and where it leaves the pattern.

Runs and walls are those of `trialogue.inspection.coherence`, in bytes; a text that still follows is censored there.
"""

from __future__ import annotations

import numpy as np

from trialogue.errors import InputError
from trialogue.inspection.coherence import Runs, coherence_of
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, curve, number, resampled, share
from trialogue.inspection.subject import Subject

PATTERNS = (" red green blue.", " one two three four.", " north, south, east, west;", " a b c d e f g.")
"""Each is repeated in a prompt of its own."""
REPEATS, WRITTEN = 4, 64
_SAMPLES = 12
_LENGTHS = (8, 16, 32, 64, 128)


class TextPatterns(Measure):
    """How long what a model writes goes on in the pattern of its prompt."""

    question = "How long does it stay in a pattern of text that it is shown?"
    reading = (
        "Four short texts are repeated four times, and the model goes on by its own distribution. A text "
        "follows the pattern "
        "whose period differs from its last bytes in the fewest; it has left where that is another one, or another "
        "phase. Bytes are those of UTF-8. A text that ends while it still follows counts as far as it goes, and not as "
        "one that stays (Kaplan and Meier 1958)."
    )

    def model_refusal(self, subject: Subject) -> str | None:
        """Why the patterns cannot be written in its tokens."""
        tokenization = subject.oracle.tokenization
        for text in PATTERNS:
            if tokenization.bytes(tokenization.encode(text * REPEATS)) != (text * REPEATS).encode():
                return f"its tokenizer does not give back {text!r}"
        longest = _longest(subject)
        if longest + WRITTEN > subject.max_generated_length:
            return (
                f"it goes on within {subject.max_generated_length} tokens, and this takes {longest + WRITTEN}"
            )
        return None

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Prompts and what is written behind them."""
        return len(PATTERNS) * effort.rows(_SAMPLES) * subject.processed_tokens(_longest(subject), WRITTEN)

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """The rate at which texts leave their pattern, and the share that is still in it."""
        samples = effort.rows(_SAMPLES)
        report(f"{len(PATTERNS) * samples} texts of {WRITTEN} tokens")
        found = coherence_of(
            subject.oracle,
            PATTERNS,
            max_new_tokens=WRITTEN,
            repeats=REPEATS,
            num_samples=samples,
            seed=effort.seed,
            batch_size=len(PATTERNS) * _SAMPLES,
        ).first_runs()
        if not found.lengths.any():
            raise InputError("model", subject.name, "all that it writes ends at once")
        rows = len(found.lengths)
        shares = [
            _still(found, length, effort.seed)
            for length in _LENGTHS
            if np.isfinite(found.survival([length])[0])
        ]
        rate = resampled(lambda chosen: found.take(chosen).hazard(), rows, effort.seed)
        found_rate = number("leaves the pattern", rate, unit="per byte", exact=0.0)
        if not shares:
            return [found_rate]
        return [found_rate, curve("still in the pattern", shares, "bytes written", exact=1.0)]


def _still(runs: Runs, length: int, seed: int) -> Point:
    """The share that is still in the pattern at `length`.

    Where all are, or none, the interval is the exact binomial one over those that are known at that length: texts that
    ended before in the pattern are not.
    """
    point = resampled(
        lambda chosen: float(runs.take(chosen).survival([length])[0]), len(runs.lengths), seed, length
    )
    if point.low is not None or point.value not in (0.0, 1.0):
        return point
    known = (runs.lengths >= length) | runs.ended
    return share((runs.lengths[known] >= length).astype(float), length)


def _longest(subject: Subject) -> int:
    tokenization = subject.oracle.tokenization
    return max(len(tokenization.encode(text * REPEATS)) for text in PATTERNS)
