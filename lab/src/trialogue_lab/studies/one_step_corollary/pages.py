"""The table and the figure of the study."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import BAD, GOOD, QUIET, Cells, Rows, figure, panels, result_table, spread
from trialogue_lab.studies.one_step_corollary.statistics import share
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL


@result_table(
    "One joint step compared with many parallel steps, on twelve instances",
    "Corollary 4.1.1",
    row_heading="instance",
    note="The fields and J_0 are the smallest ones that Assumption 4.1.6 allows, and k is the smallest one that 4.1.7 "
    "allows. Both samplers start from states whose sum over the clique is at most -2. ± one standard deviation over "
    "seeds.",
    digits=4,
)
def _instances_table(rows: Rows) -> Cells:
    return {
        str(row["instance"]): {
            "k": int(row["block_size"]),
            "k-Gibbs in R_1 after one step": row["arrives"],
            "simulated": share(row["instance"], GIBBS),
            "parallel in R_1 within M steps": 1 - row["stuck"],
            "simulated, parallel": share(row["instance"], PARALLEL),
            "1 - δ/2": 1 - row["delta"] / 2,
            "c_stuck": row["stuck_exponent"],
            "with |C|²/4, as published": _compute_bound(row["clique"], 4),
            "with |C|²/16": _compute_bound(row["clique"], 16),
            "log10 of the expected steps": row["log_steps"] / math.log(10),
        }
        for row in rows["one step"].to_dict("records")
    }


def _compute_bound(clique: int, divisor: int) -> float:
    """Return a lower bound on the exponent that limits how long a parallel sampler stays in one mode.

    The exponent is c_stuck in Proposition 4.1.5.
    """
    return 2 * (1 - clique / 2 + clique**2 / divisor) / clique


TABLES = (_instances_table,)


@figure(
    "instances",
    "Share of runs that visit the larger mode, for one step of k-Gibbs and M steps of independent parallel sampling on "
    "instances of Corollary 4.1.1. Bars show one standard deviation over seeds. Dashes are exact probabilities from "
    "the worst start that the corollary allows. The runs start with the most spins up.",
)
def _instances_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=9.6, height=3.8)
    table = rows["one step"]
    places = np.arange(len(table)).tolist()
    for chain, color, exact in ((GIBBS, GOOD, table.arrives), (PARALLEL, BAD, 1 - table.stuck)):
        cells = [share(instance, chain) for instance in table.instance]
        spread(axes, places, cells, rows, "o", color=color, label=f"{chain}, simulated")
        axes.plot(places, exact, "_", ms=16, color=color)
    label = "1 - δ/2, lower bound for one step of k-Gibbs"
    axes.plot(places, 1 - table.delta / 2, "v", color=QUIET, ms=4, label=label)
    names = [
        f"|C| = {one.clique}\n{str(one.instance).rsplit(', ', 1)[1]}\nM = {one.steps}"
        for one in table.itertuples()
    ]
    axes.set_xticks(places, names, fontsize=9)
    axes.set(ylabel="share of runs that visit R_1", ylim=(-0.05, 1.25))
    drawing.legend(loc="outside upper center", ncols=3)
    return drawing


FIGURES = (_instances_figure,)
