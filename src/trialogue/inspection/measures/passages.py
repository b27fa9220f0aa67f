"""Base class of the measures that evaluate a model on passages of a real text."""

from __future__ import annotations

from trialogue.inspection.measures.measure import Effort, Material, Measure
from trialogue.inspection.subject import Passages, Subject
from trialogue.randomness import numpy_generator


class PassageMeasure(Measure):
    """Base class of measures that sample passages of equal length from the text.

    Attributes:
        length: Largest number of tokens of a passage.
        least_length: Smallest number of tokens for which the measure is defined.
        rows: Number of passages at an effort of 1.
        stream: Names of the random stream that samples the passages.
    """

    needs = "text"
    length: int
    least_length: int
    rows: int
    stream: tuple[str, ...]

    def model_refusal(self, subject: Subject) -> str | None:
        """Return a reason if the model cannot read passages of `least_length` tokens, and None otherwise.

        Args:
            subject: Model to measure.

        Raises:
            InputError: If the measure needs a masked model, and the model has no mask token.
        """
        if "masked" in self.kinds:
            _ = subject.masked
        if self.passage_length(subject) >= self.least_length:
            return None
        return f"its maximum length is only {subject.max_length} tokens"

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Check that the text has enough passages of the required length.

        Args:
            subject: Model with its tokenizer.
            material: Text from which the passages are sampled.
            effort: Sample sizes and seed.

        Raises:
            InputError: If the text has too few passages.
        """
        self.sample_passages(subject, material, effort)

    def passage_length(self, subject: Subject) -> int:
        """Return the number of tokens of a passage, which leaves room for the special tokens around it.

        Args:
            subject: Model to measure. A causal model reads no special tokens after the passage.
        """
        before, after = map(len, subject.frame)
        return min(self.length, subject.max_length - before - (after if "masked" in self.kinds else 0))

    def sample_passages(self, subject: Subject, material: Material, effort: Effort) -> Passages:
        """Sample passages from the documents of the text.

        Args:
            subject: Model with its tokenizer.
            material: Text from which the passages are sampled.
            effort: Number of passages and seed.

        Raises:
            InputError: If the text has too few passages.
        """
        random = numpy_generator(effort.seed, *self.stream)
        rows = effort.rows(self.rows)
        return subject.sample_passages(material.documents, self.passage_length(subject), rows, random)
