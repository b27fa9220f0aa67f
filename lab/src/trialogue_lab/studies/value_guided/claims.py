"""Claims of the study: the three properties of section 3.3.1, error amplification, and the benefit of values."""

from functools import partial
from typing import Any

from trialogue_lab.ledger import Claim, cited, largest, ours
from trialogue_lab.studies.value_guided import statistics
from trialogue_lab.studies.value_guided.config import EXACT, SIGNS
from trialogue_lab.studies.value_guided.dyck import NOISY, TRAINED
from trialogue_lab.studies.value_guided.statistics import COLUMNS, cost_exponent, dyck, growth, long, tree

_SECTION = "Thesis section 3.3.1"
_AMPLIFICATION = "Thesis chapter 3, introduction, and section 3.7"
_MITIGATED = "VGB mitigates the amplification of errors as the length grows"
_COMPLETIONS = (
    "Small networks complete the last three to five tokens of Dyck strings, so that a rejection attempt costs about "
    "four queries. The source names Dyck strings and Python code, and cites another paper for the numbers."
)
_ROUNDING = 1e-12

_ours = partial(ours, source=_SECTION)
_amplification = partial(ours, source=_AMPLIFICATION)
_of_amplification = cited(_AMPLIFICATION, _MITIGATED, "thesis:V-SUM.amplification")
_trade_off = partial(cited, f"{_SECTION}, last paragraph", statement_id="thesis:V-VGB.trade-off")


def _property(number: int, published: str, statement_id: str) -> dict[str, Any]:
    return cited(f"{_SECTION}, property ({number})", published, statement_id, grade=True)


_RESIDUALS = ("irreversibility", "stationary_residual", "first_leaf_residual", "steps_residual")
_RESIDUAL = largest("chain", *_RESIDUALS)

PUBLISHED = (
    Claim(
        "leaves-have-the-restricted-law",
        "With exact outcomes and values inside that err by any of the factors tried, the stationary law given that the "
        "node is a leaf is the restricted law (largest total variation, all trees).",
        largest("tree", "stationary", where="error > 0") < _ROUNDING,
        **_property(3, "proportional to the restricted law at the leaves", "thesis:V-VGB.leaves"),
    ),
    Claim(
        "leaves-have-mass-one-over-h",
        "The stationary law gives the leaves at least 1 / (2 (1 + e) H), for values within a factor 1 + e of the exact "
        "ones (smallest ratio, all trees).",
        statistics.least_leaf_mass() > 1 - _ROUNDING,
        **_property(2, "Omega(1 / H) on the leaves", "thesis:V-VGB.mass"),
    ),
    Claim(
        "mixes-rapidly",
        "With exact values the steps until the law of the node is within 0.25 of the stationary one grow more slowly "
        "than the third power of the horizon (slope of logarithms).",
        cost_exponent("mixing") < 3,
        **_property(1, "mixes rapidly", "thesis:V-VGB.mixing"),
    ),
    Claim(
        "mixes-rapidly-with-approximate-values",
        "With values inside that err by any of the factors tried, the steps until the distribution of the node is "
        "within 0.25 of the stationary one grow more slowly than the third power of the horizon (largest slope of "
        "logarithms over kinds and sizes of errors).",
        statistics.largest_cost_exponent("mixing") < 3,
        **_property(1, "mixes rapidly", "thesis:V-VGB.mixing"),
    ),
    Claim(
        "backtracking-mends-amplified-errors",
        "At the longest horizon that is listed, with values that err by the last token, the first leaf of the "
        "value-guided walk is closer to the restricted law than action-level sampling with the same values.",
        tree("first_leaf") - tree("action_level") < 0,
        **_of_amplification,
    ),
    Claim(
        "backtracking-mends-amplified-errors-at-length",
        "So it is at the longest horizon at which the walks are run.",
        long("first leaf") - long("action level") < 0,
        **_of_amplification,
    ),
    Claim(
        "closer-on-dyck",
        "On models of Dyck strings, with trained values, the first leaf is closer to the restricted law than "
        "action-level sampling.",
        dyck("first leaf", TRAINED) - dyck("action level", TRAINED) < 0,
        **_trade_off("a favorable quality-efficiency trade-off on the Dyck grammar", setting=_COMPLETIONS),
    ),
    Claim(
        "cheaper-than-rejection-on-dyck",
        "On models of Dyck strings, with trained values, an output of the first leaf takes fewer queries than one of "
        "rejection, whose outputs have the restricted distribution (ratio, no node remembered).",
        dyck("first leaf", TRAINED, "queries") / dyck("rejection", column="queries") < 1,
        **_trade_off(
            "a favorable quality-efficiency trade-off (the source names no baseline)",
            setting=f"{_COMPLETIONS} The comparison with rejection is chosen by this project.",
        ),
    ),
)


