"""Counts of tested statements and claims by verdict, and total error rates."""

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
"""All verdicts, in the order of the tables."""


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
    """Number of groups of claims that share one error rate, and the total of these rates.

    Such a group (family) consists of the claims of one study and one origin ("published" or "ours") whose statistic is
    random.

    Args:
        count: Number of families.
        alpha: Sum of the error rates of all claims, an upper bound on the expected number of wrong verdicts.
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
    """Return the tested statements of the publications, in the order of the first claims that test them.

    Published claims with the same `statement_id` test one statement. A published claim without an id counts as a
    statement of its own. Claims made by this project ("ours") are left out.
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
    """Count the claim families with a verdict, and add up their error rates (see `Families`).

    Args:
        entries: One entry per study, with the verdicts on its claims.
    """
    levels: dict[tuple[str, str], float] = {}
    for entry in entries:
        for verdict in entry.verdicts:
            if math.isfinite(verdict.alpha) and verdict.answer != "not tested":
                family = (entry.study.name, verdict.claim.origin)
                levels[family] = levels.get(family, 0.0) + verdict.alpha
    return Families(len(levels), math.fsum(levels.values()))


def totals_table(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the counts of `totals` as cells of a table.

    Args:
        entries: One entry per study, with the verdicts on its claims.

    Returns:
        Rows of cells. The first row has the headings: "all" and the verdicts that occur.
    """
    lines = totals(entries)
    answers = [answer for answer in LEDGER_ANSWERS if any(answer in counts for counts in lines.values())]
    table = [["", "all", *answers]]
    for name, counts in lines.items():
        numbers = (sum(counts.values()), *(counts.get(answer, 0) for answer in answers))
        table.append([name, *map(str, numbers)])
    return table


def totals(entries: Sequence[Entry]) -> dict[str, dict[LedgerAnswer, int]]:
    """Count tested statements and claims by verdict.

    Args:
        entries: One entry per study, with the verdicts on its claims.

    Returns:
        Counts by verdict, for each row. The first row counts statements, the others claims by origin. Claims added
        after their run have separate rows. Counts of zero are omitted.
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
