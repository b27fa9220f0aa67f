"""Claims of the study, and the numbers for documents."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, ours
from trialogue_lab.studies.clones import statistics as stats
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, factored_name

_FIGURE_4 = "Figure 4"
NEAR_MINIMUM = "within 5 % of its fall from its minimum"
_SMALLEST_LOSS = "the late fall ends at the smallest loss, like the total fall, and not at the last loss"
_SMALL_SETTING = (
    "Except at `paper`, a vocabulary of 320 tokens, sequences of 16, clones of one network each with 1, 2 and 4 "
    "factored layers, and a small encoder trained by AdamW"
)
_ONE_SET = "All trainings of a run share one set of clones, and the intervals do not include its variation."
_TINYSTORIES = (
    f"{_SMALL_SETTING}. The source has 10,000 tokens in sequences of 128, 2, 4 and 6 layers, and BERT trained by "
    "SGD."
)
_WIKITEXT = (
    f"{_SMALL_SETTING}, on TinyStories. The source has WikiText-103, 500 tokens in sequences of 64, and BERT with "
    f"SGD. {_ONE_SET}"
)

_figure_1 = partial(cited, "Figure 1", statement_id="clones:S1-Fig1", setting=_WIKITEXT)
_figure_3a = partial(cited, "Figure 3a", statement_id="clones:S1-Fig3.panel-a", setting=_TINYSTORIES)
_figure_3c = partial(
    cited, "Figure 3c", statement_id="clones:S1-Fig3.panel-c", setting=f"{_TINYSTORIES} {_ONE_SET}"
)
_figure_4 = partial(cited, statement_id="clones:S1-Fig4", setting=f"{_TINYSTORIES} {_ONE_SET}")
_figures = partial(_figure_4, "Figure 1 and Figure 4")
_right_panel = partial(_figure_4, "Figure 4, right panel")


LOW_ORDERS_FIRST = (
    "low-orders-first",
    f"The loss on the clone of the lowest order is at its lowest ({NEAR_MINIMUM}) before that on the clone of all "
    "orders (ratio of steps).",
    stats.later(PUBLISHED).as_ratio() > 1,
)
IN_ORDER = (
    "in-order",
    f"Losses on clones are at their lowest ({NEAR_MINIMUM}) in the order of their interactions, for all clones (share "
    "of trainings).",
    stats.in_order(PUBLISHED) > 0.8,
)
HIGH_ORDERS_KEEP_IMPROVING = (
    "high-orders-keep-improving",
    "From three tenths of the steps to the last, the loss on the clone of all orders falls by more than that on the "
    "clone of the lowest order (nats per token).",
    stats.late_gain(PUBLISHED).corrected(stats.INTERPOLATED).corrected(stats.UP_TO_MINIMUM) > 0,
)
"""Id, statement and criterion of a claim. `clones` and `clones-gpt` share these three claims."""


def gibbs_claims(figure: str) -> tuple[Claim, ...]:
    """Return the claims about losses on clones that are sampled by Gibbs sampling.

    A clone is a set of sequences sampled from a trained network. In the published figure, another Markov chain samples
    the clones. These claims are the control.

    Args:
        figure: Name of the published figure, for example "Figure 4".
    """
    control = partial(ours, source=f"{figure} (the source does not sample clones by Gibbs)")
    return (
        control(
            "low-orders-first-gibbs",
            "The loss on the clone of the lowest order is at its lowest before that on the clone of all orders (ratio "
            "of steps) where clones are drawn by Gibbs.",
            stats.later(GIBBS).as_ratio() > 1,
        ),
        control(
            "high-orders-keep-improving-gibbs",
            "The loss on the clone of all orders falls by more in the end than that on the clone of the lowest order "
            "(nats per token) where clones are drawn by Gibbs.",
            stats.late_gain(GIBBS).corrected(stats.INTERPOLATED).corrected(stats.UP_TO_MINIMUM) > 0,
        ),
    )


CLAIMS = (
    Claim(
        "deeper-is-better",
        "Every factored network loses less on held-out text than the next shallower one (smallest gain, nats per "
        "token).",
        stats.least_gain() > 0,
        **_figure_3a("decreases systematically with depth"),
    ),
    Claim(
        "encoder-is-best",
        "The encoder loses less on held-out text than the deepest factored network (nats per token).",
        stats.encoder_gain() > 0,
        **_figure_3a("the encoder has the lowest loss"),
    ),
    *(
        Claim(
            f"sweeps-change-little-{name}",
            f"The losses of an encoder on the clone of {what} after the first and after the last number of sweeps "
            "differ by less than 2 % at every step (largest relative difference).",
            stats.between_sweeps(name, PUBLISHED) < 0.02,
            **_figure_3c("really similar", grade=True),
        )
        for name, what in ((factored_name(4), "four factored layers"), (ENCODER, "an encoder"))
    ),
    Claim(*LOW_ORDERS_FIRST, **_figures("low orders saturate, high orders keep improving")),
    Claim(*IN_ORDER, **_figures("'the same sequential learning dynamics' (means of five runs)", grade=True)),
    Claim(
        "curves-coincide-early",
        "Losses on clones coincide early: up to a third of the step at which the lowest order is at its lowest they "
        "differ by less than 5 % of the fall of the loss on the text.",
        stats.early_spread(PUBLISHED) < 0.05,
        **_figure_1("coincide up to 20 epochs, saturate after 60", grade=True),
    ),
    Claim(
        *HIGH_ORDERS_KEEP_IMPROVING,
        **_right_panel("the encoder's clone keeps decreasing, the three-body clone does not"),
    ),
    Claim(
        "lowest-order-stops",
        "Less than 5 % of the fall of the loss on the clone of the lowest order comes after a tenth of the steps.",
        stats.late_share(PUBLISHED).corrected(f"{_SMALLEST_LOSS}; {stats.INTERPOLATED}") < 0.05,
        **_right_panel("no significant change beyond 1e4 of 1e5 steps", grade=True),
    ),
    *gibbs_claims(_FIGURE_4),
    *(
        ours(
            f"exact-clones-{low}-before-{high}",
            f"On a known law of four-body energies, whose clones are exact, the loss on its part of at most {low} "
            f"bodies is at its lowest before that on its part of at most {high} (ratio of steps).",
            stats.twin_later(high, low).as_ratio() > 1,
            f"{_FIGURE_4} (the source has no exact clones)",
        )
        for low, high in ((2, 3), (3, 4))
    ),
    *(
        ours(
            f"raw-scores-sharpen-{order}",
            f"Given the exact conditionals of a law of {order}-body interactions, the published chain samples another "
            "law, more than 0.1 away in total variation (mean over laws).",
            stats.distance(order, PUBLISHED) > 0.1,
            "Section A.3, interpreted as an energy of k bodies",
        )
        for order in (2, 3, 4)
    ),
)

NUMBERS = {
    "later by, published chain": stats.later(PUBLISHED).as_ratio(),
    "later by, Gibbs": stats.later(GIBBS).as_ratio(),
    **{f"exact clone of {order} bodies, step": stats.twin_saturation(order) for order in (2, 3, 4)},
    **{f"published chain from the law of {k} bodies": stats.distance(k, PUBLISHED) for k in (2, 3, 4)},
}
