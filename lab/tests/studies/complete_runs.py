"""Requirements on every finished run of a study."""

import math
from typing import Any

from trialogue_lab.ledger import Result, Rows, Study
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.tables import sheet


def require_complete(study: Study[Any], config: Any, result: Result, *, lines: int = 1) -> Rows:
    """Require rows of every part, finite estimates of every claim, and all tables and figures. Return the rows."""
    rows = study.rows(result)
    assert {record["part"] for record in rows.records} == {part.name for part in study.parts(config)}
    for claim in study.claims:
        estimates = claim.statistic(rows).tolist()
        assert len(estimates) == claim.statistic.replication.required(result.config), claim.id
        assert all(map(math.isfinite, estimates)), claim.id
    for table in study.tables:
        assert len(sheet(table, rows).lines) >= lines, table.title
    for figure in study.figures:
        assert svg(figure, rows).startswith("<?xml")
    return rows
