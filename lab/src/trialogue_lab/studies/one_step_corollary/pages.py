"""Tables and the figure of the study."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import BAD, GOOD, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.one_step_corollary.statistics import share
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL


@result_table(
    "One step against many, on twelve instances",
    "Corollary 4.1.1",
    rows_are="instance",
    note="fields and J_0 are the least of Assumption 4.1.6, k of 4.1.7; k-Gibbs and independent parallel start "
    "with the clique's sum at most -2; ± one standard deviation over seeds",
    digits=4,
)
def _instances_table(rows: Rows) -> Cells:
    return {
        str(one["instance"]): {
            "k": int(one["block_size"]),
            "k-Gibbs in R_1 after one step": one["arrives"],
            "simulated": share(one["instance"], GIBBS),
            "parallel in R_1 within M steps": 1 - one["stuck"],
            "simulated, parallel": share(one["instance"], PARALLEL),
            "1 - δ/2": 1 - one["delta"] / 2,
            "c_stuck": one["stuck_exponent"],
            "with |C|²/4, as printed": _bound(one["clique"], 4),
            "with |C|²/16": _bound(one["clique"], 16),
            "log10 of its expected steps": one["log_steps"] / math.log(10),
        }
        for one in rows["one step"].to_dict("records")
    }


def _bound(clique: int, divisor: int) -> float:
    """The step of the proof between c_stuck and -1 + |C| / 8."""
    return 2 * (1 - clique / 2 + clique**2 / divisor) / clique


@result_table(
    "Parallel decoders by construction",
    "Propositions 4.1.2 and 4.1.3",
    rows_are="sites and tokens",
    note="a random map and a random positive product kernel of each size; eight greedy steps from every state",
)
def _decoders_table(rows: Rows) -> DataFrame:
    table = rows["decoder"].set_index(["sites", "vocab"])
    table.index = [f"N = {sites}, {vocab} tokens" for sites, vocab in table.index]
    heads = {"states_apart": "states apart from a map", "kernel_error": "error of a kernel"}
    return table[list(heads)].rename(columns=heads)


TABLES = (_instances_table, _decoders_table)


@figure(
    "instances",
    "One step of k-Gibbs and M steps of independent parallel on instances of Corollary 4.1.1: shares of "
    "runs that visit the larger mode, bars of one standard deviation over seeds; dashes are exact, from the worst "
    "start that the corollary allows, where runs have the most spins up.",
)
def _instances_figure(rows: Rows) -> Drawing:
    drawing, [axes] = panels(width=7.2, height=4.2)
    table = rows["one step"]
    places = np.arange(len(table))
    for chain, color, exact in ((GIBBS, GOOD, table.arrives), (PARALLEL, BAD, 1 - table.stuck)):
        shares = [share(instance, chain)(rows) for instance in table.instance]
        means, bars = [each.mean() for each in shares], [each.std() for each in shares]
        axes.errorbar(places, means, bars, fmt="o", color=color, label=f"{chain}, simulated")
        axes.plot(places, exact, "_", ms=16, color=color)
    axes.plot(
        places, 1 - table.delta / 2, "v", color=QUIET, ms=4, label="1 - δ/2, promised for one step of k-Gibbs"
    )
    names = [
        f"|C| = {one.clique}\n{str(one.instance).rsplit(', ', 1)[1]}\nM = {one.steps}"
        for one in table.itertuples()
    ]
    axes.set_xticks(places, names, fontsize=6)
    axes.set(ylabel="share of runs that visit R_1", ylim=(-0.05, 1.25))
    axes.legend(loc="upper left", ncols=3, fontsize=7)
    return drawing


FIGURES = (_instances_figure,)
