"""Claims of the study, and the numbers for documents."""

from functools import partial

from trialogue_lab.ledger import Claim, cited
from trialogue_lab.studies.clones import claims as clones
from trialogue_lab.studies.clones import statistics as stats
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED

_SOURCE = "Figure 5"
_SETTING = (
    "Except at `paper`, a vocabulary of 320 tokens, sequences of 16, clones of one network each with 1, 2 and 4 "
    "factored layers, and a small decoder of two layers at four times the source's learning rate. The source has "
    "10,000 tokens in sequences of 128, 2, 4 and 6 layers, and a GPT-Neo of width 768. All trainings of a run share "
    "one set of clones, and the intervals do not include its variation."
)
_figure = partial(cited, _SOURCE, statement_id="clones:S1-Fig5", setting=_SETTING)

CLAIMS = (
    Claim(
        *clones.LOW_ORDERS_FIRST, **_figure("low-order clones saturate, higher-order clones keep decreasing")
    ),
    Claim(
        "low-orders-saturate-before-all-orders",
        "The losses on the clones of all factored networks but the deepest are at their lowest "
        f"({clones.NEAR_MINIMUM}) before that on the clone of all orders (ratio of steps, the latest of them).",
        stats.low_orders_later(PUBLISHED).as_ratio() > 1,
        **_figure(
            "low-order clones saturate within the first 500 training steps, higher-order clones keep decreasing",
            setting=f"{_SETTING} Here, losses on all clones rise again after their minimum.",
        ),
    ),
    Claim(*clones.IN_ORDER, **_figure("'consistent with respect to different random seeds'", grade=True)),
    Claim(*clones.HIGH_ORDERS_KEEP_IMPROVING, **_figure("higher-order clones keep decreasing")),
    Claim(
        "all-orders-keep-decreasing",
        "The loss on the clone of all orders is lower after the last step than after three tenths of the steps (fall "
        "in nats per token).",
        stats.late_change(ENCODER, PUBLISHED) > 0,
        **_figure("higher-order clones keep decreasing throughout the entire training period"),
    ),
    *clones.gibbs_claims(_SOURCE),
)

NUMBERS = {
    "later by, published chain": stats.later(PUBLISHED).as_ratio(),
    "later by, Gibbs": stats.later(GIBBS).as_ratio(),
    "lowest order, step": stats.lowest_saturation(PUBLISHED).as_ratio(),
    "all orders, step": stats.saturation(ENCODER, PUBLISHED).as_ratio(),
}
