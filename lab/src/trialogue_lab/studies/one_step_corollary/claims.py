"""Claims of the study, and the numbers that documentation pages quote."""

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.one_step_corollary.statistics import largest_error
from trialogue_lab.studies.parallel_gap.claims import ROUNDING
from trialogue_lab.studies.parallel_gap.statistics import both_events

_COROLLARY = "Corollary 4.1.1"
_NOT_BELOW = "not below 0"

CLAIMS = (
    ours(
        "one-step-against-many-on-twelve-instances",
        "Simulated, one step of k-Gibbs arrives and M steps of independent parallel do not, with probability above "
        "1 - delta (smallest excess over twelve instances of 25 to 440 spins).",
        both_events() > 0,
        f"{_COROLLARY} (counted as published in parallel-gap)",
        _NOT_BELOW,
    ),
    ours(
        "every-share-as-computed-on-twelve-instances",
        "Simulated, every share of k-Gibbs is its exact probability within 0.057, two Monte Carlo errors of 200 runs "
        "in the instance where they are largest (largest distance over instances).",
        largest_error() < 0.057,
        f"{_COROLLARY} (control not in the thesis)",
    ),
    *(
        Claim(
            f"chain-of-bounds-with-{divisor}",
            f"c_stuck is at least 2 (1 - |C|/2 + |C|^2/{divisor}) / |C|, a step of the proof (smallest excess over the "
            "instances tried).",
            smallest("one step", f"stuck_exponent - 2 * (1 - clique / 2 + clique ** 2 / {divisor}) / clique")
            > ROUNDING,
            **citation,
        )
        for divisor, citation in (
            (4, cited(f"Proof of {_COROLLARY}", _NOT_BELOW, "thesis:M-C411.proof")),
            (16, {"source": f"Proof of {_COROLLARY}, corrected", "published": _NOT_BELOW, "origin": "ours"}),
        )
    ),
    Claim(
        "decoders-make-any-map",
        "A parallel decoding transformer with weights by construction makes every random map of states, for eight "
        "greedy steps from every state (states that differ).",
        largest("decoder", "states_apart") < 0.5,
        **cited("Propositions 4.1.2 and 4.3.4", "0", "thesis:M-PD.maps"),
    ),
    Claim(
        "decoders-make-any-product",
        "With other weights it makes every random positive product kernel (largest error of a probability).",
        largest("decoder", "kernel_error") < 1e-9,
        **cited("Propositions 4.1.3 and 4.3.5", "0", "thesis:M-PD.products"),
    ),
)

NUMBERS = {
    "least chance of both events less 1 - delta": both_events(),
    "least chance to arrive in one step": smallest("one step", "arrives"),
}
