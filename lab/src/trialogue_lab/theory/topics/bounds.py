"""Intervals and leading-order values of optimal attention (Theorems 2.1.3 and 2.1.5).

The proofs bound the loss on three ranges, which leaves an interval for gamma ("block") or beta ("diagonal").
The asymptotic losses, equations 2.27 and 2.36, are minimized exactly.
"""

import math
from typing import NamedTuple

from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.validation import InstanceOf, validated
from trialogue_lab.theory.topics.attention import Values, Variant
from trialogue_lab.theory.topics.values import constants


class AttentionBounds(NamedTuple):
    """Published interval of the optimum, and the leading-order optimum with its loss.

    For block values, they refer to gamma = ((v - 1) alpha + beta) / v, and `ratio` is infinite. For diagonal
    values, they refer to beta. alpha is then below `ratio` times beta, and zero to leading order.
    """

    low: float
    high: float
    ratio: float
    optimum: float
    loss: float


@validated
def attention_bounds(
    model: InstanceOf[TopicModel],
    masking: InstanceOf[BertMasking],
    values: Values = "block",
    variant: Variant = "printed",
) -> AttentionBounds:
    """Return the interval of Theorem 2.1.3 or Theorem 2.1.5.

    These are (lambda_1 (tau - 1), lambda_2 T) and (lambda_3 tau, lambda_4 T). The interval is as published for every
    variant, while the optimum depends on the variant. The assumptions of the theorems are not checked.

    Args:
        model: Topic model.
        masking: Masking probabilities.
        values: Values of the layer.
        variant: Treatment of [MASK] positions, as in `attention_loss`.

    Raises:
        InputError: If an end is undefined: without random words, or for diagonal values if v is too small for
            a positive lambda_4.
    """
    c4 = constants(model, masking).c3
    topics, size, tau = model.topics, model.words_per_topic, model.topics_per_document
    assert tau is not None
    random = masking.p_mask * masking.p_random
    if random == 0:
        hint = "without random words no upper end is finite: use more"
        raise InputError("p_random", masking.p_random, hint)
    kept = 1 / c4
    hidden = masking.p_mask * masking.p_hidden if variant == "mask" else 0.0
    # What queries of the document's topics give to others of no topic of it, over p_1.
    away = c4 * tau * (random + hidden)
    if values == "block":
        return AttentionBounds(
            (kept + random) * (2 - kept) / (2 * kept) * (tau - 1),
            100 * (kept / random + 1) * topics,
            math.inf,
            (tau - 1 + away) / (c4 - 1),
            masking.p_correct * (1 - 1 / size) + masking.p_random,
        )
    if math.sqrt(size - 1) - 1 - kept <= 0:
        hint = f"lambda_4 is positive with more than {(1 + kept) ** 2 + 1:.3g} words a topic: use as many"
        raise InputError("words_per_topic", size, hint)
    return AttentionBounds(
        (kept + random) * size / 100 * tau,
        kept
        / (math.sqrt(size - 1) - 1 - kept)
        * (1 - masking.p_mask * masking.p_hidden)
        / random
        * size
        * topics,
        c4 / (size - 1),
        size * (tau + away) / (c4 - 1),
        masking.p_random,
    )
