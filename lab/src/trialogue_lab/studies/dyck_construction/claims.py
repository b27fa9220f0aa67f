"""Claims of the study: Theorems 2.2.1 and 2.2.2, Corollary 2.2.1, Lemma 2.2.1, and their corrections."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours
from trialogue_lab.studies.dyck_construction import statistics as stats

_FAR, _NEAR = 5000, 60

_BUILT = "The networks are constructed for three types and depth 4. Prefixes are random, of at most 5,000 brackets."
_built = partial(cited, setting=_BUILT)
_theorem_2 = partial(ours, source="Theorem 2.2.2")
_BALANCE_DISTANCE, _UNIFORM_DISTANCE = (
    largest("exact", "distance", where=f"network == '{network}'") for network in ("balance", "uniform")
)

CLAIMS = (
    Claim(
        "perfect-balance-is-exact",
        "A network in perfect balance, with random attention otherwise, answers the exact next-bracket law within "
        "1e-6 in total variation (largest, all prefixes of up to 5,000 brackets).",
        _BALANCE_DISTANCE < 1e-6,
        **_built("Theorem 2.2.1, sufficiency", "optimal at any length", "thesis:D-T2.2.1", grade=True),
    ),
    Claim(
        "uniform-attention-is-exact",
        "So does a network whose attention is uniform in both layers.",
        _UNIFORM_DISTANCE < 1e-6,
        **_built("Corollary 2.2.1", "optimal at any length", "thesis:D-C2.2.1", grade=True),
    ),
    Claim(
        "balance-is-needed",
        "Scores of attention that are disturbed by 0.1 (standard deviation) cost more accuracy behind 4,000 to 5,000 "
        "brackets than behind 20 to 60.",
        stats.accuracy(0.1, _NEAR) - stats.accuracy(0.1, _FAR) > 0,
        **_built("Theorem 2.2.1, necessity", "no other network is optimal at all lengths", "thesis:D-T2.2.1"),
    ),
    Claim(
        "pairs-drown-what-is-open",
        "Once scores are disturbed by 0.1, normed sums for two types approach each other as 1 / pairs (slope of the "
        "logarithms, 1,000 to 100,000 pairs).",
        stats.slope(0.1).near(-1, margin=0.1),
        **_built(
            "Equations 2.49 and 2.50", "independent of the last unmatched type", "thesis:D-T2.2.1", grade=True
        ),
    ),
    Claim(
        "lemma-as-printed",
        "Sums longer than R r_0, R = 4 r_0 / eps + 1, are within eps once normed (largest ratio to eps, r_0 from 0.001 "
        "to 1,000).",
        largest("lemma", "ratio", where="form == 'printed'") < 1,
        **cited("Lemma 2.2.1", "R = 4 r_0 / eps + 1", "thesis:D-T2.2.2.lemma", grade=True),
    ),
    ours(
        "lemma-as-corrected",
        "With R = 4 / eps + 1 Lemma 2.2.1 holds.",
        largest("lemma", "ratio", where="form == 'corrected'") < 1,
        "Lemma 2.2.1",
    ),
    _theorem_2(
        "laws-apart-keep-sums-apart",
        "Normed sums are at least as far apart as the laws less both errors, over the Lipschitz bound (prefixes that "
        "fail).",
        stats.failed("first") < 0.5,
    ),
    _theorem_2(
        "sums-apart-bound-what-is-pumped",
        "What is pumped adds at most (4 / eps + 1) P (prefixes that fail).",
        stats.failed("second") < 0.5,
    ),
    _theorem_2(
        "approximate-balance",
        "Theorem 2.2.2 with corrected constants bounds every |S| by 16 D (4 / eps + 1) P / N (queries of all networks "
        "for which it does not).",
        stats.failed("third") < 0.5,
        source="Theorem 2.2.2, equation 2.54",
    ),
    _theorem_2(
        "the-bound-is-loose",
        "The bound on |S| is more than ten times what it bounds (median over disturbed constructions, decimal log).",
        stats.slack("disturbed") > 1,
    ),
    ours(
        "a-thousandth-breaks-it",
        "A disturbance of 0.001 costs more than a tenth of the accuracy behind 4,000 to 5,000 brackets.",
        stats.accuracy(0.001, _FAR) < 0.9,
        "Theorem 2.2.1, necessity",
    ),
)

NUMBERS = {
    "balance, largest distance": _BALANCE_DISTANCE,
    "uniform, largest distance": _UNIFORM_DISTANCE,
    "undisturbed, far": stats.accuracy(0.0, _FAR),
    "disturbed by 0.001, near": stats.accuracy(0.001, _NEAR),
    "disturbed by 0.001, far": stats.accuracy(0.001, _FAR),
    "disturbed by 0.1, near": stats.accuracy(0.1, _NEAR),
    "disturbed by 0.1, far": stats.accuracy(0.1, _FAR),
    "violation at 0.1": stats.violation(0.1),
    "distance behind 100,000 pairs at 0.1": stats.distance(0.1, 100_000),
    "disturbed networks with a positive side": stats.positive("disturbed"),
    "slack of the bound, decades": stats.slack("disturbed"),
}
