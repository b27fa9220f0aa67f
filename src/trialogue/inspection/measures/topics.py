"""Measure of whether a model treats words of the same topic as similar."""

from __future__ import annotations

import math

from trialogue.data.corpus.documents import split_passages
from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.inspection.measures.measure import Effort, Material, Measure, Report
from trialogue.inspection.measures.quantities import Point, Quantity, single_quantity
from trialogue.inspection.subject import Subject
from trialogue.inspection.topic_structure.measure import TopicSettings, measure_topics
from trialogue.randomness import numpy_generator
from trialogue.storage import make_folder

PASSAGE, WORDS, TOPICS = 200, 30, 50
_MODEL_DEPENDENT = ("words", "length", "text")
"""Error fields that depend on the model's tokenizer or on its maximum length."""
_TOO_FEW = (
    f"the text has too few words that are single tokens of the model to compare {TOPICS} topics of {WORDS} words. Use "
    "a longer --text, or run `trialogue topics`, which has the options --topics and --words"
)
_FINDING = "For the model, two words of one topic are {} times as similar as two words of different topics"
_PASSAGES, _READ, _LENGTH, _PASSES, _RESAMPLES = 1000, 60, 128, 10, 200


class TopicRatios(Measure):
    """Measure of whether words of the same topic are more similar to the model than words of different topics.

    Topics are fitted to the text. Similarity is measured by the embeddings of two words and by the attention
    between them.
    """

    question = "Does the model relate words of the same topic to each other?"
    reading = (
        f"Latent Dirichlet allocation finds {TOPICS} topics of the text, and each is represented by its {WORDS} most "
        "likely words among the words that are single tokens. A ratio above 1 means that pairs of the same topic are "
        "more similar, or attend to each other more, than pairs of different topics. There is no ratio if the mean "
        "over pairs of different topics may be zero or negative. Use the difference in that case. Intervals are over "
        "words and documents."
    )
    kinds = ("causal", "masked")
    needs = "text"

    def model_refusal(self, subject: Subject) -> str | None:
        """Return a reason if scikit-learn is not installed, and None otherwise.

        Args:
            subject: Model to measure.
        """
        try:
            from_extra("sklearn", "topics")
        except InputError as error:
            return f"{error.value}: {error.hint}"
        return None

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Check that the text has enough passages.

        Args:
            subject: Model with its tokenizer.
            material: Text.
            effort: Sample sizes and seed.

        Raises:
            InputError: If the text has too few passages.
        """
        count = len(split_passages(material.documents, PASSAGE))
        if count < 2 * TOPICS:
            hint = f"give a longer text, with at least {2 * TOPICS} passages of {PASSAGE} words, or other --measures"
            raise InputError("text", f"{count} passages", hint)

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of the passages in which attention is measured.

        The time to fit the topics is not included.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        return effort.rows(_READ) * min(_LENGTH, subject.max_length)

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure whether words of the same topic are more similar to the model than words of different topics.

        There are two kinds of similarity: between the embeddings of two words, and the attention between them.

        Args:
            subject: Causal or masked model.
            material: Text to which the topics are fitted and on which attention is measured.
            effort: Number of passages in which attention is measured, and seed.
            report: Called with progress messages.

        Returns:
            For each kind of similarity, a ratio and a difference. Both compare the mean over pairs of the same topic
            with the mean over pairs of different topics. A ratio is left out if the second mean may be zero or
            negative.
        """
        passages = split_passages(material.documents, PASSAGE)
        # The passages do not depend on the effort, so that the control shares the topics of its model.
        random = numpy_generator(effort.seed, "passages")
        selected = sorted(random.permutation(len(passages))[:_PASSAGES].tolist())
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
                texts = [passages[index] for index in selected]
                [found] = measure_topics(model, texts, settings, folder=folder, control=False, report=report)
            compared = found.compare(WORDS, single=True, resamples=_RESAMPLES, seed=effort.seed)
        except InputError as error:
            if error.field not in _MODEL_DEPENDENT:
                raise
            raise InputError(
                "model", subject.name, error.hint if error.field == "length" else _TOO_FEW
            ) from error
        # The interval is NaN if the mean over pairs of different topics is not positive in some resample.
        defined = [(one.measure, one.ratio) for one in compared if not math.isnan(one.ratio.low)]
        ratios = [
            single_quantity(
                f"{name}, same / different", Point.from_interval(ratio), finding=f"{_FINDING} ({name})"
            )
            for name, ratio in defined
        ]
        differences = [
            single_quantity(f"{one.measure}, same less different", Point.from_interval(one.difference))
            for one in compared
        ]
        return [*ratios, *differences]
