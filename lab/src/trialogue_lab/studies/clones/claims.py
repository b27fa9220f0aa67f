"""Claims of the study, and the quantities that texts quote."""

from trialogue_lab.ledger import Claim
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, of_layers
from trialogue_lab.studies.clones.statistics import (
    INTERPOLATED,
    TO_THE_LEAST,
    between_sweeps,
    distance,
    early_spread,
    encoder_gain,
    in_order,
    late_gain,
    late_share,
    later,
    least_gain,
    twin_later,
    twin_saturation,
)

_GROWING, _FOLLOWED, _EARLY = "Figure 3a", "Figure 4", "Figure 1"
_SECTION = "Section A.3, read as an energy of k bodies"
_LOWEST = "within 5 % of its fall from its minimum"
_LEAST = "the late fall ends at the least loss, as the whole fall does, and not at the last"
_SIZES = (
    "Except at `paper`, a vocabulary of 320 tokens, sequences of 16, clones of one network each with 1, 2 and 4 "
    "factored layers, and a small encoder trained by AdamW"
)
_STORIES = (
    f"{_SIZES}; the source has 10,000 tokens in sequences of 128, 2, 4 and 6 layers, and BERT trained by SGD."
)
_WIKITEXT = f"{_SIZES}, on TinyStories; the source has WikiText-103, 500 tokens in sequences of 64, and BERT with SGD."

CLAIMS = (
    Claim(
        "deeper-is-better",
        "Every factored network loses less on held-out text than the next shallower one (smallest gain, nats per "
        "token).",
        least_gain() > 0,
        _GROWING,
        "decreases systematically with depth",
        statement_id="clones:S1-Fig3.panel-a",
        setting=_STORIES,
    ),
    Claim(
        "encoder-is-best",
        "The encoder loses less on held-out text than the deepest factored network (nats per token).",
        encoder_gain() > 0,
        _GROWING,
        "the encoder has the lowest loss",
        statement_id="clones:S1-Fig3.panel-a",
        setting=_STORIES,
    ),
    *(
        Claim(
            f"sweeps-change-little-{name}",
            f"The losses of an encoder on the clone of {what} after the first and after the last number of sweeps "
            "differ by less than 2 % at every step (largest relative difference).",
            between_sweeps(name, PUBLISHED) < 0.02,
            "Figure 3c",
            "really similar",
            grade=True,
            statement_id="clones:S1-Fig3.panel-c",
            setting=_STORIES,
        )
        for name, what in ((of_layers(4), "four factored layers"), (ENCODER, "an encoder"))
    ),
    Claim(
        "low-orders-first",
        f"The loss on the clone of the lowest order is at its lowest ({_LOWEST}) before that on the clone of all "
        "orders (ratio of steps).",
        later(PUBLISHED).as_ratio() > 1,
        f"{_EARLY} and {_FOLLOWED}",
        "low orders saturate, high orders keep improving",
        statement_id="clones:S1-Fig4",
        setting=_STORIES,
    ),
    Claim(
        "in-order",
        f"Losses on clones are at their lowest ({_LOWEST}) in the order of their interactions, for all clones (share "
        "of trainings).",
        in_order(PUBLISHED) > 0.8,
        f"{_EARLY} and {_FOLLOWED}",
        "'the same sequential learning dynamics' (means of five runs)",
        grade=True,
        statement_id="clones:S1-Fig4",
        setting=_STORIES,
    ),
    Claim(
        "curves-coincide-early",
        "Losses on clones coincide early: up to a third of the step at which the lowest order is at its lowest they "
        "differ by less than 5 % of the fall of the loss on the text.",
        early_spread(PUBLISHED) < 0.05,
        _EARLY,
        "coincide up to 20 epochs, saturate after 60",
        grade=True,
        statement_id="clones:S1-Fig1",
        setting=_WIKITEXT,
    ),
    Claim(
        "high-orders-keep-improving",
        "From three tenths of the steps to the last, the loss on the clone of all orders falls by more than that on "
        "the clone of the lowest order (nats per token).",
        late_gain(PUBLISHED).corrected(INTERPOLATED).corrected(TO_THE_LEAST) > 0,
        f"{_FOLLOWED}, right panel",
        "the encoder's clone keeps decreasing, the three-body clone does not",
        statement_id="clones:S1-Fig4",
        setting=_STORIES,
    ),
    Claim(
        "lowest-order-stops",
        "Less than 5 % of the fall of the loss on the clone of the lowest order comes after a tenth of the steps.",
        late_share(PUBLISHED).corrected(f"{_LEAST}; {INTERPOLATED}") < 0.05,
        f"{_FOLLOWED}, right panel",
        "no significant change beyond 1e4 of 1e5 steps",
        grade=True,
        statement_id="clones:S1-Fig4",
        setting=_STORIES,
    ),
    *(
        Claim(
            f"{identity}-gibbs",
            f"{said} where clones are drawn by Gibbs.",
            criterion,
            f"{_FOLLOWED} (the source draws no clones so)",
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
    *(
        Claim(
            f"exact-clones-{low}-before-{high}",
            f"On a known law of four-body energies, whose clones are exact, the loss on its part of at most {low} "
            f"bodies is at its lowest before that on its part of at most {high} (ratio of steps).",
            twin_later(high, low).as_ratio() > 1,
            f"{_FOLLOWED} (the source has no exact clones)",
            origin="ours",
        )
        for low, high in ((2, 3), (3, 4))
    ),
    *(
        Claim(
            f"raw-scores-sharpen-{order}",
            f"Given the exact conditionals of a law of {order}-body interactions, the published chain samples another "
            "law, more than 0.1 away in total variation (mean over laws).",
            distance(order, PUBLISHED) > 0.1,
            _SECTION,
            origin="ours",
        )
        for order in (2, 3, 4)
    ),
)

NUMBERS = {
    "later by, published chain": later(PUBLISHED).as_ratio(),
    "later by, Gibbs": later(GIBBS).as_ratio(),
    **{f"exact clone of {order} bodies, step": twin_saturation(order) for order in (2, 3, 4)},
    **{f"published chain from the law of {order} bodies": distance(order, PUBLISHED) for order in (2, 3, 4)},
}
