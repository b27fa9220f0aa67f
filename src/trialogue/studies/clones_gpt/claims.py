"""Claims of the study, and the quantities that texts quote."""

from trialogue.ledger import Claim
from trialogue.studies.clones.config import ENCODER, GIBBS, PUBLISHED
from trialogue.studies.clones.quantities import (
    INTERPOLATED,
    in_order,
    late_gain,
    later,
    lowest_saturation,
    saturation,
)

_SOURCE = "Figure 5"
_LOWEST = "within 5 % of its fall from its minimum"

CLAIMS = (
    Claim(
        "low-orders-first",
        f"The loss on the clone of the lowest order is at its lowest ({_LOWEST}) before that on the clone of all "
        "orders (ratio of steps).",
        later(PUBLISHED).as_ratio() > 1,
        _SOURCE,
        "low-order clones saturate, higher-order clones keep decreasing",
    ),
    Claim(
        "lowest-order-within-500-steps",
        f"The loss on the clone of the lowest order is at its lowest ({_LOWEST}) within 500 steps.",
        lowest_saturation(PUBLISHED).as_ratio() < 500,
        _SOURCE,
        "within the first 500 training steps",
    ),
    Claim(
        "in-order",
        f"Losses on clones are at their lowest ({_LOWEST}) in the order of their interactions, for all clones (share "
        "of trainings).",
        in_order(PUBLISHED) > 0.8,
        _SOURCE,
        "'consistent with respect to different random seeds'",
        grade=True,
    ),
    Claim(
        "high-orders-keep-improving",
        "From three tenths of the steps to the last, the loss on the clone of all orders falls by more than that on "
        "the clone of the lowest order (nats per token).",
        late_gain(PUBLISHED).corrected(INTERPOLATED) > 0,
        _SOURCE,
        "higher-order clones keep decreasing",
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
                late_gain(GIBBS).corrected(INTERPOLATED) > 0,
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
