"""Tables and the figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import BAD, COLORS, OURS, QUIET, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.joint_from_conditionals.config import Sizes
from trialogue_lab.studies.joint_from_conditionals.statistics import of_sizes

_BOUNDS = {
    "variation": "TV of the fit",
    "stated_bound": "bound",
    "stated_within": "within",
    "proved_bound": "bound of the proof",
    "proved_within": "within it",
    "log_looseness_stated": "log looseness",
    "log_looseness_proved": "that of the proof",
    "loss": "loss (nats)",
    "tensorization": "C_AT at most",
    "beta": "beta",
    "cells": "cells",
}
_LEMMAS = {
    "average_bound": "Corollary 4.3.1",
    "average_within": "within",
    "log_looseness_average": "log looseness",
    "lemma_within": "within Lemma 4.3.5",
    "empirical_bound": "Lemma 4.3.6",
    "empirical_within": "within it",
    "log_looseness_empirical": "its log looseness",
}


def _cells(rows: Rows, heads: dict[str, str]) -> Cells:
    return {
        sizes: {head: of_sizes(column, sizes) for column, head in heads.items()}
        for sizes in rows["bound"].sizes.unique().tolist()
    }


@result_table(
    "The joint law from conditionals: Theorem 4.1.4 with certain constants",
    "Theorem 4.1.4, which prints no numbers",
    rows_are="sites, samples, masks of each",
    note="means over data sets; ± one standard deviation over seeds; the bound of the proof has the loss relative "
    "to the samples' own conditionals in place of the stated one. No law in the box of the fits is as far from the "
    "data's as either bound, so that none could break them; log looseness: of a bound over the TV of the fit",
    digits=3,
)
def _bounds_table(rows: Rows) -> Cells:
    boxes = [Sizes(**values) for values in rows.config["sizes"]]
    farthest = {one.label: one.family.farthest(one.coupling, one.field) for one in boxes}
    return {
        sizes: {**cells, "TV of the farthest corner": farthest[sizes]}
        for sizes, cells in _cells(rows, _BOUNDS).items()
    }


@result_table(
    "Its parts",
    "Corollary 4.3.1, Lemmas 4.3.5 and 4.3.6",
    rows_are="sites, samples, masks of each",
    note="log looseness: of the bound over what it bounds, natural; ± one standard deviation over seeds",
)
def _lemmas_table(rows: Rows) -> Cells:
    return _cells(rows, _LEMMAS)


@result_table(
    "Decay beside its bound, the most over random models and times",
    "Definitions 4.1.5 and 4.1.9",
    rows_are="block size and start",
    note="natural logarithms; χ² against e^(-2t/C), KL against e^(-t/C_AT) with C_AT bounded from above",
)
def _decays_table(rows: Rows) -> DataFrame:
    columns = {"chi_square": "χ² / bound, log", "entropy": "KL / bound, log"}
    table = rows["decay"].groupby(["masked", "start"])[list(columns)].max().rename(columns=columns)
    table.index = [f"k = {masked}, {start} start" for masked, start in table.index]
    return table


TABLES = (_bounds_table, _lemmas_table, _decays_table)


@figure(
    "bound",
    "Left: the bound of Theorem 4.1.4 with certain constants, with the loss as it is stated and with that "
    "of its proof, beside the total variation of the fit; means over data sets. Right: KL to the model in "
    "continuous time where C_AT is 1, from states of small probability: it falls by e^(-t), and more slowly than "
    "by e^(-2t).",
)
def _bound_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=4.6, height=3.9)
    table = rows["bound"]
    sizes = table.sizes.unique().tolist()
    places = np.arange(len(sizes))
    for column, color, label in (
        ("stated_bound", BAD, "bound, stated loss"),
        ("proved_bound", COLORS[3], "bound, loss of the proof"),
        ("empirical_bound", QUIET, "Lemma 4.3.6 alone"),
        ("variation", OURS, "TV of the fit"),
    ):
        heights = [table.loc[table.sizes == each, column].mean() for each in sizes]
        left.plot(places, heights, "o", color=color, label=label)
    left.axhline(1, color=QUIET, lw=1, ls="--")
    left.set_xticks(places, [each.replace(", ", "\n") for each in sizes])
    # Below what is shown there is room for the legend.
    left.set(yscale="log", ylim=(1e-7, 5), ylabel="total variation")
    finish(left, "Theorem 4.1.4 and what it bounds", legend="lower left")
    slow = rows["slow"]
    for rare, color in zip(sorted(slow.rare.unique()), COLORS, strict=False):
        one = slow[slow.rare == rare].sort_values("time")
        right.plot(one.time, one.log_ratio, "o-", color=color, label=f"q(x) = {rare:g}")
    times = np.array(sorted(slow.time.unique()))
    right.plot(times, -2 * times, "--", color=BAD, label="-2t / C_AT, as printed")
    right.plot(times, -times, "--", color=QUIET, label="-t / C_AT")
    right.set(xlabel="time t", ylabel="log KL(p_t, q) / KL(p_0, q)")
    finish(right, "One block of all sites, from a rare state x", legend=True)
    return drawing


FIGURES = (_bound_figure,)
