"""Tables and the figure of the study: instances and bounds with exact numbers, product distributions and networks."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import BAD, COLORS, GOOD, Cells, Rows, figure, finish, panels, result_table
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.studies.parallel_gap.statistics import network, select_networks


def _rename_columns(table: DataFrame, label: str, columns: Mapping[str, str]) -> DataFrame:
    """Select and rename columns of a table, and format its row labels."""
    records: Any = table.to_dict("records")
    labels = [label.format(**record) for record in records]
    return table[list(columns.values())].set_axis(labels).set_axis(list(columns), axis=1)


@result_table(
    "One joint step against many parallel steps",
    "Corollary 4.1.1",
    row_heading="instance",
    note="from the worst start with the clique's sum at most -2; fields and J_0 are the smallest of Assumption 4.1.6, "
    "k of 4.1.7; large instances are not simulated; ± one standard deviation over seeds",
    digits=5,
)
def _one_step_table(rows: Rows) -> Cells:
    lines: dict[str, dict[str, Any]] = {}
    for record in rows["one step"].to_dict("records"):
        simulated = rows.where("simulated", instance=record["instance"])
        lines[str(record["instance"])] = {
            "k": record["block_size"],
            "k-Gibbs in R_1 after one step": record["arrives"],
            "simulated": simulated.reached[simulated.chain == GIBBS],
            "lower bound": record["promised"],
            "parallel avoids R_1 for M steps": record["stuck"],
            "simulated, avoids": 1 - simulated.reached[simulated.chain == PARALLEL],
            "1 - δ/2": 1 - record["delta"] / 2,
            "log10 of its expected steps": record["log_steps"] / math.log(10),
        }
    return lines


@result_table(
    "Smallest probability to be in R_1 after one step of k-Gibbs",
    "Proposition 4.1.4",
    row_heading="instance",
    note="five instances, each with two δ; the claims also use a grid",
)
def _hitting_table(rows: Rows) -> DataFrame:
    columns = {
        "exact": "rate",
        "1 - c_R1": "bound",
        "as in the body": "bound_body",
        "as in eq. (4.49)": "bound_proof",
        "T": "steps",
        "reached within T": "reached",
    }
    label = "N = {sites}, |C| = {clique}, k = {block_size}, J_0 = {excess:g}, h = {field:g}, δ = {delta:g}"
    return _rename_columns(rows["hitting"].head(10), label, columns)


@result_table(
    "Probability that independent parallel updates stay where they are",
    "Proposition 4.1.5",
    row_heading="assumptions and instance",
    note="corrected: with the missing assumption |C| tanh J_0 > 2; with T = 0 the proposition states nothing",
    digits=5,
)
def _stuck_table(rows: Rows) -> DataFrame:
    table = rows["stuck"].assign(promised=1 - rows["stuck"].delta)
    columns = {"c_stuck": "stuck_exponent", "T": "steps", "stuck for T steps": "stuck", "1 - δ": "promised"}
    return _rename_columns(table, "{assumption}, |C| = {clique}, J_0 = {excess:g}, δ = {delta:g}", columns)


@result_table(
    "A transformer that imitates one step",
    "Propositions 4.1.2 and 4.1.3",
    row_heading="chain and clique",
    note="mean over starting states; ± one standard deviation over trainings; KL in nats; in the limit: between the "
    "model and the distribution that repeated network steps converge to",
)
def _networks_table(rows: Rows) -> Cells:
    columns = {
        "KL of the network": "divergence",
        "best product, KL": "best_divergence",
        "TV of the network": "variation",
        "product of marginals, TV": "likely_variation",
        "best product, TV": "best_variation",
        "TV in the limit": "limit_variation",
    }
    return {
        f"{chain}, {sites} sites": {
            head: network(chain, column, sites=sites) for head, column in columns.items()
        }
        for chain in (GIBBS, PARALLEL)
        for sites in sorted(select_networks(rows, chain).sites.unique())
    }


@result_table(
    "Distance to product distributions",
    "Propositions 4.1.3 and 4.3.5",
    row_heading="distribution, or chain and clique",
    note="for a chain, the largest over starting states. The product of the marginals is the closest in KL. Steps of "
    "independent parallel updates, and of 1-Gibbs at a fixed site, are products by definition",
)
def _products_table(rows: Rows) -> DataFrame:
    columns = {"KL": "best_divergence", "TV of the same product": "likely_variation"}
    modes = {**columns, "smallest TV": "best_variation"}
    kernels = rows["kernel"].rename(
        columns={"divergence": "best_divergence", "variation": "likely_variation"}
    )
    return pd.concat(
        [
            _rename_columns(rows["two modes"], "two equal modes, {sites} sites", modes),
            _rename_columns(kernels, "{chain}, {sites} sites", columns),
        ]
    )


TABLES = (_one_step_table, _hitting_table, _stuck_table, _networks_table, _products_table)


@figure(
    "gap",
    "Expected number of steps until the whole clique is up, starting near the smaller mode. Exact, with h_G and J_0 of "
    "Assumption 4.1.6 for δ = 0.1.",
)
def _growth_figure(rows: Rows) -> Drawing:
    drawing, (axes,) = panels(1, width=5.2, height=4.0)
    growth = rows["growth"]
    for column, color, label in (
        ("log_steps_parallel", BAD, "independent parallel"),
        ("log_steps_single", COLORS[3], "1-Gibbs"),
        ("log_steps_gibbs", GOOD, "k-Gibbs, k = N = |C|"),
    ):
        steps = np.maximum(growth[column] / math.log(10), 0.0)
        axes.plot(growth.clique, steps, "o-", color=color, label=label)
    axes.set(yscale="symlog", xlabel="size of the clique |C|", ylabel="expected steps")
    axes.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
    finish(axes, "Steps to the larger mode", legend=True)
    return drawing


FIGURES = (_growth_figure,)
