"""Claims of the study: statements of the document that a text can test, and additional claims of ours."""

from functools import partial

from trialogue_lab.ledger import Claim, cited, largest, ours, smallest
from trialogue_lab.studies.memorization_text import config, statistics

_THEOREM_1 = "Theorem 1"
_ATTENTION_ONLY = " or ".join(
    f"method == '{each}'" for each in (config.EXACT, config.LIKELIEST, config.RIDGE, config.TRAINED)
)
_theorem_1 = partial(ours, source=_THEOREM_1)

CLAIMS = (
    Claim(
        "every-context-is-held",
        "With more features than contexts the network is as near to the law of the text as the nearest sequence "
        "encoder, within 0.001 nats (largest, all samples, S and d).",
        largest("network", "kl - encoder_kl", where=f"method == '{config.EXACT}'") < 1e-3,
        **cited(f"{_THEOREM_1}, eps = 0", "up to any gamma > 0", "memorization:K-T1", grade=True),
    ),
    Claim(
        "no-network-is-nearer-than-the-encoder",
        "No network of a width, built or trained, is nearer to the law than the nearest encoder that was found, by "
        "more than 1e-6 nats (least, all samples and settings).",
        smallest("network", "kl - encoder_kl", where=_ATTENTION_ONLY) > -1e-6,
        **cited("Proposition 1", "d_KL(pi, T) >= d_KL(pi, L)", "memorization:Prop-1", grade=True),
    ),
    Claim(
        "tight-bound",
        "(13) bounds |KL(network) - KL(encoder)| of networks that hold the likeliest contexts (least logarithm of the "
        "ratio, all samples and settings).",
        statistics.least_slack("tight") > -1e-9,
        **cited(f"{_THEOREM_1}, equation 13", "an upper bound", "memorization:K-T1", grade=True),
    ),
    Claim(
        "loose-bound",
        "(14) bounds it too, where it is finite: where the contexts held end in at least d tokens.",
        statistics.least_slack("loose") > -1e-9,
        **cited(f"{_THEOREM_1}, equation 14", "an upper bound", "memorization:K-T1", grade=True),
    ),
    ours(
        "the-printed-bound-is-loose",
        "Bound (14) is more than a hundred times what it bounds (decimal logarithm, mean over settings).",
        statistics.tightness("loose") > 2,
        f"{_THEOREM_1}, equation 14",
    ),
    _theorem_1(
        "ridge-regression-is-nearer",
        "Ridge regression on all contexts is more than ten times nearer to the law than holding the likeliest "
        "(decimal logarithm, mean over settings).",
        statistics.digits_over(config.LIKELIEST, config.RIDGE) > 1,
    ),
    _theorem_1(
        "half-of-the-contexts-are-worse-than-none",
        "With features for half of the contexts, the likeliest held exactly, the network is farther from the law than "
        "the law of single tokens is (decimal logarithm, least over S and d).",
        statistics.digits_over_alone(config.LIKELIEST, 0.5) > 0,
    ),
    _theorem_1(
        "training-is-nearer-than-construction",
        "Where features are fewer than contexts, a network of the same shape that was trained on the text is nearer to "
        "its law than ridge regression (decimal logarithm, mean over S and d).",
        statistics.digits_over(config.RIDGE, config.TRAINED) > 0,
    ),
    ours(
        "attention-alone-is-nearer-than-a-transformer",
        "It is also nearer than a transformer of as many parameters after as many steps (decimal logarithm, mean over "
        "S and d).",
        statistics.digits_over(config.TRANSFORMER, config.TRAINED) > 0,
        "Section 5, attention against MLP",
    ),
    _theorem_1(
        "a-table-is-nearer-than-ridge-regression",
        "An n-gram table of as many bytes is nearer to the law than ridge regression, whose weights are cast to "
        "float32 (nats, mean over settings).",
        statistics.beyond(config.RIDGE, config.TABLE, "kl_float32") > 0,
    ),
    _theorem_1(
        "a-table-is-nearer-than-training",
        "It is nearer than the trained network (nats, mean over S and d).",
        statistics.beyond(config.TRAINED, config.TABLE, "kl_float32") > 0,
    ),
    _theorem_1(
        "a-table-knows-more-of-held-out-text",
        "It loses less on held-out text than the trained network (nats a token, mean over S and d).",
        statistics.beyond(config.TRAINED, config.TABLE, "held_out") > 0,
    ),
    _theorem_1(
        "a-table-is-smaller",
        "The narrow network that holds every context of two tokens takes more than twice the bytes of the table that "
        "does (ratio).",
        statistics.bytes_over_table(2, False) > 2,
    ),
    ours(
        "a-narrow-width-costs",
        "No encoder of the least width nearer than 0.05 nats to the law of S = 2 is found.",
        statistics.encoder("kl", 2, False) > 0.05,
        "Proposition 2",
    ),
    ours(
        "a-third-of-the-tokens-is-wide-enough",
        "An encoder of the greatest width is nearer than 0.01 nats to the law of S = 3.",
        statistics.encoder("kl", 3, True) < 0.01,
        "Proposition 2",
    ),
    ours(
        "singular-vectors-are-not-nearest",
        "The optimised encoder is more than ten times nearer than the truncated one (decimal logarithm, mean over S "
        "and d).",
        statistics.digits_of_optimum() < -1,
        "Definition 1",
    ),
    _theorem_1(
        "ten-percent-carry-float32",
        "With 10 % more features than contexts, casting the weights to float32 costs less than 0.001 nats (largest).",
        largest("network", "kl_float32 - kl", where=f"method == '{config.EXACT}'") < 1e-3,
    ),
    _theorem_1(
        "what-is-not-held-is-answered-worse-than-blindly",
        "The wide network that holds the most frequent contexts of three tokens exactly loses more on held-out text, "
        "where others come too, than the law of single tokens (nats a token).",
        statistics.network("held_out", config.EXACT, 3, True) - statistics.text("alone_held_out", 3) > 0,
    ),
)

NUMBERS = {
    "contexts of three tokens, share": statistics.text("share", 3),
    "contexts of two tokens": statistics.text("contexts", 2),
    "narrow encoder": statistics.encoder("kl", 2, False),
    "wide encoder": statistics.encoder("kl", 2, True),
    "narrow encoder, truncated": statistics.encoder("truncated", 2, False),
    "likeliest half": statistics.network("kl", config.LIKELIEST, 2, True, 0.5),
    "ridge regression, half": statistics.network("kl", config.RIDGE, 2, True, 0.5),
    "single tokens": statistics.text("alone_kl", 2),
    "trained, a quarter": statistics.network("kl", config.TRAINED, 2, True, 0.25),
    "ridge regression, a quarter": statistics.network("kl", config.RIDGE, 2, True, 0.25),
    "transformer, a quarter": statistics.network("kl", config.TRANSFORMER, 2, True, 0.25),
    "bytes, narrow": statistics.network("bytes", config.EXACT, 2, False),
    "bytes, wide": statistics.network("bytes", config.EXACT, 2, True),
    "bytes of the table": statistics.text("table_bytes", 2),
    "held-out loss, three tokens held": statistics.network("held_out", config.EXACT, 3, True),
    "held-out loss of the table": statistics.text("table_held_out", 3),
    "held-out loss of single tokens": statistics.text("alone_held_out", 3),
    "decades of the bound": statistics.tightness("loose"),
}
