"""Claims of the study: the correlation of Figure 2.13 for both definitions of accuracy and of violation."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, cited, ours
from trialogue_lab.studies.dyck_attention.statistics import minimal, rank_correlation
from trialogue_lab.studies.dyck_balance.measure import ARM
from trialogue_lab.studies.dyck_balance.statistics import closed

_LEARNED = Precondition(
    "on average, the networks predict more than 97 % of the closing brackets at the trained length",
    minimal(ARM, "inside") > 0.97,
)
_SETTING = (
    "Each network takes 300 updates of 100 fresh strings. The released program trains for epochs over 100,000 tokens. "
    "The source does not print how many networks the figure shows."
)
_FIGURE = cited(
    "Figure 2.13",
    "negatively correlated with accuracy",
    "thesis:D-Fig2.13",
    setting=_SETTING,
    preconditions=(_LEARNED,),
)
_control = partial(ours, source="Figure 2.13", preconditions=(_LEARNED,))

_BY_LIKELIEST = rank_correlation(ARM)
_BY_CONFIDENCE = rank_correlation(ARM, "outside_confident")
_AS_RELEASED = rank_correlation(ARM, "outside_confident", "balance_released")
_MIXED = rank_correlation(ARM, "outside", "balance_released")

CLAIMS = (
    Claim(
        "violation-goes-with-errors",
        "The larger the balance violation of (2.54), the more closing brackets at lengths 400 to 500 are not the "
        "likeliest one (Spearman's correlation).",
        _BY_LIKELIEST > 0,
        **_FIGURE,
    ),
    Claim(
        "violation-goes-with-unsure-closings",
        "The larger the balance violation of (2.54), the more positions at lengths 400 to 500 have at most 0.8 of "
        "the closing probability on the right bracket (Spearman's correlation).",
        _BY_CONFIDENCE > 0,
        **_FIGURE,
    ),
    Claim(
        "violation-goes-with-unsure-closings-as-released",
        "The larger the balance violation of the released program, the more positions at lengths 400 to 500 have "
        "at most 0.8 of the closing probability on the right bracket (Spearman's correlation).",
        _AS_RELEASED > 0,
        **_FIGURE,
    ),
    _control(
        "released-violation-goes-with-errors",
        "The larger the balance violation of the released program, the more closing brackets at lengths 400 to 500 are "
        "not the likeliest one (Spearman's correlation).",
        _MIXED > 0,
    ),
    _control(
        "the-accuracy-matters",
        "With the violation of (2.54) the correlation is larger if positions without a confident closing count as "
        "errors than if the likeliest bracket decides (difference).",
        _BY_CONFIDENCE - _BY_LIKELIEST > 0,
    ),
    Claim(
        "minimal-networks-close-rightly",
        "Networks with a minimal first layer (2.55) predict more than 97 % of the closing brackets at the trained "
        "length.",
        closed(ARM) > 0.97,
        **cited("Section 2.2.3.2", ">= 97 %", "thesis:D-train", setting=_SETTING),
    ),
)

NUMBERS = {
    "violation and errors": _BY_LIKELIEST,
    "violation and unsure closings": _BY_CONFIDENCE,
    "violation and unsure closings, as released": _AS_RELEASED,
    "released violation and errors": _MIXED,
    "right at the trained length": minimal(ARM, "inside"),
    "right at lengths 400 to 500": minimal(ARM, "outside"),
    "confident at lengths 400 to 500": minimal(ARM, "outside_confident"),
}
