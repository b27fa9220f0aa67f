"""Testable statements ("claims"), each with the criterion that decides it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.answers import NOT_PRINTED as NOT_PRINTED
from trialogue_lab.ledger.claims.answers import ORIGINS as ORIGINS
from trialogue_lab.ledger.claims.answers import Origin as Origin
from trialogue_lab.ledger.claims.documents import check_statement_id
from trialogue_lab.ledger.claims.statistics import Criterion, Statistic, Unit


@dataclass(frozen=True)
class Precondition:
    """A condition that a run must meet before a claim is tested.

    One example is that a network has learned its task.

    Args:
        statement: Description of the condition, shown if it is not met.
        criterion: Statistic and threshold. The condition is met if the mean of the statistic meets the criterion.
            Unlike a claim, a condition is checked without a confidence interval.
    """

    statement: str
    criterion: Criterion


@dataclass(frozen=True)
class Claim:
    """A testable statement, with the criterion that decides it.

    Statement and criterion are saved before a run starts ("registered"), so that the data cannot influence them. A
    published claim uses the number in the publication as its threshold, or 0 if the publication says only "larger" or
    "smaller". If it says neither, this project chooses the threshold and sets `grade`.

    Args:
        id: Name of the claim, unique within its study.
        statement: The statement as registered.
        criterion: A statistic of the measurements and the threshold for its mean.
        source: Place in the publication, for example "Table 3.1".
        published: Words or numbers of the publication at that place.
        origin: "published" for a statement of the publication. "ours" for controls, other interpretations, and
            statements suggested by a pilot (a small trial run).
        grade: Whether this project chose the threshold of a published claim.
        statement_id: Tested statement as "<document>:<identifier>", for example "thesis:M-F41", where the document is a
            key of `DOCUMENTS`. Several claims may test one statement. Empty for "ours".
        setting: One sentence on how this experiment differs from the publication's. Empty if it does not.
        preconditions: Conditions that a run must meet, otherwise the claim is not tested.
        title: Plain title of at most 12 words for tables and figures. Empty to show the statement.
        measured: What the measured number is, for tables. Empty to take it from the end of the statement.
        chance: Probability that a true statement misses the threshold by chance, for a statistic of unit "exact" that
            is the largest deviation of simulations in standard errors. 0 for all others.
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
    measured: str = ""
    chance: float = 0.0

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
        """The statistic whose mean is compared with the threshold."""
        return self.criterion.statistic

    @property
    def unit(self) -> Unit:
        """Unit that is repeated independently ("training", "prompt set" or "draw"), or "exact" if nothing is random."""
        return self.statistic.replication.unit

    @property
    def sampled(self) -> bool:
        """Whether the statistic is random, so that a confidence interval is needed."""
        return self.unit != "exact"

    @property
    def full_statement(self) -> str:
        """The statement of the claim. If it holds for certain trained models only, they follow in parentheses."""
        objects = self.statistic.replication.objects
        return f"{self.statement.rstrip('.')} (for {objects})." if objects else self.statement

    @property
    def heading(self) -> str:
        """The title, or the full statement if the claim has no title."""
        return self.title or self.full_statement

    def registration(self, config: Mapping[str, Any]) -> dict[str, object]:
        """Return the properties of the claim that are saved before a run and must not change afterwards.

        Args:
            config: Config values of the run, by field.

        Returns:
            JSON values: the fields of `terms`, the name of the statistic ("quantity") and the required number of
                replications.
        """
        return self.terms | {
            "quantity": self.statistic.name,
            "replications": self.statistic.replication.required(config),
        }

    @property
    def terms(self) -> dict[str, object]:
        """The properties that define the claim, as JSON values.

        If one of them changes, the claim counts as a new claim even if it keeps its id.
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
"""Create a claim made by this project instead of a publication."""

graded = partial(Claim, grade=True)
"""Create a published claim whose threshold was chosen by this project."""


def cited(source: str, published: str, statement_id: str, **fields: Any) -> dict[str, Any]:
    """Return the fields that say where a published claim comes from, as keyword arguments of `Claim`.

    Args:
        source: Place in the publication, for example "Table 1".
        published: Words or numbers of the publication at that place.
        statement_id: Id of the tested statement, as in `Claim`.
        **fields: Other fields of the claim, for example `setting`.

    Example:
        `Claim("ours-is-better", "Ours is better.", gain() > 0, **cited("Table 1", "0.3", "thesis:V-T31"))`
    """
    return {"source": source, "published": published, "statement_id": statement_id, **fields}


@dataclass(frozen=True)
class Registration:
    """The claims of a study as they were saved before a run started.

    They show later whether a claim was made before its data existed.

    Args:
        claims: By claim id, the return value of `Claim.registration`. None if nothing was saved, which makes every
            claim count as registered.
        origins: By claim id, origins ("published" or "ours") that are missing in `claims`.
    """

    claims: Mapping[str, Mapping[str, Any]] | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def holds(self, claim: Claim) -> bool:
        """Return whether the claim was saved before the run and has not been changed since."""
        if self.claims is None:
            return True
        if claim.id not in self.claims:
            return False
        registered = self.claims[claim.id]
        return all(registered[name] == value for name, value in claim.terms.items() if name in registered)

    def level(self, claim: Claim, claims: Sequence[Claim], alpha: float) -> float:
        """Return the error rate alpha_i of the confidence interval that decides one claim.

        The registered claims of a study with a random statistic share `alpha` equally (Bonferroni
        correction), separately for "published" and "ours". A claim that was added after the run gets the same
        rate, without changing the others.

        Args:
            claim: The claim to decide.
            claims: All claims of its study.
            alpha: Total error rate of the registered claims of one origin.
        """
        if self.claims is None:
            return alpha / max(1, len(_select_sampled(claims, claim.origin)))
        count = self._count_registered(self.claims, claims, claim.origin)
        if not self.holds(claim):
            count += sum(not self.holds(other) for other in _select_sampled(claims, claim.origin))
        return alpha / max(1, count)

    def _count_registered(
        self, registered: Mapping[str, Mapping[str, Any]], claims: Sequence[Claim], origin: Origin
    ) -> int:
        """Return the number of registered claims of an origin ("published" or "ours") with a random statistic.

        Dropped claims are included. Those of unknown origin count for both origins.
        """
        present = {claim.id: claim.origin for claim in claims} | dict(self.origins)
        return sum(
            entry.get("unit") != "exact" and entry.get("origin", present.get(identity, origin)) == origin
            for identity, entry in registered.items()
        )


def _select_sampled(claims: Iterable[Claim], origin: Origin) -> list[Claim]:
    return [claim for claim in claims if claim.sampled and claim.origin == origin]
