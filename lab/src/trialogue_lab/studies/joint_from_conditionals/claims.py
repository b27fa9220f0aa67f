"""Claims of the study, and the numbers that documentation pages quote."""

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.joint_from_conditionals.statistics import decades_of_masks, least_looseness, within

_CHI, _KL = "Text after Definition 4.1.5", "Text after Definition 4.1.9"
_ROUNDING = 1e-6

CLAIMS = (
    Claim(
        "samples-are-near-their-law",
        "The samples' own law is within the bound of the data's in TV with probability at least 0.9 (share of data "
        "sets, at the sizes where it is smallest).",
        within("empirical") > 0.9,
        **cited("Lemma 4.3.6", "probability at least 1 - delta", "thesis:M-T414.L436"),
    ),
    Claim(
        "chi-square-decays-by-the-poincare-constant",
        "In continuous time chi^2 to the model falls by e^(-2 t / C) at least, C the Poincaré constant (largest log "
        "ratio to the bound over random models, k, starts and times).",
        largest("decay", "chi_square") < _ROUNDING,
        **cited(_CHI, "at most e^(-2 t / C)", "thesis:M-D414"),
    ),
    Claim(
        "entropy-decays-by-twice-the-inverse-constant",
        "In continuous time KL to the model falls by e^(-2 t / C_AT) at least (largest log ratio to the bound, all "
        "sites in one block, where C_AT is 1).",
        largest("slow", "log_ratio + 2 * time") < _ROUNDING,
        **cited(_KL, "at most e^(-2 t / C_AT)", "thesis:M-D419"),
    ),
    ours(
        "entropy-decays-by-the-inverse-constant",
        "There it falls by e^(-t / C_AT) at least (largest log ratio to the bound).",
        largest("slow", "log_ratio + time") < _ROUNDING,
        f"{_KL}, corrected",
        "at most e^(-2 t / C_AT)",
    ),
    ours(
        "entropy-decays-in-random-models",
        "In random models KL falls by e^(-t / C) at least, C a number that C_AT is certain not to exceed (largest log "
        "ratio to the bound).",
        largest("decay", "entropy") < _ROUNDING,
        f"{_KL}, corrected",
        "at most e^(-2 t / C_AT)",
    ),
    Claim(
        "pseudolikelihood-is-convex",
        "The weighted loss of an Ising model is convex in (J, h), whatever the data (smallest eigenvalue of its "
        "Hessian over random data, blocks, weights and parameters).",
        smallest("convexity", "smallest") > -1e-12,
        **cited("Proposition 4.3.6", "convex", "thesis:M-P436"),
    ),
)

NUMBERS = {
    "looseness of the theorem": least_looseness("stated"),
    "looseness of the corollary": least_looseness("average"),
    "decades of masks": decades_of_masks(),
    "largest bound": largest("bound", "stated_bound_most"),
}
