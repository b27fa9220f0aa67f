"""Claims of the study: Propositions 4.1.3 to 4.1.5 and Corollary 4.1.1, as printed and mended, and imitated steps."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.parallel_gap import statistics
from trialogue_lab.studies.parallel_gap.cliques import CORRECTED, STATED
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL
from trialogue_lab.studies.parallel_gap.transitions import PRODUCT

ROUNDING = -1e-9
"""Differences of probabilities above this count as not negative."""

_HITTING, _STUCK, _COROLLARY = "Proposition 4.1.4", "Proposition 4.1.5", "Corollary 4.1.1"
_MENDED, _PROOF = f"{_HITTING}, corrected", f"Proof of {_COROLLARY}, eq. (4.49)"
_PLACE = "The proof is that of Corollary 4.1.1. The proof of Proposition 4.1.4 has 2^|C| - 2, as corrected."
_PRODUCTS = "Propositions 4.1.3 and 4.3.5"
_network = partial(ours, source=f"{_PRODUCTS} (not in the thesis)")
_corollary = partial(Claim, source=_COROLLARY, statement_id="thesis:M-C411")
_NOT_BELOW = "not below 0"
_EVERY_STEP = "From every state k-Gibbs is in R_1 after a step with probability at least 1 - c_R1, with"

_RANDOM_SITE = largest("kernel", "divergence", where="chain == 'one random site'")
_EXCESS = statistics.network(GIBBS, "divergence - best_divergence")

CLAIMS = (
    *(
        Claim(
            f"every-step-may-hit{ending}",
            f"{_EVERY_STEP} {said} (smallest difference on a grid).",
            smallest("hitting", f"rate - {bound}") > ROUNDING,
            source,
            _NOT_BELOW,
            "published" if statement_id else "ours",
            statement_id=statement_id,
            setting=setting,
        )
        for ending, said, bound, source, statement_id, setting in (
            ("", "2^|C| in it", "bound", _MENDED, "", ""),
            (
                "-as-in-the-body",
                "e^(2 J_0 + 2 |C| - 2) in it, as the body prints",
                "bound_body",
                _HITTING,
                "thesis:M-P414",
                "",
            ),
            (
                "-as-in-the-proof",
                "2 |C| - 2 in it, as the proof prints",
                "bound_proof",
                _PROOF,
                "thesis:M-C411.proof",
                _PLACE,
            ),
        )
    ),
    ours(
        "hits-in-time",
        "From every state k-Gibbs visits R_1 within T steps with probability at least 1 - delta (smallest excess on a "
        "grid).",
        smallest("hitting", "reached - (1 - delta)") > ROUNDING,
        _MENDED,
        _NOT_BELOW,
    ),
    *(
        Claim(
            f"stays-stuck{ending}",
            "Started with the clique's sum at most -2, independent parallel keeps it there for T of one or more steps "
            f"with probability at least 1 - delta, {assumed} (smallest excess).",
            smallest("stuck", "stuck - 1 + delta", where=f"assumption == {name!r} and steps > 0") > ROUNDING,
            source,
            _NOT_BELOW,
            "ours" if mended else "published",
            statement_id="" if mended else "thesis:M-P415",
        )
        for ending, assumed, name, source, mended in (
            ("", "if |C| tanh J_0 > 2", CORRECTED, f"{_STUCK}, with the missing assumption", True),
            ("-as-printed", "also for |C| = 2 and small J_0", STATED, _STUCK, False),
        )
    ),
    *(
        _corollary(
            id,
            f"{said} with probability at least 1 - delta / 2 (smallest excess over the four instances tried).",
            smallest("one step", f"{chance} - (1 - delta / 2)") > ROUNDING,
            published=_NOT_BELOW,
        )
        for id, said, chance in (
            ("one-step-arrives", "After one step k-Gibbs is in R_1", "arrives"),
            ("parallel-stays-away", "Independent parallel avoids R_1 for M steps", "stuck"),
        )
    ),
    Claim(
        "audit-of-the-constants",
        "Under Assumptions 4.1.6 and 4.1.7 c_R1 is at most delta / 2 and c_stuck at least ln(4 M / delta) (smallest "
        "excess over the four instances tried).",
        smallest("one step", "promised - (1 - delta / 2)", "stuck_exponent - stuck_exponent_needed")
        > ROUNDING,
        **cited(f"Proof of {_COROLLARY}", _NOT_BELOW, "thesis:M-C411"),
    ),
    _corollary(
        "one-step-against-many-simulated",
        "Simulated, one step of k-Gibbs arrives and M steps of independent parallel do not, with probability above "
        "1 - delta (smallest excess over the two instances of up to 1,000 spins).",
        statistics.both_events() > 0,
        published=_NOT_BELOW,
    ),
    ours(
        "parallel-stays-away-simulated",
        "Simulated, independent parallel visits R_1 within M steps in less than 1 % of the runs (largest share over "
        "the two instances of up to 1,000 spins).",
        statistics.leaves() < 0.01,
        _COROLLARY,
        "at most delta / 2",
    ),
    ours(
        "hits-in-time-simulated",
        "Simulated, k-Gibbs visits R_1 within T steps with probability above 1 - delta (smallest excess over four "
        "models, each at two delta).",
        statistics.hits() > 0,
        _MENDED,
        _NOT_BELOW,
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
