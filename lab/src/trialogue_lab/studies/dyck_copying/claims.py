"""Claims of the study about Figures 2.19 to 2.21, with a control."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, ours
from trialogue_lab.studies.dyck_copying.statistics import copied, last_layer, lost, sharpest

_FOUR, _ONE, _FORCED = "4 layers", "1 layer", "1 layer, no residual"

_TRAINED = (
    "Networks of `night` take 200 updates of 100 prefixes of 28 brackets. The source does not print how its networks "
    "were trained."
)
_ACCURATE = f"{_TRAINED} Our networks copy every bracket. Those of the source copy more than 96 % and 90 %."
_MEAN = (
    "The verdict is about the mean over networks that copy every bracket. The figure shows one network. According to "
    "Figure 2.21, other networks attend to the current position, which solves the task."
)
_accuracy = partial(cited, statement_id="thesis:D-copy.accuracy", setting=_TRAINED)
_attention = partial(cited, statement_id="thesis:D-copy.attention", grade=True)

CLAIMS = (
    Claim(
        "four-layers-copy",
        "Networks of four layers copy more than 96 % of the brackets.",
        copied(_FOUR) > 0.96,
        **_accuracy("Figures 2.19 and 2.21", "> 96 %"),
    ),
    Claim(
        "one-layer-copies",
        "Networks of one layer copy more than 90 %.",
        copied(_ONE) > 0.9,
        **_accuracy("Figure 2.20", "> 90 %"),
    ),
    Claim(
        "attention-of-four-layers-says-nothing",
        "With uniform attention in place of their own, networks of four layers copy less than 2 % of brackets less.",
        lost(_FOUR) < 0.02,
        **_attention("Figure 2.19", "none of them are informative", setting=_MEAN),
    ),
    Claim(
        "attention-of-one-layer-says-nothing",
        "So do networks of one layer.",
        lost(_ONE) < 0.02,
        **_attention("Figure 2.20", "not informative", setting=_ACCURATE),
    ),
    ours(
        "some-layer-seems-to-say-something",
        "In networks of four layers some layer is further from uniform attention than half of what two random "
        "patterns are apart.",
        sharpest(_FOUR) > 0.5,
        "Figure 2.19",
    ),
    ours(
        "without-a-residual-attention-copies",
        "Without a residual, uniform attention costs more than half of the accuracy of one layer.",
        lost(_FORCED) > 0.5,
        "Section 2.2.4.1",
    ),
)

NUMBERS = {
    "four layers, copied": copied(_FOUR),
    "four layers, uniform attention": copied(_FOUR, "uniform"),
    "one layer, uniform attention": copied(_ONE, "uniform"),
    "no residual, uniform attention": copied(_FORCED, "uniform"),
    "four layers, furthest from uniform": sharpest(_FOUR),
    "four layers, last layer on closing": last_layer(_FOUR, "on_closing"),
}
