"""The table and the figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import BAD, COLORS, QUIET, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.joint_from_conditionals.config import FitProblem
from trialogue_lab.studies.joint_from_conditionals.statistics import of_sizes

_QUANTITIES = {
    "variation": "TV of the fit",
    "stated_bound": "Theorem 4.1.4",
    "stated_within": "Theorem 4.1.4: satisfied",
    "log_looseness_stated": "Theorem 4.1.4: log looseness",
    "proved_bound": "bound of its proof",
    "proved_within": "bound of its proof: satisfied",
    "log_looseness_proved": "bound of its proof: log looseness",
    "average_bound": "Corollary 4.3.1",
    "average_within": "Corollary 4.3.1: satisfied",
    "log_looseness_average": "Corollary 4.3.1: log looseness",
    "lemma_within": "Lemma 4.3.5: satisfied",
    "empirical_bound": "Lemma 4.3.6",
    "empirical_within": "Lemma 4.3.6: satisfied",
    "log_looseness_empirical": "Lemma 4.3.6: log looseness",
    "loss": "loss (nats)",
    "tensorization": "upper bound on C_AT",
    "beta": "beta",
    "cells": "cells",
}


@result_table(
    "Bounds on the joint distribution learned from conditionals",
    "Theorem 4.1.4 and the steps of its proof, which have no numbers",
    row_heading="quantity",
    note="Columns: sites N, samples n, masks per sample m. Means over data sets, ± one standard deviation over seeds. "
    "Satisfied: share of data sets. Log looseness: natural logarithm of a bound over the bounded quantity. The bound "
    "of the proof uses the loss relative to the samples' own conditionals. No distribution in the box of the fits is "
    "as far from the data's as the bounds of the theorem and its proof, so that they cannot be violated.",
)
def _bounds_table(rows: Rows) -> Cells:
    boxes = [FitProblem(**values) for values in rows.config["sizes"]]
    corners = {box.label: box.family.farthest(box.coupling, box.field) for box in boxes}
    return {
        name: {box.label: of_sizes(column, box.label) for box in boxes}
        for column, name in _QUANTITIES.items()
    } | {"TV of the farthest corner": corners}


@figure(
    "bound",
    "KL to the model in continuous time for C_AT = 1, starting from states of small probability. It falls as e^(-t), "
    "and more slowly than e^(-2t).",
)
def _decay_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=4.6, height=3.9)
    for (rare, curve), color in zip(rows["slow"].groupby("rare"), COLORS, strict=False):
        axes.plot(curve.time, curve.log_ratio, "o-", color=color, label=f"q(x) = {rare:g}")
    times = np.array(rows.distinct("slow", "time"))
    axes.plot(times, -2 * times, "--", color=BAD, label="-2t / C_AT, as published")
    axes.plot(times, -times, "--", color=QUIET, label="-t / C_AT")
    axes.set(xlabel="time t", ylabel="log KL(p_t, q) / KL(p_0, q)")
    finish(axes, "One block of all sites, from a rare state x", legend=True)
    return drawing


FIGURES = (_decay_figure,)
TABLES = (_bounds_table,)
