"""Published intervals for the optimal attention weights (Theorems 2.1.3 and 2.1.5 of the thesis).

A position attends with weight beta to its own word, alpha to the other words of its topic, and 1 to all
others. With v words per topic, the intervals are for gamma = ((v - 1) alpha + beta) / v ("block" values) or
beta ("diagonal" values). The approximate losses for large models, equations 2.27 and 2.36, are minimized
exactly.
"""

import math
from typing import NamedTuple

from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.validation import InstanceOf, validated
from trialogue_lab.theory.topics.attention import Values, Variant
from trialogue_lab.theory.topics.values import constants


class AttentionBounds(NamedTuple):
    """Published interval for the optimal attention weights of a topic model, and the optimum to leading order.

    A position attends with weight beta to its own word, alpha to the other words of its topic, and 1 to all others.
    There are v words per topic. The interval is for gamma = ((v - 1) alpha + beta) / v with "block" values, and for
    beta with "diagonal" values.

    Attributes:
        low: Lower end of the interval.
        high: Upper end of the interval.
        ratio: Upper bound on alpha / beta at the optimum for diagonal values; infinite for block values.
        optimum: Optimum to leading order. For diagonal values, alpha is zero to this order.
        loss: Loss at this optimum.
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
    """Return the published interval for the optimal attention weights, and their leading-order values.

    With T topics and tau topics per document, the interval is (lambda_1 (tau - 1), lambda_2 T) for block
    values (Theorem 2.1.3) and (lambda_3 tau, lambda_4 T) for diagonal values (Theorem 2.1.5). The assumptions
    of the theorems are not checked.

    Args:
        model: Topic model.
        masking: Masking probabilities.
        values: Value matrix of the layer, "block" (see `optimal_values`) or "diagonal" (see
            `diagonal_values`).
        variant: Treatment of [MASK] positions, as in `attention_loss`. It changes the optimum, but not the
            interval.

    Raises:
        InputError: If an end of the interval is undefined, for example without random words.
    """
    c4 = constants(model, masking).c3
    topics, size, tau = model.topics, model.words_per_topic, model.topics_per_document
    assert tau is not None
    random = masking.p_mask * masking.p_random
    if random == 0:
        hint = "without random words, the interval has no finite upper end: use a probability above 0"
        raise InputError("p_random", masking.p_random, hint)
    kept = 1 / c4
    hidden = masking.p_mask * masking.p_hidden if variant == "mask" else 0.0
    # Attention from queries of the document's topics to words of absent topics, divided by p_1.
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