OURS = (
    _ours(
        "closed-forms-are-the-walk",
        "Stationary law, first leaf and steps from conductances are those of the walk's own transitions, which are "
        "reversible (largest residual).",
        _RESIDUAL < _ROUNDING * 10,
    ),
    _ours(
        "exact-values-make-a-reflecting-walk",
        "With exact values the leaves have mass 1 / (2 H), the first leaf takes 2 H^2 lazy steps, and the gap is "
        "(1 - cos(pi / (2 H))) / 2 (largest residual).",
        statistics.golden_residual() < 1e-9,
    ),
    _ours(
        "exact-values-need-no-way-back",
        "With exact values action-level sampling and the first leaf have the restricted law (largest total variation).",
        largest("tree", "action_level", "first_leaf", where=f"values == {EXACT!r}") < _ROUNDING,
    ),
    _amplification(
        "errors-amplify-at-action-level",
        "With values that err by a factor of 1.3, by the last token, the distance of action-level sampling grows by "
        "more than 0.1 between the horizons 2 and 10.",
        growth("action_level", 2) > 0.1,
    ),
    _amplification(
        "first-leaf-stays-flat",
        "Between the horizons 4 and 10 that of the first leaf changes by less than 0.03.",
        growth("first_leaf", 4).near(0, margin=0.03),
    ),
    _amplification(
        "random-errors-amplify-less",
        "Errors of random sign, as large, do less harm at action level than errors by the last token.",
        tree("action_level", values=SIGNS) - tree("action_level") < 0,
    ),
    *(
        _amplification(
            f"{name.replace(' ', '-')}-as-computed",
            f"As run on horizons beyond what can be listed, {sampler} has the distance that is computed, within 0.02 "
            "(mean over horizons).",
            statistics.beyond_computed(name).near(0, margin=0.02),
        )
        for name, sampler in (("action level", "action-level sampling"), ("first leaf", "the first leaf"))
    ),
    _ours(
        "exact-values-are-exact-on-dyck",
        "On models of Dyck strings the first leaf under exact values has the restricted law (largest total variation, "
        "mean over prompts).",
        largest("dyck", "variation", where=f"rule == 'first leaf' and values == {EXACT!r}") < _ROUNDING,
    ),
    _ours(
        "noise-costs-the-first-leaf-less",
        "Under values that are wrong by a factor of 2 the first leaf is closer than action-level sampling.",
        dyck("first leaf", NOISY) - dyck("action level", NOISY) < 0,
    ),
    _ours(
        "closer-than-backtracking",
        "With trained values the first leaf is closer than backtracking with the exact verifier (Q = B = 4; counts of "
        "its outputs).",
        dyck("first leaf", TRAINED) - dyck("backtracking") < 0,
        source="Thesis Algorithms 1 and 2",
    ),
    _ours(
        "particles-are-as-close",
        "Counts of outputs of sequential Monte Carlo with 8 particles and the same trained values are no further than "
        "the first leaf, by 0.05.",
        dyck("sequential Monte Carlo", TRAINED) - dyck("first leaf", TRAINED) < 0.05,
        source="Thesis Algorithm 2",
    ),
    _ours(
        "costs-more-than-rejection",
        "With trained values the first leaf takes more queries than rejection, remembering nothing (logarithms).",
        statistics.log_queries("first leaf", TRAINED) - statistics.log_queries("rejection") > 0,
        source="Thesis section 3.4.1",
    ),
)

CLAIMS = (*PUBLISHED, *OURS)

NUMBERS = {
    "action level, last token, H = 10": tree("action_level"),
    "first leaf, last token, H = 10": tree("first_leaf"),
    "action level as run, longest": long("action level"),
    "first leaf as run, longest": long("first leaf"),
    "queries of the first leaf, longest": long("first leaf", "queries"),
    "exponent of mixing": cost_exponent("mixing"),
    "exponent of mixing, approximate values": statistics.largest_cost_exponent("mixing"),
    "largest residual": _RESIDUAL,
    **{
        f"Dyck, {rule}, {values or 'no values'}: {name}": dyck(rule, values, column)
        for rule, values in (
            *(("first leaf", values) for values in (EXACT, NOISY, TRAINED)),
            *(("action level", values) for values in (NOISY, TRAINED)),
            ("sequential Monte Carlo", TRAINED),
            ("backtracking", ""),
            ("rejection", ""),
        )
        for column, name in COLUMNS.items()
    },
}
