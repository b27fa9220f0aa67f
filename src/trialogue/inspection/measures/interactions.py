"""Interaction order: losses on clones of a text, and beyond which order a model has learned."""

from __future__ import annotations

import math

from scipy.special import stdtrit

from trialogue.data.clones import TEXT, Clones
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.clone_scorers import pretrained_scorer
from trialogue.inspection.interaction_order.measure import require_clones
from trialogue.inspection.interaction_order.reading import gap_of, learned_beyond
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import LEVEL, Point, Quantity, number
from trialogue.inspection.subject import Subject

_ROWS = 128


class InteractionOrder(Measure):
    """What clones of a text cost more than the text itself, by the interactions that they keep."""

    question = "Which orders of interaction between tokens has it learned?"
    reading = (
        "A clone keeps interactions of the text up to some number of tokens. A model that has learned more finds the "
        "text cheaper than the clone; one that has not finds no difference. Beyond which order is told as far as it is "
        "sure, without an interval: a clone counts where it costs three standard errors more. Beyond order 0: it tells "
        "no clone from the text."
    )
    kinds = ("causal", "masked")
    needs = "clones"

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Raise `InputError` for a folder that has no clones yet."""
        require_clones(_clones(material))

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """All rows of every clone; of a masked model, once for each token."""
        clones = _clones(material)
        copies = 1 if subject.kind == "causal" else clones.length
        return effort.rows(_ROWS) * clones.length * len(clones.names) * copies

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Losses and gaps, clone by clone; errors are those of `trialogue interaction-order`."""
        clones = _clones(material)
        scorer = pretrained_scorer(
            subject.name, subject.model, subject.tokenizer, subject.kind == "causal", clones
        )
        losses, degrees = [], {}
        for clone in clones:
            report(clone.name)
            degrees[clone.name] = min(effort.rows(_ROWS), len(clone.tokens)) - 1
            losses.append(scorer.loss(clone, effort.rows(_ROWS), 1.0, effort.seed, model=subject.name))
        unit = f"nats a {'byte' if scorer.retokenized else 'token'}"
        found = [
            number(f"loss of {one.clone}", _point(one.loss, one.error, degrees[one.clone]), unit=unit)
            for one in losses
        ]
        text = next((one for one in losses if one.clone == TEXT), None)
        if text is not None:
            for one in losses:
                if one is not text:
                    gap = gap_of(one, text)
                    # Those of the smaller sample: no narrower than Welch's interval.
                    fewest = min(degrees[one.clone], degrees[TEXT])
                    point = _point(gap.difference, gap.error, fewest)
                    found.append(number(f"{one.clone} over the text", point, unit=unit))
            found.append(number("learned beyond order", Point(float(learned_beyond(losses) or 0))))
        return found


def _clones(material: Material) -> Clones:
    if material.clones is None:
        raise InputError("clones", None, "name a folder that `trialogue clone` made")
    return material.clones


def _point(value: float, error: float, degrees: int) -> Point:
    """With Student's interval, for a standard error of so many `degrees` of freedom."""
    if math.isnan(error):
        return Point(value)
    half = float(stdtrit(degrees, (1 + LEVEL) / 2)) * error
    return Point(value, value - half, value + half)
