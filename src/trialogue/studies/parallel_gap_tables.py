"""Tables of the study `parallel-gap`: the instances of the corollary, bounds beside exact numbers, networks."""

import math
from collections.abc import Iterator
from typing import Any

from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.parallel_gap_rows import GIBBS, PARALLEL, network_sizes, networks
from trialogue.studies.rows import kind


def _records(rows: DataFrame) -> Iterator[Any]:
    """The rows one by one, with their columns as attributes: what a column holds is not known to types."""
    yield from rows.itertuples()


def _one_step(rows: DataFrame) -> DataFrame:
    chosen, ours = kind(rows, "one step"), kind(rows, "simulated")
    shares = ours.groupby(["instance", "chain"]).reached.mean()
    lines = {}
    for one in _records(chosen):
        lines[one.instance] = {
            "k": int(one.block_size),
            "k-Gibbs in R_1 after one step": one.arrives,
            "simulated": shares.get((one.instance, GIBBS), float("nan")),
            "promised": one.promised,
            "parallel avoids R_1 for M steps": one.stuck,
            "simulated, avoids": 1 - shares.get((one.instance, PARALLEL), float("nan")),
            "1 - δ/2": 1 - one.delta / 2,
            "log10 of its expected steps": one.log_steps / math.log(10),
        }
    return DataFrame.from_dict(lines, orient="index")


def _hitting(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "hitting").head(10)
    lines = {}
    for one in _records(chosen):
        sizes = f"N = {one.sites:g}, |C| = {one.clique:g}, k = {one.block_size:g}"
        lines[f"{sizes}, J_0 = {one.excess:g}, h = {one.field:g}, δ = {one.delta:g}"] = {
            "exact": one.rate,
            "1 - c_R1": one.bound,
            "as in the body": one.bound_body,
            "as in eq. (4.49)": one.bound_proof,
            "T": int(one.steps),
            "reached within T": one.reached,
        }
    return DataFrame.from_dict(lines, orient="index")


def _stuck(rows: DataFrame) -> DataFrame:
    lines = {}
    for one in _records(kind(rows, "stuck")):
        lines[f"{one.assumption}, |C| = {one.clique:g}, J_0 = {one.excess:g}, δ = {one.delta:g}"] = {
            "c_stuck": one.stuck_exponent,
            "T": int(one.steps),
            "stuck for T steps": one.stuck,
            "1 - δ": 1 - one.delta,
        }
    return DataFrame.from_dict(lines, orient="index")


def _networks(rows: DataFrame) -> DataFrame:
    return _by_size(rows, "mean")


def _networks_deviation(rows: DataFrame) -> DataFrame:
    return _by_size(rows, "std")


def _by_size(rows: DataFrame, how: str) -> DataFrame:
    columns = {
        "KL of the network": "divergence",
        "best product, KL": "best_divergence",
        "TV of the network": "variation",
        "product of marginals, TV": "likely_variation",
        "best product, TV": "best_variation",
        "TV in the long run": "limit_variation",
    }
    lines = {}
    for chain in (GIBBS, PARALLEL):
        for sites in network_sizes(rows):
            chosen = networks(rows, chain, sites)
            if len(chosen):
                lines[f"{chain}, {sites} sites"] = {
                    head: float(chosen[column].agg(how)) for head, column in columns.items()
                }
    return DataFrame.from_dict(lines, orient="index")


def _products(rows: DataFrame) -> DataFrame:
    lines = {}
    for one in _records(kind(rows, "two modes")):
        lines[f"two equal modes, {one.sites:g} sites"] = {
            "KL": one.best_divergence,
            "TV of the same": one.likely_variation,
            "least TV": one.best_variation,
        }
    for one in _records(kind(rows, "kernel")):
        lines[f"{one.chain}, {one.sites:g} sites"] = {"KL": one.divergence, "TV of the same": one.variation}
    return DataFrame.from_dict(lines, orient="index")


TABLES = (
    Table(
        title="One step against many",
        source="Corollary 4.1.1",
        ours=_one_step,
        rows_are="instance",
        note="from the worst start with the clique's sum at most -2; fields and J_0 are the least of Assumption 4.1.6, "
        "k of 4.1.7; large instances are not simulated",
        digits=5,
    ),
    Table(
        title="Probability to be in R_1 after one step of k-Gibbs, at worst",
        source="Proposition 4.1.4",
        ours=_hitting,
        rows_are="instance",
        note="the instances that are named; the claims are about a grid too",
    ),
    Table(
        title="Independent parallel stays where it is",
        source="Proposition 4.1.5",
        ours=_stuck,
        rows_are="assumptions and instance",
        note="corrected: |C| tanh J_0 > 2 besides what is printed",
        digits=5,
    ),
    Table(
        title="A transformer that imitates one step",
        source="Propositions 4.1.2 and 4.1.3",
        ours=_networks,
        deviation=_networks_deviation,
        rows_are="chain and clique",
        note="mean over starts; ± one standard deviation over trainings; KL in nats; in the long run: from the model "
        "to the law that repeated steps of the network tend to",
    ),
    Table(
        title="Distance to products",
        source="Propositions 4.1.3 and 4.3.5",
        ours=_products,
        rows_are="law, or chain and clique",
        note="of a chain the most over starts; the product is that of the marginals, the closest in KL",
    ),
)
