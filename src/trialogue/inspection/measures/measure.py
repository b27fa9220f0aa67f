"""Base class of the measures of a checkpoint, and the inputs that they share.

To add a measure from another package, register a subclass of `Measure` as an entry point of the group
`trialogue.measures`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from trialogue.data.clones import Clones
from trialogue.data.corpus.documents import documents_of
from trialogue.data.corpus.texts import LocalText, local_text
from trialogue.inspection.measures.quantities import Quantity
from trialogue.inspection.subject import Kind, Subject
from trialogue.registry import Registry
from trialogue.validation import Natural, Positive, validated

Report = Callable[[str], object]
Need = Literal["text", "clones"]

_MISSING: dict[Need, str] = {
    "text": "it needs a text. Use --text FILE",
    "clones": "it needs clones of a text. Make them with `trialogue clone`, and use --clones DIR",
}

CONTROL_SHARE = 0.25
"""Effort of the control relative to the effort of the model."""


@validated
@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sample sizes and random seed of an inspection.

    Args:
        factor: Multiplies all sample sizes. The default takes a few minutes per measure.
        seed: Random seed.

    Raises:
        InputError: If a field is out of range.
    """

    factor: Positive = 1.0
    seed: Natural = 0

    def rows(self, number: int, minimum: int = 4) -> int:
        """Return `number` times the factor, but at least `minimum`, so that an interval can be computed."""
        return max(minimum, round(number * self.factor))


class Material:
    """Text and clones on which a model is evaluated.

    Args:
        text: File or folder of text.
        clones: Folder of clones made by `trialogue clone`.

    Attributes:
        shared_folder: Folder for intermediate results that measures of several checkpoints share, None for no sharing.

    Raises:
        InputError: If the text cannot be read, or `clones` is not a folder of clones.
    """

    shared_folder: Path | None = None

    def __init__(self, text: Path | None = None, clones: Path | None = None) -> None:
        self.paths = (text, clones)
        self.text: LocalText | None = None if text is None else local_text(text)
        self.clones = None if clones is None else Clones(clones)

    @cached_property
    def documents(self) -> list[str]:
        """Documents of the text, an empty list without a text."""
        return [] if self.text is None else documents_of(self.text)

    def has(self, need: Need | None) -> bool:
        """Return whether the given kind of material is available. This is False for None."""
        return need is not None and (self.text if need == "text" else self.clones) is not None

    @property
    def identity(self) -> dict[str, Any]:
        """Checksums of the text and of the clones, independent of file names, as JSON values."""
        clones = None if self.clones is None else self.clones.identity
        return {"text": None if self.text is None else self.text.identity, "clones": clones}


class Measure(ABC):
    """Measurement of a model that yields quantities with confidence intervals.

    Subclasses set the attributes and implement `tokens` and `take`.

    Attributes:
        question: Question about the model, used as the title of the section.
        reading: How to interpret the quantities, including the values of a perfect model and of random weights.
        kinds: Kinds of model to which the measure applies.
        needs: Material that the measure requires, None if it requires only the model.
        logarithmic: Whether to draw curves over a logarithmic axis.
    """

    question: str
    reading: str
    kinds: tuple[Kind, ...] = ("causal",)
    needs: Need | None = None
    logarithmic: bool = True

    def refusal(self, subject: Subject, material: Material) -> str | None:
        """Return the reason why the measure does not apply to this model and material, None if it applies."""
        if subject.kind not in self.kinds:
            return f"it applies to {' and '.join(self.kinds)} models, but this is a {subject.kind} model"
        if subject.kind == "causal" and subject.sees_future_tokens:
            return "the model is not causal, because its predictions depend on later tokens"
        if self.needs is not None and not material.has(self.needs):
            return _MISSING[self.needs]
        return self.model_refusal(subject)

    def model_refusal(self, subject: Subject) -> str | None:
        """Return the reason why the measure does not apply to a model of a supported kind.

        The default implementation returns None, which means that the measure applies to all of them.
        """
        return None

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Check the material before any measure runs.

        Raises:
            InputError: If the material is insufficient, for instance a text that is too short.
        """
        del subject, material, effort

    @abstractmethod
    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Estimate the number of tokens that the model processes, from which the run time is estimated."""

    @abstractmethod
    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Take the measurement.

        Args:
            subject: Model to measure.
            material: Text and clones.
            effort: Sample sizes and seed.
            report: Called with progress messages.

        Returns:
            The measured quantities.

        Raises:
            InputError: If the model or the material is unsuitable.
        """


MEASURES: Registry[type[Measure]] = Registry(
    "trialogue.measures",
    "measure",
    {
        "copying": "trialogue.inspection.measures.copying:Copying",
        "brackets": "trialogue.inspection.measures.brackets:Brackets",
        "patterns": "trialogue.inspection.measures.patterns:TextPatterns",
        "context": "trialogue.inspection.measures.context:ContextLength",
        "consistency": "trialogue.inspection.measures.consistency:MaskedConsistency",
        "interactions": "trialogue.inspection.measures.interactions:InteractionOrder",
        "topics": "trialogue.inspection.measures.topics:TopicRatios",
        "decoding": "trialogue.inspection.measures.decoding:DecodingRules",
    },
    base=Measure,
)
"""All measures by name, in the order in which they run."""
