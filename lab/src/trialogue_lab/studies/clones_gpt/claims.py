"""Claims of the study, and the quantities that texts quote."""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED
from trialogue_lab.studies.clones.statistics import (
    INTERPOLATED,
    TO_THE_LEAST,
    in_order,
    late_change,
    late_gain,
    later,
    low_orders_later,
    lowest_saturation,
    saturation,
)

_SOURCE = "Figure 5"
_LOWEST = "within 5 % of its fall from its minimum"
_SETTING = (
    "Except at `paper`, a vocabulary of 320 tokens, sequences of 16, clones of one network each with 1, 2 and 4 "
    "factored layers, and a small decoder of two layers at four times the source's learning rate; the source has "
    "10,000 tokens in sequences of 128, 2, 4 and 6 layers, and a GPT-Neo of width 768."
)

CLAIMS = (
    Claim(
        "low-orders-first",
        f"The loss on the clone of the lowest order is at its lowest ({_LOWEST}) before that on the clone of all "
        "orders (ratio of steps).",
        later(PUBLISHED).as_ratio() > 1,
        _SOURCE,
        "low-order clones saturate, higher-order clones keep decreasing",
        statement_id="clones:S1-Fig5",
        setting=_SETTING,
    ),
    Claim(
        "low-orders-saturate-before-all-orders",
        f"The losses on the clones of all factored networks but the deepest are at their lowest ({_LOWEST}) before "
        "that on the clone of all orders (ratio of steps, the latest of them).",
        low_orders_later(PUBLISHED).as_ratio() > 1,
        _SOURCE,
        "low-order clones saturate within the first 500 training steps, higher-order clones keep decreasing",
        statement_id="clones:S1-Fig5",
        setting=f"{_SETTING} Here losses on all clones rise again after their least value.",
    ),
    Claim(
        "in-order",
        f"Losses on clones are at their lowest ({_LOWEST}) in the order of their interactions, for all clones (share "
        "of trainings).",
        in_order(PUBLISHED) > 0.8,
        _SOURCE,
        "'consistent with respect to different random seeds'",
        grade=True,
        statement_id="clones:S1-Fig5",
        setting=_SETTING,
    ),
    Claim(
        "high-orders-keep-improving",
        "From three tenths of the steps to the last, the loss on the clone of all orders falls by more than that on "
        "the clone of the lowest order (nats per token).",
        late_gain(PUBLISHED).corrected(INTERPOLATED).corrected(TO_THE_LEAST) > 0,
        _SOURCE,
        "higher-order clones keep decreasing",
        statement_id="clones:S1-Fig5",
        setting=_SETTING,
    ),
    Claim(
        "all-orders-keep-decreasing",
        "The loss on the clone of all orders is lower after the last step than after three tenths of the steps (fall "
        "in nats per token).",
        late_change(ENCODER, PUBLISHED) > 0,
        _SOURCE,
        "higher-order clones keep decreasing throughout the entire training period",
        statement_id="clones:S1-Fig5",
        setting=_SETTING,
    ),
    *(
        Claim(
            f"{identity}-gibbs",
            f"{said} where clones are drawn by Gibbs.",
            criterion,
            f"{_SOURCE} (the source draws no clones so)",
            origin="ours",
        )
        for identity, said, criterion in (
            (
                "low-orders-first",
                "The loss on the clone of the lowest order is at its lowest before that on the clone of all orders "
                "(ratio of steps)",
                later(GIBBS).as_ratio() > 1,
            ),
            (
                "high-orders-keep-improving",
                "The loss on the clone of all orders falls by more in the end than that on the clone of the lowest "
                "order (nats per token)",
                late_gain(GIBBS).corrected(INTERPOLATED).corrected(TO_THE_LEAST) > 0,
            ),
        )
    ),
)

NUMBERS = {
    "later by, published chain": later(PUBLISHED).as_ratio(),
    "later by, Gibbs": later(GIBBS).as_ratio(),
    "lowest order, step": lowest_saturation(PUBLISHED).as_ratio(),
    "all orders, step": saturation(ENCODER, PUBLISHED).as_ratio(),
}
