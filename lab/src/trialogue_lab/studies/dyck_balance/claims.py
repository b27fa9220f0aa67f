"""Claims of the study: the correlation of Figure 2.13 under both definitions of accuracy and of violation."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, cited, ours
from trialogue_lab.studies.dyck_attention.statistics import minimal, rank_correlation
from trialogue_lab.studies.dyck_balance.measure import ARM

_LEARNED = Precondition(
    "the networks close more than 97 % of brackets rightly at the trained length",
    minimal(ARM, "inside") > 0.97,
)
_SETTING = (
    "Each network takes 300 updates of 100 fresh strings, where the released program trains for epochs over 100,000 "
    "tokens. The source prints no number of networks for the figure."
)
_FIGURE = cited(
    "Figure 2.13",
    "negatively correlated with accuracy",
    "thesis:D-Fig2.13",
    setting=_SETTING,
    preconditions=(_LEARNED,),
)
_control = partial(ours, source="Figure 2.13", preconditions=(_LEARNED,))

BY_LIKELIEST = rank_correlation(ARM)
BY_CONFIDENCE = rank_correlation(ARM, "outside_confident")
AS_RELEASED = rank_correlation(ARM, "outside_confident", "balance_released")
MIXED = rank_correlation(ARM, "outside", "balance_released")

CLAIMS = (
    Claim(
        "violation-goes-with-errors",
        "The larger the balance violation of (2.54), the more closing brackets at lengths 400 to 500 are not the "
        "likeliest one (Spearman's correlation).",
        BY_LIKELIEST > 0,
        **_FIGURE,
    ),
    Claim(
        "violation-goes-with-unsure-closings",
        "The larger the balance violation of (2.54), the more positions at lengths 400 to 500 have at most 0.8 of "
        "the closing probability on the right bracket (Spearman's correlation).",
        BY_CONFIDENCE > 0,
        **_FIGURE,
    ),
    Claim(
        "violation-goes-with-unsure-closings-as-released",
        "The larger the balance violation of the released program, the more positions at lengths 400 to 500 have "
        "at most 0.8 of the closing probability on the right bracket (Spearman's correlation).",
        AS_RELEASED > 0,
        **_FIGURE,
    ),
    _control(
        "released-violation-goes-with-errors",
        "The larger the balance violation of the released program, the more closing brackets at lengths 400 to 500 are "
        "not the likeliest one (Spearman's correlation).",
        MIXED > 0,
    ),
    _control(
        "the-accuracy-matters",
        "With the violation of (2.54) the correlation is larger if positions without a confident closing count as "
        "errors than if the likeliest bracket decides (difference).",
        BY_CONFIDENCE - BY_LIKELIEST > 0,
    ),
)

NUMBERS = {
    "violation and errors": BY_LIKELIEST,
    "violation and unsure closings": BY_CONFIDENCE,
    "violation and unsure closings, as released": AS_RELEASED,
    "released violation and errors": MIXED,
    "right at the trained length": minimal(ARM, "inside"),
    "right at lengths 400 to 500": minimal(ARM, "outside"),
    "confident at lengths 400 to 500": minimal(ARM, "outside_confident"),
}
