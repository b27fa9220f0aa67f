"""Statements about accuracy in the text and the tables of the section, for either model."""

from dataclasses import replace
from functools import partial

from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.decodings import BASELINE, HOT, TRAINED, WIDE, make_block_best_of
from trialogue_lab.studies.test_cases.statements import MARGIN, ModelStatement, more, same
from trialogue_lab.studies.test_cases.statistics import gain_of_depth, gain_on_misleading, lead_of_best

_table_3_6 = partial(ModelStatement, source="Table 3.6", entry="V-T36")
_table_3_10 = partial(ModelStatement, source="Table 3.10", entry="V-T310")
_table_3_12 = partial(ModelStatement, source="Table 3.12", entry="V-T312b")
_random = partial(_table_3_12, entry="V-T312b.random")
_quota = partial(_table_3_12, entry="V-T312b.quota")
_table_3_17 = partial(ModelStatement, source="Table 3.17", entry="V-T317")

ON_BOTH = (
    _table_3_6(
        "algorithm-beats-nucleus",
        "Algorithm 1 (Q = B = 4, threshold 0.1) has a higher distinct accuracy than nucleus sampling at 0.95.",
        more(TRAINED, BASELINE),
        "0.714 ± 0.011 against 0.660 ± 0.042",
    ),
    *(
        _table_3_6(
            f"algorithm-beats-{ending}",
            f"Algorithm 1 has a higher distinct accuracy than {name}.",
            more(TRAINED, decoding),
            f"0.714 ± 0.011 against {printed}",
        )
        for ending, name, decoding, printed in (
            ("block-best-of-2", "block best-of-2", make_block_best_of(2), "0.684 ± 0.038"),
            ("block-best-of-4", "block best-of-4", make_block_best_of(4), "0.623 ± 0.036"),
            ("block-best-of-8", "block best-of-8", make_block_best_of(8), "0.559 ± 0.038"),
            ("greedy", "greedy decoding", decodings.GREEDY, "0.013"),
        )
    ),
    *(
        _table_3_6(
            f"{n}-candidates-beat-{2 * n}",
            f"Block best-of-{n} has a higher distinct accuracy than block best-of-{2 * n}.",
            more(make_block_best_of(n), make_block_best_of(2 * n)),
            printed,
            entry="V-T36.candidates",
        )
        for n, printed in (
            (2, "0.684 ± 0.038 against 0.623 ± 0.036"),
            (4, "0.623 ± 0.036 against 0.559 ± 0.038"),
        )
    ),
    _table_3_6(
        "greedy-is-worst",
        "Nucleus sampling has a higher distinct accuracy than greedy decoding.",
        more(BASELINE, decodings.GREEDY),
        "0.660 against 0.013",
        entry="V-T36.greedy",
    ),
    *(
        _table_3_6(
            f"algorithm-beats-{ending}sampling",
            f"Algorithm 1 has a higher distinct accuracy than sampling at top-p 1 and T = {temperature}.",
            more(algorithm, baseline),
            printed,
            source=f"Table 3.6, {group} group",
        )
        for ending, temperature, algorithm, baseline, group, printed in (
            ("", 1, WIDE, decodings.WIDE_BASELINE, "second", "0.639 ± 0.061 against 0.504 ± 0.025"),
            ("hot-", 1.2, HOT, decodings.HOT_BASELINE, "third", "0.440 ± 0.026 against 0.269 ± 0.025"),
        )
    ),
    ModelStatement(
        "best-setting-of-the-grid",
        "Without a verifier (0.95, 1) is the best of the grid of top-p and T: no other setting, chosen by the other "
        "repetitions, has a higher distinct accuracy.",
        lambda role: lead_of_best(role) > 0,
        "0.660 ± 0.042, the next 0.634 ± 0.023",
        "3.2.2.3 and Table 3.13",
        "V-BASE",
    ),
    ModelStatement(
        "last-layer-is-worse",
        "The layer of the other tables gives a higher distinct accuracy than the last layer.",
        more(TRAINED, replace(TRAINED, layer=-1)),
        "layer 27: 0.714 ± 0.011, 31: 0.677 ± 0.033 (Table 3.13, both at threshold 0.1; 3.9 prints 0.688, of 0.5)",
        "Table 3.9",
        "V-T39",
    ),
    *(
        _table_3_10(
            f"low-threshold-is-better{ending}",
            f"The threshold 0.1 gives a higher distinct accuracy than 0.5 at {where}.",
            more(low, decodings.lower_threshold_to_half(low)),
            printed,
        )
        for ending, where, low, printed in (
            ("", "Q = B = 4, top-p 0.95, T = 1", TRAINED, "0.714 ± 0.011 against 0.676 ± 0.019"),
            ("-in-sampling", "Q = B = 4, top-p 1, T = 1", WIDE, "0.639 ± 0.061 against 0.604 ± 0.047"),
            ("-in-hot-sampling", "Q = B = 4, top-p 1, T = 1.2", HOT, "0.440 ± 0.026 against 0.334 ± 0.013"),
            (
                "-in-long-strides",
                "Q = 4, B = 10, top-p 1, T = 1",
                decodings.WIDE_LONG_STRIDE,
                "0.622 ± 0.046 against 0.604 ± 0.030",
            ),
        )
    ),
    ModelStatement(
        "depth-does-not-help",
        "Verifiers of 2, 4 and 8 layers give on average a lower distinct accuracy than those of one layer.",
        lambda role: gain_of_depth(role) < 0,
        "0.687 ± 0.035, 0.699 ± 0.038 and 0.684 ± 0.015 against 0.714 ± 0.011",
        "Table 3.11",
        "V-T311b",
    ),
    _table_3_12(
        "trained-approaches-truth",
        f"Algorithm 1 reaches the distinct accuracy that it has with the ground truth within {MARGIN}.",
        same(TRAINED, decodings.GROUND_TRUTH),
        "0.714 ± 0.011 against 0.719 ± 0.022",
    ),
    _random(
        "trained-beats-random",
        "Algorithm 1 has a higher distinct accuracy than with a random verifier.",
        more(TRAINED, decodings.RANDOM),
        "0.714 ± 0.011 against 0.663 ± 0.027",
    ),
    _random(
        "random-is-the-baseline",
        f"With a random verifier Algorithm 1 has the distinct accuracy of nucleus sampling within {MARGIN}.",
        same(decodings.RANDOM, BASELINE),
        "0.663 ± 0.027 against 0.660 ± 0.042",
    ),
    _quota(
        "quota-does-not-help",
        "With the trained verifier a quota of 4 gives a higher distinct accuracy than one of 10.",
        more(TRAINED, decodings.LARGE_QUOTA),
        "0.714 ± 0.011 against 0.692 ± 0.025",
    ),
    _quota(
        "quota-does-not-help-the-truth",
        "With the ground truth a quota of 4 gives a higher distinct accuracy than one of 10.",
        more(decodings.GROUND_TRUTH, decodings.GROUND_TRUTH_LARGE_QUOTA),
        "0.719 ± 0.022 against 0.717 ± 0.015",
    ),
    _quota(
        "stride-does-not-help",
        "A stride of 4 gives a higher distinct accuracy than one of 10.",
        more(TRAINED, decodings.LONG_STRIDE),
        "0.714 ± 0.011 against 0.622 ± 0.046",
        source="Table 3.12 (there at another top-p than the caption says)",
    ),
    *(
        _table_3_17(
            f"argmax-redo-is-minor{ending}",
            f"Leaving out the greedy redo keeps the distinct accuracy at threshold {own.threshold} within {MARGIN}.",
            same(without, own),
            printed,
        )
        for ending, without, own, printed in (
            ("", decodings.NO_ARGMAX, TRAINED, "0.711 ± 0.032 against 0.714 ± 0.011"),
            ("-at-half", decodings.HIGH_NO_ARGMAX, decodings.HIGH, "0.663 ± 0.023 against 0.676 ± 0.019"),
        )
    ),
)

_table_3_15 = partial(ModelStatement, source="Table 3.15")

MISLEADING = (
    _table_3_15(
        "misleading-names-hurt-nucleus",
        "Nucleus sampling has a higher distinct accuracy where functions are not named after something else.",
        more(BASELINE, decodings.out_of_distribution(BASELINE)),
        "0.660 ± 0.042 against 0.606 ± 0.034",
        entry="V-OODCODE.nucleus",
    ),
    _table_3_15(
        "misleading-names-spare-algorithm",
        "Algorithm 1 keeps its distinct accuracy where functions are named after something else "
        f"within {MARGIN}.",
        same(decodings.out_of_distribution(TRAINED), TRAINED),
        "0.710 ± 0.029 against 0.714 ± 0.011",
        entry="V-OODCODE.algorithm",
    ),
    _table_3_15(
        "misleading-names-widen-the-gap",
        "Algorithm 1 gains more distinct accuracy over nucleus sampling where functions are so named.",
        lambda role: gain_on_misleading(role) > 0,
        "0.104 against 0.054",
    ),
)
"""Statements about the pretrained model only. The prompt from scratch is a name alone, which cannot mislead."""
