"""Topics: are words of one topic of a text more alike to a model, and does it attend between them more?"""

from __future__ import annotations

import math

from trialogue.data.corpus.documents import passages_of
from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, number
from trialogue.inspection.subject import Subject
from trialogue.inspection.topic_structure.measure import TopicSettings, measured
from trialogue.randomness import numpy_generator
from trialogue.storage import make_folder

PASSAGE, WORDS, TOPICS = 200, 30, 50
_OF_WORDS = ("words", "length", "text")
"""Fields of errors about what of the text are single tokens of the model, and about how much of it the model reads"""
_PASSAGES, _READ, _LENGTH, _PASSES, _RESAMPLES = 1000, 60, 128, 10, 200


class TopicRatios(Measure):
    """Ratios of words of one topic to words of different ones, in embeddings and in attention."""

    question = "Which words of one topic does it hold together?"
    reading = (
        f"{TOPICS} topics of the text by latent Dirichlet allocation in the model's own tokens; the {WORDS} likeliest "
        "words of each. A ratio above 1: pairs of one topic are more alike, or attend to each other more, than pairs "
        "of different topics; where those are not surely alike at all no ratio is told, and the difference is to be "
        "read. Intervals are over words and documents."
    )
    kinds = ("causal", "masked")
    needs = "text"

    def model_refusal(self, subject: Subject) -> str | None:
        """Return which package is missing, if any."""
        try:
            from_extra("sklearn", "topics")
        except InputError as error:
            return f"{error.value}: {error.hint}"
        return None

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Raise `InputError` for a text of too few passages."""
        number_of = len(passages_of(material.documents, PASSAGE))
        if number_of < 2 * TOPICS:
            hint = f"topics take {2 * TOPICS} passages of {PASSAGE} words: give a longer text, or name other --measures"
            raise InputError("text", f"{number_of} passages", hint)

    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """What attention is read in; topics take a while beside it."""
        return effort.rows(_READ) * min(_LENGTH, subject.max_length)

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """One ratio a measure, each with its interval; errors are those of `trialogue topics`."""
        passages = passages_of(material.documents, PASSAGE)
        # Which passages the topics are of does not depend on the effort: the control has those of its model.
        random = numpy_generator(effort.seed, "passages")
        chosen = sorted(random.permutation(len(passages))[:_PASSAGES].tolist())
        settings = TopicSettings(
            topics=TOPICS,
            passes=_PASSES,
            read=effort.rows(_READ),
            length=min(_LENGTH, subject.max_length),
            seed=effort.seed,
        )
        folder = None if material.shared_folder is None else make_folder(material.shared_folder)
        try:
            with subject.attending_model() as model:
                texts = [passages[place] for place in chosen]
                [found] = measured(model, texts, settings, folder=folder, control=False, report=report)
            compared = found.compare(WORDS, single=True, resamples=_RESAMPLES, seed=effort.seed)
        except InputError as error:
            if error.field not in _OF_WORDS:
                raise
            told = f"topics take {WORDS} words of the text that are single tokens of the model: {error.hint}"
            raise InputError("model", subject.name, told if error.field == "words" else error.hint) from error
        # Without an interval, pairs of different topics are at zero or below it in some of the draws.
        ratios = [(one.measure, one.ratio) for one in compared if not math.isnan(one.ratio.low)]
        over = [number(f"{name}, same / different", Point.of(ratio)) for name, ratio in ratios]
        less = [number(f"{one.measure}, same less different", Point.of(one.difference)) for one in compared]
        return [*over, *less]
