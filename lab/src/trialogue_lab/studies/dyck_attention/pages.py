"""Figures and tables of the study."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import Series

from trialogue_lab.ledger import COLORS, Cells, ResultTable, Rows, figure, panels, result_table
from trialogue_lab.studies.dyck_attention import networks
from trialogue_lab.studies.dyck_attention import statistics as stats

_SHOWN_PATTERNS = (
    ("words", 1, "minimal, (2.55)"),
    ("standard", 2, "standard, layer 2"),
    (str(networks.GridSetting(2, 4, 3)), 3, "layer 3 of 3"),
)
"""Arm, layer and title of the attention patterns in the figure."""


@figure(
    "attention",
    "Attention weights of networks that close brackets correctly, on nested pairs after the start token S. Rows are "
    "queries. Two seeds each with a minimal first layer, with two layers that read tokens, and with three layers whose "
    "residual is added after the norm.",
)
def _attention_figure(rows: Rows) -> Drawing:
    shown = []
    for arm, layer, title in _SHOWN_PATTERNS:
        table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
        shown += [(row, f"{title}, seed {row['seed']}") for _, row in table.head(2).iterrows()]
    drawing, panes = panels(3, -(-len(shown) // 3), width=3.6, height=3.5)
    for axes, (row, title) in zip(panes, shown, strict=False):
        draw_pattern(axes, row, networks.NESTED, title)
    for axes in panes[len(shown) :]:
        axes.axis("off")
    return drawing


def draw_pattern(axes: Axes, row: "Series[str]", prefix: tuple[int, ...], title: str) -> None:
    """Draw the attention weights of a network on one prefix of a bracket string, as an image.

    Args:
        axes: The axes to draw on.
        row: Row with the attention weights as JSON in the column "weights".
        prefix: Token ids of the prefix. The image shows a start token S before them.
        title: Title above the image.
    """
    labels = ["S", *("([)]"[2 * (token % 2) + token // 2] for token in prefix)]
    image = axes.imshow(stats.parse_pattern(row), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), labels, fontsize=9)
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.grid(False)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("attended to", fontsize=9)
    axes.set_ylabel("query", fontsize=9)
    axes.figure.colorbar(image, ax=axes, shrink=0.7).ax.tick_params(labelsize=9)


@figure(
    "balance",
    "Accuracy at lengths 400 to 500 as a function of the balance violation. Each point is one network. Filled points "
    "were trained on words, open points on prefixes.",
)
def _balance_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=5.2, height=3.8)
    for arm, color, marker in (
        ("words", COLORS[0], "o"),
        ("words, contrast", COLORS[2], "o"),
        ("words, released contrast", COLORS[6], "o"),
        ("words, decay", COLORS[3], "o"),
        ("words, sums", COLORS[4], "^"),
        ("words, angles", COLORS[5], "v"),
        ("prefixes", COLORS[0], "s"),
        ("prefixes, contrast", COLORS[2], "s"),
    ):
        table = rows.where("network", arm=arm)
        face = "none" if arm.startswith("prefixes") else color
        axes.scatter(
            table.balance, table.outside, s=22, marker=marker, edgecolors=color, facecolors=face, label=arm
        )
    axes.set(xlabel="balance violation", ylabel="accuracy on closing brackets", xscale="log")
    axes.set_xticks((0.03, 0.1, 0.3), ["0.03", "0.1", "0.3"])
    axes.minorticks_off()
    axes.legend()
    return drawing


@result_table(
    "Networks that close brackets",
    "Sections 2.2.3.2 to 2.2.3.4, Figures 2.11 to 2.17",
    row_heading="trained on, with",
    note="k = 2, D = 4. Accuracies are shares of closing brackets, as means over seeds ± one standard deviation. "
    "Confident: more than 0.8 of the probability of closing brackets is on the correct one. Variation: mean over pairs "
    "of seeds on nested pairs, relative to random causal attention. Violation and error: Spearman correlation over "
    "seeds, with the error at lengths 400 to 500. The last two are means of pseudo-values.",
)
def _arms_table(_: Rows) -> Cells:
    columns = {
        "accuracy, trained length": "inside",
        "lengths 400 to 500": "outside",
        "confident, 400 to 500": "outside_confident",
        "with uniform attention": "uniform",
    }
    minimal = {"like a stack": "stack_1", "balance violation": "balance", "as released": "balance_released"}
    return {
        arm: {
            **{head: stats.minimal(arm, column) for head, column in (columns | minimal).items()},
            "variation": stats.variation(arm),
            "violation and error": stats.rank_correlation(arm),
        }
        for arm in networks.MINIMAL_ARMS
    } | {
        arm: {
            **{head: stats.standard(arm, column) for head, column in columns.items()},
            "like a stack": stats.standard(arm, "stack_2"),
            "variation": stats.standard_variation(arm, 2),
        }
        for arm in networks.STANDARD_ARMS
    }


_BASELINE = 3.33
_PUBLISHED_VARIATION = (
    (0.047, 7.721),
    (0.070, 5.072, 24.063),
    (0.087, 7.583),
    (0.059, 5.560, 23.590),
    (0.182, 9.313),
    (0.225, 8.426, 25.749),
    (0.178, 7.000),
    (0.154, 6.280, 25.451),
)
"""Variation by layer in Table 2.6, for each of `SETTINGS`."""

FIGURES = (_attention_figure, _balance_figure)
TABLES = (
    _arms_table,
    ResultTable(
        title="Variation between seeds by layer",
        source="Table 2.6",
        cells={
            str(setting): {
                f"layer {layer}": stats.setting_variation(setting, layer)
                for layer in range(1, setting.layers + 1)
            }
            | {"accuracy": stats.setting_closed(setting)}
            for setting in networks.SETTINGS
        },
        published={
            str(setting): {f"layer {layer}": number / _BASELINE for layer, number in enumerate(numbers, 1)}
            for setting, numbers in zip(networks.SETTINGS, _PUBLISHED_VARIATION, strict=True)
        },
        row_heading="setting",
        note="On 40 complete words of 18 brackets, which have 19 positions with the start token. Variation is relative "
        "to random causal attention, as the mean of pseudo-values over all pairs of seeds. The residual is added after "
        "the norm. Accuracy: on the closing brackets of 400 words from the training distribution.",
    ),
)
