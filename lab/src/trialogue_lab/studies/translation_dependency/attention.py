"""Tables 4.4 and 4.5 of the thesis for any translator: rows of adjacent positions, the claims on them, the tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pandas import DataFrame

from trialogue_lab.analysis.adjacent_attention import AdjacentAttention
from trialogue_lab.ledger import Cells, Claim, Precondition, ResultTable, Rows, Statistic

Attention = Callable[[str, bool], Statistic]
"""The quantity of a column of `attention_rows`, of the pairs that stutter or of the others."""
Translators = Callable[[DataFrame], Mapping[str, Attention]]
"""Those that a table of such rows holds, by name."""

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
_OWN_IN_PRINT = {True: (0.0004, 0.032, 0.16, 0.20, 0.39), False: (0.0005, 0.033, 0.17, 0.17, 0.37)}
_CROSS_IN_PRINT = {
    True: (0.06, 0.13, 0.23, 0.01, 0.10, 0.25, 0.57, 0.89),
    False: (0.11, 0.23, 0.35, 0.04, 0.20, 0.38, 0.40, 0.81),
}


def attention_rows(found: AdjacentAttention) -> Iterator[dict[str, Any]]:
    """Means and deviations over pairs that stutter, and over others, of the least, mean and most over heads.

    There is no row of pairs that there are none of.
    """
    for stutter in (True, False):
        chosen = found.stutter == stutter
        if not chosen.any():
            continue
        row: dict[str, Any] = {"kind": "attention", "stutter": stutter, "pairs": int(chosen.sum())}
        for name in ("own", "variation", "cosine"):
            numbers = getattr(found, name)[chosen]
            for said, over in (
                ("least", numbers.min(1)),
                ("mean", numbers.mean(1)),
                ("most", numbers.max(1)),
            ):
                row[f"{name}_{said}"], row[f"{name}_{said}_deviation"] = float(over.mean()), float(over.std())
        for name in ("own_overlap", "source_overlap"):
            for k in (1, 2):
                row[f"{name}_{k}"] = float(getattr(found, name)[chosen, k - 1].mean())
        yield row


def attention_claims(
    where: str, attention: Attention, setting: str, preconditions: tuple[Precondition, ...] = ()
) -> tuple[Claim, ...]:
    """What section 4.2.4 says of both tables; `where` begins each statement.

    Every claim has this `setting` and these `preconditions` (see `Claim`).
    """
    closer = (
        (
            "cross-attention-is-closer",
            "adjacent positions that stutter attend to the source more alike than others (mean TV over heads).",
            attention("variation_mean", True) - attention("variation_mean", False) < 0,
            ".13 against .23",
        ),
        (
            "cross-attention-is-closer-in-angle",
            "they do so by cosine distance too.",
            attention("cosine_mean", True) - attention("cosine_mean", False) < 0,
            ".10 against .20",
        ),
        (
            "cross-attention-has-one-most",
            "they agree more often on the most attended source position.",
            attention("source_overlap_1", True) - attention("source_overlap_1", False) > 0,
            ".57 against .40",
        ),
    )
    return (
        Claim(
            "self-attention-is-not-larger",
            f"{where} adjacent positions that stutter attend to each other at most 0.02 more than others (mean over "
            "heads).",
            attention("own_mean", True) - attention("own_mean", False) < 0.02,
            "Thesis section 4.2.4, Table 4.4: hypothesis 1",
            ".032 against .033",
            grade=True,
            statement_id="thesis:M-T44",
            setting=setting,
            preconditions=preconditions,
        ),
        *(
            Claim(
                id,
                f"{where} {said}",
                criterion,
                "Thesis section 4.2.4, Table 4.5: hypothesis 2",
                published,
                statement_id="thesis:M-T45",
                setting=setting,
                preconditions=preconditions,
            )
            for id, said, criterion, published in closer
        ),
    )


def attention_tables(translators: Translators, printed: str, over: str) -> tuple[ResultTable, ...]:
    """Both tables of `translators`, beside the printed numbers of the one that is named `printed`.

    `over` says what the deviations are taken over.
    """
    end = f"± over {over}; in print: WMT"
    return (
        ResultTable(
            title="Self-attention between adjacent positions",
            source="Table 4.4",
            cells=partial(_cells, _OWN, translators),
            published=_labelled(printed, _OWN, _OWN_IN_PRINT),
            rows_are="network and pairs",
            note="last layer, least, mean and most over heads and both directions, mean over pairs; k: the other "
            f"position is among the k most attended; {end}",
        ),
        ResultTable(
            title="Cross-attention of adjacent positions",
            source="Table 4.5",
            cells=partial(_cells, _CROSS, translators),
            published=_labelled(printed, _CROSS, _CROSS_IN_PRINT),
            rows_are="network and pairs",
            note="last layer, between the laws of attention to the source; k: the k most attended have one in common; "
            f"{end}",
        ),
    )


def _cells(heads: dict[str, str], translators: Translators, rows: Rows) -> Cells:
    return {
        f"{name}, stutter: {said}": {head: attention(column, stutter) for head, column in heads.items()}
        for name, attention in translators(rows["attention"]).items()
        for stutter, said in _STUTTER.items()
    }


def _labelled(
    printed: str, heads: dict[str, str], numbers: Mapping[bool, Sequence[float]]
) -> dict[str, dict[str, float]]:
    return {
        f"{printed}, stutter: {said}": dict(zip(heads, numbers[stutter], strict=True))
        for stutter, said in _STUTTER.items()
    }
