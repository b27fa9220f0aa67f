"""Claims of the study: of chains, of maps (Theorem 1.2, Corollary 1.2.1) and of the plane (Theorem 2.1)."""

from trialogue.ledger import Claim
from trialogue.ledger.claims.extremes import RESOLVED, largest, smallest
from trialogue.studies.potts_coherence import quantities
from trialogue.studies.potts_coherence.chain_claims import CHAIN_CLAIMS, EQUAL, WALLS
from trialogue.studies.potts_coherence.plane import PLANE, RING

SAME_LAW = 1e-12
"""Total variation of laws that are the same but for rounding."""

_MAP, _PLANE = "Theorem 1.2", "Theorem 2.1"

MAP_CLAIMS = (
    Claim(
        "hamiltonian-of-a-model",
        "With one constant for all contexts the Boltzmann law of the Hamiltonian is the model's own (largest total "
        "variation).",
        largest("map", "global") < SAME_LAW,
        f"{_MAP}, equations 9 and 10",
        "0",
    ),
    Claim(
        "there-and-back",
        "The exact next-token oracle of that law is the model (largest total variation).",
        largest("map", "round_trip") < SAME_LAW,
        f"{_MAP} (not in the document)",
        origin="ours",
    ),
    Claim(
        "constant-of-every-context",
        "The same with the constant set as the text says, so that the lowest state of every prediction has energy 0.",
        largest("map", "per_context") < SAME_LAW,
        f"{_MAP}, text after equation 8",
        "0",
    ),
    Claim(
        "temperature-of-every-token",
        "Generating with every token at temperature T is sampling from equation 10 at T (largest total variation, T = "
        "0.5 and 2).",
        largest("map", "per_step_0.5", "per_step_2") < SAME_LAW,
        f"{_MAP}, equations 7 and 10",
        "0",
    ),
    Claim(
        "temperature-of-the-chain",
        "The exact oracle of the chain at T is (largest total variation).",
        largest("map", "exact_0.5", "exact_2") < SAME_LAW,
        f"{_MAP}, equation 10 (not in the document)",
        origin="ours",
    ),
    Claim(
        "models-store-several-patterns",
        "A random model with a window stores more than one pattern, as the corollary needs (smallest number, phases "
        "counted).",
        smallest("map", "patterns") > 1.5,
        "Corollary 1.2.1",
        "N > 1",
    ),
    Claim(
        "models-leave-their-patterns",
        "The probability of following a greedy pattern falls exponentially in every random model tried (smallest "
        "rate, above what rounding leaves).",
        smallest("map", "decay") > RESOLVED,
        "Corollary 1.2.1",
        "incapable of infinite coherent output",
    ),
)

PLANE_CLAIMS = (
    Claim(
        "peierls-bounds-onsager",
        "The bound of Peierls' argument lies below Onsager's magnetisation at every temperature (smallest slack).",
        smallest("onsager", "magnetisation - bound") > -EQUAL,
        f"Proof of {_PLANE}",
        "not below 0",
    ),
    Claim(
        "plane-keeps-its-pattern",
        "From all spins up the plane keeps a magnetisation at every temperature tried up to E_min / log 3 = 1.82 J "
        "(the smallest, at T = 0.8 to 1.8 J).",
        quantities.smallest_order(PLANE, most=1.8) > 0,
        _PLANE,
        "converges to one pattern",
    ),
    Claim(
        "order-survives-in-the-plane",
        "From all spins up the plane keeps Onsager's magnetisation within 0.02 at T up to 2.0 J (largest difference).",
        quantities.off_infinite(PLANE, most=2.0) < 0.02,
        _PLANE,
        "converges to one pattern",
        "ours",
    ),
    Claim(
        "order-does-not-shrink-with-size",
        "Below T = 1.8 J the magnetisation of the largest torus is that of the smallest within 0.01 (largest "
        "difference).",
        quantities.change_with_size(PLANE, most=1.8) < 0.01,
        _PLANE,
        "does not depend on the size",
        "ours",
    ),
    Claim(
        "order-is-lost-above",
        "At T of 2.6 J and more the plane loses its order (largest magnetisation below 0.05).",
        quantities.off_infinite(PLANE, least=2.6) < 0.05,
        f"{_PLANE}, beyond T_c",
        "only below T_c",
        "ours",
    ),
    Claim(
        "the-ring-loses-order-where-the-plane-keeps-it",
        "As many spins on a ring lose their order at every temperature tried (0.8 to 3.2 J; largest magnetisation "
        "below 0.05).",
        quantities.off_infinite(RING) < 0.05,
        WALLS,
        "no convergence to one pattern",
        "ours",
    ),
)

