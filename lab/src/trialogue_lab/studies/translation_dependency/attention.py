"""Tables 4.4 and 4.5 of the thesis for any translator: rows of adjacent positions, the claims on them, the tables."""

from collections.abc import Callable, Iterator, Mapping
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

    def more(column: str) -> Statistic:
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
            more("own_mean") < 0.02,
            "Thesis section 4.2.4, Table 4.4: hypothesis 1",
            ".032 against .033",
            grade=True,
            statement_id="thesis:M-T44",
        ),
        of_source(
            "cross-attention-is-closer",
            f"{where} adjacent positions that stutter attend to the source more alike than others (mean TV over "
            "heads).",
            more("variation_mean") < 0,
            published=".13 against .23",
        ),
        of_source(
            "cross-attention-is-closer-in-angle",
            f"{where} they do so by cosine distance too.",
            more("cosine_mean") < 0,
            published=".10 against .20",
        ),
        of_source(
            "cross-attention-has-one-most",
            f"{where} they agree more often on the most attended source position.",
            more("source_overlap_1") > 0,
            published=".57 against .40",
        ),
    )


def attention_tables(translators: Translators, printed: str, over: str) -> tuple[ResultTable, ...]:
    """Both tables of `translators`, beside the printed numbers of the one that is named `printed`.

    `over` says what the deviations are taken over.
    """

    def table(
        title: str, source: str, heads: dict[str, str], in_print: Mapping[bool, tuple[float, ...]], note: str
    ) -> ResultTable:
        return ResultTable(
            title=title,
            source=source,
            cells=partial(_cells, heads, translators),
            published={
                f"{printed}, stutter: {said}": dict(zip(heads, in_print[stutter], strict=True))
                for stutter, said in _STUTTER.items()
            },
            rows_are="network and pairs",
            note=f"last layer, {note}; ± over {over}; in print: WMT",
        )

    return (
        table(
            "Self-attention between adjacent positions",
            "Table 4.4",
            _OWN,
            _OWN_IN_PRINT,
            "least, mean and most over heads and both directions, mean over pairs; k: the other position is among the "
            "k most attended",
        ),
        table(
            "Cross-attention of adjacent positions",
            "Table 4.5",
            _CROSS,
            _CROSS_IN_PRINT,
            "between the laws of attention to the source; k: the k most attended have one in common",
        ),
    )


def _cells(heads: dict[str, str], translators: Translators, rows: Rows) -> Cells:
    return {
        f"{name}, stutter: {said}": {head: attention(column, stutter) for head, column in heads.items()}
        for name, attention in translators(rows["attention"]).items()
        for stutter, said in _STUTTER.items()
    }
