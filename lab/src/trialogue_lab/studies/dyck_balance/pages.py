"""Figure of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import COLORS, Rows, figure, finish, panels

_TITLES = {
    "outside": "Most probable closing bracket is correct",
    "outside_confident": "More than 0.8 on the correct bracket",
}


@figure(
    "accuracies",
    "Accuracy on prefixes of 400 to 500 brackets as a function of the balance violation. Each point is one network "
    "with a minimal first layer. Left: accuracy as defined in the text of the thesis. Right: accuracy of the released "
    "program.",
)
def _accuracies_figure(rows: Rows) -> Drawing:
    drawing, panes = panels(2, width=4.2, height=3.2)
    table = rows["network"]
    for axes, (column, title) in zip(panes, _TITLES.items(), strict=True):
        axes.scatter(table.balance, table[column], s=14, color=COLORS[0], alpha=0.6)
        finish(axes, title, xlabel="balance violation (2.54)", ylabel="accuracy at lengths 400 to 500")
    return drawing


FIGURES = (_accuracies_figure,)
