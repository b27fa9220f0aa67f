"""Figure and tables of the study."""

from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Rows, figure, finish, panels, result_table, spread
from trialogue_lab.studies.dyck_construction.measure import LENGTHS, PUMPED
from trialogue_lab.studies.dyck_construction.statistics import accuracy, distance


@figure(
    "disturbed-balance",
    "Networks of Theorem 2.2.1 with noise in their attention scores. Left: share of prefixes that end with a closing "
    "bracket for which the correct type is the most probable to close. Means over networks ± one standard deviation. "
    "Right: distance of the normalized sums of two prefixes, which only balanced networks keep apart.",
)
def _disturbance_figure(rows: Rows) -> Drawing:
    drawing, (accuracies, distances) = panels(2, width=4.6, height=3.4)
    levels = [0.0, *rows.config["disturbances"]]
    for (shortest, longest), color in zip(LENGTHS, COLORS, strict=False):
        cells = [accuracy(level, longest) for level in levels]
        label = f"{shortest:,} to {longest:,} brackets"
        spread(accuracies, range(len(levels)), cells, rows, "o-", color=color, label=label)
    accuracies.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    accuracies.set(xlabel="noise in attention scores", ylim=(0, 1.05))
    finish(accuracies, "Accuracy on the type of the innermost open bracket", legend=True)
    for level, color in zip(levels, COLORS, strict=False):
        cells = [distance(level, pairs) for pairs in PUMPED]
        spread(distances, PUMPED, cells, rows, "o-", color=color, label=f"{level:g}")
    distances.set(xscale="log", yscale="log", xlabel="preceding bracket pairs")
    distances.set_title("Distance of normalized sums for two types")
    distances.legend(title="noise", title_fontsize=9)
    return drawing


@result_table(
    "Networks that are exact by construction",
    "Theorem 2.2.1, Corollary 2.2.1",
    row_heading="network",
    note="Total variation distance from the exact distribution of the next bracket. k = 3, D = 4, q = 1/2, float64.",
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
    row_heading="networks",
    note="k = 2, D = 3, N = 40 and 512, with corrected constants. Positive side: the distributions differ by more than "
    "both errors for some prefix. Slack: decimal logarithm of the bound divided by the largest |S|.",
)
def _chain_table(rows: Rows) -> DataFrame:
    table = rows["chain"].assign(positive=lambda chains: chains.positive > 0)
    columns = {
        "networks": ("seed", "size"),
        "with a positive side": ("positive", "sum"),
        "cases": ("cases", "sum"),
        "first fails": ("first", "sum"),
        "second fails": ("second", "sum"),
        "third fails": ("third", "sum"),
        "median slack, decades": ("slack", "median"),
        "smallest slack, decades": ("tightest", "min"),
    }
    return table.groupby("network").agg(**columns)


FIGURES = (_disturbance_figure,)
TABLES = (_exact_table, _chain_table)
