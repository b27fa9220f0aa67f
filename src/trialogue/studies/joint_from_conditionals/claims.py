"""Claims of the study, and the quantities that texts quote."""

import math

from trialogue.ledger import NOT_PRINTED, Claim
from trialogue.ledger.claims.extremes import largest, smallest
from trialogue.studies.joint_from_conditionals.quantities import least_looseness, within

_THEOREM = "Theorem 4.1.4"
_CHI, _KL = "Text after Definition 4.1.5", "Text after Definition 4.1.9"
_LIKELY = "probability at least 1 - delta"
_ROUNDING = 1e-6

CLAIMS = (
    *(
        Claim(
            identity,
            f"{what} with probability at least 0.9 (share of data sets, at the sizes where it is smallest).",
            within(bound) > 0.9,
            source,
            _LIKELY,
            origin,
        )
        for identity, what, bound, source, origin in (
            (
                "the-joint-is-within-its-bound",
                "The law fitted by the stated loss is within the bound of the data's in TV, at sizes where that is "
                "below one,",
                "stated",
                _THEOREM,
                "published",
            ),
            (
                "the-joint-is-within-the-bound-of-the-proof",
                "It is within the bound with the loss of the proof, relative to the samples' own conditionals,",
                "proved",
                f"Proof of {_THEOREM}",
                "ours",
            ),
            (
                "masks-average-out",
                "At one theta the loss over samples and masks is within the bound of its mean over masks",
                "average",
                "Corollary 4.3.1",
                "published",
            ),
            (
                "masks-average-out-by-the-lemma",
                "It is within the distances of the lemma, for three splits of the risk at once,",
                "lemma",
                "Lemma 4.3.5",
                "published",
            ),
            (
                "samples-are-near-their-law",
                "The samples' own law is within the bound of the data's in TV",
                "empirical",
                "Lemma 4.3.6",
                "published",
            ),
        )
    ),
    Claim(
        "the-bound-says-something",
        "At every size that is tried the bound is below one, the largest total variation there is (largest bound over "
        "data sets).",
        largest("bound", "stated_bound_most") < 1,
        _THEOREM,
        origin="ours",
    ),
    *(
        Claim(
            f"loose-{ending}",
            f"{what} is more than {least} times what it bounds (log ratio, mean over data sets, at the sizes where it "
            "is least).",
            least_looseness(bound) > math.log(least),
            source,
            NOT_PRINTED,
            "ours",
        )
        for ending, what, bound, least, source in (
            ("theorem", "The bound with the stated loss", "stated", 10, _THEOREM),
            ("average-of-masks", "The bound on the mean over masks", "average", 10, "Corollary 4.3.1"),
        )
    ),
    Claim(
        "chi-square-decays-by-the-poincare-constant",
        "In continuous time chi^2 to the model falls by e^(-2 t / C) at least, C the Poincaré constant (largest log "
        "ratio to the bound over random models, k, starts and times).",
        largest("decay", "chi_square") < _ROUNDING,
        _CHI,
        "at most e^(-2 t / C)",
    ),
    Claim(
        "entropy-decays-by-twice-the-inverse-constant",
        "In continuous time KL to the model falls by e^(-2 t / C_AT) at least (largest log ratio to the bound, all "
        "sites in one block, where C_AT is 1).",
        largest("slow", "log_ratio + 2 * time") < _ROUNDING,
        _KL,
        "at most e^(-2 t / C_AT)",
    ),
    Claim(
        "entropy-decays-by-the-inverse-constant",
        "There it falls by e^(-t / C_AT) at least (largest log ratio to the bound).",
        largest("slow", "log_ratio + time") < _ROUNDING,
        f"{_KL}, corrected",
        "at most e^(-2 t / C_AT)",
        "ours",
    ),
    Claim(
        "entropy-decays-in-random-models",
        "In random models KL falls by e^(-t / C) at least, C a number that C_AT is certain not to exceed (largest log "
        "ratio to the bound).",
        largest("decay", "entropy") < _ROUNDING,
        f"{_KL}, corrected",
        "at most e^(-2 t / C_AT)",
        "ours",
    ),
    Claim(
        "pseudolikelihood-is-convex",
        "The weighted loss of an Ising model is convex in (J, h), whatever the data (smallest eigenvalue of its "
        "Hessian over random data, blocks, weights and parameters).",
        smallest("convexity", "smallest") > -1e-12,
        "Proposition 4.3.6",
        "convex",
    ),
)

NUMBERS = {
    "looseness of the theorem": least_looseness("stated"),
    "looseness of the corollary": least_looseness("average"),
    "largest bound": largest("bound", "stated_bound_most"),
}
