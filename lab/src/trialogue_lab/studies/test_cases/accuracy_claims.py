"""Claims on accuracy: the sentences of the section and the orders of its tables, for either model."""

from dataclasses import replace

from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.decodings import DecodingRule, block_best_of, out_of_distribution
from trialogue_lab.studies.test_cases.statistics import gain, gain_of_depth, gain_on_misleading, lead_of_best
from trialogue_lab.studies.test_cases.twins import MARGIN, Statement

_ENTRIES = {
    "Table 3.6": "V-T36",
    "Table 3.9": "V-T39",
    "Table 3.10": "V-T310",
    "Table 3.12": "V-T312b",
    "Table 3.15": "V-OODCODE",
    "Table 3.17": "V-T317",
}
"""Identifiers of the statements that a table of the thesis supports, where it supports one."""


def _entry(source: str) -> str:
    """Return the identifier of the statement behind a table, given a source such as "Table 3.6, second group"."""
    return _ENTRIES[source.partition(",")[0].partition(" (")[0]]


def _more(
    identity: str,
    statement: str,
    first: DecodingRule,
    second: DecodingRule,
    source: str,
    printed: str,
    entry: str = "",
) -> Statement:
    """That the first decoding has the higher distinct accuracy."""
    return Statement(
        identity,
        statement,
        lambda role: gain(first, second, role) > 0,
        source,
        printed,
        entry=entry or _entry(source),
    )


def _same(
    identity: str,
    statement: str,
    first: DecodingRule,
    second: DecodingRule,
    source: str,
    printed: str,
    entry: str = "",
) -> Statement:
    """That two decodings have the same distinct accuracy within the margin."""
    words = f"{statement} within {MARGIN}."
    return Statement(
        identity,
        words,
        lambda role: gain(first, second, role).near(0, MARGIN),
        source,
        printed,
        entry=entry or _entry(source),
    )


