"""The numbers of the thesis that the study has numbers of its own for (section 3.2.2, CodeLlama-7B).

Layers are counted in blocks, as everywhere in the study: the thesis' layer 27 is 28 here, and its last is -1.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from trialogue.studies.test_cases.decodings import (
    BASELINE,
    GREEDY,
    GROUND_TRUTH,
    GROUND_TRUTH_LARGE_QUOTA,
    HIGH,
    HIGH_NO_ARGMAX,
    HOT,
    LARGE_QUOTA,
    LONG_STRIDE,
    NO_ARGMAX,
    RANDOM,
    TEMPERATURES,
    TRAINED,
    WIDE,
    WIDE_LONG_STRIDE,
    Decoding,
    below_half,
    block_best_of,
    out_of_distribution,
)

MODEL = "CodeLlama-7b-hf"
"""The name of the thesis' model, without its owner."""


class Published(NamedTuple):
    """Distinct accuracy, and mean queries of a repetition (NaN where none are printed)."""

    accuracy: float
    queries: float = math.nan


_GRID = {
    1.0: ((0.080, 38400), (0.207, 38400), (0.399, 38320), (0.562, 36610), (0.504, 30754), (0.269, 21906)),
    0.95: ((0.057, 38400), (0.176, 38400), (0.337, 38400), (0.523, 38386), (0.660, 38231), (0.584, 36601)),
    0.9: ((0.029, 38400), (0.147, 38400), (0.284, 38400), (0.466, 38400), (0.634, 38393), (0.630, 38005)),
    0.8: ((0.021, 38400), (0.074, 38400), (0.212, 38400), (0.351, 38400), (0.511, 38400), (0.627, 38343)),
    0.7: ((0.018, 38400), (0.025, 38400), (0.101, 38400), (0.239, 38400), (0.353, 38400), (0.531, 38400)),
}

TABLE_3_13: dict[Decoding, Published] = {
    TRAINED: Published(0.714, 39443),
    HIGH: Published(0.676, 38555),
    replace(TRAINED, layer=-1): Published(0.677, 39546),
    replace(HIGH, layer=-1): Published(0.688, 39629),
    block_best_of(2): Published(0.684, 39364),
    block_best_of(4): Published(0.623, 65496),
    block_best_of(8): Published(0.559, 122933),
    WIDE: Published(0.639, 31274),
    below_half(WIDE): Published(0.604, 31091),
    WIDE_LONG_STRIDE: Published(0.622, 32923),
    below_half(WIDE_LONG_STRIDE): Published(0.604, 27287),
    HOT: Published(0.440, 24916),
    below_half(HOT): Published(0.334, 24217),
    GREEDY: Published(0.013, 38400),
    **{
        Decoding(top_p=top_p, temperature=temperature): Published(*numbers)
        for top_p, line in _GRID.items()
        for temperature, numbers in zip(TEMPERATURES, line, strict=True)
    },
}
"""Table 3.13, which holds every number of Tables 3.6 and 3.10."""

PUBLISHED: dict[Decoding, Published] = {
    **TABLE_3_13,
    GROUND_TRUTH: Published(0.719),
    GROUND_TRUTH_LARGE_QUOTA: Published(0.717),
    LARGE_QUOTA: Published(0.692),
    LONG_STRIDE: Published(0.622),
    RANDOM: Published(0.663),
    NO_ARGMAX: Published(0.711),
    HIGH_NO_ARGMAX: Published(0.663),
    out_of_distribution(BASELINE): Published(0.606),
    out_of_distribution(TRAINED): Published(0.710),
    out_of_distribution(HIGH): Published(0.687),
    **{
        replace(TRAINED, layer=layer): Published(accuracy)
        for layer, accuracy in (
            (29, 0.711), (27, 0.708), (31, 0.706), (25, 0.701), (30, 0.676), (26, 0.672), (24, 0.709),
            (4, 0.700), (16, 0.700), (20, 0.692), (8, 0.691), (12, 0.650),
        )
    },
    **{replace(TRAINED, depth=depth): Published(accuracy) for depth, accuracy in ((2, 0.687), (4, 0.699), (8, 0.684))},
}  # fmt: skip
"""The same with Tables 3.9, 3.11, 3.12, 3.15 and 3.17, which print no queries."""

LAYER = 28
"""The layer of every number of which Table 3.13 does not say another."""

VALIDATION = {"depth 1": 0.96, "depth 2": 0.97, "depth 4": 0.97, "depth 8": 0.97, "random verifier": 0.50}
"""Validation accuracy of verifiers by their number of layers (Table 3.11)."""
