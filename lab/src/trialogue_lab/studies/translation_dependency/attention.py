"""Attention at adjacent target positions (Tables 4.4 and 4.5 of the thesis): measured rows, claims and tables."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pandas import DataFrame

from trialogue_lab.analysis.adjacent_attention import AdjacentAttention
from trialogue_lab.ledger import Cells, Claim, MeasuredRows, Precondition, ResultTable, Rows, Statistic

Attention = Callable[[str, bool], Statistic]
"""Function that returns the statistic of a column of `summarize_attention`. Its second argument is `stutter`."""
Translators = Callable[[DataFrame], Mapping[str, Attention]]
"""Function from rows of `summarize_attention` to the statistics of each translator in them, by name."""

_STUTTER = {True: "yes", False: "no"}
_OWN = {
    "min": "own_least",
    "avg": "own_mean",
    "max": "own_most",
    "k=1": "own_overlap_1",
    "k=2": "own_overlap_2",
}
_CROSS = {
    "TV min": "variation_least",
    "TV avg": "variation_mean",
    "TV max": "variation_most",
    "cos min": "cosine_least",
    "cos avg": "cosine_mean",
    "cos max": "cosine_most",
    "k=1": "source_overlap_1",
    "k=2": "source_overlap_2",
}
_OWN_PUBLISHED = {True: (0.0004, 0.032, 0.16, 0.20, 0.39), False: (0.0005, 0.033, 0.17, 0.17, 0.37)}
_CROSS_PUBLISHED = {
    True: (0.06, 0.13, 0.23, 0.01, 0.10, 0.25, 0.57, 0.89),
    False: (0.11, 0.23, 0.35, 0.04, 0.20, 0.38, 0.40, 0.81),
}


def summarize_attention(attention: AdjacentAttention) -> MeasuredRows:
    """Summarize attention measures over pairs of adjacent target positions.

    Args:
        attention: Attention measures of all pairs and heads.

    Yields:
        One row for pairs with the same token (`stutter` is true), and one row for pairs with different tokens. The
        columns are means and standard deviations over pairs, for the minimum, mean and maximum over heads. If there are
        no such pairs, the row is missing.
    """
    for stutter in (True, False):
        chosen = attention.stutter == stutter
        if not chosen.any():
            continue
        row: dict[str, Any] = {"kind": "attention", "stutter": stutter, "pairs": int(chosen.sum())}
        for name in ("own", "variation", "cosine"):
            numbers = getattr(attention, name)[chosen]
            over_heads = {"least": numbers.min(1), "mean": numbers.mean(1), "most": numbers.max(1)}
            for suffix, values in over_heads.items():
                row[f"{name}_{suffix}"] = float(values.mean())
                row[f"{name}_{suffix}_deviation"] = float(values.std())
        for name in ("own_overlap", "source_overlap"):
            for k in (1, 2):
                row[f"{name}_{k}"] = float(getattr(attention, name)[chosen, k - 1].mean())
        yield row


def make_attention_claims(
    where: str, attention: Attention, setting: str, preconditions: tuple[Precondition, ...] = ()
) -> tuple[Claim, ...]:
    """Return the claims about attention between adjacent target positions (Tables 4.4 and 4.5).

    Args:
        where: Text at the beginning of every statement.
        attention: Function from the name of a column of `summarize_attention` to its statistic.
        setting: Field `setting` of every claim.
        preconditions: Field `preconditions` of every claim.
    """

    def excess(column: str) -> Statistic:
        return attention(column, True) - attention(column, False)

    claim = partial(Claim, setting=setting, preconditions=preconditions)
    of_source = partial(
        claim, source="Thesis section 4.2.4, Table 4.5: hypothesis 2", statement_id="thesis:M-T45"
    )
    return (
        claim(
            "self-attention-is-not-larger",
            f"{where} adjacent positions that stutter attend to each other at most 0.02 more than others (mean over "
            "heads).",
            excess("own_mean") < 0.02,
            "Thesis section 4.2.4, Table 4.4: hypothesis 1",
            ".032 against .033",
            grade=True,
            statement_id="thesis:M-T44",
        ),
        of_source(
            "cross-attention-is-closer",
            f"{where} adjacent positions that stutter attend to the source more alike than others (mean TV over "
            "heads).",
            excess("variation_mean") < 0,
            published=".13 against .23",
        ),
        of_source(
            "cross-attention-is-closer-in-angle",
            f"{where} they do so by cosine distance too.",
            excess("cosine_mean") < 0,
            published=".10 against .20",
        ),
        of_source(
            "cross-attention-has-one-most",
            f"{where} they agree more often on the most attended source position.",
            excess("source_overlap_1") > 0,
            published=".57 against .40",
        ),
    )


def make_attention_tables(translators: Translators, published: str, over: str) -> tuple[ResultTable, ...]:
    """Return Tables 4.4 and 4.5 about attention between adjacent target positions.

    The published numbers are shown next to ours.

    Args:
        translators: Function that returns the statistics of each translator, one per table row.
        published: Name of the translator next to which published numbers are shown.
        over: What standard deviations are taken over, for example "trainings".
    """
    tables = (
        (
            "Self-attention between adjacent positions",
            "Table 4.4",
            _OWN,
            _OWN_PUBLISHED,
            "minimum, mean and maximum over heads and both directions, mean over pairs; k: share where the other "
            "position is among the k most attended",
        ),
        (
            "Cross-attention of adjacent positions",
            "Table 4.5",
            _CROSS,
            _CROSS_PUBLISHED,
            "distance between the attention weights over the source; k: share where the k most attended positions "
            "have one in common",
        ),
    )
    return tuple(
        ResultTable(
            title=title,
            source=source,
            cells=partial(_cells, columns, translators),
            published={
                f"{published}, stutter: {label}": dict(zip(columns, numbers[stutter], strict=True))
                for stutter, label in _STUTTER.items()
            },
            row_heading="network, repeated tokens",
            note=f"last layer, {note}; ± standard deviation over {over}; published: WMT",
        )
        for title, source, columns, numbers, note in tables
    )


def _cells(columns: dict[str, str], translators: Translators, rows: Rows) -> Cells:
    return {
        f"{name}, stutter: {label}": {head: attention(column, stutter) for head, column in columns.items()}
        for name, attention in translators(rows["attention"]).items()
        for stutter, label in _STUTTER.items()
    }
