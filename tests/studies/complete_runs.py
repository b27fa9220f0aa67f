"""What every finished run of a study must have."""

import math
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.ledger import evaluate, load_rows
from trialogue.ledger.figures import svg
from trialogue.ledger.study import Study
from trialogue.ledger.tables import sheet
from trialogue.studies import find


def require_complete(
    study: Study[Any], config: Any, results: Path, *, replications: int, lines: int
) -> DataFrame:
    """Every part has rows, every claim its estimates, every table at least so many lines, every figure is drawn.

    No claim is decided by a smoke run. Returns the rows.
    """
    rows = load_rows(study.folder(config, results))
    assert set(rows.part) == set(study.parts(config))
    for claim in study.claims:
        estimates = list(claim.estimate(rows))
        assert len(estimates) == (1 if claim.unit == "exact" else replications), claim.id
        assert all(map(math.isfinite, estimates)), claim.id
    assert {verdict.answer for verdict in evaluate(study.claims, rows, preset="smoke")} == {"not tested"}
    for table in study.tables:
        assert len(sheet(table, rows).lines) >= lines, table.title
    for figure in study.figures:
        assert svg(figure, rows).startswith("<?xml")
    assert find(study.name) is study
    return rows
