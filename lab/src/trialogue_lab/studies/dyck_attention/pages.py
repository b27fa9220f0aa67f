"""Figures and tables of the study."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import Series

from trialogue_lab.ledger import COLORS, Cells, ResultTable, Rows, figure, panels
from trialogue_lab.studies.dyck_attention import networks
from trialogue_lab.studies.dyck_attention import statistics as stats

_DEEP = str(networks.Setting(2, 4, 3))


@figure(
    "attention",
    "What networks that close brackets rightly attend to, on nested pairs behind the starting token S: "
    "rows are queries. Two seeds with a minimal first layer, two of two layers that read tokens, and two of three "
    "layers with the residual behind the norm.",
)
def _draw_patterns(rows: Rows) -> Drawing:
    shown = [
        ("words", 1, "minimal, (2.55)"),
        ("standard", 2, "standard, layer 2"),
        (_DEEP, 3, "layer 3 of 3"),
    ]
    shown = [each for each in shown if len(rows.where("pattern", arm=each[0], layer=each[1]))]
    drawing, axes = panels(2 * len(shown), width=2.6, height=2.9)
    place = iter(axes)
    for arm, layer, title in shown:
        table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
        for _, row in table.head(2).iterrows():
            draw_pattern(next(place), row, networks.NESTED, f"{title}, seed {row['seed']}")
    return drawing


def draw_pattern(axes: Axes, row: "Series[str]", prefix: tuple[int, ...], title: str) -> None:
    """Draw the attention pattern of a row as an image, behind the starting token S."""
    labels = ["S", *("([)]"[2 * (token % 2) + token // 2] for token in prefix)]
    shades = axes.imshow(stats.pattern(row), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), labels, fontsize=6)
    axes.set_yticks(range(len(labels)), labels, fontsize=6)
    axes.grid(False)
    axes.set_title(title, fontsize=8)
    axes.set_xlabel("attended to", fontsize=7)
    axes.set_ylabel("query", fontsize=7)
    axes.figure.colorbar(shades, ax=axes, shrink=0.7).ax.tick_params(labelsize=6)


@figure(
    "balance",
    "Left: each point is a trained network; filled: trained on words, open: on prefixes. Right: how often "
    "closing brackets attend most to the innermost open one, by network (second layer of the standard ones).",
)
def _draw_balance(rows: Rows) -> Drawing:
    drawing, (words, stacks) = panels(2, width=4.6, height=3.4)
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
        words.scatter(
            table.balance, table.outside, s=22, marker=marker, edgecolors=color, facecolors=face, label=arm
        )
    words.set(xlabel="balance violation", xscale="log", xticks=(0.03, 0.1, 0.3))
    words.set_ylabel("share of closing brackets, likeliest is right")
    words.set_xticklabels(["0.03", "0.1", "0.3"])
    words.minorticks_off()
    words.set_title("Right at lengths 400 to 500")
    words.legend(fontsize=7)
    names = [*networks.MINIMAL_ARMS, *networks.STANDARD_ARMS]
    for place, name in enumerate(names):
        table = rows.where("network", arm=name)
        column = "stack_1" if name in networks.MINIMAL_ARMS else "stack_2"
        jitter = np.linspace(-0.15, 0.15, len(table))
        stacks.scatter(table[column], place + jitter, s=16, color=COLORS[0])
    stacks.set_yticks(range(len(names)), names, fontsize=7)
    stacks.set(xlim=(0, 1.02), xlabel="closing brackets that attend most to the innermost open one")
    stacks.set_title("A stack would have 1")
    stacks.invert_yaxis()
    return drawing


def _arms() -> Cells:
    shown = {
        "accuracy, trained length": "inside",
        "lengths 400 to 500": "outside",
        "confident, 400 to 500": "outside_confident",
        "attention made uniform": "uniform",
    }
    minimal = {
        arm: {
            **{head: stats.minimal(arm, column) for head, column in shown.items()},
            "like a stack": stats.minimal(arm, "stack_1"),
            "balance violation": stats.minimal(arm, "balance"),
            "as released": stats.minimal(arm, "balance_released"),
            "variation": stats.variation(arm),
            "violation and error": stats.rank_correlation(arm),
        }
        for arm in networks.MINIMAL_ARMS
    }
    standard = {
        arm: {
            **{head: stats.standard(arm, column) for head, column in shown.items()},
            "like a stack": stats.standard(arm, "stack_2"),
            "variation": stats.standard_variation(arm, 2),
        }
        for arm in networks.STANDARD_ARMS
    }
    return minimal | standard


def _settings() -> Cells:
    return {
        str(setting): {
            **{
                f"layer {layer}": stats.setting_variation(setting, layer)
                for layer in range(1, setting.layers + 1)
            },
            "accuracy": stats.setting_closed(setting),
        }
        for setting in networks.SETTINGS
    }


_PRINTED = (
    (0.047, 7.721),
    (0.070, 5.072, 24.063),
    (0.087, 7.583),
    (0.059, 5.560, 23.590),
    (0.182, 9.313),
    (0.225, 8.426, 25.749),
    (0.178, 7.000),
    (0.154, 6.280, 25.451),
)
_PRINTED_BASELINE = 3.33


FIGURES = (_draw_patterns, _draw_balance)
TABLES = (
    ResultTable(
        title="Networks that close brackets",
        source="Sections 2.2.3.2 to 2.2.3.4, Figures 2.11 to 2.17",
        cells=_arms(),
        rows_are="trained on, with",
        note="k = 2, D = 4; shares of closing brackets, means over seeds, ± one standard deviation. Confident: more "
        "than 0.8 of the closing mass on the right one. Variation: mean over pairs of seeds on nested pairs, over that "
        "of random causal attention. Violation and error: Spearman's correlation over seeds, error at 400 to 500. "
        "Both as pseudo-values",
    ),
    ResultTable(
        title="Variation between seeds by layer",
        source="Table 2.6",
        cells=_settings(),
        published={
            str(setting): {
                f"layer {layer}": number / _PRINTED_BASELINE for layer, number in enumerate(line, 1)
            }
            for setting, line in zip(networks.SETTINGS, _PRINTED, strict=True)
        },
        rows_are="setting",
        note="on forty complete words of 18 brackets, 19 positions with the starting token, over that of random "
        "causal attention; residual behind the norm. Pseudo-values of the mean over all pairs of seeds. Accuracy: "
        "closing brackets of 400 words of the law that is trained on",
    ),
)
