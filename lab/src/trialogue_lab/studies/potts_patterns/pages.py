"""Tables and the figure of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, finish, panels, result_table, spread
from trialogue_lab.studies.potts_patterns.statistics import order_at


@result_table(
    "P(no wall) at falling temperatures",
    "Theorem 1.1, at fixed length",
    row_heading="chain",
    note="P(no wall): probability of no domain wall, exact; E: smallest positive energy of a window; N: number of "
    "patterns; W: window; L: length in tokens",
)
def _cold_table(rows: Rows) -> DataFrame:
    table = rows["cold"]
    names = ["family", "patterns", "window", "length"]
    by_cold = table.pivot(index=names, columns="cold", values="no_wall")
    by_cold.index = [f"{family}, N = {n}, W = {w}, L = {length}" for family, n, w, length in by_cold.index]
    return by_cold.set_axis([f"T = E/{cold}" for cold in by_cold.columns], axis=1)


@result_table(
    "Texts of random models that start on a pattern of the model",
    "Corollary 1.2.1",
    row_heading="context and model",
    note="rates of leaving the pattern, in nats per token; ± one standard deviation over seeds",
)
def _texts_table(rows: Rows) -> Cells:
    heads = {
        "measured": "measured rate",
        "rate": "exact rate",
        "half": "share following for half of the periods",
        "whole": "share following for all periods",
    }
    return {
        f"w = {width:g}, model {place:g}, period {int(table.period.iloc[0])}": {
            head: table[column].astype(float) for column, head in heads.items()
        }
        for (width, place), table in rows["survival"].groupby(["width", "place"])
    }


TABLES = (_cold_table, _texts_table)


@figure(
    "patterns",
    "Left: rates at which texts of random bigram and trigram models leave a greedy pattern, measured and exact, with "
    "bars of one standard deviation over seeds. Right: order on a torus after starting with one of N patterns "
    "everywhere. With ten patterns, it is lost below E_min / log 3.",
)
def _patterns_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.6, height=3.9)
    for (width, place), table in rows["survival"].groupby(["width", "place"]):
        color = COLORS[int(table.width.iloc[0]) - 1]
        label = f"context {width:g}" if place == 0 else None
        left.errorbar(
            table.rate.mean(), table.measured.mean(), table.measured.std(), fmt="o", color=color, label=label
        )
    ends = [rows["survival"].rate.min(), rows["survival"].rate.max()]
    left.plot(ends, ends, "--", color=QUIET, lw=1, label="equal")
    left.set(xlabel="exact rate (nats per token)", ylabel="measured rate")
    finish(left, "Rate of leaving a pattern of the model", legend=True)
    table = rows["colours"]
    temperatures = rows.distinct("colours", "temperature")
    for color, colours in zip(COLORS, rows.distinct("colours", "colours"), strict=False):
        cells = [order_at(colours, each) for each in temperatures]
        spread(right, temperatures, cells, rows, "o-", color=color, label=f"N = {colours}")
        right.axvline(float(table.critical[table.colours == colours].iloc[0]), color=color, lw=0.8, ls=":")
    right.axvline(float(table.peierls.iloc[0]), color=QUIET, lw=1, ls="--", label="E_min / log 3")
    right.set(xlabel="temperature in units of J", ylabel="order", ylim=(-0.05, 1.05))
    finish(right, "Order from one of N patterns (T_c dotted)", legend=True)
    return drawing


FIGURES = (_patterns_figure,)
