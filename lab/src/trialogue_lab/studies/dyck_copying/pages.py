"""Figure and table of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.dyck_attention.pages import draw_pattern
from trialogue_lab.studies.dyck_copying.measure import ARMS, SHOWN_PREFIX
from trialogue_lab.studies.dyck_copying.statistics import copied, last_layer, sharpest


@figure(
    "copying",
    "Attention weights of a network of four layers that copies its input. Rows are queries. The table shows the "
    "accuracy after the attention of every layer is made uniform.",
)
def _attention_figure(rows: Rows) -> Drawing:
    drawing, panes = panels(4, width=2.6, height=2.9)
    table = rows.where("pattern", arm="4 layers")
    shown = table[table.seed == table.seed.min()].sort_values("layer")
    for axes, (_, row) in zip(panes, shown.iterrows(), strict=True):
        draw_pattern(axes, row, SHOWN_PREFIX, f"layer {row['layer']}, seed {row['seed']}")
    return drawing


@result_table(
    "Networks that copy",
    "Figures 2.19 to 2.21",
    row_heading="network",
    note="Shares of brackets, and mean attention weights in the last layer. Means over seeds ± one standard deviation. "
    "Distances are relative to the distance of two random causal patterns.",
)
def _networks_table(_: Rows) -> Cells:
    return {
        arm: {
            "copied": copied(arm),
            "with uniform attention": copied(arm, "uniform"),
            "furthest layer from uniform": sharpest(arm),
            "last layer, weight on itself": last_layer(arm, "on_itself"),
            "on closing brackets": last_layer(arm, "on_closing"),
            "on these if uniform": last_layer(arm, "on_closing_uniform"),
        }
        for arm in ARMS
    }


FIGURES = (_attention_figure,)
TABLES = (_networks_table,)
