"""Claims: what a source says, or what we say, and the criterion that decides it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.documents import check_statement_id
from trialogue_lab.ledger.claims.statistics import Criterion, Statistic, Unit

Origin = Literal["published", "ours"]
ORIGINS: tuple[Origin, ...] = ("published", "ours")

NOT_PRINTED = "not printed"
"""What is `published` of a claim that the source makes without a number."""


@dataclass(frozen=True)
class Precondition:
    """A condition that a run must meet before a claim can be tested, such as a network that has learned its task.

    The condition is met if the mean of the statistic over replications lies in the criterion's region.
    """

    statement: str
    criterion: Criterion


@dataclass(frozen=True)
class Claim:
    """A statement and the criterion that decides it, both fixed before the run.

    The threshold of a published claim is zero if the source gives a direction, and the source's number if it gives
    one. Otherwise the threshold is a grade chosen by this project, and `grade` is true.

    Args:
        id: Name of the claim, unique within its study.
        statement: The statement that the criterion decides, as registered.
        criterion: The statistic and the threshold that decide the statement.
        source: Place in the source, such as "Table 3.1".
        published: The source's words or numbers at that place.
        origin: "published" for a statement of the source. "ours" for controls, other interpretations of the source
            and statements suggested by a pilot.
        grade: Whether the threshold of a published claim is a grade chosen by this project.
        statement_id: The source's statement, as "<document>:<identifier>", such as "thesis:M-F41". Documents are the
            keys of `DOCUMENTS`. Several claims may test one statement. Empty for claims of "ours".
        setting: How this study's setting differs from the setting that the source's statement is about, in one
            sentence that is shown with every verdict. Empty if the settings agree.
        preconditions: Conditions without which the claim is not tested.
        title: A short plain title, of at most 12 words, that tables, figures and the terminal show. It is not
            registered. Empty to show the statement.
    """

    id: str
    statement: str
    criterion: Criterion
    source: str
    published: str = NOT_PRINTED
    origin: Origin = "published"
    grade: bool = False
    statement_id: str = ""
    setting: str = ""
    preconditions: tuple[Precondition, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.criterion, Criterion):
            hint = f"claim {self.id}: compare a statistic with a number, as in `gain() > 0`"
            raise InputError("criterion", self.criterion, hint)
        if self.origin not in ORIGINS:
            raise InputError("origin", self.origin, f"claim {self.id}: use one of {', '.join(ORIGINS)}")
        if self.grade and self.origin == "ours":
            hint = f"claim {self.id}: only published claims are held to a grade"
            raise InputError("grade", self.grade, hint)
        if self.statement_id:
            check_statement_id(self.statement_id, self.id)

    @property
    def statistic(self) -> Statistic:
        """What is set against the threshold."""
        return self.criterion.statistic

    @property
    def unit(self) -> Unit:
        """What is one replication."""
        return self.statistic.replication.unit

    @property
    def sampled(self) -> bool:
        """Whether its numbers have sampling error."""
        return self.unit != "exact"

    @property
    def said(self) -> str:
        """The statement, and the trained objects of which it speaks where replications share them."""
        objects = self.statistic.replication.objects
        return f"{self.statement.rstrip('.')} (for {objects})." if objects else self.statement

    @property
    def heading(self) -> str:
        """The title, or the statement if the claim has no title."""
        return self.title or self.said

    def registration(self, config: Mapping[str, Any]) -> dict[str, object]:
        """What must stay as it was when a run with the values `config` began, as JSON holds it."""
        return {
            "origin": self.origin,
            "statement": self.said,
            "quantity": self.statistic.name,
            "direction": self.criterion.direction,
            "threshold": self.criterion.threshold,
            "margin": self.criterion.margin,
            "grade": self.grade,
            "unit": self.unit,
            "replications": self.statistic.replication.required(config),
        }


ours = partial(Claim, origin="ours")
"""Make a claim of this project: a control, another interpretation of the source, or one that a pilot suggested."""

graded = partial(Claim, grade=True)
"""Make a published claim whose threshold is a grade chosen by this project."""


@dataclass(frozen=True)
class Registration:
    """The claims as they stood when a run began; None where nothing was registered.

    `claims` holds what `Claim.registration` gave, by id. Where it does not say whose a claim is, `origins` does, as far
    as that was settled later.
    """

    claims: Mapping[str, Mapping[str, Any]] | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def holds(self, claim: Claim) -> bool:
        """Whether `claim` was registered as it is now: statement, threshold, direction, margin, unit and origin."""
        if self.claims is None:
            return True
        if claim.id not in self.claims:
            return False
        registered = self.claims[claim.id]
        now: dict[str, object] = {
            "origin": claim.origin,
            "statement": claim.said,
            "direction": claim.criterion.direction,
            "threshold": claim.criterion.threshold,
            "margin": claim.criterion.margin,
            "grade": claim.grade,
            "unit": claim.unit,
        }
        return all(registered[name] == value for name, value in now.items() if name in registered)

    def level(self, claim: Claim, claims: Sequence[Claim], alpha: float) -> float:
        """The level at which `claim` is judged among the `claims` of its study.

        `alpha` is divided among the sampled claims of the same origin that were registered; a later claim is judged as
        if it had been one of them too, at the cost of none.
        """
        if self.claims is None:
            return alpha / max(1, len(_sampled(claims, claim.origin)))
        count = self._registered(claims, claim.origin)
        if not self.holds(claim):
            count += sum(not self.holds(other) for other in _sampled(claims, claim.origin))
        return alpha / max(1, count)

    def _registered(self, claims: Sequence[Claim], origin: Origin) -> int:
        """How many sampled claims of `origin` were registered, those included that the study has dropped since.

        A dropped claim of unknown origin counts on either side.
        """
        assert self.claims is not None
        present = {claim.id: claim.origin for claim in claims} | dict(self.origins)
        return sum(
            entry.get("unit") != "exact" and entry.get("origin", present.get(identity, origin)) == origin
            for identity, entry in self.claims.items()
        )


def _sampled(claims: Iterable[Claim], origin: Origin) -> list[Claim]:
    return [claim for claim in claims if claim.sampled and claim.origin == origin]
