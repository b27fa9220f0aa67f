"""Figures of losses on clones, over training and for single checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from trialogue.data.clones import TEXT
from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.inspection.interaction_order.clone_scorers import CloneLoss

if TYPE_CHECKING:
    import matplotlib.figure
    from matplotlib.axes import Axes


def draw_losses(losses: Sequence[CloneLoss]) -> matplotlib.figure.Figure:
    """Draw the losses of models on clones of a text.

    A model with several checkpoints gets a panel with its losses over training steps. All models with a single
    checkpoint share the last panel.

    Args:
        losses: Losses of one or several models on the clones.
    """
    models: dict[str, list[CloneLoss]] = {}
    for one in losses:
        models.setdefault(one.model, []).append(one)
    trained = {model: found for model, found in models.items() if len({one.step for one in found}) > 1}
    single = {model: found for model, found in models.items() if model not in trained}
    figure, axes = panels(len(trained) + bool(single))
    for panel, (model, found) in zip(axes, trained.items(), strict=False):
        _draw_over_steps(panel, found)
        panel.set_title(_short(model))
    if single:
        _draw_by_clone(axes[-1], single)
    return figure


def _draw_over_steps(axes: Axes, found: Sequence[CloneLoss]) -> None:
    for clone, color in zip(_sorted_clones(found), cycle(COLORS)):
        line = [one for one in found if one.clone == clone and one.step is not None]
        style = {"fmt": "--", "color": QUIET} if clone == TEXT else {"fmt": ".-", "color": color}
        _draw_errors(axes, [one.step or 0 for one in line], line, label=_label(line[0]), **style)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel("training step")
    axes.set_ylabel(_unit(found))
    axes.legend()


def _draw_by_clone(axes: Axes, models: dict[str, list[CloneLoss]]) -> None:
    names = _sorted_clones([one for found in models.values() for one in found])
    labels = {one.clone: _label(one) for found in models.values() for one in found}
    for (model, found), color in zip(models.items(), cycle(COLORS)):
        positions = [names.index(one.clone) for one in found]
        _draw_errors(axes, positions, found, label=_short(model), fmt="o", color=color)
    axes.set_xticks(range(len(names)), [labels[name] for name in names], rotation=20, ha="right")
    axes.set_ylabel(_unit([one for found in models.values() for one in found]))
    axes.legend()


def _draw_errors(axes: Axes, positions: Sequence[int], losses: Sequence[CloneLoss], **style: Any) -> None:
    axes.errorbar(positions, [one.loss for one in losses], [one.error for one in losses], **style)


def _sorted_clones(found: Sequence[CloneLoss]) -> list[str]:
    """Return the names of the clones by increasing order, with the text last."""
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
