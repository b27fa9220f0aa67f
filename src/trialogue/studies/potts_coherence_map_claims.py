"""Claims of the study `potts-coherence` about maps and about the plane: Theorems 1.2 and 2.1, Corollary 1.2.1."""

import math
from collections.abc import Callable

from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.potts_coherence_pilot import DRAWS, EQUAL, LAW
from trialogue.studies.potts_coherence_plane import PLANE, RING
from trialogue.studies.potts_coherence_rows import spins
from trialogue.studies.rows import by_seed, kind

_WALLS = "Theorem 1.1"
_MAP = "Theorem 1.2"
_PLANE = "Theorem 2.1"


def _most(column: str) -> Callable[[DataFrame], float]:
    return lambda rows: float(kind(rows, "map")[column].max())


def _largest_distance(rows: DataFrame, prefix: str) -> float:
    return float(kind(rows, "map").filter(like=prefix).to_numpy(dtype=float).max())


def _temperature_of_tokens(rows: DataFrame) -> float:
    return _largest_distance(rows, "per_step_")


def _from_onsager(rows: DataFrame) -> "Series[float]":
    chosen = spins(rows, PLANE, most=2.0)
    return by_seed(chosen, (chosen.magnetisation - chosen.onsager).abs(), "max")


def _left(shape: str, least: float, most: float = math.inf) -> Callable[[DataFrame], "Series[float]"]:
    """The largest magnetisation that is left, on the largest torus or ring."""

    def estimate(rows: DataFrame) -> "Series[float]":
        chosen = spins(rows, shape, least, most)
        return by_seed(chosen, chosen.magnetisation.abs(), "max")

    return estimate


def _with_size(rows: DataFrame) -> "Series[float]":
    """How much magnetisation changes from the smallest to the largest torus, at most over T up to 1.8."""
    chosen = kind(rows, "spins")
    chosen = chosen[(chosen["shape"] == PLANE) & (chosen.temperature <= 1.8)]
    wide = chosen.pivot(index=["seed", "temperature"], columns="side", values="magnetisation")
    change: Series[float] = (wide.iloc[:, -1] - wide.iloc[:, 0]).abs().groupby("seed").max()
    return change


MAP_CLAIMS = (
    exact_claim(
        "hamiltonian-of-a-model",
        "With one constant for all contexts the Boltzmann law of the Hamiltonian is the model's own (largest total "
        "variation).",
        f"{_MAP}, equations 9 and 10",
        "0",
        _most("global"),
        LAW,
        "below",
    ),
    exact_claim(
        "there-and-back",
        "The exact next-token oracle of that law is the model (largest total variation).",
        f"{_MAP} (not in the document)",
        NOT_PRINTED,
        _most("round_trip"),
        LAW,
        "below",
    ),
    exact_claim(
        "constant-of-every-context",
        "The same with the constant set as the text says, so that the lowest state of every prediction has energy 0.",
        f"{_MAP}, text after equation 8",
        "0",
        _most("per_context"),
        LAW,
        "below",
    ),
    exact_claim(
        "temperature-of-every-token",
        "Generating with every token at temperature T is sampling from equation 10 at T (largest total variation, T = "
        "0.5 and 2).",
        f"{_MAP}, equation 10",
        "0",
        _temperature_of_tokens,
        LAW,
        "below",
    ),
    exact_claim(
        "temperature-of-the-chain",
        "The exact oracle of the chain at T is (largest total variation).",
        f"{_MAP}, equation 10 (not in the document)",
        NOT_PRINTED,
        lambda rows: _largest_distance(rows, "exact_"),
        LAW,
        "below",
    ),
    exact_claim(
        "models-store-several-patterns",
        "A random model with a window stores more than one pattern, as the corollary needs (smallest number, phases "
        "counted).",
        "Corollary 1.2.1",
        "N > 1",
        lambda rows: kind(rows, "map").patterns.min(),
        1.5,
        "above",
    ),
    exact_claim(
        "models-leave-their-patterns",
        "The probability of following a greedy pattern falls exponentially in every random model (smallest rate).",
        "Corollary 1.2.1",
        "incapable of infinite coherent output",
        lambda rows: kind(rows, "map").decay.min(),
        0.0,
        "above",
    ),
    exact_claim(
        "order-up-to-peierls",
        "The plane is ordered at T = E_min / log 3 with E_min = 2 J: Onsager's magnetisation there is above zero.",
        _PLANE,
        "ordered",
        lambda rows: kind(rows, "order").magnetisation.iloc[0],
        0.0,
        "above",
    ),
    exact_claim(
        "peierls-bounds-onsager",
        "The bound of Peierls' argument lies below Onsager's magnetisation at every temperature (smallest slack).",
        f"Proof of {_PLANE}",
        "not below 0",
        lambda rows: (kind(rows, "onsager").magnetisation - kind(rows, "onsager").bound).min(),
        -EQUAL,
        "above",
    ),
    DRAWS.claim(
        "order-survives-in-the-plane",
        "From all spins up the plane keeps Onsager's magnetisation within 0.02 at T up to 2.0 J (largest difference).",
        _PLANE,
        "converges to one pattern",
        _from_onsager,
        0.02,
        "below",
    ),
    DRAWS.claim(
        "order-does-not-shrink-with-size",
        "Below T = 1.8 J the magnetisation of the largest torus is that of the smallest within 0.01 (largest "
        "difference).",
        _PLANE,
        "does not depend on the size",
        _with_size,
        0.01,
        "below",
    ),
    DRAWS.claim(
        "order-is-lost-above",
        "At T of 2.6 J and more the plane loses its order (largest magnetisation below 0.05).",
        f"{_PLANE}, beyond T_c",
        "only below T_c",
        _left(PLANE, 2.6),
        0.05,
        "below",
    ),
    DRAWS.claim(
        "the-ring-loses-order-where-the-plane-keeps-it",
        "As many spins on a ring lose their order at every temperature tried (largest magnetisation below 0.05).",
        _WALLS,
        "no convergence to one pattern",
        _left(RING, 0.0),
        0.05,
        "below",
    ),
)