ON_BOTH = (
    _more(
        "algorithm-beats-nucleus",
        "Algorithm 1 (Q = B = 4, threshold 0.1) has a higher distinct accuracy than nucleus sampling at 0.95.",
        decodings.TRAINED,
        decodings.BASELINE,
        "Table 3.6",
        "0.714 ± 0.011 against 0.660 ± 0.042",
    ),
    *(
        _more(
            f"algorithm-beats-block-best-of-{n}",
            f"Algorithm 1 has a higher distinct accuracy than block best-of-{n}.",
            decodings.TRAINED,
            block_best_of(n),
            "Table 3.6",
            f"0.714 ± 0.011 against {printed}",
        )
        for n, printed in ((2, "0.684 ± 0.038"), (4, "0.623 ± 0.036"), (8, "0.559 ± 0.038"))
    ),
    _more(
        "algorithm-beats-greedy",
        "Algorithm 1 has a higher distinct accuracy than greedy decoding.",
        decodings.TRAINED,
        decodings.GREEDY,
        "Table 3.6",
        "0.714 ± 0.011 against 0.013",
    ),
    *(
        _more(
            f"{n}-candidates-beat-{2 * n}",
            f"Block best-of-{n} has a higher distinct accuracy than block best-of-{2 * n}.",
            block_best_of(n),
            block_best_of(2 * n),
            "Table 3.6",
            printed,
            entry="V-T36.candidates",
        )
        for n, printed in (
            (2, "0.684 ± 0.038 against 0.623 ± 0.036"),
            (4, "0.623 ± 0.036 against 0.559 ± 0.038"),
        )
    ),
    _more(
        "greedy-is-worst",
        "Nucleus sampling has a higher distinct accuracy than greedy decoding.",
        decodings.BASELINE,
        decodings.GREEDY,
        "Table 3.6",
        "0.660 against 0.013",
        entry="V-T36.greedy",
    ),
    _more(
        "algorithm-beats-sampling",
        "Algorithm 1 has a higher distinct accuracy than sampling at top-p 1 and T = 1.",
        decodings.WIDE,
        decodings.WIDE_BASELINE,
        "Table 3.6, second group",
        "0.639 ± 0.061 against 0.504 ± 0.025",
    ),
    _more(
        "algorithm-beats-hot-sampling",
        "Algorithm 1 has a higher distinct accuracy than sampling at top-p 1 and T = 1.2.",
        decodings.HOT,
        decodings.HOT_BASELINE,
        "Table 3.6, third group",
        "0.440 ± 0.026 against 0.269 ± 0.025",
    ),
    Statement(
        "best-setting-of-the-grid",
        "Without a verifier (0.95, 1) is the best of the grid of top-p and T: no other setting, chosen by the other "
        "repetitions, has a higher distinct accuracy.",
        lambda role: lead_of_best(role) > 0,
        "3.2.2.3 and Table 3.13",
        "0.660 ± 0.042, the next 0.634 ± 0.023",
        entry="V-BASE",
    ),
    _more(
        "last-layer-is-worse",
        "The layer of the other tables gives a higher distinct accuracy than the last layer.",
        decodings.TRAINED,
        replace(decodings.TRAINED, layer=-1),
        "Table 3.9",
        "layer 27: 0.714 ± 0.011, 31: 0.677 ± 0.033 (Table 3.13, both at threshold 0.1; 3.9 prints 0.688, of 0.5)",
    ),
    *(
        _more(
            identity,
            f"The threshold 0.1 gives a higher distinct accuracy than 0.5 at {where}.",
            low,
            decodings.below_half(low),
            "Table 3.10",
            printed,
        )
        for identity, where, low, printed in (
            (
                "low-threshold-is-better",
                "Q = B = 4, top-p 0.95, T = 1",
                decodings.TRAINED,
                "0.714 ± 0.011 against 0.676 ± 0.019",
            ),
            (
                "low-threshold-is-better-in-sampling",
                "Q = B = 4, top-p 1, T = 1",
                decodings.WIDE,
                "0.639 ± 0.061 against 0.604 ± 0.047",
            ),
            (
                "low-threshold-is-better-in-hot-sampling",
                "Q = B = 4, top-p 1, T = 1.2",
                decodings.HOT,
                "0.440 ± 0.026 against 0.334 ± 0.013",
            ),
            (
                "low-threshold-is-better-in-long-strides",
                "Q = 4, B = 10, top-p 1, T = 1",
                decodings.WIDE_LONG_STRIDE,
                "0.622 ± 0.046 against 0.604 ± 0.030",
            ),
        )
    ),
    Statement(
        "depth-does-not-help",
        "Verifiers of 2, 4 and 8 layers give on average a lower distinct accuracy than those of one layer.",
        lambda role: gain_of_depth(role) < 0,
        "Table 3.11",
        "0.687 ± 0.035, 0.699 ± 0.038 and 0.684 ± 0.015 against 0.714 ± 0.011",
        entry="V-T311b",
    ),
    _same(
        "trained-approaches-truth",
        "Algorithm 1 reaches the distinct accuracy that it has with the ground truth",
        decodings.TRAINED,
        decodings.GROUND_TRUTH,
        "Table 3.12",
        "0.714 ± 0.011 against 0.719 ± 0.022",
    ),
    _more(
        "trained-beats-random",
        "Algorithm 1 has a higher distinct accuracy than with a random verifier.",
        decodings.TRAINED,
        decodings.RANDOM,
        "Table 3.12",
        "0.714 ± 0.011 against 0.663 ± 0.027",
        entry="V-T312b.random",
    ),
    _same(
        "random-is-the-baseline",
        "With a random verifier Algorithm 1 has the distinct accuracy of nucleus sampling",
        decodings.RANDOM,
        decodings.BASELINE,
        "Table 3.12",
        "0.663 ± 0.027 against 0.660 ± 0.042",
        entry="V-T312b.random",
    ),
    _more(
        "quota-does-not-help",
        "With the trained verifier a quota of 4 gives a higher distinct accuracy than one of 10.",
        decodings.TRAINED,
        decodings.LARGE_QUOTA,
        "Table 3.12",
        "0.714 ± 0.011 against 0.692 ± 0.025",
        entry="V-T312b.quota",
    ),
    _more(
        "quota-does-not-help-the-truth",
        "With the ground truth a quota of 4 gives a higher distinct accuracy than one of 10.",
        decodings.GROUND_TRUTH,
        decodings.GROUND_TRUTH_LARGE_QUOTA,
        "Table 3.12",
        "0.719 ± 0.022 against 0.717 ± 0.015",
        entry="V-T312b.quota",
    ),
    _more(
        "stride-does-not-help",
        "A stride of 4 gives a higher distinct accuracy than one of 10.",
        decodings.TRAINED,
        decodings.LONG_STRIDE,
        "Table 3.12 (there at another top-p than the caption says)",
        "0.714 ± 0.011 against 0.622 ± 0.046",
        entry="V-T312b.quota",
    ),
    _same(
        "argmax-redo-is-minor",
        "Leaving out the greedy redo keeps the distinct accuracy at threshold 0.1",
        decodings.NO_ARGMAX,
        decodings.TRAINED,
        "Table 3.17",
        "0.711 ± 0.032 against 0.714 ± 0.011",
    ),
    _same(
        "argmax-redo-is-minor-at-half",
        "Leaving out the greedy redo keeps the distinct accuracy at threshold 0.5",
        decodings.HIGH_NO_ARGMAX,
        decodings.HIGH,
        "Table 3.17",
        "0.663 ± 0.023 against 0.676 ± 0.019",
    ),
)

MISLEADING = (
    _more(
        "misleading-names-hurt-nucleus",
        "Nucleus sampling has a higher distinct accuracy where functions are not named after something else.",
        decodings.BASELINE,
        out_of_distribution(decodings.BASELINE),
        "Table 3.15",
        "0.660 ± 0.042 against 0.606 ± 0.034",
        entry="V-OODCODE.nucleus",
    ),
    _same(
        "misleading-names-spare-algorithm",
        "Algorithm 1 keeps its distinct accuracy where functions are named after something else",
        out_of_distribution(decodings.TRAINED),
        decodings.TRAINED,
        "Table 3.15",
        "0.710 ± 0.029 against 0.714 ± 0.011",
        entry="V-OODCODE.algorithm",
    ),
    Statement(
        "misleading-names-widen-the-gap",
        "Algorithm 1 gains more distinct accuracy over nucleus sampling where functions are so named.",
        lambda role: gain_on_misleading(role) > 0,
        "Table 3.15",
        "0.104 against 0.054",
        "ours",
    ),
)
"""What the model from scratch, whose prompt is a name alone, cannot be asked."""
