"""Measure of the losses of a model on clones of a text, which show the order of interactions that it uses."""

from __future__ import annotations

import math

from scipy.special import stdtrit

from trialogue.data.clones import TEXT, Clones
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.clone_scorers import pretrained_scorer
from trialogue.inspection.interaction_order.measure import require_clones
from trialogue.inspection.interaction_order.reading import compute_gap, learned_beyond
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import LEVEL, Point, Quantity, single_quantity
from trialogue.inspection.subject import Subject

_ROWS = 128


class InteractionOrder(Measure):
    """Measure of which orders of token interactions a model uses.

    A clone is a copy of a text in which only interactions of tokens up to a chosen order remain. A model that
    uses higher orders has a higher loss on the clone than on the text.
    """

    question = "Which orders of interaction between tokens has the model learned?"
    reading = (
        "A clone keeps the interactions of the text up to some order, the number of interacting tokens. A model that "
        "has learned interactions of a higher order has a higher loss on the clone than on the text. For any other "
        "model, the losses are equal. The model has learned beyond an order if the excess loss on all clones up to "
        "this order is at least three standard errors. There is no interval. Order 0 means that no clone "
        "differs from the text."
    )
    kinds = ("causal", "masked")
    needs = "clones"

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Check that the folder of clones is not empty.

        Args:
            subject: Not used.
            material: Clones of a text.
            effort: Not used.

        Raises:
            InputError: If the folder has no clones yet.
        """
        require_clones(_clones(material))

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all forward passes over the clones.

        A causal model needs one pass per row. A masked model needs one pass per predicted token.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        clones = _clones(material)
        copies = 1 if subject.kind == "causal" else clones.length
        return effort.rows(_ROWS) * clones.length * len(clones.names) * copies

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure the losses of a model on clones of a text, and how much they exceed its loss on the text.

        A clone is a copy of the text in which only interactions of tokens up to a chosen order remain.

        Args:
            subject: Causal or masked model.
            material: Clones of a text.
            effort: Number of rows per clone and seed.
            report: Called with the name of each clone.

        Returns:
            The loss on each clone. If the text itself is among the clones, also the difference of each loss from the
            loss on the text. In this case there is also the order beyond which the model has learned interactions (0 if
            none).
        """
        clones = _clones(material)
        scorer = pretrained_scorer(
            subject.name, subject.model, subject.tokenizer, subject.kind == "causal", clones
        )
        losses, degrees = [], {}
        for clone in clones:
            report(clone.name)
            degrees[clone.name] = min(effort.rows(_ROWS), len(clone.tokens)) - 1
            losses.append(scorer.loss(clone, effort.rows(_ROWS), 1.0, effort.seed, model=subject.name))
        unit = f"nats per {'byte' if scorer.retokenized else 'token'}"
        found = [
            single_quantity(
                f"loss of {one.clone}", _point(one.loss, one.error, degrees[one.clone]), unit=unit
            )
            for one in losses
        ]
        text = next((one for one in losses if one.clone == TEXT), None)
        if text is not None:
            for one in losses:
                if one is not text:
                    gap = compute_gap(one, text)
                    # The degrees of freedom of the smaller sample give an interval no narrower than Welch's.
                    smaller = min(degrees[one.clone], degrees[TEXT])
                    point = _point(gap.difference, gap.error, smaller)
                    found.append(single_quantity(f"{one.clone} over the text", point, unit=unit))
            order = Point(float(learned_beyond(losses) or 0))
            found.append(single_quantity("learned beyond order", order))
        return found


def _clones(material: Material) -> Clones:
    if material.clones is None:
        raise InputError("clones", None, "give a folder written by `trialogue clone`")
    return material.clones


def _point(value: float, error: float, degrees: int) -> Point:
    """Return an estimate with Student's interval for the given degrees of freedom."""
    if math.isnan(error):
        return Point(value)
    half = float(stdtrit(degrees, (1 + LEVEL) / 2)) * error
    return Point(value, value - half, value + half)
