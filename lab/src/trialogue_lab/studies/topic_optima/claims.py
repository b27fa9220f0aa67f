"""Claims of the study: the statements of the thesis as printed, and their corrections."""

from functools import partial

from trialogue_lab.ledger import Claim, graded, largest, ours, smallest
from trialogue_lab.studies.topic_optima.statistics import at_length, landscape, least_growth, minimum, region

_EXACT = 1e-12
_LEMMA = "Thesis Lemma 2.1.1"
_EMBEDDING = "Thesis Theorem 2.1.1"
_RIDGE = "Thesis Theorem 2.1.2"
_BLOCK = "Thesis Theorem 2.1.3"
_DIAGONAL = "Thesis Theorem 2.1.5"
_BLOCKS = "values == 'block' and variant == 'printed'"
_DIAGONALS = "values == 'diagonal' and variant == 'printed'"

_ENUMERATED_MODELS = "Seven small models, all of whose documents are enumerated."
_SIMULATED_DOCUMENTS = "The same models, with simulated documents of 100,000 words."
_FINITE_MODELS = "Finite models with T = tau^2 and v = 20. The theorem is about the limit of many topics."
_MASK_RATES = "The mask rates of the experiments in section 2.1.5.1. The figure states none."


_enumerated = partial(graded, setting=_ENUMERATED_MODELS)
_lemma = partial(_enumerated, statement_id="thesis:T-L2.1.1")
_diagonal = partial(Claim, source=_DIAGONAL, statement_id="thesis:T-2.1.5", setting=_FINITE_MODELS)
_figure_7 = partial(
    Claim, source="Thesis Figure 2.7, Remark 2.1.7", statement_id="thesis:T-Fig2.7", setting=_MASK_RATES
)
_figure_8 = partial(
    Claim, source="Thesis Figure 2.8, Remark 2.1.7", statement_id="thesis:T-Fig2.8", setting=_MASK_RATES
)

PUBLISHED = (
    graded(
        "rates-of-what-is-read",
        "What is read of simulated documents has the rates p_0, p_1, p_2 (largest deviation, in standard errors, all "
        "models, words and documents).",
        largest("member", "z") < 4,
        "Thesis Proposition 2.1.1",
        "equal",
        statement_id="thesis:T-Prop2.1.1",
        setting=_SIMULATED_DOCUMENTS,
        chance=0.093,  # 1,456 normal deviations, 2 * 1,456 * P(Z > 4)
    ),
    _lemma(
        "members-are-optimal",
        "Every member of the solution set predicts the law of words from every set of topics (largest residual, random "
        "members of all models).",
        largest("member", "misfit") < _EXACT,
        f"{_LEMMA}, Theorem 2.1.4",
        "argmin",
    ),
    _lemma(
        "optimal-are-members",
        "Every optimum is a member (largest residual of a condition, optima plus what no document shows).",
        largest("member", "other_violation") < 1e-10,
        f"{_LEMMA}, Theorem 2.1.4",
        "argmin",
    ),
    _lemma(
        "members-with-all-topics",
        "That holds where every document has all topics, too (largest residual of a condition for an optimum).",
        largest("model", "with_all_topics_violation") < 1e-10,
        f"{_LEMMA}, tau = T",
        "any tau",
    ),
    _enumerated(
        "embedding-example",
        "The printed example, E = c_3 I with the printed bias, is optimal (largest residual of a prediction).",
        largest("model", "example_printed") < _EXACT,
        f"{_EMBEDDING}, realisability",
        "optimal",
        statement_id="thesis:T-2.1.1",
    ),
    _enumerated(
        "ridge-limit",
        "The printed matrix is the limit of ridge regressions (largest distance at a penalty of 1e-9, all models).",
        largest("ridge", "distance", where="ridge < 2e-9") < 1e-5,
        _RIDGE,
        "limit",
        statement_id="thesis:T-2.1.2",
    ),
    _enumerated(
        "hessian-rank",
        "The Hessian of the loss has rank 1 per row (largest rank, all models).",
        largest("model", "hessian_rank") < 1.5,
        "Thesis Remark 2.1.8",
        "rank 1",
        statement_id="thesis:T-mask.remark",
    ),
    Claim(
        "block-optimum-in-interval",
        "With block values the optimal gamma is in (lambda_1 (tau - 1), lambda_2 T) (least log of the distance to an "
        "end, T = tau^2 from 100 to 10^6).",
        smallest("minimum", "inside", where=_BLOCKS) > 0,
        _BLOCK,
        "inside",
        statement_id="thesis:T-2.1.3",
        setting=_FINITE_MODELS,
    ),
    _diagonal(
        "diagonal-optimum-in-interval",
        "With diagonal values the optimal beta is in (lambda_3 tau, lambda_4 T) (as above).",
        smallest("minimum", "inside", where=_DIAGONALS) > 0,
        published="inside",
    ),
    _diagonal(
        "diagonal-alpha-below-beta",
        "There the optimal alpha is below lambda_5 beta (least logarithm of the ratio).",
        smallest("minimum", "ratio_inside", where=_DIAGONALS) > 0,
        published="below",
    ),
    graded(
        "only-gamma-matters",
        "With block values the loss depends on ((v - 1) alpha + beta) / v alone (largest relative difference).",
        largest("gamma", "differ") < _EXACT,
        "Thesis Remark 2.1.5",
        "equal",
        statement_id="thesis:T-2.1.3.remark",
        setting=_FINITE_MODELS,
    ),
    _figure_8(
        "landscape-block-in-interval",
        "At 100 topics of 300 words the optimal gamma is in its interval (least logarithm, tau from 20 to 80).",
        smallest("landscape-minimum", "inside", where=_BLOCKS) > 0,
        published="inside",
    ),
    _figure_7(
        "landscape-diagonal-in-interval",
        "There the optimal beta is in its interval (as above).",
        smallest("landscape-minimum", "inside", where=_DIAGONALS) > 0,
        published="inside",
    ),
    _figure_7(
        "landscape-diagonal-grows",
        "With diagonal values the lower end of beta in the region of low loss grows with tau (least growth of its "
        "logarithm; low: within a tenth of the drop).",
        least_growth("beta_low", "diagonal") > 0,
        published="grows",
    ),
    _figure_7(
        "landscape-diagonal-alpha",
        "There alpha is below beta (largest ratio in the region).",
        largest("region", "most_ratio", where=_DIAGONALS) < 1,
        published="alpha < const beta",
        grade=True,
    ),
    *(
        _figure_8(
            f"landscape-block-{name}-grows",
            f"With block values the lower end of {name} in the region of low loss, as the other vanishes, grows with "
            "tau (least growth of its logarithm).",
            least_growth(f"{name}_low", "block") > 0,
            published="grows",
        )
        for name in ("alpha", "beta")
    ),
)


