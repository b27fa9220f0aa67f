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
from trialogue.data.corpus.documents import split_documents
from trialogue.data.corpus.texts import LocalText, open_local_text
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

CONTROL_MODELS = 5
"""Number of models with random weights in a control. The results depend on the weights."""
CONTROL_SHARE = 1 / CONTROL_MODELS
"""Effort for each of these models relative to the effort for the inspected model."""


@validated
@dataclass(frozen=True, kw_only=True)
class Effort:
    """Sample sizes and random seed of an inspection.

    Args:
        factor: Factor by which all default sample sizes are multiplied. With 1, a measure takes a few minutes.
        seed: Random seed.

    Raises:
        InputError: If a field is out of range.
    """

    factor: Positive = 1.0
    seed: Natural = 0

    def rows(self, number: int, minimum: int = 4) -> int:
        """Scale a sample size by the factor.

        Args:
            number: Sample size at factor 1.
            minimum: Smallest result, so that a confidence interval can be computed.

        Returns:
            `number` times the factor, rounded, but at least `minimum`.
        """
        return max(minimum, round(number * self.factor))


class Material:
    """Texts on which a model is evaluated.

    Args:
        text: File or folder of real text, or None.
        clones: Folder made by `trialogue clone`, or None. A clone is a copy of a text in which only
            interactions of tokens up to a chosen order remain.

    Attributes:
        shared_folder: Folder for intermediate results that several checkpoints share. None if they share none.

    Raises:
        InputError: If the text cannot be read, or `clones` is not a folder of clones.
    """

    shared_folder: Path | None = None

    def __init__(self, text: Path | None = None, clones: Path | None = None) -> None:
        self.paths = (text, clones)
        self.text: LocalText | None = None if text is None else open_local_text(text)
        self.clones = None if clones is None else Clones(clones)

    @cached_property
    def documents(self) -> list[str]:
        """Documents of the text. An empty list if there is no text."""
        return [] if self.text is None else split_documents(self.text)

    def has(self, need: Need | None) -> bool:
        """Return whether a kind of material is available.

        Args:
            need: "text" for real text, or "clones" for clones of a text. For None the result is False.
        """
        return need is not None and (self.text if need == "text" else self.clones) is not None

    @property
    def identity(self) -> dict[str, Any]:
        """Checksums by which a resumed inspection recognizes the same material.

        The value is a dictionary with the keys "text" and "clones". An entry is None if that kind of material
        is missing. Checksums do not depend on file names.
        """
        clones = None if self.clones is None else self.clones.identity
        return {"text": None if self.text is None else self.text.identity, "clones": clones}


class Measure(ABC):
    """Base class of measures, which compute quantities with confidence intervals for a model.

    Subclasses set the attributes and implement `count_tokens` and `take`.

    Attributes:
        question: Question about the model that the measure answers. It is the title of the section on the HTML
            page.
        reading: Explanation of the quantities, with the values of a perfect model and of random weights.
        kinds: Kinds of model to which the measure applies, "causal" or "masked".
        needs: Material that the measure requires, "text" or "clones". None if it requires only the model.
        logarithmic: Whether the horizontal axis of curves is logarithmic.
    """

    question: str
    reading: str
    kinds: tuple[Kind, ...] = ("causal",)
    needs: Need | None = None
    logarithmic: bool = True

    def refusal(self, subject: Subject, material: Material) -> str | None:
        """Return the reason why the measure does not apply, or None if it applies.

        Args:
            subject: Model to measure.
            material: Available texts.
        """
        if subject.kind not in self.kinds:
            return f"it applies to {' and '.join(self.kinds)} models, but this is a {subject.kind} model"
        if subject.kind == "causal" and subject.sees_future_tokens:
            return "the model is not causal, because its predictions depend on later tokens"
        if self.needs is not None and not material.has(self.needs):
            return _MISSING[self.needs]
        return self.model_refusal(subject)

    def model_refusal(self, subject: Subject) -> str | None:
        """Return the reason why the measure does not apply to a particular model, or None if it applies.

        This method is called only for models of a kind in `kinds`. The default implementation returns None.

        Args:
            subject: Model to measure.
        """
        return None

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Check the material before any measure runs. The default implementation accepts all material.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.

        Raises:
            InputError: If the material is insufficient, for instance a text that is too short.
        """
        del subject, material, effort

    @abstractmethod
    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Estimate how many tokens the model will process. The run time is predicted from this number.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """

    @abstractmethod
    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Measure a model.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
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
        "orders": "trialogue.inspection.measures.orders:RevealOrder",
        "interactions": "trialogue.inspection.measures.interactions:InteractionOrder",
        "topics": "trialogue.inspection.measures.topics:TopicRatios",
        "decoding": "trialogue.inspection.measures.decoding:DecodingRules",
    },
    base=Measure,
)
"""All measures by name, in the order in which they run."""
