"""Claims of the study: the document's lemmas, theorems and corollaries, as published and as corrected."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours
from trialogue_lab.studies.memorization_construct import statistics

_LEMMA_2 = "Lemma 2"
_THEOREM_1 = "Theorem 1"
_COROLLARY_2 = "Corollary 2"
_theorem_1 = partial(ours, source=_THEOREM_1)
_bound = partial(cited, published="an upper bound", grade=True)

CLAIMS = (
    Claim(
        "rank-as-printed",
        "Features of generic heads and the skip connection have rank min(T, H d_h + d) (largest difference, all shapes "
        "tried: S from 1 to 5, d to above N + S - 1).",
        statistics.rank_error("printed") < 0.5,
        **cited(_LEMMA_2, "min(T, H d_h + d)", "memorization:K-L2", grade=True),
    ),
    Claim(
        "as-many-laws-as-features",
        "With H d_h + d features for as many laws, or up to a head more, the network is as near to the laws as the "
        "nearest sequence encoder, within 0.001 nats (largest, all draws and widths).",
        largest("held", "excess", where="provision == 0") < 1e-3,
        **cited(f"{_THEOREM_1}, eps = 0", "up to any gamma > 0", "memorization:K-T1", grade=True),
    ),
    Claim(
        "two-dimensions-hold-associations",
        "In two dimensions 49 heads of width two hold an association for each of 100 contexts (largest share that is "
        "wrong).",
        largest("association", "1 - right", where="stored == contexts") < 1e-9,
        **cited("Corollary 1", "H d_h + 2 associations", "memorization:Corollary-1", grade=True),
    ),
    Claim(
        "rank-one-attention-suffices",
        "W_QK of rank one gives the same rank as any other (largest difference, all shapes).",
        statistics.rank_error("rank_one") < 0.5,
        **cited(
            "Remark 2", "d (S + 2 N + 2 (d_h + 1) H) parameters suffice", "memorization:Remark-2", grade=True
        ),
    ),
    Claim(
        "tight-bound",
        "(13) bounds |KL(network) - KL(encoder)| (least logarithm of the ratio, all draws and heads).",
        statistics.least_slack("tight") > -1e-9,
        **_bound(f"{_THEOREM_1}, equation 13", statement_id="memorization:K-T1"),
    ),
    Claim(
        "loose-bound",
        "(14) bounds it too.",
        statistics.least_slack("loose") > -1e-9,
        **_bound(f"{_THEOREM_1}, equation 14", statement_id="memorization:K-T1"),
    ),
    Claim(
        "looking-up-is-bounded",
        "With nearly orthogonal rows of W (600 numbers each) the encoder of Theorem 2 is within its bound (least "
        "slack, nats, all draws).",
        statistics.look_up_slack("bound") > -1e-9,
        **_bound("Theorem 2", statement_id="memorization:Theorem-2"),
    ),
    Claim(
        "looking-up-is-simply-bounded",
        "It is within the simpler bound.",
        statistics.look_up_slack("simple") > -1e-9,
        **_bound("Theorem 2", statement_id="memorization:Theorem-2"),
    ),
    ours(
        "rank-where-it-holds",
        "The printed rank holds for contexts of at least two tokens and d of at most N (largest difference).",
        statistics.rank_error("printed", generic=True) < 0.5,
        _LEMMA_2,
    ),
    ours(
        "rank-as-mended",
        "The rank is min(T, H min(d_h, N + S - 1) + min(d, N)), less H where d_h is N + S - 1 or more, and min(d, N) "
        "for S = 1 (largest difference, all shapes).",
        statistics.rank_error("mended") < 0.5,
        _LEMMA_2,
    ),
    _theorem_1(
        "five-percent-make-it-exact",
        "With 5 % more features than laws the largest error of a log-probability, by a forward pass in float64, is "
        "below 1e-9 (all draws and widths).",
        largest("held", "error", where="provision == 0.05") < 1e-9,
    ),
    _theorem_1(
        "exact-squares-fail-in-float32",
        "With no feature to spare the error in float32 is above 0.01 (decimal logarithm, narrow network).",
        statistics.digits("error_float32", 0.0) > -2,
    ),
    _theorem_1(
        "ten-percent-carry-float32",
        "With 10 % to spare it is below 0.01.",
        statistics.digits("error_float32", 0.1) < -2,
    ),
    ours(
        "accuracy-is-not-below-the-bound",
        "Where fewer associations are stored than there are contexts, the accuracy on all is not below phi(H d_h + d) "
        "by 0.01, one context of the hundred (mean over heads).",
        statistics.beyond_bound() > -0.01,
        f"{_COROLLARY_2} (control)",
        "E[Acc] >= 1 / N + (1 - 1 / N) (H d_h + d) / T_0",
    ),
    ours(
        "accuracy-is-the-bound",
        "Where some associations are stored the accuracy on all is that of Corollary 2, within 0.02 (mean over heads).",
        statistics.beyond_bound().near(0, margin=0.02),
        _COROLLARY_2,
    ),
    ours(
        "the-printed-bound-is-loose",
        "Bound (14) is more than a hundred times what it bounds (decimal logarithm, mean over heads).",
        statistics.tightness("loose") > 2,
        f"{_THEOREM_1}, equation 14",
    ),
    _theorem_1(
        "ridge-regression-is-nearer",
        "Ridge regression on all contexts is more than ten times nearer than holding the likeliest (decimal log).",
        statistics.ridge_gain() > 1,
    ),
    ours(
        "none-nearer-in-two-dimensions",
        "No encoder of two dimensions nearer than 0.1 nats is found.",
        statistics.encoder("nearest", 2) > 0.1,
        "Proposition 2",
    ),
    ours(
        "singular-vectors-are-not-nearest",
        "The optimised encoder is more than e^0.5 times nearer than the truncated one (mean logarithm over widths).",
        statistics.log_optimum_ratio() < -0.5,
        "Definition 1",
    ),
)

NUMBERS = {
    "largest error with 5 % to spare": statistics.held("error", 0.05),
    "error in float32, none to spare, narrow": statistics.held("error_float32", 0.0, False),
    "error in float32, none to spare": statistics.held("error_float32", 0.0),
    "error in float32, 10 % to spare": statistics.held("error_float32", 0.1),
    "distance of the narrow encoder": statistics.held("encoder_kl", 0.05, False),
    "parameters a law": statistics.held("parameters", 0.05, True),
    "accuracy with 20 heads": statistics.association("accuracy", 20),
    "bound with 20 heads": statistics.association("bound", 20),
    "divergence of the likeliest, 4 heads": statistics.approximate("kl", 4),
    "divergence by ridge regression, 4 heads": statistics.approximate("ridge", 4),
    "bound of Theorem 1 over the divergence, decades": statistics.tightness("loose"),
    "truncated encoder, d = 5": statistics.encoder("truncated", 5),
    "nearest encoder, d = 5": statistics.encoder("nearest", 5),
}