OURS = (
    ours(
        "formula-is-least-norm",
        "The printed matrix is the optimum of the least norm (largest difference from a pseudo-inverse's, all models).",
        largest("model", "formula_error") < _EXACT,
        _RIDGE,
    ),
    ours(
        "embedding-example-mended-bias",
        "With a bias that is zero at [MASK] the printed example is still no optimum (least residual of a prediction).",
        smallest("model", "example_printed_mended_bias") > 0.01,
        _EMBEDDING,
    ),
    ours(
        "embedding-example-mended",
        "With a zero at [MASK] in bias and example it is one (largest residual).",
        largest("model", "example") < _EXACT,
        _EMBEDDING,
    ),
    ours(
        "hessian-rank-is-topics",
        "The rank is T (largest difference, all models).",
        largest("model", "abs(hessian_rank - topics)") < 0.5,
        "Thesis Remark 2.1.8",
    ),
    ours(
        "no-lemma-with-all-topics",
        "Where every document has all topics, the least matrix that fits is no member (least residual of a condition).",
        smallest("model", "with_all_topics_violation") > 0.01,
        f"{_LEMMA}, tau = T",
    ),
    *(
        ours(
            f"leading-order-{values}-{variant}",
            f"At tau = 1000 the optimal {name} is that of leading order, {prediction} tau, within 3 % (ratio; "
            f"{meaning}).",
            minimum("over_leading", 1000, values, variant).near(1, margin=0.03),
            f"Thesis {theorem}",
        )
        for values, name, theorem, predictions in (
            ("block", "gamma", "equation 2.27", ("6.52", "7.41")),
            ("diagonal", "beta", "equation 2.36", ("6.52 v", "7.41 v")),
        )
        for variant, meaning, prediction in (
            ("printed", "attention to [MASK] as printed", predictions[0]),
            ("mask", "attention to [MASK] exact", predictions[1]),
        )
    ),
    ours(
        "printed-attention-to-masks-is-close",
        "At 100 topics of 300 words the optimal gamma with exact attention to [MASK] is within 15 % of that as printed "
        "(ratio at tau = 80).",
        (landscape("beta", 80, "block", "mask") / landscape("beta", 80)).near(1, margin=0.15),
        f"{_BLOCK}, proof",
    ),
    ours(
        "landscape-is-flat",
        "The whole drop of the block landscape, from uniform attention to the least loss, is below 0.2 % of the loss "
        "(largest, tau from 20 to 80).",
        largest("landscape-minimum", "uniform / loss - 1", where=_BLOCKS) < 0.002,
        "Thesis Figure 2.8, Remark 2.1.7",
    ),
    ours(
        "longer-documents-have-it-too",
        "At 10,000 words it still is: without a penalty Theorem 2.1.2 is no limit of long documents (three topics in "
        "each).",
        at_length("diagonal", 10_000, "tau = 3") / at_length("block", 10_000, "tau = 3") > 2,
        _RIDGE,
    ),
    ours(
        "finite-documents-have-a-diagonal",
        "At the lengths of the thesis' documents the optimum's diagonal is more than twice the rest of its blocks.",
        at_length("diagonal") / at_length("block") > 2,
        "Thesis section 2.1.5.1",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "misfit of the printed example": largest("model", "example_printed"),
    "gamma over tau at tau = 1000": minimum("per_topic", 1000),
    "gamma over tau at tau = 1000, exact": minimum("per_topic", 1000, "block", "mask"),
    "least loss, tau = 20": landscape("loss", 20),
    "loss of uniform attention, tau = 20": landscape("uniform", 20),
    "gamma, tau = 20": landscape("beta", 20),
    "gamma, tau = 80": landscape("beta", 80),
    "lower end of beta, diagonal, tau = 20": region("beta_low", 20, "diagonal"),
    "lower end of beta, diagonal, tau = 80": region("beta_low", 80, "diagonal"),
    "diagonal at finite length": at_length("diagonal"),
    "block at finite length": at_length("block"),
    "other at finite length": at_length("other"),
}
