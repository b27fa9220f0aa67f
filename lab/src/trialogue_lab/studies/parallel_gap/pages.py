"""Tables and the figure of the study: instances and bounds beside exact numbers, products, and networks."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, figure, finish, result_table
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.studies.parallel_gap.statistics import network, networks

_NETWORKS = {
    "KL of the network": "divergence",
    "best product, KL": "best_divergence",
    "TV of the network": "variation",
    "product of marginals, TV": "likely_variation",
    "best product, TV": "best_variation",
    "TV in the long run": "limit_variation",
}
_PRODUCTS = {"KL": "best_divergence", "TV of the same": "likely_variation", "least TV": "best_variation"}
_HITTING = {
    "exact": "rate",
    "1 - c_R1": "bound",
    "as in the body": "bound_body",
    "as in eq. (4.49)": "bound_proof",
    "T": "steps",
    "reached within T": "reached",
}


@result_table(
    "One step against many",
    "Corollary 4.1.1",
    rows_are="instance",
    note="from the worst start with the clique's sum at most -2; fields and J_0 are the least of Assumption 4.1.6, "
    "k of 4.1.7; large instances are not simulated; ± one standard deviation over seeds",
    digits=5,
)
def _one_step_table(rows: Rows) -> Cells:
    lines: dict[str, dict[str, Any]] = {}
    for one in _records(rows, "one step"):
        shares = rows.where("simulated", instance=one["instance"])
        lines[str(one["instance"])] = {
            "k": int(one["block_size"]),
            "k-Gibbs in R_1 after one step": one["arrives"],
            "simulated": shares.reached[shares.chain == GIBBS],
            "promised": one["promised"],
            "parallel avoids R_1 for M steps": one["stuck"],
            "simulated, avoids": 1 - shares.reached[shares.chain == PARALLEL],
            "1 - δ/2": 1 - one["delta"] / 2,
            "log10 of its expected steps": one["log_steps"] / math.log(10),
        }
    return lines


def _records(rows: Rows, kind: str) -> list[dict[str, Any]]:
    return [dict(record) for record in rows.records if record["kind"] == kind]


def _cells(record: Mapping[str, Any], heads: Mapping[str, str]) -> dict[str, Any]:
    return {head: record[column] for head, column in heads.items()}


@result_table(
    "Probability to be in R_1 after one step of k-Gibbs, at worst",
    "Proposition 4.1.4",
    rows_are="instance",
    note="the instances that are named; the claims are about a grid too",
)
def _hitting_table(rows: Rows) -> Cells:
    return {
        "N = {sites:g}, |C| = {clique:g}, k = {block_size:g}, J_0 = {excess:g}, h = {field:g}, δ = {delta:g}".format(
            **one
        ): _cells(one, _HITTING)
        for one in _records(rows, "hitting")[:10]
    }


@result_table(
    "Independent parallel stays where it is",
    "Proposition 4.1.5",
    rows_are="assumptions and instance",
    note="corrected: |C| tanh J_0 > 2 besides what is printed; where T is 0 nothing is claimed",
    digits=5,
)
def _stuck_table(rows: Rows) -> Cells:
    heads = {"c_stuck": "stuck_exponent", "T": "steps", "stuck for T steps": "stuck"}
    return {
        "{assumption}, |C| = {clique:g}, J_0 = {excess:g}, δ = {delta:g}".format(**one): _cells(one, heads)
        | {"1 - δ": 1 - one["delta"]}
        for one in _records(rows, "stuck")
    }


@result_table(
    "A transformer that imitates one step",
    "Propositions 4.1.2 and 4.1.3",
    rows_are="chain and clique",
    note="mean over starts; ± one standard deviation over trainings; KL in nats; in the long run: from the model "
    "to the law that repeated steps of the network tend to",
)
def _networks_table(rows: Rows) -> Cells:
    return {
        f"{chain}, {sites} sites": {
            head: network(chain, column, sites=sites) for head, column in _NETWORKS.items()
        }
        for chain in (GIBBS, PARALLEL)
        for sites in sorted(networks(rows, chain).sites.unique())
    }


@result_table(
    "Distance to products",
    "Propositions 4.1.3 and 4.3.5",
    rows_are="law, or chain and clique",
    note="of a chain the most over starts; the product is that of the marginals, the closest in KL; a step of "
    "independent parallel updates is a product by its definition, and so is one of 1-Gibbs at a fixed site",
)
def _products_table(rows: Rows) -> Cells:
    modes = {
        f"two equal modes, {one['sites']} sites": _cells(one, _PRODUCTS)
        for one in _records(rows, "two modes")
    }
    kernels = {
        f"{one['chain']}, {one['sites']} sites": {"KL": one["divergence"], "TV of the same": one["variation"]}
        for one in _records(rows, "kernel")
    }
    return modes | kernels


TABLES = (_one_step_table, _hitting_table, _stuck_table, _networks_table, _products_table)


@figure(
    "gap",
    "Left: expected steps to the larger mode, exact, with h_G and J_0 of Assumption 4.1.6 for δ = 0.1. "
    "Middle and right: a bidirectional transformer trained on single steps of k-Gibbs on a clique, k all of its "
    "sites: in KL it is as good as a product law can be, in total variation it is worse than the best one. Last "
    "group: trained on steps of independent parallel updates, which are products.",
)
def _gap_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=3.9, height=4.0)
    growth = rows["growth"]
    for column, color, label in (
        ("log_steps_parallel", BAD, "independent parallel"),
        ("log_steps_single", COLORS[3], "1-Gibbs"),
        ("log_steps_gibbs", GOOD, "k-Gibbs, k = N = |C|"),
    ):
        steps = np.maximum(growth[column] / math.log(10), 0.0)
        left.plot(growth.clique, steps, "o-", color=color, label=label)
    left.set(yscale="symlog", xlabel="size of the clique |C|", ylabel="log10 of the expected steps")
    finish(left, "From the smaller mode's side to R_1, exact", legend=True)
    _bars(middle, rows, {"best product law": (QUIET, "best_divergence"), "transformer": (OURS, "divergence")})
    middle.set_title("One step imitated: KL from the step's law (nats)")
    middle.margins(y=0.25)
    in_variation = {
        "best product law": (QUIET, "best_variation"),
        "product of marginals": ("#d0d7de", "likely_variation"),
        "transformer": (OURS, "variation"),
    }
    _bars(right, rows, in_variation)
    right.set(ylim=(0, 1.25), title="The same in total variation")
    return drawing


def _bars(axes: Axes, rows: Rows, columns: Mapping[str, tuple[str, str]]) -> None:
    """A group of bars for each size of the clique, and one for the control on the largest."""
    sizes = sorted(networks(rows, GIBBS).sites.unique())
    groups = [*((GIBBS, size) for size in sizes), (PARALLEL, sizes[-1])]
    width = 0.8 / len(columns)
    for place, (label, (color, column)) in enumerate(columns.items()):
        numbers = [network(chain, column, sites=size)(rows) for chain, size in groups]
        places = np.arange(len(groups)) + width * (place - (len(columns) - 1) / 2)
        means, deviations = [each.mean() for each in numbers], [each.std() for each in numbers]
        axes.bar(places, means, width * 0.92, yerr=deviations, color=color, label=label)
    names = [*(f"{size} sites" for size in sizes), f"{sizes[-1]} sites,\nparallel"]
    axes.set_xticks(range(len(groups)), names)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper left")


FIGURES = (_gap_figure,)
