"""Figure and table of the study."""

from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import Cells, ResultTable, Rows, figure, panels
from trialogue_lab.studies.dyck_attention.pages import draw_pattern
from trialogue_lab.studies.dyck_copying.measure import ARMS, SHOWN
from trialogue_lab.studies.dyck_copying.statistics import copied, layer, sharpest


@figure(
    "copying",
    "Attention of a network of four layers that copies its input: rows are queries. What is left "
    "with uniform attention in every layer is in the table.",
)
def _draw(rows: Rows) -> Drawing:
    drawing, axes = panels(4, width=2.6, height=2.9)
    table = rows.where("pattern", arm="4 layers")
    shown = table[table.seed == table.seed.min()].sort_values("layer")
    for ax, (_, row) in zip(axes, shown.iterrows(), strict=True):
        draw_pattern(ax, row, SHOWN, f"layer {row['layer']}, seed {row['seed']}")
    return drawing


def _networks() -> Cells:
    return {
        arm: {
            "copied": copied(arm),
            "with uniform attention": copied(arm, "uniform"),
            "furthest layer from uniform": sharpest(arm),
            "last layer, weight on itself": layer(arm, "on_itself", len(config.mlps)),
            "on closing brackets": layer(arm, "on_closing", len(config.mlps)),
            "on these if uniform": layer(arm, "on_closing_uniform", len(config.mlps)),
        }
        for arm, config in ARMS.items()
    }


FIGURES = (_draw,)
TABLES = (
    ResultTable(
        title="Networks that copy",
        source="Figures 2.19 to 2.21",
        cells=_networks(),
        rows_are="network",
        note="shares of brackets; means over seeds ± one standard deviation. Distances are over that of two random "
        "causal patterns",
    ),
)
