"""Settings of the study and its presets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue_lab.ledger import Count, Increasing, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    Random networks are pruned to approximate a target. Pruning sets some weights to zero and leaves the others
    unchanged.

    Args:
        seeds: Seeds of the random networks and targets.
        counts: Numbers of random terms from which a subset is chosen. Each term is a product of two random weights, and
            the sum of the subset approximates one target number.
        targets: Number of target numbers per entry of `counts`. The largest approximation error is reported.
        sizes: Numbers of rows and columns of the target matrices.
        units: Numbers of hidden units per input coordinate. Each number is used twice: once for positive and once for
            negative values of the coordinate.
        inputs: Number of random input vectors on which errors are measured.
        layers: Numbers of layers of the target transformers. The random transformers have four times as many.
        hidden: Widths of the random transformers, for keys and hidden layers. Each target weight is approximated by a
            subset of `hidden` / 8 products of two random weights.
    """

    seeds: Seeds = tuple(range(301, 331))
    counts: Increasing[Annotated[int, Interval(ge=4, le=30)]] = (8, 12, 16, 20, 24)
    targets: Count = 5
    sizes: Increasing[Count] = (1, 2, 4)
    units: Increasing[Annotated[int, Interval(ge=4, le=20)]] = (5, 10, 15, 20)
    inputs: Count = 200
    layers: Increasing[Count] = (1, 2)
    hidden: Increasing[Annotated[int, Interval(ge=16, le=256)]] = (96, 128, 192, 256)


PRESETS = {
    "smoke": Config(seeds=(0, 1), counts=(4, 8), units=(4, 6), sizes=(1, 2), layers=(1,), hidden=(16, 32)),
    "pilot": Config(seeds=tuple(range(3200, 3206))),
    "default": Config(),
    "paper": Config(seeds=tuple(range(301, 401)), sizes=(1, 2, 4, 8)),
}
