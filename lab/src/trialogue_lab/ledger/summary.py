"""Totals of the ledger over statements of the sources, claims, and families of claims."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trialogue_lab.ledger.claims.claims import ORIGINS
from trialogue_lab.ledger.claims.verdicts import ALPHA, ANSWERS, LATE, Answer
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN
from trialogue_lab.ledger.entries import Entry

LedgerAnswer = Answer | Literal["withdrawn"]
LEDGER_ANSWERS: tuple[LedgerAnswer, ...] = (*ANSWERS, WITHDRAWN)
"""All verdicts on claims, in the order of the tables."""


@dataclass(frozen=True)
class Statement:
    """A statement of a source, with the verdicts on the published claims that test it.

    Args:
        document: The document, a key of `DOCUMENTS`. Empty for a claim without a statement id.
        identifier: The identifier of the statement within the document. For a claim without a statement id, this is
            "<study>/<claim>".
        verdicts: Number of claims by verdict, including "withdrawn".
    """

    document: str
    identifier: str
    verdicts: Mapping[LedgerAnswer, int]

    @property
    def answer(self) -> LedgerAnswer:
        """The combined verdict. The first of these rules that applies determines it.

        1. *refuted* if a verdict is refuted;
        2. *undecided* if a verdict is undecided or altered since the run;
        3. *holds* if a verdict holds;
        4. *not tested* if a claim is not withdrawn;
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
    """Families of claims whose error rates are controlled together.

    A family consists of the claims with sampling error of one study and one origin.

    Args:
        count: Number of families.
        alpha: Sum of the error rates of all claims, an upper bound of the expected number of wrong verdicts.
    """

    count: int
    alpha: float

    def __str__(self) -> str:
        if not self.count:
            return "No verdict has sampling error."
        families = "1 family" if self.count == 1 else f"{self.count} families"
        return (
            f"The verdicts with sampling error belong to {families}, each the claims of one study and one origin. The "
            f"registered claims of a family share an error rate of {ALPHA:g}, and claims registered after the run add "
            f"their own. If every interval covers at its stated level, at most {self.alpha:.3g} verdicts are expected "
            f"to be wrong, which is the sum of all error rates (alpha)."
        )


def statements(entries: Iterable[Entry]) -> list[Statement]:
    """Return the statements of the sources, in the order of the first claims that test them.

    Published claims with the same `statement_id` test the same statement. A published claim without a statement id is
    counted as a separate statement. Claims of "ours" do not test statements.
    """
    verdicts: dict[tuple[str, str], Counter[LedgerAnswer]] = {}
    for entry in entries:
        claims: list[tuple[str, str, LedgerAnswer]] = [
            (verdict.claim.id, verdict.claim.statement_id, verdict.answer)
            for verdict in entry.verdicts
            if verdict.claim.origin == "published"
        ]
        claims += [
            (claim.id, claim.statement_id, WITHDRAWN)
            for claim in entry.withdrawn
            if claim.origin == "published"
        ]
        for claim_id, statement_id, answer in claims:
            document, _, identifier = statement_id.partition(":")
            key = (document, identifier or f"{entry.study.name}/{claim_id}")
            verdicts.setdefault(key, Counter())[answer] += 1
    return [Statement(*key, counts) for key, counts in verdicts.items()]


def families(entries: Iterable[Entry]) -> Families:
    """Count the families of claims that have a verdict, and add up their error rates.

    A family consists of the claims with sampling error of one study and one origin.

    Args:
        entries: Entries of the ledger, one per study.
    """
    levels: dict[tuple[str, str], float] = {}
    for entry in entries:
        for verdict in entry.verdicts:
            if math.isfinite(verdict.alpha) and verdict.answer != "not tested":
                family = (entry.study.name, verdict.claim.origin)
                levels[family] = levels.get(family, 0.0) + verdict.alpha
    return Families(len(levels), math.fsum(levels.values()))


def totals_table(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the totals of the ledger as cells of a table.

    Args:
        entries: Entries of the ledger, one per study.

    Returns:
        Rows of cells. The first row has the headings: "all" and the verdicts that occur. The other rows are the rows of
        `totals`.
    """
    lines = totals(entries)
    answers = [answer for answer in LEDGER_ANSWERS if any(answer in counts for counts in lines.values())]
    table = [["", "all", *answers]]
    for name, counts in lines.items():
        numbers = (sum(counts.values()), *(counts.get(answer, 0) for answer in answers))
        table.append([name, *map(str, numbers)])
    return table


def totals(entries: Sequence[Entry]) -> dict[str, dict[LedgerAnswer, int]]:
    """Count statements of the sources and claims by verdict.

    Args:
        entries: Entries of the ledger, one per study.

    Returns:
        Numbers by verdict, for each row of the totals. The first row counts statements. The other rows count claims by
        origin. Claims that were registered after their run have separate rows. Rows and verdicts with a count of zero
        are omitted.
    """
    lines: dict[str, Counter[LedgerAnswer]] = {
        "statements": Counter(statement.answer for statement in statements(entries))
    }
    for origin in ORIGINS:
        name = "published claims" if origin == "published" else "our claims"
        late = f"{name}, {LATE}"
        lines |= {name: Counter(), late: Counter()}
        for entry in entries:
            for verdict in entry.verdicts:
                if verdict.claim.origin == origin:
                    is_late = not verdict.registered and verdict.replications
                    lines[late if is_late else name][verdict.answer] += 1
            lines[name][WITHDRAWN] += sum(claim.origin == origin for claim in entry.withdrawn)
    return {
        name: {answer: counts[answer] for answer in LEDGER_ANSWERS if counts[answer]}
        for name, counts in lines.items()
        if counts.total()
    }
