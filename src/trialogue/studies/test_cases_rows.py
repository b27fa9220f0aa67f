"""What the claims, tables and figures of the study `test-cases` read from its rows."""

import pandas as pd
from pandas import DataFrame, Series

from trialogue.studies.test_cases_decodings import Decoding

THESIS = "Thesis section 3.2.2"


def measured(rows: DataFrame, decoding: Decoding, column: str = "accuracy_distinct") -> "Series[float]":
    """A number of the whole of each repetition with `decoding`; empty where it was not drawn."""
    if column not in rows:
        return pd.Series(dtype=float)
    chosen = rows[(rows.table == "draw") & (rows.decoding == decoding.name)]
    return chosen[chosen.whole.astype(bool)].set_index("seed")[column].astype(float)


def per_query(rows: DataFrame, decoding: Decoding) -> "Series[float]":
    """Distinct correct cases per 100 queries, by repetition."""
    return 100 * measured(rows, decoding, "distinct_correct") / measured(rows, decoding, "queries")


def validation(rows: DataFrame, kind: str, **values: int) -> "Series[float]":
    """Validation accuracy of the probes of one kind, by verifier."""
    if "validation_accuracy" not in rows:
        return pd.Series(dtype=float)
    chosen = rows[(rows.table == "probe") & (rows.kind == kind)]
    for column, value in values.items():
        chosen = chosen[chosen[column] == value]
    return chosen.groupby("verifier").validation_accuracy.mean()
