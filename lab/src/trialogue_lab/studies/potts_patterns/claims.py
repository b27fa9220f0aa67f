"""Claims of the study, and the numbers for documents."""

from trialogue_lab.ledger import Claim, ours
from trialogue_lab.studies.potts_coherence.chain_claims import EQUAL, WALLS
from trialogue_lab.studies.potts_patterns import statistics

_PLANE = "Theorem 2.1"
_TORUS = (
    "A finite torus after a finite number of sweeps (16 x 16 spins and 300 sweeps at `default`) replaces the infinite "
    "plane in equilibrium. Every pattern has one token."
)

CLAIMS = (
    ours(
        "no-wall-is-a-constant-in-the-cold",
        "At a fixed length P(no wall) tends to a constant as T falls to zero, in every chain (largest change from a "
        "32nd to a 64th of the least energy, the longest chains).",
        statistics.cold_change() < EQUAL,
        f"{WALLS} (control: the document lets the length grow)",
    ),
    ours(
        "the-constant-counts-what-costs-nothing",
        "The constant is the share of the sequences of energy zero that have no wall (largest difference, eight "
        "tokens, all sequences listed).",
        statistics.cold_error() < EQUAL,
        f"{WALLS} (control: the document lets the length grow)",
    ),
    ours(
        "texts-leave-as-computed",
        "Texts of random bigram and trigram models that begin on a greedy pattern leave it at the rate of the greedy "
        "map, within 5 % (ratio, mean over models).",
        statistics.decay_ratio().as_ratio().near(1, margin=0.05),
        "Corollary 1.2.1 (control not in the document)",
    ),
    Claim(
        "a-temperature-keeps-one-of-many-patterns",
        "There is a temperature at which the plane keeps one of N patterns, for N = 2, 3, 4 and 10: from that pattern "
        "everywhere at T = 0.5 J (smallest order over N).",
        statistics.order_of_colours(10, hottest=0.5) > 0,
        _PLANE,
        "below T_c it converges to one pattern, for any N > 1",
        statement_id="potts:Theorem-2.1",
        setting=_TORUS,
    ),
    ours(
        "the-plane-keeps-one-of-many-patterns",
        "From one of N = 2, 3, 4 or 10 patterns everywhere the plane keeps it at every temperature tried up to "
        "E_min / log 3 = 0.91 J (smallest order, above 0.1).",
        statistics.order_of_colours(10) > 0.1,
        f"Proof of {_PLANE}",
        "ordered for T <= E_min / log 3",
    ),
    ours(
        "the-plane-keeps-one-of-few-patterns",
        "With up to 4 patterns, whose T_c is not below E_min / log 3, it does (smallest order).",
        statistics.order_of_colours(4) > 0.1,
        f"Proof of {_PLANE}",
        "ordered for T <= E_min / log 3",
    ),
    ours(
        "ten-patterns-are-lost-below-the-bound",
        "With 10 patterns order is lost above T_c = 1 / log(1 + sqrt 10) = 0.70 J and below E_min / log 3 (largest "
        "order, below 0.1).",
        statistics.order_of_colours(10, least=10, above_critical=True) < 0.1,
        f"{_PLANE}, whose proof omits the factor N - 1 of its count",
        "does not depend on the number of patterns",
    ),
)

NUMBERS = {
    "order of ten patterns at 0.82": statistics.order_at(10, 0.82),
    "order of four patterns at 0.82": statistics.order_at(4, 0.82),
    "measured over exact decay": statistics.decay_ratio(),
}
