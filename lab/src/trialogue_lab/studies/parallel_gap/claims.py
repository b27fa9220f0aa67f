"""Claims of the study: Propositions 4.1.3 to 4.1.5 and Corollary 4.1.1, printed and corrected, and imitated steps."""

from functools import partial

from trialogue_lab.ledger import Claim, Criterion, cited, largest, ours, smallest
from trialogue_lab.studies.parallel_gap import statistics
from trialogue_lab.studies.parallel_gap.cliques import CORRECTED, STATED
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.studies.parallel_gap.transitions import PRODUCT

ROUNDING = -1e-9
"""Differences of probabilities above this count as not negative."""

_HITTING, _STUCK, _COROLLARY = "Proposition 4.1.4", "Proposition 4.1.5", "Corollary 4.1.1"
_CORRECTED = f"{_HITTING}, corrected"
_PRODUCTS = "Propositions 4.1.3 and 4.3.5"
_NOT_BELOW = "not below 0"
_network = partial(ours, source=f"{_PRODUCTS} (not in the thesis)")
_corollary = partial(Claim, source=_COROLLARY, published=_NOT_BELOW, statement_id="thesis:M-C411")
_bound = partial(ours, source=_CORRECTED, published=_NOT_BELOW)
_EVERY_STEP = "From every state k-Gibbs is in R_1 after a step with probability at least 1 - c_R1, with"
_OTHER_PROOF = (
    "The proof of Corollary 4.1.1 is tested. The proof of Proposition 4.1.4 has 2^|C| - 2, as corrected."
)
_STAYS = (
    "Started with the clique's sum at most -2, independent parallel keeps it there for T of one or more steps with "
    "probability at least 1 - delta,"
)

_RANDOM_SITE = largest("kernel", "divergence", where="chain == 'one random site'")
_EXCESS = statistics.network(GIBBS, "divergence - best_divergence")


def _make_stuck_criterion(assumption: str) -> Criterion:
    where = f"assumption == {assumption!r} and steps > 0"
    return smallest("stuck", "stuck - 1 + delta", where=where) > ROUNDING


CLAIMS = (
    _bound(
        "every-step-may-hit",
        f"{_EVERY_STEP} 2^|C| in it (smallest difference on a grid).",
        smallest("hitting", "rate - bound") > ROUNDING,
    ),
    Claim(
        "every-step-may-hit-as-in-the-body",
        f"{_EVERY_STEP} e^(2 J_0 + 2 |C| - 2) in it, as the body prints (smallest difference on a grid).",
        smallest("hitting", "rate - bound_body") > ROUNDING,
        **cited(_HITTING, _NOT_BELOW, "thesis:M-P414"),
    ),
    Claim(
        "every-step-may-hit-as-in-the-proof",
        f"{_EVERY_STEP} 2 |C| - 2 in it, as the proof prints (smallest difference on a grid).",
        smallest("hitting", "rate - bound_proof") > ROUNDING,
        **cited(
            f"Proof of {_COROLLARY}, eq. (4.49)", _NOT_BELOW, "thesis:M-C411.proof", setting=_OTHER_PROOF
        ),
    ),
    _bound(
        "hits-in-time",
        "From every state k-Gibbs visits R_1 within T steps with probability at least 1 - delta (smallest excess on a "
        "grid).",
        smallest("hitting", "reached - (1 - delta)") > ROUNDING,
    ),
    _bound(
        "stays-stuck",
        f"{_STAYS} if |C| tanh J_0 > 2 (smallest excess).",
        _make_stuck_criterion(CORRECTED),
        source=f"{_STUCK}, with the missing assumption",
    ),
    Claim(
        "stays-stuck-as-printed",
        f"{_STAYS} also for |C| = 2 and small J_0 (smallest excess).",
        _make_stuck_criterion(STATED),
        **cited(_STUCK, _NOT_BELOW, "thesis:M-P415"),
    ),
    _corollary(
        "one-step-arrives",
        "After one step k-Gibbs is in R_1 with probability at least 1 - delta / 2 (smallest excess over the four "
        "instances tried).",
        smallest("one step", "arrives - (1 - delta / 2)") > ROUNDING,
    ),
    _corollary(
        "parallel-stays-away",
        "Independent parallel avoids R_1 for M steps with probability at least 1 - delta / 2 (smallest excess over the "
        "four instances tried).",
        smallest("one step", "stuck - (1 - delta / 2)") > ROUNDING,
    ),
    _corollary(
        "audit-of-the-constants",
        "Under Assumptions 4.1.6 and 4.1.7 c_R1 is at most delta / 2 and c_stuck at least ln(4 M / delta) (smallest "
        "excess over the four instances tried).",
        smallest("one step", "promised - (1 - delta / 2)", "stuck_exponent - stuck_exponent_needed")
        > ROUNDING,
        source=f"Proof of {_COROLLARY}",
    ),
    _corollary(
        "one-step-against-many-simulated",
        "Simulated, one step of k-Gibbs arrives and M steps of independent parallel do not, with probability above "
        "1 - delta (smallest excess over the two instances of up to 1,000 spins).",
        statistics.both_events() > 0,
    ),
    ours(
        "parallel-stays-away-simulated",
        "Simulated, independent parallel visits R_1 within M steps in less than 1 % of the runs (largest share over "
        "the two instances of up to 1,000 spins).",
        statistics.leaves() < 0.01,
        _COROLLARY,
        "at most delta / 2",
    ),
    _bound(
        "hits-in-time-simulated",
        "Simulated, k-Gibbs visits R_1 within T steps with probability above 1 - delta (smallest excess over four "
        "models, each at two delta).",
        statistics.hits() > 0,
    ),
    ours(
        "simulated-as-computed",
        "Simulated shares are the exact probabilities within 0.01 (mean difference over instances).",
        statistics.simulation_error().near(0, margin=0.01),
        f"{_HITTING} and {_STUCK} (control not in the thesis)",
    ),
    Claim(
        "random-site-steps-are-products",
        "A step of 1-Gibbs at a random site (Definition 4.1.10) is a product law given the state (largest KL).",
        _RANDOM_SITE < PRODUCT,
        **cited("Text after Proposition 4.1.3", "a product distribution", "thesis:M-PD.steps"),
    ),
    _network(
        "networks-reach-the-best-product",
        "A transformer trained on steps of k-Gibbs comes within 0.01 nats of the best product law (largest excess KL "
        "over sizes).",
        _EXCESS < 0.01,
    ),
    _network(
        "networks-are-far-in-variation",
        "On cliques of every size it ends up more than 0.05 further in TV than the best product law (least excess).",
        statistics.network(GIBBS, "variation - best_variation", how="min") > 0.05,
    ),
    ours(
        "networks-can-imitate-products",
        "The same transformer trained on steps of independent parallel updates comes within 0.01 nats of them (KL).",
        statistics.network(PARALLEL, "divergence") < 0.01,
        f"{_PRODUCTS} (control not in the thesis)",
    ),
    _network(
        "networks-lose-the-modes",
        "Repeating the step learned from k-Gibbs on the largest clique leads to a law that is further than TV 0.5 from "
        "the model.",
        statistics.long_run_variation() > 0.5,
        published="k-Gibbs leads to 0",
    ),
)

NUMBERS = {
    "excess over the best product": _EXCESS,
    "divergence from the step": statistics.network(GIBBS, "divergence"),
    "variation in the long run": statistics.long_run_variation(),
    "random site from products": _RANDOM_SITE,
    "least chance to arrive in one step": smallest("one step", "arrives"),
    "shortfall of the printed bound": smallest("hitting", "rate - bound_proof"),
}
