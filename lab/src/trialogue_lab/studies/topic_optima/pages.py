"""Figures and tables of the study."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, PUBLISHED, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.studies.topic_optima.statistics import at_length, landscape, minimum, region


def _draw_landscapes(rows: Rows) -> Drawing:
    table = rows["landscape"]
    taus = sorted(table.tau.unique().tolist())
    drawing, axes = panels(len(taus), 2, width=2.7, height=2.5, sharex=True, sharey=True)
    places = iter(axes)
    for values in ("diagonal", "block"):
        for tau in taus:
            panel = next(places)
            chosen = table[(table["values"] == values) & (table.tau == tau)].sort_values("alpha")
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


def _draw_scaling(rows: Rows) -> Drawing:
    drawing, (optima, penalties) = panels(2, width=4.6, height=3.6)
    table = rows["minimum"]
    for variant, color in (("printed", OURS), ("mask", GOOD)):
        chosen = table[(table["values"] == "block") & (table.variant == variant)].sort_values("tau")
        label = "as printed" if variant == "printed" else "attention to [MASK] exact"
        optima.plot(chosen.tau, chosen.per_topic, "o-", color=color, label=f"γ*, {label}")
        limit = float((chosen.leading / chosen.tau).iloc[-1])
        optima.axhline(limit, color=color, ls=":", lw=1)
    diagonal = table[(table["values"] == "diagonal") & (table.variant == "printed")].sort_values("tau")
    optima.plot(diagonal.tau, diagonal.per_topic, "x", color=COLORS[4], label="β* / v, diagonal values")
    block = table[(table["values"] == "block") & (table.variant == "printed")].sort_values("tau")
    optima.plot(
        block.tau, block.low / block.tau, "--", color=PUBLISHED, label="λ₁ (τ - 1), printed lower end"
    )
    optima.set(xscale="log", xlabel="τ topics of a document, T = τ²", ylim=(0, 8))
    optima.set_title("Optimal attention over τ; dotted: leading order")
    optima.legend(loc="center left", bbox_to_anchor=(0.0, 0.28), fontsize=7)
    found = rows["penalty"].sort_values("ridge")
    for column, label, color in (
        ("diagonal", "diagonal", BAD),
        ("block", "same topic", OURS),
        ("other", "other topics", QUIET),
    ):
        penalties.plot(found.ridge, found[column], color=color, label=label)
        longest = rows.where("length", law="tau = 3").sort_values("length")[column].iloc[-1]
        penalties.plot(found.ridge.min(), longest, "<", color=color)
    penalties.set(xscale="log", xlabel="L2 penalty λ")
    penalties.set_title("Values of documents of 100 to 150 words")
    penalties.legend()
    return drawing


def _worst(rows: Rows) -> DataFrame:
    members, model, ridge = rows["member"], rows["model"], rows["ridge"]
    numbers: dict[str, Any] = {
        "Lemma 2.1.1, members": members.misfit.max(),
        "Lemma 2.1.1, other optima": members.other_violation.max(),
        "Lemma 2.1.1, all topics in every document": model.with_all_topics_violation.max(),
        "Theorem 2.1.1, printed example": model.example_printed.max(),
        "Theorem 2.1.1, printed example, mended bias": model.example_printed_mended_bias.max(),
        "Theorem 2.1.1, mended example": model.example.max(),
        "Theorem 2.1.2 against the optimum of least norm": model.formula_error.max(),
        **{
            f"Theorem 2.1.2 against a ridge of {each:g}": ridge[ridge.ridge == each].distance.max()
            for each in sorted(ridge.ridge.unique())[::-1]
        },
    }
    return DataFrame({"largest residual": numbers})


def _minima(rows: Rows) -> Cells:
    return {
        f"τ = {tau}": {
            "γ* / τ": minimum("per_topic", tau),
            "γ* / τ, exact": minimum("per_topic", tau, "block", "mask"),
            "β* / (v τ)": minimum("per_topic", tau, "diagonal"),
            "loss, block": minimum("loss", tau),
            "loss, diagonal": minimum("loss", tau, "diagonal"),
        }
        for tau in sorted(rows["minimum"].tau.unique().tolist())
    }


def _regions(rows: Rows) -> Cells:
    return {
        f"τ = {tau}": {
            "γ*": landscape("beta", tau),
            "loss, block": landscape("loss", tau),
            "low γ from": region("gamma_low", tau),
            "to": region("gamma_high", tau),
            "β*, diagonal": landscape("beta", tau, "diagonal"),
            "loss, diagonal": landscape("loss", tau, "diagonal"),
            "low β from": region("beta_low", tau, "diagonal"),
            "most α / β": region("most_ratio", tau, "diagonal"),
        }
        for tau in sorted(rows["region"].tau.unique().tolist())
    }


def _lengths(rows: Rows) -> Cells:
    table = rows["length"].sort_values(["law", "length"])
    return {
        f"{law}, {'100 to ' if law == 'Dirichlet' else ''}{length} words": {
            name: at_length(column, int(length), str(law))
            for name, column in (
                ("diagonal", "diagonal"),
                ("same topic", "block"),
                ("other topics", "other"),
                ("sum of a block's row", "row"),
                ("loss", "loss"),
                ("loss of Theorem 2.1.2", "loss_of_least_norm"),
            )
        }
        for law, length in zip(table.law, table.length, strict=True)
    }


TABLES = (
    ResultTable(
        title="Conditions of optimality",
        source="Lemma 2.1.1, Theorems 2.1.1, 2.1.2 and 2.1.4",
        cells=_worst,
        rows_are="what is held against all documents",
        note="worst case over all models of the run",
    ),
    ResultTable(
        title="Optimal attention as topics grow",
        source="Theorems 2.1.3 and 2.1.5",
        cells=_minima,
        rows_are="topics of a document, T = τ²",
        note="20 words a topic; exact: attention to [MASK] is not left out. To leading order 6.52, exact 7.41",
        digits=4,
    ),
    ResultTable(
        title="Landscapes",
        source="Figures 2.7 and 2.8",
        cells=_regions,
        rows_are="topics of a document",
        note="100 topics of 300 words; low: within a tenth of the drop from α = β = 0 to the least loss",
        digits=4,
    ),
    ResultTable(
        title="The optimum at the lengths that training sees",
        source="Theorem 2.1.2, section 2.1.5.1",
        cells=_lengths,
        rows_are="documents",
        note="ten topics of ten words, exact at every length; loss: squared, of W^V under uniform attention; that of "
        "Theorem 2.1.2 is for infinitely long documents of three topics",
    ),
)

FIGURES = (
    Figure(
        name="landscapes",
        caption="The loss of one layer by its attention to the same word and to the same topic, 100 topics of 300 "
        "words: dark is low, on a logarithmic scale above each least loss. With block values that is reached along a "
        "line of constant γ (red), with diagonal ones at a β (red mark) and vanishing α.",
        draw=_draw_landscapes,
    ),
    Figure(
        name="scaling",
        caption="Left: optimal attention over the number of topics of a document, and what it comes to. Right: the "
        "values of the least loss under uniform attention, three of ten topics in a document. At any finite length the "
        "optimum without a penalty has a diagonal, at 10,000 words (◁) too; a penalty takes it away.",
        draw=_draw_scaling,
    ),
)
