"""Published numbers of the thesis (section 3.2.2, CodeLlama-7B).

Layers are numbered by the number of preceding blocks, as in the rest of the study. Layer 27 of the thesis is 28 here,
and its last layer is -1.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from trialogue_lab.studies.test_cases import decodings

MODEL = "CodeLlama-7b-hf"
"""Name of the thesis' model on the hub, without its owner."""
LAYER = 28
"""Layer that the verifier reads, unless Table 3.13 states another one."""


class Published(NamedTuple):
    """Published numbers of a decoding method.

    Attributes:
        accuracy: Number of different correct test cases divided by the number of requested cases.
        queries: Mean number of model calls per repetition, NaN if it is not printed.
    """

    accuracy: float
    queries: float = math.nan


_GRID = {
    1.0: ((0.080, 38400), (0.207, 38400), (0.399, 38320), (0.562, 36610), (0.504, 30754), (0.269, 21906)),
    0.95: ((0.057, 38400), (0.176, 38400), (0.337, 38400), (0.523, 38386), (0.660, 38231), (0.584, 36601)),
    0.9: ((0.029, 38400), (0.147, 38400), (0.284, 38400), (0.466, 38400), (0.634, 38393), (0.630, 38005)),
    0.8: ((0.021, 38400), (0.074, 38400), (0.212, 38400), (0.351, 38400), (0.511, 38400), (0.627, 38343)),
    0.7: ((0.018, 38400), (0.025, 38400), (0.101, 38400), (0.239, 38400), (0.353, 38400), (0.531, 38400)),
}

TABLE_3_13: dict[decodings.DecodingRule, Published] = {
    decodings.TRAINED: Published(0.714, 39443),
    decodings.HIGH: Published(0.676, 38555),
    replace(decodings.TRAINED, layer=-1): Published(0.677, 39546),
    replace(decodings.HIGH, layer=-1): Published(0.688, 39629),
    decodings.make_block_best_of(2): Published(0.684, 39364),
    decodings.make_block_best_of(4): Published(0.623, 65496),
    decodings.make_block_best_of(8): Published(0.559, 122933),
    decodings.WIDE: Published(0.639, 31274),
    decodings.lower_threshold_to_half(decodings.WIDE): Published(0.604, 31091),
    decodings.WIDE_LONG_STRIDE: Published(0.622, 32923),
    decodings.lower_threshold_to_half(decodings.WIDE_LONG_STRIDE): Published(0.604, 27287),
    decodings.HOT: Published(0.440, 24916),
    decodings.lower_threshold_to_half(decodings.HOT): Published(0.334, 24217),
    decodings.GREEDY: Published(0.013, 38400),
    **{
        decodings.DecodingRule(top_p=top_p, temperature=temperature): Published(*numbers)
        for top_p, line in _GRID.items()
        for temperature, numbers in zip(decodings.TEMPERATURES, line, strict=True)
    },
}
"""Numbers of Table 3.13 by decoding method, which include those of Tables 3.6 and 3.10."""

PUBLISHED: dict[decodings.DecodingRule, Published] = {
    **TABLE_3_13,
    decodings.GROUND_TRUTH: Published(0.719),
    decodings.GROUND_TRUTH_LARGE_QUOTA: Published(0.717),
    decodings.LARGE_QUOTA: Published(0.692),
    decodings.LONG_STRIDE: Published(0.622),
    decodings.RANDOM: Published(0.663),
    decodings.NO_ARGMAX: Published(0.711),
    decodings.HIGH_NO_ARGMAX: Published(0.663),
    decodings.out_of_distribution(decodings.BASELINE): Published(0.606),
    decodings.out_of_distribution(decodings.TRAINED): Published(0.710),
    decodings.out_of_distribution(decodings.HIGH): Published(0.687),
    **{
        replace(decodings.TRAINED, layer=layer): Published(accuracy)
        for layer, accuracy in (
            (29, 0.711), (27, 0.708), (31, 0.706), (25, 0.701), (30, 0.676), (26, 0.672), (24, 0.709),
            (4, 0.700), (16, 0.700), (20, 0.692), (8, 0.691), (12, 0.650),
        )
    },
    **{
        replace(decodings.TRAINED, depth=depth): Published(accuracy)
        for depth, accuracy in ((2, 0.687), (4, 0.699), (8, 0.684))
    },
}  # fmt: skip
"""Numbers of Table 3.13 by decoding method, and of Tables 3.9, 3.11, 3.12, 3.15 and 3.17 without queries."""

VALIDATION = {1: 0.96, 2: 0.97, 4: 0.97, 8: 0.97}
"""Validation accuracy by number of layers of the verifier (Table 3.11)."""
