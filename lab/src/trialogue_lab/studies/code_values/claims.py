"""Claims of the study, and the numbers that documentation pages quote."""

from functools import partial

from trialogue_lab.ledger import Claim, Precondition, cited, ours
from trialogue_lab.studies.code_values.measure import METHODS
from trialogue_lab.studies.code_values.statistics import (
    accepted,
    auc,
    auc_after,
    cost,
    distance,
    excess_items,
    share_distinct,
)

_TRADE_OFF = (
    "Thesis section 3.3.1, last paragraph",
    "VGB achieves favorable quality-efficiency trade-off on various synthetic and real constrained generation tasks, "
    "including but not limited to Dyck grammar and Python code generation",
    "thesis:V-VGB.trade-off",
)
_SETTING = (
    "A transformer of two blocks, trained in every repetition, writes two test cases of list append. The source prints "
    "no numbers for this task and names no baseline."
)
_BETTER_THAN_CHANCE = Precondition(
    "the trained values are better than chance: the area under their ROC curve, averaged over the prefixes that end "
    "with a line, is above 0.55 (mean over trainings)",
    auc() > 0.55,
)
_MARGIN = 0.02
"""Largest difference of squared distances that counts as none. Two totals of probability 0.1 each are this far apart if
one loses its probability to the other."""

_published = partial(cited, preconditions=(_BETTER_THAN_CHANCE,))
_ours = partial(ours, source="Thesis Algorithm 2", preconditions=(_BETTER_THAN_CHANCE,))

CLAIMS = (
    Claim(
        "closer-than-action-level",
        "With the same trained values, accepted outputs of the first leaf of the walk are closer to the target than "
        "those of action-level sampling (difference of squared distances of the numbers of list items).",
        distance("first leaf") - distance("action level") < 0,
        **_published(*_TRADE_OFF, setting=_SETTING),
    ),
    Claim(
        "cheaper-than-rejection",
        "With trained values, an output of the first leaf takes fewer model calls than one of rejection, whose outputs "
        "have the target distribution (ratio).",
        cost("first leaf") / cost("rejection") < 1,
        **_published(
            *_TRADE_OFF, setting=f"{_SETTING} The comparison with rejection is chosen by this project."
        ),
    ),
    Claim(
        "tokens-suffice-as-blocks",
        "Outputs of the walk on single tokens are no further from the target than those of the walk on blocks of 4 "
        f"tokens with 4 candidates, by {_MARGIN} (difference of squared distances of the numbers of list items).",
        distance("first leaf") - distance("blocks") < _MARGIN,
        grade=True,
        **_published(
            "Thesis section 3.6, on process reward models",
            "setting each token as a block might potentially suffice, at least in some more structured domains such as "
            "codes",
            "thesis:V-SUM.token-blocks",
            setting=f"{_SETTING} The sentence is about process verifiers, and the source measures best-of-n with "
            "lines as blocks.",
        ),
    ),
    ours(
        "values-beat-chance",
        "Trained values after a line predict better than chance whether the completion is accepted (area under the ROC "
        "curve, mean over lines).",
        auc() > 0.5,
        source="Thesis Algorithm 2",
    ),
    _ours(
        "values-raise-acceptance",
        "Action-level sampling with trained values has a larger share of accepted outputs than sampling without a "
        "verifier (difference of shares).",
        accepted("action level") - accepted("no verifier") > 0,
    ),
    _ours(
        "first-leaf-prefers-short-lists",
        "Outputs of the first leaf have fewer list items than the target, because completions end at different lengths "
        "(difference of means).",
        excess_items("first leaf") < 0,
    ),
    _ours(
        "momentum-costs-less",
        "The walk with momentum takes fewer model calls per output than the walk without it (ratio).",
        cost("momentum") / cost("first leaf") < 1,
    ),
    _ours(
        "momentum-is-as-close",
        f"Outputs of the walk with momentum are no further from the target than the first leaf, by {_MARGIN} "
        "(difference of squared distances of the numbers of list items).",
        distance("momentum") - distance("first leaf") < _MARGIN,
    ),
    _ours(
        "particles-cost-less",
        "Sequential Monte Carlo with 8 particles and the same values takes fewer model calls per accepted output than "
        "the first leaf (ratio).",
        cost("particles") / cost("first leaf") < 1,
    ),
    _ours(
        "particles-are-as-close",
        "Accepted outputs of sequential Monte Carlo are no further from the target than the first leaf, by "
        f"{_MARGIN} (difference of squared distances of the numbers of list items).",
        distance("particles") - distance("first leaf") < _MARGIN,
    ),
    _ours(
        "first-leaf-is-as-diverse",
        "The first leaf has the share of distinct correct test cases of rejection, within 0.05 (difference of shares).",
        (share_distinct("first leaf") - share_distinct("rejection")).near(0, margin=0.05),
    ),
)

NUMBERS = {
    "area under the ROC curve": auc(),
    **{f"area under the ROC curve, line {line}": auc_after(line) for line in (1, 2)},
    **{
        f"{method}: {name}": statistic(method)
        for method in METHODS
        for name, statistic in (
            ("accepted", accepted),
            ("distinct", share_distinct),
            ("calls", cost),
            ("positions", partial(cost, column="positions")),
            ("distance", distance),
            ("excess items", excess_items),
        )
    },
}
