"""Claims of the study about chains, maps (Theorem 1.2, Corollary 1.2.1) and the plane (Theorem 2.1)."""

from functools import partial

from trialogue_lab.ledger import RESOLVED, Claim, cited, largest, ours, smallest
from trialogue_lab.studies.potts_coherence import statistics
from trialogue_lab.studies.potts_coherence.chain_claims import CHAIN_CLAIMS, EQUAL, WALLS
from trialogue_lab.studies.potts_coherence.plane import PLANE, RING

EQUAL_DISTRIBUTIONS = 1e-12
"""Total variation between equal distributions that is due to rounding."""

_MAP, _PLANE = "Theorem 1.2", "Theorem 2.1"
_TORUS = (
    "A finite torus after a finite number of sweeps (32 x 32 spins and 500 sweeps at `default`) represents the "
    "infinite plane in equilibrium."
)
_map = partial(ours, source=f"{_MAP}, equations 7 and 10 (the document sets T = 1)")
_plane = partial(ours, source=_PLANE, published="converges to one pattern")

CLAIMS = (
    *CHAIN_CLAIMS,
    Claim(
        "hamiltonian-of-a-model",
        "With one constant for all contexts the Boltzmann law of the Hamiltonian is the model's own (largest total "
        "variation).",
        largest("map", "global") < EQUAL_DISTRIBUTIONS,
        **cited(f"{_MAP}, equations 9 and 10", "0", "potts:S0-T1.2"),
    ),
    _map(
        "there-and-back",
        "The exact next-token oracle of that law is the model (largest total variation).",
        largest("map", "round_trip") < EQUAL_DISTRIBUTIONS,
    ),
    Claim(
        "constant-of-every-context",
        "The same with the constant set as the text says, so that the lowest state of every prediction has energy 0.",
        largest("map", "per_context") < EQUAL_DISTRIBUTIONS,
        **cited(f"{_MAP}, text after equation 8", "0", "potts:S0-T1.2.constant"),
    ),
    _map(
        "temperature-of-every-token",
        "Generating with every token at temperature T is sampling from equation 10 at T (largest total variation, T = "
        "0.5 and 2).",
        largest("map", "per_step_0.5", "per_step_2") < EQUAL_DISTRIBUTIONS,
    ),
    _map(
        "temperature-of-the-chain",
        "The exact oracle of the chain at T is (largest total variation).",
        largest("map", "exact_0.5", "exact_2") < EQUAL_DISTRIBUTIONS,
    ),
    Claim(
        "models-store-several-patterns",
        "A random model with a window stores more than one pattern, as the corollary needs (smallest number, phases "
        "counted).",
        smallest("map", "patterns") > 1.5,
        **cited("Corollary 1.2.1", "N > 1", "potts:S0-C1.2.1.premise"),
    ),
    Claim(
        "models-leave-their-patterns",
        "The probability of following a greedy pattern falls exponentially in every random model tried (smallest "
        "rate, above what rounding leaves).",
        smallest("map", "decay") > RESOLVED,
        **cited("Corollary 1.2.1", "incapable of infinite coherent output", "potts:S0-C1.2.1"),
    ),
    Claim(
        "peierls-bounds-onsager",
        "The bound of Peierls' argument lies below Onsager's magnetisation at every temperature (smallest slack).",
        smallest("onsager", "magnetisation - bound") > -EQUAL,
        **cited(f"Proof of {_PLANE}", "not below 0", "potts:Theorem-2.1"),
    ),
    Claim(
        "plane-keeps-its-pattern",
        "From all spins up the plane keeps a magnetisation at every temperature tried up to E_min / log 3 = 1.82 J "
        "(the smallest, at T = 0.8 to 1.8 J).",
        statistics.smallest_order(PLANE, most=1.8) > 0,
        **cited(_PLANE, "converges to one pattern", "potts:Theorem-2.1", setting=_TORUS),
    ),
    _plane(
        "order-survives-in-the-plane",
        "From all spins up the plane keeps Onsager's magnetisation within 0.02 at T up to 2.0 J (largest difference).",
        statistics.off_infinite(PLANE, most=2.0) < 0.02,
    ),
    _plane(
        "order-does-not-shrink-with-size",
        "Below T = 1.8 J the magnetisation of the largest torus is that of the smallest within 0.01 (largest "
        "difference).",
        statistics.change_with_size(PLANE, most=1.8) < 0.01,
    ),
    _plane(
        "order-is-lost-above",
        "At T of 2.6 J and more the plane loses its order (largest magnetisation below 0.05).",
        statistics.off_infinite(PLANE, least=2.6) < 0.05,
    ),
    ours(
        "the-ring-loses-order-where-the-plane-keeps-it",
        "As many spins on a ring lose their order at every temperature tried (0.8 to 3.2 J; largest magnetisation "
        "below 0.05).",
        statistics.off_infinite(RING) < 0.05,
        WALLS,
        "no convergence to one pattern",
    ),
)

NUMBERS = {
    "largest distance with one constant per context": largest("map", "per_context"),
    "largest distance with every token at a temperature": largest("map", "per_step_0.5", "per_step_2"),
    "smallest probability of a wall from L* on": statistics.wall_likelihood_from_crossing(),
    "critical temperature": smallest("order", "critical"),
    "temperature of Peierls' argument": smallest("order", "peierls"),
}
