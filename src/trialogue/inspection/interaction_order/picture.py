"""Losses on clones as a picture: through training, a panel for each model, and of models at rest side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from trialogue.data.clones import TEXT
from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.interaction_order.askers import CloneLoss

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes


def draw_losses(losses: Sequence[CloneLoss]) -> matplotlib.figure.Figure:
    """The losses of models on clones: by step for those that were followed, by clone for those at one checkpoint."""
    models: dict[str, list[CloneLoss]] = {}
    for one in losses:
        models.setdefault(one.model, []).append(one)
    followed = {model: found for model, found in models.items() if len({one.step for one in found}) > 1}
    resting = {model: found for model, found in models.items() if model not in followed}
    drawing, axes = panels(len(followed) + bool(resting))
    for place, (model, found) in zip(axes, followed.items(), strict=False):
        _through_training(place, found)
        place.set_title(_short(model))
    if resting:
        _side_by_side(axes[-1], resting)
    return drawing


def _through_training(axes: Axes, found: Sequence[CloneLoss]) -> None:
    for clone, color in zip(_clones(found), cycle(COLORS)):
        line = [one for one in found if one.clone == clone and one.step is not None]
        of_text = clone == TEXT
        style = {"fmt": "--", "color": QUIET} if of_text else {"fmt": ".-", "color": color}
        _draw_errors(axes, [one.step or 0 for one in line], line, label=_label(line[0]), **style)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("step of the training")
    axes.set_ylabel(_unit(found))
    axes.legend()


def _side_by_side(axes: Axes, models: dict[str, list[CloneLoss]]) -> None:
    names = _clones([one for found in models.values() for one in found])
    labels = {one.clone: _label(one) for found in models.values() for one in found}
    for (model, found), color in zip(models.items(), cycle(COLORS)):
        places = [names.index(one.clone) for one in found]
        _draw_errors(axes, places, found, label=_short(model), fmt="o", color=color)
    axes.set_xticks(range(len(names)), [labels[name] for name in names], rotation=20, ha="right")
    axes.set_ylabel(_unit([one for found in models.values() for one in found]))
    axes.legend()


def _draw_errors(axes: Axes, places: Sequence[int], losses: Sequence[CloneLoss], **style: Any) -> None:
    axes.errorbar(places, [one.loss for one in losses], [one.error for one in losses], **style)


def _clones(found: Sequence[CloneLoss]) -> list[str]:
    """The clones by order, the text last."""
    orders = {one.clone: (one.clone == TEXT, one.max_order is None, one.max_order or 0) for one in found}
    return sorted(orders, key=orders.__getitem__)


def _label(one: CloneLoss) -> str:
    if one.clone == TEXT:
        return "the text"
    return one.clone if one.max_order is None else f"{one.clone} (order {one.max_order})"


def _unit(found: Sequence[CloneLoss]) -> str:
    units = {"token" if one.tokens_per_byte is None else "byte" for one in found}
    return f"nats per {' or '.join(sorted(units, reverse=True))}"


def _short(model: str) -> str:
    return model if len(model) <= 40 else f"…{model[-39:]}"
