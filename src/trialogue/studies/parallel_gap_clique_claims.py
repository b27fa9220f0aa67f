"""Claims of the study `parallel-gap` about cliques: Propositions 4.1.4 and 4.1.5, Corollary 4.1.1."""

from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.parallel_gap_pilot import DRAWS, ROUNDING
from trialogue.studies.parallel_gap_rows import CORRECTED, GIBBS, PARALLEL, STATED
from trialogue.studies.rows import by_seed, kind

_HITTING = "Proposition 4.1.4"
_STUCK = "Proposition 4.1.5"
_COROLLARY = "Corollary 4.1.1"


def _least(name: str, values: Callable[[DataFrame], "Series[float]"]) -> Callable[[DataFrame], float]:
    """The smallest value over the rows of a kind."""
    return lambda rows: float(values(kind(rows, name)).min())


def _stuck_margin(assumption: str) -> Callable[[DataFrame], float]:
    def estimate(rows: DataFrame) -> float:
        chosen = kind(rows, "stuck")
        chosen = chosen[chosen.assumption == assumption]
        return float((chosen.stuck - 1 + chosen.delta).min())

    return estimate


def _simulated(chain: str) -> Callable[[DataFrame], DataFrame]:
    def chosen(rows: DataFrame) -> DataFrame:
        found = kind(rows, "simulated")
        return found[found.chain == chain]

    return chosen


def _both(rows: DataFrame) -> "Series[float]":
    """Share of runs with both events, taken as independent, less 1 - delta; the smallest over instances."""
    index = ["instance", "seed"]
    arrives = _simulated(GIBBS)(rows).set_index(index)
    leaves = _simulated(PARALLEL)(rows).set_index(index)
    margin = arrives.reached * (1 - leaves.reached) - (1 - arrives.delta)
    return margin.groupby("seed").min()


def _leaves(rows: DataFrame) -> "Series[float]":
    chosen = _simulated(PARALLEL)(rows)
    return by_seed(chosen, chosen.reached, "max")


def _as_computed(rows: DataFrame) -> "Series[float]":
    chosen = rows[rows.kind.isin(["simulated", "simulated hitting"])]
    return by_seed(chosen, chosen.reached - chosen.exact)


def _hits(rows: DataFrame) -> "Series[float]":
    chosen = kind(rows, "simulated hitting")
    return by_seed(chosen, chosen.reached - (1 - chosen.delta), "min")


CLIQUE_CLAIMS = (
    exact_claim(
        "every-step-may-hit",
        "From every state k-Gibbs is in R_1 after a step with probability at least 1 - c_R1, with 2^|C| in it "
        "(smallest difference on a grid).",
        f"{_HITTING}, corrected",
        "not below 0",
        _least("hitting", lambda rows: rows.rate - rows.bound),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "every-step-may-hit-as-in-the-body",
        "The same with e^(2 J_0 + 2 |C| - 2), as the body prints.",
        _HITTING,
        "not below 0",
        _least("hitting", lambda rows: rows.rate - rows.bound_body),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "every-step-may-hit-as-in-the-proof",
        "The same with 2 |C| - 2, as the proof prints.",
        f"{_HITTING}, eq. (4.49)",
        "not below 0",
        _least("hitting", lambda rows: rows.rate - rows.bound_proof),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "hits-in-time",
        "From every state k-Gibbs visits R_1 within T steps with probability at least 1 - delta (smallest excess on a "
        "grid).",
        f"{_HITTING}, corrected",
        "not below 0",
        _least("hitting", lambda rows: rows.reached - (1 - rows.delta)),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "stays-stuck",
        "Started with the clique's sum at most -2, independent parallel keeps it there for T steps with probability at "
        "least 1 - delta, if |C| tanh J_0 > 2 (smallest excess on a grid).",
        f"{_STUCK}, with the missing assumption",
        "not below 0",
        _stuck_margin(CORRECTED),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "stays-stuck-as-printed",
        "The same without that assumption (smallest excess, |C| = 2 and small J_0).",
        _STUCK,
        "not below 0",
        _stuck_margin(STATED),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "one-step-arrives",
        "After one step k-Gibbs is in R_1 with probability at least 1 - delta / 2 (smallest excess over instances).",
        _COROLLARY,
        "not below 0",
        _least("one step", lambda rows: rows.arrives - (1 - rows.delta / 2)),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "parallel-stays-away",
        "Independent parallel avoids R_1 for M steps with probability at least 1 - delta / 2 (smallest excess over "
        "instances).",
        _COROLLARY,
        "not below 0",
        _least("one step", lambda rows: rows.stuck - (1 - rows.delta / 2)),
        ROUNDING,
        "above",
    ),
    exact_claim(
        "audit-of-the-constants",
        "Under Assumptions 4.1.6 and 4.1.7 c_R1 is at most delta / 2 and c_stuck at least ln(4 M / delta) (smallest "
        "excess over instances).",
        f"Proof of {_COROLLARY}",
        "not below 0",
        lambda rows: min(
            _least("one step", lambda one: one.promised - (1 - one.delta / 2))(rows),
            _least("one step", lambda one: one.stuck_exponent - one.stuck_exponent_needed)(rows),
        ),
        ROUNDING,
        "above",
    ),
    DRAWS.claim(
        "one-step-against-many-simulated",
        "Simulated, one step of k-Gibbs arrives and M steps of independent parallel do not, with probability above "
        "1 - delta (smallest excess over instances).",
        _COROLLARY,
        "not below 0",
        _both,
        0.0,
        "above",
    ),
    DRAWS.claim(
        "parallel-stays-away-simulated",
        "Simulated, independent parallel visits R_1 within M steps in less than 1 % of the runs (largest share over "
        "instances).",
        _COROLLARY,
        "at most delta / 2",
        _leaves,
        0.01,
        "below",
    ),
    DRAWS.claim(
        "hits-in-time-simulated",
        "Simulated, k-Gibbs visits R_1 within T steps with probability above 1 - delta (smallest excess).",
        f"{_HITTING}, corrected",
        "not below 0",
        _hits,
        0.0,
        "above",
    ),
    DRAWS.claim(
        "simulated-as-computed",
        "Simulated shares are the exact probabilities within 0.01 (mean difference over instances).",
        f"{_HITTING} and {_STUCK} (control not in the thesis)",
        NOT_PRINTED,
        _as_computed,
        0.0,
        "equal",
        margin=0.01,
    ),
)
