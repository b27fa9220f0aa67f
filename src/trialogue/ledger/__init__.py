"""The ledger: published claims, the results that confront them, and the verdicts.

`load_rows("study")` gives the rows of a finished result as a DataFrame.
"""

from trialogue.ledger.claims.claims import NOT_PRINTED, Claim
from trialogue.ledger.claims.quantities import Counts, Criterion, Quantity, Replication, exact
from trialogue.ledger.claims.verdicts import Verdict
from trialogue.ledger.entries import Entry, judged, ledger, ledger_frame, ledger_records
from trialogue.ledger.pages.figures import Figure
from trialogue.ledger.pages.tables import Cells, Table
from trialogue.ledger.rows import NoRows, Rows
from trialogue.ledger.runs.results import Result, find_result, load_rows
from trialogue.ledger.settings import Settings
from trialogue.ledger.study import Part, Study

__all__ = [
    "NOT_PRINTED",
    "Cells",
    "Claim",
    "Counts",
    "Criterion",
    "Entry",
    "Figure",
    "NoRows",
    "Part",
    "Quantity",
    "Replication",
    "Result",
    "Rows",
    "Settings",
    "Study",
    "Table",
    "Verdict",
    "exact",
    "find_result",
    "judged",
    "ledger",
    "ledger_frame",
    "ledger_records",
    "load_rows",
]
