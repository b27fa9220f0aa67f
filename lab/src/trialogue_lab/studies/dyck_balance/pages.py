"""Figure and table of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, Cells, ResultTable, Rows, figure, finish, panels
from trialogue_lab.studies.dyck_balance.claims import AS_RELEASED, BY_CONFIDENCE, BY_LIKELIEST, MIXED

_ACCURACIES = {
    "outside": "Likeliest closing bracket is right",
    "outside_confident": "More than 0.8 on the right one",
}


@figure(
    "accuracies",
    "Balance violation and accuracy on prefixes of 400 to 500 brackets. Each point is a network with a "
    "minimal first layer. Left: accuracy as the text defines it. Right: accuracy of the released program.",
)
def _draw(rows: Rows) -> Drawing:
    drawing, axes = panels(2, width=4.2, height=3.2)
    table = rows["network"]
    for ax, (column, title) in zip(axes, _ACCURACIES.items(), strict=True):
        ax.scatter(table.balance, table[column], s=14, color=COLORS[0], alpha=0.6)
        finish(ax, title, xlabel="balance violation of (2.54)", ylabel="accuracy at lengths 400 to 500")
    return drawing


_TABLE: Cells = {
    "violation of (2.54)": {"likeliest bracket": BY_LIKELIEST, "confident closings": BY_CONFIDENCE},
    "violation as released": {"likeliest bracket": MIXED, "confident closings": AS_RELEASED},
}

FIGURES = (_draw,)
TABLES = (
    ResultTable(
        title="Balance violation and errors at lengths 400 to 500",
        source="Figure 2.13",
        cells=_TABLE,
        rows_are="violation",
        note="Spearman's rank correlation over networks of the violation and one minus the accuracy, as pseudo-values. "
        "The source says that accuracy falls with the violation, and prints no number",
    ),
)
