"""Claims of the study: Theorems 2.2.1 and 2.2.2, Corollary 2.2.1, and what the corrections change."""

from trialogue_lab.ledger import NOT_PRINTED, Claim, Criterion
from trialogue_lab.ledger.claims.extremes import largest
from trialogue_lab.studies.dyck_construction.statistics import (
    accuracy,
    distance,
    failed,
    positive,
    slack,
    slope,
    violation,
)

_THEOREM_1 = "Theorem 2.2.1"
_THEOREM_2 = "Theorem 2.2.2"
_FAR, _NEAR = 5000, 60

_BUILT = "Constructed networks for three types and depth 4, on random prefixes of at most 5,000 brackets."

PUBLISHED = (
    Claim(
        "perfect-balance-is-exact",
        "A network in perfect balance, with random attention otherwise, answers the exact next-bracket law within "
        "1e-6 in total variation (largest, all prefixes of up to 5,000 brackets).",
        largest("exact", "distance", where="network == 'balance'") < 1e-6,
        f"{_THEOREM_1}, sufficiency",
        "optimal at any length",
        grade=True,
        statement_id="thesis:D-T2.2.1",
        setting=_BUILT,
    ),
    Claim(
        "uniform-attention-is-exact",
        "So does a network whose attention is uniform in both layers.",
        largest("exact", "distance", where="network == 'uniform'") < 1e-6,
        "Corollary 2.2.1",
        "optimal at any length",
        grade=True,
        statement_id="thesis:D-C2.2.1",
        setting=_BUILT,
    ),
    Claim(
        "balance-is-needed",
        "Scores of attention that are disturbed by 0.1 (standard deviation) cost more accuracy behind 4,000 to 5,000 "
        "brackets than behind 20 to 60.",
        accuracy(0.1, _NEAR) - accuracy(0.1, _FAR) > 0,
        f"{_THEOREM_1}, necessity",
        "no other network is optimal at all lengths",
        statement_id="thesis:D-T2.2.1",
        setting=_BUILT,
    ),
    Claim(
        "pairs-drown-what-is-open",
        "Once scores are disturbed by 0.1, normed sums for two types approach each other as 1 / pairs (slope of the "
        "logarithms, 1,000 to 100,000 pairs).",
        slope(0.1).near(-1, margin=0.1),
        "Equations 2.49 and 2.50",
        "independent of the last unmatched type",
        grade=True,
        statement_id="thesis:D-T2.2.1",
        setting=_BUILT,
    ),
    Claim(
        "lemma-as-printed",
        "Sums longer than R r_0, R = 4 r_0 / eps + 1, are within eps once normed (largest ratio to eps, r_0 from 0.001 "
        "to 1,000).",
        largest("lemma", "ratio", where="form == 'printed'") < 1,
        "Lemma 2.2.1",
        "R = 4 r_0 / eps + 1",
        grade=True,
        statement_id="thesis:D-T2.2.2.lemma",
    ),
)


def _ours(identity: str, statement: str, criterion: Criterion, source: str) -> Claim:
    return Claim(identity, statement, criterion, source, NOT_PRINTED, "ours")


OURS = (
    _ours(
        "lemma-as-corrected",
        "With R = 4 / eps + 1 Lemma 2.2.1 holds.",
        largest("lemma", "ratio", where="form == 'corrected'") < 1,
        "Lemma 2.2.1",
    ),
    _ours(
        "laws-apart-keep-sums-apart",
        "Normed sums are at least as far apart as the laws less both errors, over the Lipschitz bound (prefixes that "
        "fail).",
        failed("first") < 0.5,
        _THEOREM_2,
    ),
    _ours(
        "sums-apart-bound-what-is-pumped",
        "What is pumped adds at most (4 / eps + 1) P (prefixes that fail).",
        failed("second") < 0.5,
        _THEOREM_2,
    ),
    _ours(
        "approximate-balance",
        "Theorem 2.2.2 with corrected constants bounds every |S| by 16 D (4 / eps + 1) P / N (queries of all networks "
        "for which it does not).",
        failed("third") < 0.5,
        f"{_THEOREM_2}, equation 2.54",
    ),
    _ours(
        "the-bound-is-loose",
        "The bound on |S| is more than ten times what it bounds (median over disturbed constructions, decimal log).",
        slack("disturbed") > 1,
        _THEOREM_2,
    ),
    _ours(
        "a-thousandth-breaks-it",
        "A disturbance of 0.001 costs more than a tenth of the accuracy behind 4,000 to 5,000 brackets.",
        accuracy(0.001, _FAR) < 0.9,
        f"{_THEOREM_1}, necessity",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "balance, largest distance": largest("exact", "distance", where="network == 'balance'"),
    "uniform, largest distance": largest("exact", "distance", where="network == 'uniform'"),
    "undisturbed, far": accuracy(0.0, _FAR),
    "disturbed by 0.001, near": accuracy(0.001, _NEAR),
    "disturbed by 0.001, far": accuracy(0.001, _FAR),
    "disturbed by 0.1, near": accuracy(0.1, _NEAR),
    "disturbed by 0.1, far": accuracy(0.1, _FAR),
    "violation at 0.1": violation(0.1),
    "distance behind 100,000 pairs at 0.1": distance(0.1, 100_000),
    "disturbed networks with a positive side": positive("disturbed"),
    "slack of the bound, decades": slack("disturbed"),
}
