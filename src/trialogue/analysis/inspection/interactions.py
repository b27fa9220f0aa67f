"""Interaction order: losses on clones of a text, and beyond which order a model has learned."""

from __future__ import annotations

import math

from trialogue.analysis.inspection.measure import Effort, Material, Measure, Report
from trialogue.analysis.inspection.quantities import Point, Quantity, number
from trialogue.analysis.inspection.subject import Subject
from trialogue.analysis.interaction_order.askers import pretrained_asker
from trialogue.analysis.interaction_order.measure import CloneLoss
from trialogue.analysis.interaction_order.reading import gap_of, learned_beyond
from trialogue.data.clones import TEXT, Clones
from trialogue.errors import InputError

_ROWS = 128
_ERRORS = 1.96
"""Standard errors of an interval at 95 %."""


class InteractionOrder(Measure):
    """What clones of a text cost more than the text itself, by the interactions that they keep."""

    question = "Which orders of interaction between tokens has it learned?"
    reading = (
        "A clone keeps interactions of the text up to some number of tokens. A model that has learned more finds the "
        "text cheaper than the clone; one that has not finds no difference. Beyond order 0: it tells no clone from it."
    )
    kinds = ("causal", "masked")
    needs = "clones"

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """All rows of every clone; of a masked model, once for each token."""
        clones = _clones(material)
        copies = 1 if subject.kind == "causal" else clones.length
        return effort.rows(_ROWS) * clones.length * len(clones.names) * copies

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Losses and gaps, clone by clone; errors are those of `trialogue interaction-order`."""
        clones = _clones(material)
        if not clones.names:
            raise InputError(
                "clones", str(clones.folder), "there are none in it yet: `trialogue clone` goes on in it"
            )
        causal = subject.kind == "causal"
        asker = pretrained_asker(subject.name, subject.model, subject.tokenizer, causal, clones)
        losses = []
        for clone in clones:
            report(clone.name)
            answer = asker.answer(clone, effort.rows(_ROWS), 1.0, effort.seed)
            losses.append(
                CloneLoss(
                    model=subject.name,
                    step=None,
                    clone=clone.name,
                    max_order=clone.max_order,
                    causal=causal,
                    score=answer.score,
                    tokens_per_byte=answer.tokens_per_byte,
                )
            )
        unit = f"nats a {'byte' if asker.retokenized else 'token'}"
        found = [number(f"loss of {one.clone}", _point(one.loss, one.error), unit=unit) for one in losses]
        texts = [one for one in losses if one.clone == TEXT]
        for text in texts:
            gaps = [(one, gap_of(one, text)) for one in losses if one.clone != TEXT]
            found += [
                number(f"{one.clone} over the text", _point(gap.difference, gap.error), unit=unit)
                for one, gap in gaps
            ]
            found.append(number("learned beyond order", Point(float(learned_beyond(losses) or 0))))
        return found


def _clones(material: Material) -> Clones:
    if material.clones is None:
        raise InputError("clones", None, "name a folder that `trialogue clone` made")
    return material.clones


def _point(value: float, error: float) -> Point:
    if math.isnan(error):
        return Point(value)
    return Point(value, value - _ERRORS * error, value + _ERRORS * error)
