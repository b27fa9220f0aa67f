"""Figures and tables of the study."""

from itertools import product

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, result_table
from trialogue_lab.studies.topic_optima.statistics import at_length


@figure(
    "landscapes",
    "The loss of one layer by its attention to the same word and to the same topic, for 100 topics of 300 words. Dark "
    "is low, on a logarithmic scale above the minimum of each panel. With block values, the minimum is on a line of "
    "constant γ (red). With diagonal values, it is at one β (red mark) in the limit of vanishing α.",
)
def _landscapes_figure(rows: Rows) -> Drawing:
    taus = rows.distinct("landscape", "tau")
    drawing, axes = panels(len(taus), 2, width=2.7, height=2.5, sharex=True, sharey=True)
    for panel, (values, tau) in zip(axes, product(("diagonal", "block"), taus), strict=True):
        chosen = rows.where("landscape", values=values, tau=tau).sort_values("alpha")
        shown = chosen[[f"beta_{place}" for place in range(len(chosen))]].to_numpy()
        logs = np.log10(chosen.alpha.to_numpy())
        panel.pcolormesh(logs, logs, shown, cmap="viridis", shading="nearest", rasterized=True)
        best = rows.where("landscape-minimum", tau=tau, values=values, variant="printed").iloc[0]
        size = float(rows.config["landscape"][1])
        if values == "block":
            share = 1 / (1 + np.exp(np.linspace(-25, 25, 400)))
            curve = (size * best.beta * share, size * best.beta * (1 - share) / (size - 1))
            panel.plot(*map(np.log10, curve), color=BAD, lw=1)
        else:
            panel.plot([np.log10(best.beta)] * 2, [-4, -3.6], color=BAD, lw=2)
        panel.set(xlim=(-4, 7), ylim=(-4, 7))
        panel.grid(visible=False)
        panel.set_title(f"{values} values, τ = {tau}", fontsize=9)
    for panel in axes[len(taus) :]:
        panel.set_xlabel("log₁₀ β, same word")
    for panel in (axes[0], axes[len(taus)]):
        panel.set_ylabel("log₁₀ α, same topic")
    return drawing


@figure(
    "scaling",
    "Left: optimal attention by the number of topics per document, with its leading order (dotted). Right: mean "
    "entries of the optimal value matrix under uniform attention, with three of ten topics in each document. Without "
    "a penalty, the optimum has a diagonal at any finite length, even at 10,000 words (◁). With a penalty, it has "
    "none.",
)
def _scaling_figure(rows: Rows) -> Drawing:
    drawing, (optima, penalties) = panels(2, width=4.6, height=3.6)
    for variant, label, color in (
        ("printed", "as printed", OURS),
        ("mask", "attention to [MASK] exact", GOOD),
    ):
        chosen = rows.where("minimum", values="block", variant=variant).sort_values("tau")
        optima.plot(chosen.tau, chosen.per_topic, "o-", color=color, label=f"γ*, {label}")
        limit = float((chosen.leading / chosen.tau).iloc[-1])
        optima.axhline(limit, color=color, ls=":", lw=1)
    diagonal, block = (
        rows.where("minimum", values=values, variant="printed").sort_values("tau")
        for values in ("diagonal", "block")
    )
    optima.plot(diagonal.tau, diagonal.per_topic, "x", color=COLORS[4], label="β* / v, diagonal values")
    label = "λ₁ (τ - 1), printed lower bound"
    optima.plot(block.tau, block.low / block.tau, "--", color=PUBLISHED, label=label)
    optima.set(xscale="log", xlabel="topics per document τ (T = τ²)", ylim=(0, 8))
    optima.set_title("Optimal attention divided by τ")
    optima.legend(loc="center left", bbox_to_anchor=(0.0, 0.28), fontsize=9)
    found = rows["penalty"].sort_values("ridge")
    for column, label, color in (
        ("diagonal", "diagonal", BAD),
        ("block", "same topic", OURS),
        ("other", "other topics", QUIET),
    ):
        penalties.plot(found.ridge, found[column], color=color, label=label)
        longest = rows.where("length", law="tau = 3").sort_values("length")[column].iloc[-1]
        penalties.plot(found.ridge.min(), longest, "<", color=color)
    penalties.set(xscale="log", xlabel="L2 penalty λ", ylabel="mean entry")
    penalties.set_title("Optimal values, documents of 100 to 150 words")
    penalties.legend()
    return drawing


FIGURES = (_landscapes_figure, _scaling_figure)


@result_table(
    "Optimal values by document length",
    "Theorem 2.1.2, section 2.1.5.1",
    row_heading="documents",
    note="ten topics of ten words, exact at every length; loss: squared loss of W^V under uniform attention; Theorem "
    "2.1.2 is about infinitely long documents of three topics",
)
def _lengths_table(rows: Rows) -> Cells:
    heads = {
        "diagonal": "diagonal",
        "same topic": "block",
        "other topics": "other",
        "row sum of a block": "row",
        "loss": "loss",
        "loss of Theorem 2.1.2": "loss_of_least_norm",
    }
    table = rows["length"].sort_values(["law", "length"])
    return {
        f"{distribution}, {'100 to ' if distribution == 'Dirichlet' else ''}{length} words": {
            head: at_length(column, int(length), str(distribution)) for head, column in heads.items()
        }
        for distribution, length in zip(table.law, table.length, strict=True)
    }


TABLES = (_lengths_table,)
