"""Claims of the study `potts-coherence` about chains: Theorem 1.1, equations 2 to 5, and the walls that are sampled."""

import math
from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.potts_coherence_chains import PERIODIC, PLANTED, SHARED, UNIFORM
from trialogue.studies.potts_coherence_pilot import DRAWS, EQUAL
from trialogue.studies.potts_coherence_rows import family
from trialogue.studies.rows import by_seed, kind

_WALLS = "Theorem 1.1"


def _several(rows: DataFrame, kind_name: str, *names: str) -> DataFrame:
    """Rows about chains of two or more patterns, of some families or of all."""
    chosen = family(rows, kind_name, *(names or (UNIFORM, PLANTED, PERIODIC, SHARED)))
    return chosen[chosen.patterns > 1]


def _one(rows: DataFrame, kind_name: str) -> DataFrame:
    chosen = kind(rows, kind_name)
    return chosen[chosen.patterns == 1]


def _excess_energy(rows: DataFrame) -> float:
    chosen = _several(rows, "length")
    return float((chosen.wall_energy - (chosen.window - 1) * chosen.max_energy).max())


def _excess_free_energy(*names: str) -> Callable[[DataFrame], float]:
    def estimate(rows: DataFrame) -> float:
        chosen = _several(rows, "length", *names)
        return float((chosen.free_energy - chosen.free_energy_bound).max())

    return estimate


def _overcounted(*names: str) -> Callable[[DataFrame], float]:
    def estimate(rows: DataFrame) -> float:
        chosen = _several(rows, "length", *names)
        return float((chosen.splices_counted / chosen.splices).max())

    return estimate


def _beyond_crossing(rows: DataFrame) -> float:
    """The smallest P(at least one wall) over lengths of at least L*."""
    index = ["family", "patterns", "window", "penalty", "max_energy", "temperature"]
    crossing = _several(rows, "chain").set_index(index).crossing_length
    chosen = _several(rows, "length").set_index(index)
    chosen = chosen[chosen.length >= crossing.reindex(chosen.index)]
    return float(chosen.wall.min())


def _coldest_crossing(rows: DataFrame) -> float:
    chosen = kind(rows, "closed form")
    coldest = (chosen.temperature / chosen.penalty).argsort()
    return abs(float(chosen.kept_at_crossing.iloc[coldest.iloc[0]]) - math.exp(-1))


def _smallest_step(column: str, along: str) -> Callable[[DataFrame], float]:
    """The smallest increase of a number of uniform patterns from one value of `along` to the next."""

    def estimate(rows: DataFrame) -> float:
        chosen = _several(rows, "length", UNIFORM)
        others = [name for name in ("patterns", "window", "temperature", "length") if name != along]
        steps = chosen.sort_values(along).groupby(others)[column].diff()
        return float(steps.min())

    return estimate


def _largest(rows: DataFrame, *columns: str) -> float:
    """The largest number in some columns of the closed form."""
    return float(kind(rows, "closed form")[list(columns)].to_numpy(dtype=float).max())


def _left_by_control(rows: DataFrame) -> float:
    chosen = _control(rows, True)
    return float(chosen[["wall", "ground_decay"]].to_numpy(dtype=float).max())


def _control(rows: DataFrame, forbidden: bool) -> DataFrame:
    chosen = rows[rows.kind == "control"]
    return chosen[chosen.forbidden.astype(bool) == forbidden]


def _as_computed(column: str) -> Callable[[DataFrame], "Series[float]"]:
    def estimate(rows: DataFrame) -> "Series[float]":
        chosen = kind(rows, "sampled")
        return by_seed(chosen, chosen[column] - chosen.wall)

    return estimate


def _through_crossing(rows: DataFrame) -> "Series[float]":
    """Rise of the share with a wall from L* / 10 to 10 L*, the smallest over chains."""
    chosen = kind(rows, "sampled")
    wide = chosen.pivot(index=["patterns", "window", "seed"], columns="place", values="gibbs")
    rise: Series[float] = (wide[2] - wide[0]).groupby("seed").min()
    return rise


def _past_crossing(rows: DataFrame) -> "Series[float]":
    chosen = kind(rows, "sampled")
    chosen = chosen[chosen.place == 2]
    return by_seed(chosen, chosen.gibbs, "min")


def _run_ratio(rows: DataFrame) -> float:
    chosen = _several(rows, "length", UNIFORM)
    longest = chosen[chosen.length == chosen.length.max()].sort_values("window")
    before = longest.groupby(["patterns", "temperature"])[["run", "windows"]].shift()
    # Runs that the chain cuts off say nothing of how long they would be.
    free = before.run < 0.5 * before.windows
    return float((longest.run / before.run)[free].min())


