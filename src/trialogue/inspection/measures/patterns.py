"""Measure of how long a model continues a text that repeats a short pattern.

Runs and walls are defined in `trialogue.inspection.coherence`, with lengths in bytes. A text that ends within its
pattern is censored.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from trialogue.errors import InputError
from trialogue.inspection.coherence import Runs, measure_coherence
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    bootstrap_point,
    curve_quantity,
    share_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject

PATTERNS = (" red green blue.", " one two three four.", " north, south, east, west;", " a b c d e f g.")
"""Texts that are repeated to form the prompts."""
REPEATS, GENERATED = 4, 64
_MIN_REPEATS, _MIN_GENERATED = 2, 16
_SAMPLES = 12
_LENGTHS = (8, 16, 32, 64, 128)


class TextPatterns(Measure):
    """Measure of how long a model continues a text pattern.

    A prompt repeats a short text four times, or less often if the context of the model is short. The measure records
    after how many bytes the continuation leaves the pattern.
    """

    question = "How long does the model continue a text pattern?"
    reading = (
        "Each prompt repeats a short text up to four times, and the model continues it at temperature 1. "
        "A continuation follows the pattern and phase that differ from its last bytes in the fewest positions. It has "
        "left its pattern when the nearest pattern or phase changes. Bytes are UTF-8 bytes. A text that "
        "ends within its pattern is censored (Kaplan and Meier 1958)."
    )

    def model_refusal(self, subject: Subject) -> str | None:
        """Return the reason why the model cannot be measured, or None.

        A reason is that the tokenizer changes a pattern, or that the model's maximum length is too short.

        Args:
            subject: Model to measure.
        """
        tokenization = subject.oracle.tokenization
        for text in PATTERNS:
            if tokenization.bytes(tokenization.encode(text * REPEATS)) != (text * REPEATS).encode():
                return f"its tokenizer does not preserve {text!r}"
        limit = subject.max_generated_length
        if _sizes(subject) is None:
            required = _max_prompt_length(subject, _MIN_REPEATS) + _MIN_GENERATED
            return f"it generates texts of at most {limit} tokens, but the measure requires {required}"
        return None

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of the prompts and their continuations.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        repeats, generated = cast(tuple[int, int], _sizes(subject))
        per_sample = subject.processed_tokens(_max_prompt_length(subject, repeats), generated)
        return len(PATTERNS) * effort.rows(_SAMPLES) * per_sample

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Sample continuations at temperature 1 and measure when they leave their pattern.

        Args:
            subject: Causal model.
            material: Not used.
            effort: Number of continuations and seed.
            report: Called with progress messages.

        Returns:
            The rate at which continuations leave the pattern, per byte. If it can be estimated, a curve of the
            share of continuations that still follow the pattern, by the number of bytes.

        Raises:
            InputError: If all continuations are empty.
        """
        samples = effort.rows(_SAMPLES)
        repeats, generated = cast(tuple[int, int], _sizes(subject))
        report(f"{len(PATTERNS) * samples} texts of {generated} tokens")
        found = measure_coherence(
            subject.oracle,
            PATTERNS,
            max_new_tokens=generated,
            repeats=repeats,
            num_samples=samples,
            seed=effort.seed,
            batch_size=len(PATTERNS) * _SAMPLES,
        ).first_runs()
        if not found.lengths.any():
            raise InputError("model", subject.name, "all its continuations are empty")
        rows = len(found.lengths)
        shares = [
            _surviving_share(found, length, effort.seed)
            for length in _LENGTHS
            if np.isfinite(found.survival([length])[0])
        ]
        rate = bootstrap_point(lambda indices: found.take(indices).hazard(), rows, effort.seed)
        hazard = single_quantity("leaves the pattern", rate, unit="per byte", exact=0.0)
        if not shares:
            return [hazard]
        return [hazard, curve_quantity("still in the pattern", shares, "bytes written", exact=1.0)]


def _surviving_share(runs: Runs, length: int, seed: int) -> Point:
    """Return the share of texts that are still in the pattern at `length`.

    If the share is 0 or 1, the bootstrap yields no interval. The interval is then the exact binomial interval over the
    texts that were not censored before `length`.
    """
    point = bootstrap_point(
        lambda indices: float(runs.take(indices).survival([length])[0]), len(runs.lengths), seed, length
    )
    if point.low is not None or point.value not in (0.0, 1.0):
        return point
    known = (runs.lengths >= length) | runs.ended
    return share_point((runs.lengths[known] >= length).astype(float), length)


def _sizes(subject: Subject) -> tuple[int, int] | None:
    """Return the largest number of repeats and of generated tokens that fit into the context, or None if none fit."""
    for repeats in range(REPEATS, _MIN_REPEATS - 1, -1):
        room = subject.max_generated_length - _max_prompt_length(subject, repeats)
        if room >= _MIN_GENERATED:
            return repeats, min(room, GENERATED)
    return None


def _max_prompt_length(subject: Subject, repeats: int) -> int:
    tokenization = subject.oracle.tokenization
    return max(len(tokenization.encode(text * repeats)) for text in PATTERNS)
