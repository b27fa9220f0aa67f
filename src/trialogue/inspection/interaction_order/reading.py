"""Interpret losses on clones: the order of interactions that a model has learned, and the training step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from trialogue.data.clones import TEXT
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.clone_scorers import CloneLoss

TOLERANCE = 0.05
"""A loss is saturated when it exceeds its minimum by at most this share of its total decrease."""
ERRORS = 3.0
"""Minimum number of standard errors by which the loss on a clone must exceed the loss on the text."""
MARGIN = 0.02
"""Minimum excess relative to the loss on the text, because an untrained network may also have a small gap."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Difference between the loss on a clone and the loss on the text.

    Args:
        difference: Loss on the clone minus loss on the text.
        error: Standard error of the difference.
        text: Loss on the text.
    """

    difference: float
    error: float
    text: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference exceeds both thresholds, so that the model uses structure that the clone lacks."""
        return self.difference > ERRORS * self.error and self.difference > MARGIN * self.text


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Summary of the losses of one model on one clone over all checkpoints.

    Args:
        model: Name of the model.
        clone: Name of the clone.
        max_order: Highest order of interactions that the clone keeps, None if it keeps all.
        steps: Training step of each checkpoint, None if unknown.
        losses: Loss of each checkpoint.
        accuracy: Accuracy of the last checkpoint.
        saturated: Step from which the loss is saturated (see `saturation_step`). None if a step is unknown, or if there
            is a single checkpoint.
        gap: Gap of the last checkpoint. None for the text itself, or if the text is not among the clones.
        told_since: Step from which the gap stays significant. None if the last gap is not
            significant, or as for `saturated`.
    """

    model: str
    clone: str
    max_order: int | None
    steps: tuple[int | None, ...]
    losses: tuple[float, ...]
    accuracy: float
    saturated: int | None
    gap: Gap | None
    told_since: int | None


def saturation_step(steps: Sequence[int], losses: Sequence[float], tolerance: float = TOLERANCE) -> int:
    """Return the first step at which the loss is saturated.

    The loss is saturated when it exceeds its minimum by at most `tolerance` times the decrease from the first loss to
    the minimum. The criterion is relative to the decrease because clones differ in the lowest loss that a model can
    reach. It uses the minimum instead of the last loss because the loss on a clone of low order may rise again.

    Args:
        steps: Training steps in increasing order.
        losses: Loss at each step.
        tolerance: Share of the decrease.

    Raises:
        InputError: If the lengths differ or are zero.
    """
    if not len(steps) or len(steps) != len(losses):
        raise InputError("losses", len(losses), f"give one for each of the {len(steps)} steps, at least one")
    lowest = min(losses)
    threshold = lowest + tolerance * (losses[0] - lowest)
    return next(step for step, loss in zip(steps, losses, strict=True) if loss <= threshold)


def gap_of(clone: CloneLoss, text: CloneLoss) -> Gap:
    """Return the gap between the losses of one model on a clone and on the text."""
    return Gap(difference=clone.loss - text.loss, error=math.hypot(clone.error, text.error), text=text.loss)


def learned_beyond(losses: Iterable[CloneLoss]) -> int | None:
    """Return the order beyond which a model has learned interactions.

    This is the largest order k for which all clones that keep interactions up to order k or lower have a significant
    gap. The model then uses structure of the text that these clones lack. A clone whose Markov chain has not converged
    may have a gap for other reasons.

    Args:
        losses: Losses of one checkpoint on the clones and on the text.

    Returns:
        The order, or None if the gap of the clones of lowest order is not significant.
    """
    by_name = {one.clone: one for one in losses}
    text = by_name.get(TEXT)
    beyond = None
    limited = [one for one in by_name.values() if one.max_order is not None]
    for order, clones in groupby(sorted(limited, key=_order), _order):
        if text is None or not all(gap_of(one, text).is_significant for one in clones):
            break
        beyond = order
    return beyond


def readings(losses: Iterable[CloneLoss]) -> list[Reading]:
    """Summarize the losses of each model on each clone, in the order of the first measurement."""
    series: dict[tuple[str, str], list[CloneLoss]] = {}
    for one in losses:
        series.setdefault((one.model, one.clone), []).append(one)
    return [_reading(found, series.get((model, TEXT))) for (model, _), found in series.items()]


def _reading(found: list[CloneLoss], text: list[CloneLoss] | None) -> Reading:
    last = found[-1]
    steps = tuple(one.step for one in found)
    known = [step for step in steps if step is not None]
    values = tuple(one.loss for one in found)
    has_steps = len(known) == len(steps) > 1
    gaps = [] if text is None or last.clone == TEXT else list(map(gap_of, found, text))
    insignificant = [index for index, gap in enumerate(gaps) if not gap.is_significant]
    since = insignificant[-1] + 1 if insignificant else 0
    return Reading(
        model=last.model,
        clone=last.clone,
        max_order=last.max_order,
        steps=steps,
        losses=values,
        accuracy=last.score.accuracy,
        saturated=saturation_step(known, values) if has_steps else None,
        gap=gaps[-1] if gaps else None,
        told_since=known[since] if has_steps and since < len(gaps) else None,
    )


def _order(one: CloneLoss) -> int:
    return one.max_order or 0
