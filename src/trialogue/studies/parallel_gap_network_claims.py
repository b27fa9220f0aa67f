"""Claims of the study `parallel-gap` about transitions: Propositions 4.1.2 and 4.1.3, networks that imitate steps."""

import math
from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.parallel_gap_pilot import ROUNDING, TRAININGS
from trialogue.studies.parallel_gap_rows import GIBBS, PARALLEL, network_sizes, networks
from trialogue.studies.rows import by_seed, kind

_PRODUCTS = "Propositions 4.1.3 and 4.3.5"


def _network(
    values: Callable[[DataFrame], "Series[float]"],
    chain: str = GIBBS,
    largest: bool = False,
    how: str = "max",
) -> Callable[[DataFrame], "Series[float]"]:
    """A number of every network that imitates `chain`, the largest over sizes; or of the largest clique only."""

    def estimate(rows: DataFrame) -> "Series[float]":
        chosen = networks(rows, chain, max(network_sizes(rows)) if largest else None)
        return by_seed(chosen, values(chosen), how)

    return estimate


def _kernel(rows: DataFrame, chain: str, how: str) -> float:
    chosen = kind(rows, "kernel")
    return float(chosen[chosen.chain == chain].divergence.agg(how))


def _two_modes(rows: DataFrame, column: str) -> dict[int, float]:
    """A number of the two equal modes of each number of sites."""
    chosen = kind(rows, "two modes")
    return dict(zip(chosen.sites.astype(int).tolist(), chosen[column].tolist(), strict=True))


def _total_correlation(rows: DataFrame) -> float:
    """Largest error of (N - 1) ln 2."""
    found = _two_modes(rows, "best_divergence")
    return max(abs(value - (sites - 1) * math.log(2)) for sites, value in found.items())


NETWORK_CLAIMS = (
    exact_claim(
        "parallel-steps-are-products",
        "A step of independent parallel updates is a product law given the state (largest KL).",
        _PRODUCTS,
        "0",
        lambda rows: _kernel(rows, PARALLEL, "max"),
        1e-12,
        "below",
    ),
    exact_claim(
        "fixed-site-steps-are-products",
        "A step of 1-Gibbs at a fixed site is a product law given the state (largest KL).",
        "Text after Proposition 4.1.3",
        "a product distribution",
        lambda rows: _kernel(rows, "one fixed site", "max"),
        1e-12,
        "below",
    ),
    exact_claim(
        "random-site-steps-are-products",
        "A step of 1-Gibbs at a random site (Definition 4.1.10) is a product law given the state (largest KL).",
        "Text after Proposition 4.1.3",
        "a product distribution",
        lambda rows: _kernel(rows, "one random site", "max"),
        1e-12,
        "below",
    ),
    exact_claim(
        "two-modes-two-sites",
        "The product law closest to two equal modes of two sites is at TV sqrt(2) - 1.",
        f"{_PRODUCTS} (not in the thesis)",
        NOT_PRINTED,
        lambda rows: float(_two_modes(rows, "best_variation").get(2, math.nan)),
        math.sqrt(2) - 1,
        "equal",
        margin=1e-6,
    ),
    exact_claim(
        "two-modes-total-correlation",
        "The product law closest in KL to two equal modes of N sites is (N - 1) ln 2 nats away (largest error).",
        f"{_PRODUCTS} (not in the thesis)",
        NOT_PRINTED,
        _total_correlation,
        1e-9,
        "below",
    ),
    exact_claim(
        "no-network-beats-products",
        "No trained network is closer to the step of k-Gibbs than the best product law, in KL (smallest excess, nats).",
        _PRODUCTS,
        "not below 0",
        lambda rows: float((networks(rows).divergence - networks(rows).best_divergence).min()),
        ROUNDING,
        "above",
    ),
    TRAININGS.claim(
        "networks-reach-the-best-product",
        "A transformer trained on steps of k-Gibbs comes within 0.01 nats of the best product law (largest excess KL "
        "over sizes).",
        f"{_PRODUCTS} (not in the thesis)",
        NOT_PRINTED,
        _network(lambda rows: rows.divergence - rows.best_divergence),
        0.01,
        "below",
    ),
    TRAININGS.claim(
        "networks-are-far-in-variation",
        "On cliques of every size it ends up more than 0.05 further in TV than the best product law (least excess).",
        f"{_PRODUCTS} (not in the thesis)",
        NOT_PRINTED,
        _network(lambda rows: rows.variation - rows.best_variation, how="min"),
        0.05,
        "above",
    ),
    TRAININGS.claim(
        "networks-can-imitate-products",
        "The same transformer trained on steps of independent parallel updates comes within 0.01 nats of them (KL).",
        f"{_PRODUCTS} (control not in the thesis)",
        NOT_PRINTED,
        _network(lambda rows: rows.divergence, PARALLEL),
        0.01,
        "below",
    ),
    TRAININGS.claim(
        "networks-lose-the-modes",
        "Repeating the step learned from k-Gibbs on the largest clique leads further than TV 0.5 from the model.",
        f"{_PRODUCTS} (not in the thesis)",
        "k-Gibbs leads to 0",
        _network(lambda rows: rows.limit_variation, largest=True),
        0.5,
        "above",
    ),
)
