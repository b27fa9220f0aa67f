"""The ledger: published claims, the results that confront them, and the verdicts.

`load_rows("study")` gives the rows of a finished result as a DataFrame.
"""

from trialogue.ledger.claims import Claim, Pilot, Verdict, evaluate
from trialogue.ledger.entries import Entry, judged, ledger, ledger_frame, ledger_records
from trialogue.ledger.figures import Figure
from trialogue.ledger.results import Result, find_result, load_rows
from trialogue.ledger.tables import Table

__all__ = [
    "Claim",
    "Entry",
    "Figure",
    "Pilot",
    "Result",
    "Table",
    "Verdict",
    "evaluate",
    "find_result",
    "judged",
    "ledger",
    "ledger_frame",
    "ledger_records",
    "load_rows",
]
