"""Claims of a source or of this project, each with the criterion that decides it."""

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
"""Value of `Claim.published` if the source prints no number."""


@dataclass(frozen=True)
class Precondition:
    """A condition that a run must meet before a claim is tested, for example that a network has learned its task.

    Args:
        statement: Description of the condition.
        criterion: The condition as a criterion. It is met if the mean of its statistic over replications is in its
            region.
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
        source: Place in the source, for example "Table 3.1".
        published: The source's words or numbers at that place.
        origin: "published" for a statement of the source. "ours" for controls, other interpretations of the source
            and statements suggested by a pilot.
        grade: Whether the threshold of a published claim is a grade chosen by this project.
        statement_id: The source's statement, as "<document>:<identifier>", for example "thesis:M-F41". Documents are
            the keys of `DOCUMENTS`. Several claims may test one statement. Empty for claims of "ours".
        setting: How this study's setting differs from the setting that the source's statement is about, in one
            sentence that is shown with every verdict. Empty if the settings agree.
        preconditions: Conditions without which the claim is not tested.
        title: A short plain title of at most 12 words that tables, figures and the terminal show. It is not
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
            raise InputError("grade", self.grade, f"claim {self.id}: use a grade for published claims only")
        if self.statement_id:
            check_statement_id(self.statement_id, self.id)

    @property
    def statistic(self) -> Statistic:
        """The statistic whose mean is compared with the threshold of the criterion."""
        return self.criterion.statistic

    @property
    def unit(self) -> Unit:
        """The unit of replication of the statistic, for example "training", or "exact"."""
        return self.statistic.replication.unit

    @property
    def sampled(self) -> bool:
        """Whether the statistic has sampling error, that is, its unit of replication is not "exact"."""
        return self.unit != "exact"

    @property
    def full_statement(self) -> str:
        """The statement. If all replications share trained objects, it names them in parentheses."""
        objects = self.statistic.replication.objects
        return f"{self.statement.rstrip('.')} (for {objects})." if objects else self.statement

    @property
    def heading(self) -> str:
        """The title, or the full statement if the claim has no title."""
        return self.title or self.full_statement

    def registration(self, config: Mapping[str, Any]) -> dict[str, object]:
        """Return the properties of the claim that must not change after a run has started, as JSON values.

        Args:
            config: Config values of the run, by field.
        """
        return self.terms | {
            "quantity": self.statistic.name,
            "replications": self.statistic.replication.required(config),
        }

    @property
    def terms(self) -> dict[str, object]:
        """Return the properties that define the claim.

        A claim with the same id and other terms is a different claim.
        """
        return {
            "origin": self.origin,
            "statement": self.full_statement,
            "direction": self.criterion.direction,
            "threshold": self.criterion.threshold,
            "margin": self.criterion.margin,
            "grade": self.grade,
            "unit": self.unit,
        }


ours = partial(Claim, origin="ours")
"""Create a claim of this project: a control, another interpretation of the source, or one suggested by a pilot."""

graded = partial(Claim, grade=True)
"""Create a published claim whose threshold is a grade chosen by this project."""


def cited(source: str, published: str, statement_id: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a published `Claim` that describe its source, as keyword arguments.

    Args:
        source: Place in the source.
        published: The source's words or numbers at that place.
        statement_id: The source's statement.
        **fields: Other fields of the claim, for example `setting`.

    Example:
        `Claim("ours-is-better", "Ours is better.", gain() > 0, **cited("Table 1", "0.3", "thesis:V-T31"))`
    """
    return {"source": source, "published": published, "statement_id": statement_id, **fields}


@dataclass(frozen=True)
class Registration:
    """The claims that were registered when a run began.

    Args:
        claims: Return value of `Claim.registration` by claim id. None if nothing was registered.
        origins: Origins of registered claims whose registration has no origin, as far as they are known.
    """

    claims: Mapping[str, Mapping[str, Any]] | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def holds(self, claim: Claim) -> bool:
        """Return whether the claim was registered with its current statement, criterion, unit and origin."""
        if self.claims is None:
            return True
        if claim.id not in self.claims:
            return False
        registered = self.claims[claim.id]
        return all(registered[name] == value for name, value in claim.terms.items() if name in registered)

    def level(self, claim: Claim, claims: Sequence[Claim], alpha: float) -> float:
        """Return the error rate at which `claim` is tested.

        The registered claims of an origin that have sampling error share `alpha` equally. A claim that was registered
        later gets the error rate that it would have if it had been registered too. It does not reduce the error rates
        of the other claims.

        Args:
            claim: The claim.
            claims: All claims of its study.
            alpha: Error rate of all registered claims of one origin together.
        """
        if self.claims is None:
            return alpha / max(1, len(_sampled(claims, claim.origin)))
        count = self._count_registered(self.claims, claims, claim.origin)
        if not self.holds(claim):
            count += sum(not self.holds(other) for other in _sampled(claims, claim.origin))
        return alpha / max(1, count)

    def _count_registered(
        self, registered: Mapping[str, Mapping[str, Any]], claims: Sequence[Claim], origin: Origin
    ) -> int:
        """Return the number of sampled claims of an origin that were registered, including dropped claims.

        A dropped claim of unknown origin counts for both origins.
        """
        present = {claim.id: claim.origin for claim in claims} | dict(self.origins)
        return sum(
            entry.get("unit") != "exact" and entry.get("origin", present.get(identity, origin)) == origin
            for identity, entry in registered.items()
        )


def _sampled(claims: Iterable[Claim], origin: Origin) -> list[Claim]:
    return [claim for claim in claims if claim.sampled and claim.origin == origin]
