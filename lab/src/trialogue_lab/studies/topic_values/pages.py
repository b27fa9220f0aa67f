"""Figure and table of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.topic_values.measure import ARMS, WITH_ATTENTION, WITHOUT_L2
from trialogue_lab.studies.topic_values.statistics import entries, prominence

_COLUMNS = {"mean within topics": "in_topic", "mean elsewhere": "other", "s.d. elsewhere": "other_std"}
_PUBLISHED_ENTRIES = {
    WITHOUT_L2: (0.00552563, -0.00015675332, 0.00060286524),
    WITH_ATTENTION: (0.006545205, -0.0006503917, 0.0006370574),
}


@figure(
    "values",
    "Value matrices trained by SGD on the squared loss, for the first set of documents. Words are sorted by topic. The "
    "colour scale ends at ±0.01.",
)
def _values_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(len(ARMS), width=2.9, height=2.9)
    for ax, arm in zip(axes, ARMS, strict=True):
        table = rows.where("matrix", name=arm).sort_values("row")
        entry = table[[f"word_{word}" for word in range(len(table))]].to_numpy(float)
        shown = ax.imshow(entry, cmap="RdBu_r", vmin=-0.01, vmax=0.01)
        ax.set(xlabel="input word", ylabel="predicted word")
        ax.grid(visible=False)
        ax.set_title(arm.replace(", ", ",\n"), fontsize=9)
        drawing.colorbar(shown, ax=ax, shrink=0.7)
    return drawing


@result_table(
    "Entries of value matrices trained by SGD on the squared loss",
    "Figures 2.2, 2.5 and 2.6",
    published={arm: dict(zip(_COLUMNS, numbers, strict=True)) for arm, numbers in _PUBLISHED_ENTRIES.items()},
    row_heading="training",
    note="mean ± one standard deviation over sets of documents; within topics includes the diagonal; ratio: mean "
    "within topics divided by the absolute mean elsewhere",
)
def _entries_table(_: Rows) -> Cells:
    return {
        arm: {head: entries(arm, column) for head, column in _COLUMNS.items()}
        | {"ratio": prominence(arm).as_ratio()}
        for arm in ARMS
    }


FIGURES = (_values_figure,)
TABLES = (_entries_table,)