COLD_CLAIMS = (
    Claim(
        "no-wall-is-a-constant-in-the-cold",
        "At a fixed length P(no wall) tends to a constant as T falls to zero, in every chain (largest change from a "
        "32nd to a 64th of the least energy, the longest chains).",
        quantities.cold_change() < EQUAL,
        f"{WALLS} (not in the document, which lets the length grow)",
        origin="ours",
    ),
    Claim(
        "the-constant-counts-what-costs-nothing",
        "The constant is the share of the sequences of energy zero that have no wall (largest difference, eight "
        "tokens, all sequences listed).",
        quantities.cold_error() < EQUAL,
        f"{WALLS} (not in the document, which lets the length grow)",
        origin="ours",
    ),
)

TEXT_CLAIMS = (
    Claim(
        "texts-leave-their-patterns",
        "Texts of random bigram and trigram models that begin on a greedy pattern go on leaving it: fewer follow it "
        "after twice the time (least share that leaves in the second half, over models).",
        quantities.least_leaving() > 0,
        "Corollary 1.2.1",
        "incapable of infinite coherent output",
    ),
    Claim(
        "texts-leave-as-computed",
        "They leave at the rate of the greedy map, within 5 % (ratio, mean over models).",
        quantities.decay_ratio().as_ratio().near(1, margin=0.05),
        "Corollary 1.2.1 (control not in the document)",
        origin="ours",
    ),
)

COLOUR_CLAIMS = (
    Claim(
        "the-plane-keeps-one-of-many-patterns",
        "From one of N = 2, 3, 4 or 10 patterns everywhere the plane keeps it at every temperature tried up to "
        "E_min / log 3 = 0.91 J (smallest order, above 0.1).",
        quantities.order_of_colours(10) > 0.1,
        _PLANE,
        "converges to one pattern, for any N > 1",
        grade=True,
    ),
    Claim(
        "the-plane-keeps-one-of-few-patterns",
        "With up to 4 patterns, whose T_c is not below E_min / log 3, it does (smallest order).",
        quantities.order_of_colours(4) > 0.1,
        _PLANE,
        "converges to one pattern, for any N > 1",
        "ours",
    ),
    Claim(
        "ten-patterns-are-lost-below-the-bound",
        "With 10 patterns order is lost above T_c = 1 / log(1 + sqrt 10) = 0.70 J and below E_min / log 3 (largest "
        "order, below 0.1).",
        quantities.order_of_colours(10, least=10, above_critical=True) < 0.1,
        f"{_PLANE}, whose proof leaves out the N - 1 of its own count",
        "does not depend on the number of patterns",
        "ours",
    ),
)

CLAIMS = (*CHAIN_CLAIMS, *COLD_CLAIMS, *MAP_CLAIMS, *TEXT_CLAIMS, *PLANE_CLAIMS, *COLOUR_CLAIMS)

NUMBERS = {
    "largest distance with one constant per context": largest("map", "per_context"),
    "largest distance with every token at a temperature": largest("map", "per_step_0.5", "per_step_2"),
    "smallest probability of a wall from L* on": quantities.wall_likelihood_from_crossing(),
    "critical temperature": smallest("order", "critical"),
    "temperature of Peierls' argument": smallest("order", "peierls"),
}