CHAIN_CLAIMS = (
    exact_claim(
        "walls-are-inevitable",
        "With two or more patterns the probability of no wall falls exponentially with the length at every temperature "
        "above zero, in every chain (smallest rate per site).",
        _WALLS,
        "no convergence to one pattern",
        lambda rows: _several(rows, "chain").wall_decay.min(),
        0.0,
        "above",
    ),
    exact_claim(
        "energy-of-a-wall-bounded",
        "A single wall costs at most (W - 1) E_max, in every chain (largest excess).",
        "Equation 3",
        "at most 0",
        _excess_energy,
        EQUAL,
        "below",
    ),
    exact_claim(
        "walls-counted",
        "There are (L - 1)(N - 1) sequences with a single wall, for patterns of one token each (largest ratio to the "
        "exact number).",
        "Equation 4",
        "1",
        _overcounted(UNIFORM, PLANTED),
        1 + EQUAL,
        "below",
    ),
    exact_claim(
        "walls-counted-for-any-patterns",
        "The same for patterns that share tokens.",
        "Equation 4",
        "1",
        _overcounted(PERIODIC, SHARED),
        1 + EQUAL,
        "below",
    ),
    exact_claim(
        "free-energy-bounded",
        "Equation 5 bounds the free energy of a single wall, for patterns of one token each (largest excess).",
        "Equation 5",
        "at most 0",
        _excess_free_energy(UNIFORM, PLANTED),
        EQUAL,
        "below",
    ),
    exact_claim(
        "free-energy-bounded-for-any-patterns",
        "The same for patterns that share tokens.",
        "Equation 5",
        "at most 0",
        _excess_free_energy(PERIODIC, SHARED),
        EQUAL,
        "below",
    ),
    exact_claim(
        "beyond-the-crossing-length",
        "From the crossing length L* on there is a wall with probability above one half (smallest over chains and "
        "lengths).",
        "Equation 5 solved for L",
        "likelier than not",
        _beyond_crossing,
        0.5,
        "above",
    ),
    exact_claim(
        "crossing-length-is-sharp",
        "Between nearest neighbours P(no wall) at L* tends to 1/e as T falls (difference at the coldest).",
        "Equation 5 solved for L (not in the document)",
        NOT_PRINTED,
        _coldest_crossing,
        0.001,
        "below",
    ),
    exact_claim(
        "solved-by-hand",
        "The nearest-neighbour chain has the partition function, walls and P(no wall) of independent bonds (largest "
        "difference).",
        f"{_WALLS} (control not in the document)",
        NOT_PRINTED,
        lambda rows: _largest(rows, "log_partition_error", "walls_error", "no_wall_error"),
        EQUAL,
        "below",
    ),
    exact_claim(
        "decay-solved-by-hand",
        "There P(no wall) falls by log(1 + (V - 1) e^(-J/T)) per bond (largest difference from the transfer matrix).",
        f"{_WALLS} (control not in the document)",
        NOT_PRINTED,
        lambda rows: _largest(rows, "decay_error"),
        EQUAL,
        "below",
    ),
    exact_claim(
        "hotter-has-more-walls",
        "Expected walls grow with the temperature (smallest step, uniform patterns).",
        "Equation 5",
        "entropy wins with T",
        _smallest_step("walls", "temperature"),
        0.0,
        "above",
    ),
    exact_claim(
        "more-patterns-have-more-walls",
        "Expected walls grow with the number of patterns N (smallest step, uniform patterns, same vocabulary).",
        "Equation 5",
        "log(N - 1)",
        _smallest_step("walls", "patterns"),
        0.0,
        "above",
    ),
    exact_claim(
        "wider-windows-stay-longer",
        "The first coherent run grows with the window W wherever it is shorter than the chain (smallest ratio of one "
        "window to the next).",
        "Equation 5",
        "(W - 1) E_max",
        _run_ratio,
        1.0,
        "above",
    ),
    exact_claim(
        "one-pattern-is-left-too",
        "With a single pattern there are no walls, but the probability of no excitation falls all the same (smallest "
        "rate).",
        f"{_WALLS} (control not in the document)",
        NOT_PRINTED,
        lambda rows: _one(rows, "chain").ground_decay.min(),
        0.0,
        "above",
    ),
    exact_claim(
        "one-pattern-has-no-walls",
        "With a single pattern P(at least one wall) is zero (largest).",
        f"{_WALLS} (control not in the document)",
        NOT_PRINTED,
        lambda rows: _one(rows, "length").wall.abs().max(),
        EQUAL,
        "below",
    ),
    exact_claim(
        "forbidden-windows-keep-order",
        "A deterministic model, two patterns and E_max infinite, has no wall within 10^6 tokens (probability of one).",
        "Definition 1.3, which excludes it (control not in the document)",
        NOT_PRINTED,
        _left_by_control,
        EQUAL,
        "below",
    ),
    exact_claim(
        "costly-windows-do-not",
        "The same model with E_max finite decays, up to E_max = 20 T (smallest rate).",
        _WALLS,
        "no convergence to one pattern",
        lambda rows: _control(rows, False).ground_decay.min(),
        0.0,
        "above",
    ),
    DRAWS.claim(
        "drawn-as-computed",
        "The share of exact samples with a wall is the computed one within 0.02 (mean difference).",
        f"{_WALLS} (control not in the document)",
        NOT_PRINTED,
        _as_computed("drawn"),
        0.0,
        "equal",
        margin=0.02,
    ),
    DRAWS.claim(
        "pattern-left-by-gibbs",
        "Gibbs sampling that begins in a stored pattern ends with as many walls as equilibrium has: the share of "
        "chains with one is the computed one within 0.02 (mean difference).",
        _WALLS,
        "no convergence to one pattern",
        _as_computed("gibbs"),
        0.0,
        "equal",
        margin=0.02,
    ),
    DRAWS.claim(
        "walls-appear-through-the-crossing-length",
        "From L* / 10 to 10 L* the share of Gibbs chains with a wall rises by more than one half (smallest over "
        "chains).",
        "Equation 5 solved for L",
        "rises through L*",
        _through_crossing,
        0.5,
        "above",
    ),
    DRAWS.claim(
        "ten-crossing-lengths",
        "At 10 L* more than 95 % of the Gibbs chains have a wall (smallest over chains).",
        "Equation 5 solved for L",
        "inevitable",
        _past_crossing,
        0.95,
        "above",
    ),
)
