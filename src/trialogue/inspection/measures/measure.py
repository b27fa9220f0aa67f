"""What a measure of a checkpoint is, and what it is given.

A package of a user's own adds one by an entry point of the group `trialogue.measures` whose value is a subclass of
`Measure`.
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
    "text": "it needs a text: --text FILE",
    "clones": "it needs clones of a text: `trialogue clone` makes them, --clones DIR gives them",
}

CONTROL_SHARE = 0.25
"""How much of what the model is asked its control is asked."""


@validated
@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much a model is asked: `factor` times what it takes in a few minutes, drawn by `seed`.

    Raises `InputError` where a field is out of range.
    """

    factor: Positive = 1.0
    seed: Natural = 0

    def rows(self, number: int, least: int = 4) -> int:
        """`number` times the factor, but not below what an interval needs."""
        return max(least, round(number * self.factor))


class Material:
    """What a user gives beside the model: a text, clones of one, both or neither.

    `kept` is a folder for what measures of several checkpoints share, if there is one. Raises `InputError` for a text
    that cannot be read, and for a folder that holds no clones.
    """

    kept: Path | None = None

    def __init__(self, text: Path | None = None, clones: Path | None = None) -> None:
        self.paths = (text, clones)
        self.text: LocalText | None = None if text is None else local_text(text)
        self.clones = None if clones is None else Clones(clones)

    @cached_property
    def documents(self) -> list[str]:
        """The documents of the text; none where there is no text."""
        return [] if self.text is None else documents_of(self.text)

    def has(self, need: Need | None) -> bool:
        """Whether there is what a measure needs, if it needs anything."""
        return need is not None and (self.text if need == "text" else self.clones) is not None

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this material from another, as JSON holds it: sums of files, not their names."""
        clones = None if self.clones is None else self.clones.identity
        return {"text": None if self.text is None else self.text.identity, "clones": clones}


class Measure(ABC):
    """A question to a checkpoint, answered in quantities with intervals.

    It states its `question`, what a perfect answer and that of the control mean (`reading`), the `kinds` of model that
    it can be asked, what it `needs` beside the model, what it costs, and how it is taken.
    """

    question: str
    reading: str
    kinds: tuple[Kind, ...] = ("causal",)
    needs: Need | None = None
    logarithmic: bool = True
    """Whether its curves are drawn over a logarithmic axis"""

    def refusal(self, subject: Subject, material: Material) -> str | None:
        """Why it cannot be taken of this model with this material; None where it can."""
        if subject.kind not in self.kinds:
            return f"it is of {' and '.join(self.kinds)} models, and this is a {subject.kind} one"
        if subject.kind == "causal" and subject.reads_ahead:
            return "what it says of a token depends on later ones, so that it is no causal model"
        if self.needs is not None and not material.has(self.needs):
            return _MISSING[self.needs]
        return self.unfit(subject)

    def unfit(self, subject: Subject) -> str | None:
        """Why a model of the right kind does not fit all the same; by default they all do."""
        return None

    def require(self, subject: Subject, material: Material, effort: Effort) -> None:
        """Raise `InputError` where the material does not suffice: asked before anything runs."""
        del subject, material, effort

    @abstractmethod
    def tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """About how many tokens the network is fed."""

    @abstractmethod
    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Ask the model; `report` is told how far it is. Raises `InputError` where model or text will not do."""


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
"""By name, in the order in which they are taken."""
