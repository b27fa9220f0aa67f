"""Counts of statements and claims by verdict, from the records of `ledger_records`, without heavy imports."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

from trialogue_lab.ledger.claims.answers import (
    ALPHA,
    LATE,
    LEDGER_ANSWERS,
    ORIGINS,
    WITHDRAWN,
    LedgerAnswer,
)

Record = Mapping[str, Any]
"""A claim with its verdict, by the names of columns."""


@dataclass(frozen=True)
class Statement:
    """A statement of a publication, with the verdicts on all claims that test it.

    Args:
        document: Key of the publication in `DOCUMENTS`. Empty for a claim without a statement id.
        identifier: Identifier within the publication, for example "M-T411". For a claim without a statement id,
            "<study>/<claim>".
        verdicts: Number of claims by verdict, including "withdrawn".
    """

    document: str
    identifier: str
    verdicts: Mapping[LedgerAnswer, int]

    @property
    def answer(self) -> LedgerAnswer:
        """Combined verdict: the first of the following rules that applies.

        1. *refuted* if any claim is refuted;
        2. *undecided* if any claim is undecided or altered since the run;
        3. *holds* if any claim holds;
        4. *not tested* if any claim is not tested;
        5. *withdrawn* otherwise.
        """
        if self.verdicts.get("refuted"):
            return "refuted"
        if self.verdicts.get("undecided") or self.verdicts.get("altered since the run"):
            return "undecided"
        if self.verdicts.get("holds"):
            return "holds"
        return "not tested" if self.verdicts.get("not tested") else WITHDRAWN


@dataclass(frozen=True)
class Families:
    """Number of claim families and the error rates of their claims.

    A family consists of the claims of one study and one origin ("published" or "ours"). Its claims with a
    random statistic share one error rate.

    Args:
        count: Number of families.
        registered: Number of families with claims that were registered before their run.
        shared: Sum of the error rates of these claims. At most `ALPHA` for each of their families.
        late: Sum of the error rates of the claims that were registered after their run.
        simulated: Sum of the probabilities with which comparisons with simulations fail by chance.
        verdicts: Number of verdicts with an error rate.
    """

    count: int
    registered: int = 0
    shared: float = 0.0
    late: float = 0.0
    simulated: float = 0.0
    verdicts: int = 0

    @property
    def alpha(self) -> float:
        """Sum of the error rates of all claims, an upper bound on the expected number of wrong verdicts."""
        return fsum((self.shared, self.late, self.simulated))

    def __str__(self) -> str:
        if not self.count:
            return "No verdict has sampling error."
        verdicts = "the verdict" if self.verdicts == 1 else f"the {self.verdicts} verdicts"
        return (
            f"At most {self.alpha:.2f} of {verdicts} with sampling error are expected to be wrong, if every interval "
            "covers the true value as often as it states."
        )

    @property
    def derivation(self) -> str:
        """The terms of the sum `alpha`, in a sentence. Empty if there is no family."""
        if not self.count:
            return ""
        return (
            f"The number {self.alpha:.2f} is the sum of the error rates of {_count_families(self.count)}, each the "
            f"claims of one study and one origin: {self._describe_sum()}."
        )

    def _describe_sum(self) -> str:
        whole = self.registered * ALPHA
        missing = whole - self.shared
        parts = []
        if self.registered == self.count and missing < 1e-9:
            parts.append(f"{ALPHA:g} for each family")
        elif self.registered:
            families = f"{_count_families(self.registered)} with claims registered before the run"
            parts.append(f"{ALPHA:g} for each of {families}, which makes {whole:.2f}")
        if missing >= 1e-9:
            parts.append(f"less {missing:.2f} for claims that are not tested or withdrawn")
        if self.late:
            parts.append(f"plus {self.late:.2f} for claims registered after the run")
        if self.simulated:
            parts.append(f"plus {self.simulated:.2f} for comparisons with simulations")
        return ", ".join(parts).removeprefix("plus ")


def _count_families(count: int) -> str:
    return "1 family" if count == 1 else f"{count} families"


def statements_of(records: Iterable[Record]) -> list[Statement]:
    """Return the tested statements of the publications, in the order of the first claims that test them.

    Published claims with the same `statement_id` test one statement. A published claim without an id counts as a
    statement of its own. Claims made by this project ("ours") are left out.

    Args:
        records: Records of claims.
    """
    verdicts: dict[tuple[str, str], Counter[LedgerAnswer]] = {}
    for record in records:
        if record["origin"] == "published":
            document, _, identifier = (record["statement_id"] or "").partition(":")
            key = (document, identifier or f"{record['study']}/{record['claim']}")
            verdicts.setdefault(key, Counter())[record["verdict"]] += 1
    return [Statement(*key, counts) for key, counts in verdicts.items()]


def families_of(records: Iterable[Record]) -> Families:
    """Count the groups of claims that share one error rate, and add up these rates (see `Families`).

    Only groups with a verdict are counted.

    Args:
        records: Records of claims.
    """
    shared: dict[tuple[str, str], float] = {}
    late: dict[tuple[str, str], float] = {}
    simulated: dict[tuple[str, str], float] = {}
    verdicts = 0
    for record in records:
        if record["alpha"] is None or record["verdict"] == "not tested":
            continue
        # An exact claim has an error rate only if it compares an exact number with a simulation.
        kind = simulated if record["unit"] == "exact" else shared if record["registered"] else late
        family = (record["study"], record["origin"])
        kind[family] = kind.get(family, 0.0) + record["alpha"]
        verdicts += 1
    alphas = [fsum(rates.values()) for rates in (shared, late, simulated)]
    count = len(shared.keys() | late.keys() | simulated.keys())
    return Families(count, len(shared), alphas[0], alphas[1], alphas[2], verdicts)


def totals_of(records: Iterable[Record]) -> dict[str, dict[LedgerAnswer, int]]:
    """Count tested statements and claims by verdict.

    Args:
        records: Records of claims.

    Returns:
        Counts by verdict, for each row. The first row counts statements, the others claims by origin, and all claims.
        Claims registered after their run are counted in the row of their origin, and again in a row of their own.
        Counts of zero are omitted.
    """
    found = list(records)
    lines: dict[str, Counter[LedgerAnswer]] = {
        "statements": Counter(statement.answer for statement in statements_of(found))
    }
    for origin in ORIGINS:
        name = "published claims" if origin == "published" else "our claims"
        own = [record for record in found if record["origin"] == origin]
        late = [record for record in own if not record["registered"] and record["replications"]]
        lines[name] = Counter(record["verdict"] for record in own)
        lines[f"of {name}, {LATE}"] = Counter(record["verdict"] for record in late)
    lines["all claims"] = Counter(record["verdict"] for record in found)
    return {
        name: {answer: counts[answer] for answer in LEDGER_ANSWERS if counts[answer]}
        for name, counts in lines.items()
        if counts.total()
    }


def totals_rows(records: Iterable[Record]) -> list[list[str]]:
    """Return the counts of `totals_of` as cells of a table.

    Args:
        records: Records of claims.

    Returns:
        Rows of cells. The first row has the headings: "all" and the verdicts that occur.
    """
    lines = totals_of(records)
    answers = [answer for answer in LEDGER_ANSWERS if any(answer in counts for counts in lines.values())]
    table = [["", "all", *answers]]
    for name, counts in lines.items():
        numbers = (sum(counts.values()), *(counts.get(answer, 0) for answer in answers))
        table.append([name, *map(str, numbers)])
    return table
