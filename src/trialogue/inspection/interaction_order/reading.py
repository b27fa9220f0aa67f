"""Interpretation of losses on clones: which order of interactions a model has learned, and when."""

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
    """Difference between the loss of a model on a clone and its loss on the original text.

    A clone is a copy of the text in which only interactions of tokens up to a chosen order remain.

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
        """Whether the loss on the clone is clearly larger than the loss on the text.

        This requires a difference above three standard errors and above 2% of the loss on the text. The model
        then uses structure of the text that the clone lacks.
        """
        return self.difference > ERRORS * self.error and self.difference > MARGIN * self.text


@dataclass(frozen=True, kw_only=True)
class LossSummary:
    """Summary of the losses of one model on one clone of a text, over all of its checkpoints.

    The gap is the loss on the clone minus the loss on the original text.

    Args:
        model: Name of the model.
        clone: Name of the clone.
        max_order: Highest order of interactions that remain in the clone. None if all orders remain.
        steps: Training step of each checkpoint. None for an unknown step.
        losses: Loss of each checkpoint.
        accuracy: Accuracy of the last checkpoint.
        saturated: First training step at which the loss is close to its minimum, relative to its total decrease. None
            if a step is unknown or there is a single checkpoint.
        gap: Gap of the last checkpoint. None if the clone is the text itself, or if there is no loss on the text.
        told_since: Training step from which the gap stays significant. None if the gap of the last checkpoint is not
            significant, a step is unknown, or there is a single checkpoint.
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
    """Return the first training step at which the loss is saturated, which means close to its minimum.

    A loss is saturated if it exceeds the minimum of all losses by at most `tolerance` times the decrease from
    the first loss to the minimum. The criterion is relative to the decrease because clones differ in the lowest
    loss that a model can reach. It uses the minimum instead of the last loss because the loss on a clone of low
    order may rise again.

    Args:
        steps: Training steps in increasing order.
        losses: Loss at each step.
        tolerance: Fraction of the decrease by which a saturated loss may exceed the minimum.

    Raises:
        InputError: If the lengths differ or are zero.
    """
    if not len(steps) or len(steps) != len(losses):
        raise InputError("losses", len(losses), f"give one for each of the {len(steps)} steps, at least one")
    lowest = min(losses)
    threshold = lowest + tolerance * (losses[0] - lowest)
    return next(step for step, loss in zip(steps, losses, strict=True) if loss <= threshold)


def compute_gap(clone: CloneLoss, text: CloneLoss) -> Gap:
    """Subtract the loss of a model on a text from its loss on a clone of the text.

    A clone of order k is a copy of the text in which only interactions of up to k tokens remain.

    Args:
        clone: Loss on the clone.
        text: Loss on the text.

    Returns:
        The difference with its standard error.
    """
    return Gap(difference=clone.loss - text.loss, error=math.hypot(clone.error, text.error), text=text.loss)


def learned_beyond(losses: Iterable[CloneLoss]) -> int | None:
    """Return the largest order k such that the model has learned interactions of more than k tokens.

    A clone of order k is a copy of the text in which only interactions of up to k tokens remain. The loss on
    every clone of order k or lower must be significantly higher than the loss on the text. The model then uses
    structure of the text that these clones lack. The loss on a clone may also be higher because its Markov
    chain has not converged.

    Args:
        losses: Losses of one checkpoint on the clones and on the text.

    Returns:
        The order k, or None if the losses on the clones of lowest order are not all significantly higher.
    """
    by_name = {one.clone: one for one in losses}
    text = by_name.get(TEXT)
    beyond = None
    limited = [one for one in by_name.values() if one.max_order is not None]
    for order, clones in groupby(sorted(limited, key=_order), _order):
        if text is None or not all(compute_gap(one, text).is_significant for one in clones):
            break
        beyond = order
    return beyond


def summarize_losses(losses: Iterable[CloneLoss]) -> list[LossSummary]:
    """Summarize the losses of each model on each clone over its checkpoints.

    Args:
        losses: Losses of one or several models, with the checkpoints of a model in order of their training
            steps.

    Returns:
        One summary per model and clone, in the order of their first occurrence in `losses`.
    """
    series: dict[tuple[str, str], list[CloneLoss]] = {}
    for one in losses:
        series.setdefault((one.model, one.clone), []).append(one)
    return [_summarize(found, series.get((model, TEXT))) for (model, _), found in series.items()]


def _summarize(found: list[CloneLoss], text: list[CloneLoss] | None) -> LossSummary:
    last = found[-1]
    steps = tuple(one.step for one in found)
    known = [step for step in steps if step is not None]
    values = tuple(one.loss for one in found)
    has_steps = len(known) == len(steps) > 1
    gaps = [] if text is None or last.clone == TEXT else list(map(compute_gap, found, text))
    insignificant = [index for index, gap in enumerate(gaps) if not gap.is_significant]
    since = insignificant[-1] + 1 if insignificant else 0
    return LossSummary(
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
