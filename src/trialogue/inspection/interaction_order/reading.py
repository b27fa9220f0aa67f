"""What losses on clones say: beyond which order a model has learned, and after how many steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from trialogue.data.clones import TEXT
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.askers import CloneLoss

TOLERANCE = 0.05
"""A loss is saturated once it is within this share of its whole drop of its lowest value."""
ERRORS = 3.0
"""A clone is told from the text once it costs so many standard errors more, and"""
MARGIN = 0.02
"""more than the text by this share: an untrained network may find them a little different too."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How much more a clone costs than the text, which costs `text`, and the standard error of the difference."""

    difference: float
    error: float
    text: float

    @property
    def told(self) -> bool:
        """Whether the model tells the clone from the text: it uses something that the clone does not keep."""
        return self.difference > ERRORS * self.error and self.difference > MARGIN * self.text


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a `model` makes of a `clone` through its checkpoints: `steps` and `losses` of each, and the last `accuracy`.

    `saturated` is the step from which on nothing much is learned about the clone (`saturation_step`), `gap` that of the
    last checkpoint, and `told_since` the step from which on it is told from the text at every later one. Steps are None
    where they are not known or there is but one, the gap where there is no text or it is the clone itself.
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
    """The first of `steps` whose loss is above the lowest by at most `tolerance` of the drop from the first to that.

    The drop, and not the level, as clones differ in the least loss that any model can have; and to the lowest loss, as
    that on a clone of low order may rise again. Raises `InputError` unless each step has a loss.
    """
    if not len(steps) or len(steps) != len(losses):
        raise InputError("losses", len(losses), f"give one for each of the {len(steps)} steps, at least one")
    least = min(losses)
    enough = least + tolerance * (losses[0] - least)
    return next(step for step, loss in zip(steps, losses, strict=True) if loss <= enough)


def gap_of(clone: CloneLoss, text: CloneLoss) -> Gap:
    """How much more `clone` costs than `text`, by one model."""
    return Gap(difference=clone.loss - text.loss, error=math.hypot(clone.error, text.error), text=text.loss)


def learned_beyond(losses: Iterable[CloneLoss]) -> int | None:
    """The order beyond which a model at one checkpoint has learned; None where it tells no clone from the text.

    That is the largest such that all clones that keep no higher orders are told from the text: what it uses in the text
    is then not among what they keep. Clones that were drawn badly are told from it for other reasons too.
    """
    by_name = {one.clone: one for one in losses}
    text = by_name.get(TEXT)
    beyond = None
    limited = [one for one in by_name.values() if one.max_order is not None]
    for order, clones in groupby(sorted(limited, key=_order), _order):
        if text is None or not all(gap_of(one, text).told for one in clones):
            break
        beyond = order
    return beyond


def readings(losses: Iterable[CloneLoss]) -> list[Reading]:
    """What the losses of each model say of each clone, in the order in which they were measured."""
    series: dict[tuple[str, str], list[CloneLoss]] = {}
    for one in losses:
        series.setdefault((one.model, one.clone), []).append(one)
    return [_reading(found, series.get((model, TEXT))) for (model, _), found in series.items()]


def _reading(found: list[CloneLoss], text: list[CloneLoss] | None) -> Reading:
    last = found[-1]
    steps = tuple(one.step for one in found)
    known = [step for step in steps if step is not None]
    values = tuple(one.loss for one in found)
    followed = len(known) == len(steps) > 1
    gaps = [] if text is None or last.clone == TEXT else list(map(gap_of, found, text))
    untold = [place for place, gap in enumerate(gaps) if not gap.told]
    since = untold[-1] + 1 if untold else 0
    return Reading(
        model=last.model,
        clone=last.clone,
        max_order=last.max_order,
        steps=steps,
        losses=values,
        accuracy=last.score.accuracy,
        saturated=saturation_step(known, values) if followed else None,
        gap=gaps[-1] if gaps else None,
        told_since=known[since] if followed and since < len(gaps) else None,
    )


def _order(one: CloneLoss) -> int:
    return one.max_order or 0
