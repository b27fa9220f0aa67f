"""Figures and tables of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Cells, Rows, figure, finish, panels, result_table, spread
from trialogue_lab.studies.dyck_construction.measure import LENGTHS, PUMPED
from trialogue_lab.studies.dyck_construction.statistics import accuracy, distance, violation


def _disturbances(rows: Rows) -> list[float]:
    return [0.0, *rows.config["disturbances"]]


@figure(
    "disturbed-balance",
    "Networks of Theorem 2.2.1, their scores of attention disturbed. Left: behind prefixes that end with a "
    "closing bracket, how often the likeliest type to close is the right one; means over networks, ± one "
    "standard deviation. Right: what balance is needed for.",
)
def _draw(rows: Rows) -> Drawing:
    drawing, (decoded, pumped) = panels(2, width=4.6, height=3.4)
    levels = _disturbances(rows)
    for (shortest, longest), color in zip(LENGTHS, COLORS, strict=False):
        cells = [accuracy(level, longest) for level in levels]
        label = f"{shortest:,} to {longest:,} brackets"
        spread(decoded, range(len(levels)), cells, rows, "o-", color=color, label=label)
    decoded.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    decoded.set(xlabel="disturbance of scores of attention", ylim=(0, 1.05))
    finish(decoded, "Right type of the innermost open bracket", legend=True)
    for level, color in zip(levels, COLORS, strict=False):
        cells = [distance(level, each) for each in PUMPED]
        spread(pumped, PUMPED, cells, rows, "o-", color=color, label=f"{level:g}")
    pumped.set(xscale="log", yscale="log", xlabel="pairs in front")
    pumped.set_title("How far normed sums for two types are apart")
    pumped.legend(title="disturbance", title_fontsize=8)
    return drawing


@result_table(
    "Perfect balance, disturbed",
    "Theorem 2.2.1, necessity",
    rows_are="disturbance",
    note="accuracy by lengths of prefixes; means over networks, ± one standard deviation",
)
def _disturbed_table(rows: Rows) -> Cells:
    return {
        f"{level:g}": {
            "balance violation": violation(level),
            **{f"{low:,} to {high:,}": accuracy(level, high) for low, high in LENGTHS},
        }
        for level in _disturbances(rows)
    }


@result_table(
    "Networks that are exact by construction",
    "Theorem 2.2.1, Corollary 2.2.1",
    rows_are="network",
    note="total variation of the next-bracket law from the exact one, k = 3, D = 4, q = 1/2, float64",
)
def _exact_table(rows: Rows) -> DataFrame:
    table = rows["exact"]
    labels = table.network + ", seed " + table.seed.astype(str)
    columns = {"distance": "largest distance", "violation": "balance violation"}
    shown = table[["distance", "violation", "prefixes", "longest", "parameters"]]
    return shown.rename(columns=columns).set_axis(labels, axis=0)


@result_table(
    "The inequalities of Theorem 2.2.2",
    "Theorem 2.2.2, equations 2.54 and 2.79",
    rows_are="networks",
    note="k = 2, D = 3, N = 40 and 512, constants corrected. Positive: the laws differ by more than both "
    "errors for some prefix. Slack: decimal logarithm of the bound over the largest |S|",
)
def _chain_table(rows: Rows) -> Cells:
    return {
        str(name): {
            "networks": len(table),
            "with a positive side": int((table.positive > 0).sum()),
            "cases": int(table.cases.sum()),
            "first fails": int(table["first"].sum()),
            "second fails": int(table["second"].sum()),
            "third fails": int(table["third"].sum()),
            "median slack, decades": float(table.slack.median()),
            "least slack, decades": float(table.tightest.min()),
        }
        for name, table in rows["chain"].groupby("network")
    }


FIGURES = (_draw,)
TABLES = (_exact_table, _disturbed_table, _chain_table)
