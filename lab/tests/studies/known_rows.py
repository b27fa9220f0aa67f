"""Tables of rows with given numbers, and verdicts of claims about them."""

from typing import Any

import pandas as pd

from trialogue_lab.ledger import Rows, Study
from trialogue_lab.ledger.claims.verdicts import Evidence, Verdict, evaluate


def table(kind: str, **columns: Any) -> list[dict[str, Any]]:
    """Return rows of one kind. Lists and arrays are columns, and other values are the same in all rows."""
    return pd.DataFrame({"kind": kind, **columns}).to_dict("records")  # type: ignore[return-value]


def verdict_of(
    study: Study[Any], claim_id: str, rows: Rows, preset: str | None = None, **config: Any
) -> Verdict:
    """Return the verdict of one claim alone on given rows of a run with this config."""
    (claim,) = (claim for claim in study.claims if claim.id == claim_id)
    (verdict,) = evaluate([claim], Evidence(rows=rows, config=config, preset=preset))
    return verdict
