"""Counts of tested statements and claims of the entries of a ledger, by verdict, and total error rates."""

from collections.abc import Iterable, Sequence

from trialogue_lab.ledger.claims.answers import LEDGER_ANSWERS as LEDGER_ANSWERS
from trialogue_lab.ledger.claims.answers import LedgerAnswer as LedgerAnswer
from trialogue_lab.ledger.counts import Families as Families
from trialogue_lab.ledger.counts import Statement as Statement
from trialogue_lab.ledger.counts import families_of, statements_of, totals_of, totals_rows
from trialogue_lab.ledger.entries import Entry, ledger_records


def statements(entries: Iterable[Entry]) -> list[Statement]:
    """Return the statements of the publications that claims test, each with its verdicts (see `statements_of`)."""
    return statements_of(ledger_records(entries))


def families(entries: Iterable[Entry]) -> Families:
    """Count the groups of claims that share one error rate, and add up these rates (see `Families`)."""
    return families_of(ledger_records(entries))


def totals_table(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the counts of `totals` as cells of a table (see `totals_rows`)."""
    return totals_rows(ledger_records(entries))


def totals(entries: Sequence[Entry]) -> dict[str, dict[LedgerAnswer, int]]:
    """Count tested statements and claims by verdict, for example "holds" or "refuted" (see `totals_of`)."""
    return totals_of(ledger_records(entries))
