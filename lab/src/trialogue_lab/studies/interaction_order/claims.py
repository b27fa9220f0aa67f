"""Claims of the study: Figure 2, one layer on two-body distributions, and interaction orders of architectures."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, graded, largest, ours, smallest
from trialogue_lab.studies.interaction_order import statistics as stats
from trialogue_lab.studies.interaction_order.statistics import FORMS

_DOCUMENT = "Distributional simplicity bias"
_STAIRS = f"{_DOCUMENT}, Figure 2b"
_ONSETS = f"{_DOCUMENT}, Figure 2c, equation 6"
_PAIRS = f"{_DOCUMENT}, section 2, equation 2"
_ORDER = f"{_DOCUMENT}, section 2: up to 2^(n-1) + 1 bodies"
_APPENDIX = f"{_DOCUMENT}, section A.2"
_NEGLIGIBLE = 1e-10
_SETTING = (
    "Distributions over 5 sites and 3 tokens are learned in full. The source has 20 sites, 10 tokens and 25,600 "
    "samples. One distribution of this size is measured without a claim."
)
_PAIR_SETTING = (
    "Distributions over 5 sites and 3 tokens are learned in full. The source cites another paper for this."
)
_WITHOUT, _WITH = "not norm", "norm"
_stairs = partial(Claim, source=_STAIRS, published="below", statement_id="clones:S1-Fig2b", setting=_SETTING)
_graded_stairs = partial(_stairs, grade=True)
_pairs = partial(
    graded, source=_PAIRS, published="infers the interactions exactly", statement_id="clones:S1-2body"
)
_onsets = partial(ours, source=_ONSETS)

CLAIMS = (
    _graded_stairs(
        "one-layer-reaches-two-bodies",
        "One layer ends within 0.01 nats of the best two-body conditionals in product form (loss above the bound).",
        stats.excess(1).near(0, margin=0.01),
        published="converges to the two-body loss",
    ),
    _graded_stairs(
        "two-layers-reach-three-bodies",
        "Two layers end within 0.01 nats of the best three-body conditionals in product form (loss above the bound).",
        stats.excess(2).near(0, margin=0.01),
        published="converges to the three-body loss",
    ),
    _graded_stairs(
        "three-layers-reach-four-bodies",
        "Three layers end within 0.01 nats of the entropy of the law, which has four bodies (loss above it).",
        stats.excess(3).near(0, margin=0.01),
        published="converges to the four-body loss",
    ),
    _stairs(
        "two-layers-below-one", "Two layers end at a lower loss than one.", stats.loss(1) - stats.loss(2) > 0
    ),
    _stairs(
        "three-layers-below-two",
        "Three layers end at a lower loss than two.",
        stats.loss(2) - stats.loss(3) > 0,
    ),
    _graded_stairs(
        "stands-at-two-bodies",
        "On their way three layers stand within 0.01 nats of the loss of one for longer than the fall to it took "
        "(ratio of steps).",
        stats.standing(1).as_ratio() > 1,
        published="a plateau at the two-body loss",
    ),
    _graded_stairs(
        "stands-at-three-bodies",
        "Then they stand within 0.01 nats of the loss of two for longer than the fall from the first plateau took "
        "(ratio of steps).",
        stats.standing(2).as_ratio() > 1,
        published="a plateau at the three-body loss",
    ),
    Claim(
        "layers-set-out-last-to-first",
        "Of three layers the last sets out first, then the middle one, then the first, in more than 4 of 5 trainings "
        "(a layer has set out where its displacement is a tenth of its last).",
        stats.in_order() > 0.8,
        **cited(_ONSETS, "last, second, first", "clones:S1-Fig2c", grade=True, setting=_SETTING),
    ),
    _pairs(
        "one-layer-recovers-couplings",
        "On a law of two bodies the attention of one factored layer is J off the diagonal (absolute correlation).",
        stats.pairs("couplings") > 0.99,
    ),
    _pairs(
        "one-layer-recovers-similarities",
        "Its values are U, up to what no law shows (absolute correlation).",
        stats.pairs("similarities") > 0.99,
    ),
    _pairs(
        "one-layer-learns-two-bodies",
        "Its loss is the entropy of the law (nats above it).",
        stats.pair_excess("factored") < 1e-3,
    ),
    Claim(
        "standard-attention-struggles",
        "One layer of standard attention of the same width ends at a higher loss than one factored layer.",
        stats.pair_excess("standard") - stats.pair_excess("factored") > 0,
        **cited(_PAIRS, "struggles", "clones:S1-2body", setting=_PAIR_SETTING),
    ),
    Claim(
        "orders-end-at-the-bound",
        "Random networks of one to four layers without a layer norm have no interactions above 2^(n-1) + 1 bodies "
        "(largest coefficient beyond, over the largest of all).",
        largest("spectrum", "beyond", where=_WITHOUT) < _NEGLIGIBLE,
        **cited(_ORDER, "2^(n-1) + 1", "clones:S1-degree", grade=True),
    ),
    Claim(
        "orders-end-at-layers-plus-one",
        "They have none above n + 1 bodies, as section A.2 says (most bodies beyond, over one to four layers).",
        largest("spectrum", "bodies - printed", where=_WITHOUT) < 0.5,
        **cited(_APPENDIX, "at most n + 1", "clones:S1-clones", grade=True),
    ),
    Claim(
        "layer-norm-keeps-the-bound",
        "With a layer norm, as the networks for text have, networks of two to four layers keep the bound (largest "
        "coefficient beyond, over the largest of all).",
        largest("spectrum", "beyond", where=f"{_WITH} and layers > 1") < _NEGLIGIBLE,
        **cited(_APPENDIX, "layer norm, and a maximum degree", "clones:S1-clones", grade=True),
    ),
    ours(
        "bound-is-attained",
        "The order 2^(n-1) + 1 is there in random networks (smallest coefficient of it, over the largest of all).",
        smallest("spectrum", "top", where=_WITHOUT) > 1e-9,
        _ORDER,
    ),
    _onsets(
        "last-layer-first",
        "Of three layers the last sets out before both others, in more than 4 of 5 trainings.",
        stats.last_first() > 0.8,
    ),
    _onsets(
        "last-of-two-layers-first",
        "Of two layers the last sets out first, in more than 4 of 5 trainings.",
        stats.last_first(2) > 0.8,
    ),
    _onsets(
        "middle-before-first-is-no-rule",
        "The middle of three layers sets out before the first in fewer than 4 of 5 trainings.",
        stats.middle_before_first() < 0.8,
    ),
    ours(
        "first-and-middle-begin-alike",
        "Exchanging the first and the middle layer changes what they add to the logits by a share that vanishes with "
        "small weights: by more than the third power of their scale (exponent of a fit, mean over laws).",
        stats.exchange_exponent() > 3,
        f"{_DOCUMENT}, equation 3",
    ),
)

_LARGE = "at the document's size"

NUMBERS = {
    **{f"loss of {layers} layers": stats.loss(layers) for layers in FORMS},
    **{f"bound of {form} bodies": stats.bound(form) for form in FORMS.values()},
    **{f"excess of {layers} layers": stats.excess(layers) for layers in FORMS},
    **{f"loss of {layers} layers {_LARGE}": stats.large_loss(layers) for layers in FORMS},
    **{f"bound of {form} bodies {_LARGE}": stats.large_bound(form) for form in FORMS.values()},
    "share in order": stats.in_order(),
    "share with the last first": stats.last_first(),
    "share with the middle before the first": stats.middle_before_first(),
    "standing at two bodies": stats.standing(1).as_ratio(),
    "standing at three bodies": stats.standing(2).as_ratio(),
    "standard attention above the entropy": stats.pair_excess("standard"),
    "factored attention above the entropy": stats.pair_excess("factored"),
    "exponent of the exchange": stats.exchange_exponent(),
    "coefficient beyond with a layer norm": largest("spectrum", "beyond", where=f"{_WITH} and layers > 1"),
}
