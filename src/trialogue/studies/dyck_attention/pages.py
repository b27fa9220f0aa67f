"""Figures and tables of the study."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.ledger import Cells, Figure, ResultTable, Rows
from trialogue.ledger.pages.figures import COLORS, panels
from trialogue.studies.dyck_attention.measure import MINIMAL_ARMS, NESTED, STANDARD_ARMS
from trialogue.studies.dyck_attention.quantities import (
    minimal,
    pattern,
    standard,
    standard_variation,
    variation,
)


def _draw_patterns(rows: Rows) -> Drawing:
    shown = [("words", 1, "minimal, (2.55)"), ("standard", 2, "standard, layer 2")]
    drawing, axes = panels(4, width=2.6, height=2.9)
    labels = ["S", *("([)]"[2 * (token % 2) + token // 2] for token in NESTED)]
    place = iter(axes)
    for arm, layer, title in shown:
        table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
        for _, row in table.head(2).iterrows():
            ax = next(place)
            ax.imshow(pattern(row), cmap="Blues", vmin=0, vmax=1)
            ax.set_xticks(range(len(labels)), labels, fontsize=6)
            ax.set_yticks(range(len(labels)), labels, fontsize=6)
            ax.grid(False)
            ax.set_title(f"{title}, seed {row['seed']}", fontsize=8)
    return drawing


def _draw_balance(rows: Rows) -> Drawing:
    drawing, (words, stacks) = panels(2, width=4.6, height=3.4)
    for arm, color, marker in (
        ("words", COLORS[0], "o"),
        ("words, contrast", COLORS[2], "o"),
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
    words.set(xlabel="balance violation", xscale="log")
    words.set_title("Right at lengths 400 to 500")
    words.legend(fontsize=7)
    names = [*MINIMAL_ARMS, *STANDARD_ARMS]
    for place, name in enumerate(names):
        table = rows.where("network", arm=name)
        column = "stack_1" if name in MINIMAL_ARMS else "stack_2"
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
    table: dict[str, dict[str, Any]] = {}
    for arm in MINIMAL_ARMS:
        table[arm] = {head: minimal(arm, column) for head, column in shown.items()}
        table[arm] |= {
            "like a stack": minimal(arm, "stack_1"),
            "balance violation": minimal(arm, "balance"),
            "as released": minimal(arm, "balance_released"),
            "variation": variation(arm),
        }
    for arm in STANDARD_ARMS:
        table[arm] = {head: standard(arm, column) for head, column in shown.items()}
        table[arm] |= {"like a stack": standard(arm, "stack_2"), "variation": standard_variation(arm, 2)}
    return table


def _layers() -> Cells:
    return {
        arm: {f"layer {layer}": standard_variation(arm, layer) for layer in (1, 2)}
        for arm in STANDARD_ARMS
        if not arm.endswith("uniform")
    }


FIGURES = (
    Figure(
        name="attention",
        caption="What networks that close brackets rightly attend to, on nested pairs behind the starting token S: "
        "rows are queries. Two seeds with a minimal first layer, two of two layers that read tokens.",
        draw=_draw_patterns,
    ),
    Figure(
        name="balance",
        caption="Left: each point is a trained network; filled: trained on words, open: on prefixes. Right: how often "
        "closing brackets attend most to the innermost open one, by network (second layer of the standard ones).",
        draw=_draw_balance,
    ),
)
TABLES = (
    ResultTable(
        title="Networks that close brackets",
        source="Sections 2.2.3.2 to 2.2.3.4, Figures 2.11 to 2.17",
        cells=_arms(),
        rows_are="trained on, with",
        note="k = 2, D = 4; shares of closing brackets, means over seeds, ± one standard deviation. Confident: more "
        "than 0.8 of the closing mass on the right one. Variation: of pairs of seeds on nested pairs, over that "
        "of random causal attention",
    ),
    ResultTable(
        title="Variation between seeds by layer",
        source="Table 2.6",
        cells=_layers(),
        published={"standard": {"layer 1": 0.047 / 3.33, "layer 2": 7.721 / 3.33}},
        rows_are="network",
        note="over that of random causal attention of as many positions; the source's sentences have 19, ours 17",
    ),
)
