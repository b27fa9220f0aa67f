"""Settings of the study: the size of the random distributions, and the duration of the gradient flows."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    A network with layers A1 and A2 predicts the token x_0 from the other tokens x as A2 . (x + (A1 x)^2). Its weights
    follow the gradient flow of the squared error.

    Args:
        seeds: Seeds of the random distributions of the tokens and of the initial weights.
        size: Number of tokens besides x_0. Gaussian moments are computed on a grid of 4^(size + 1) points.
        samples: Number of samples that define a distribution with three-body interactions.
        draws: Number of Monte Carlo samples with which exact Gaussian moments are compared.
        decay: Weight decay.
        time: Duration of the flows on Gaussian tokens. Weaker decay needs a longer time, because the claims with weight
            decay read the layers at its end.
    """

    seeds: Seeds = tuple(range(1, 21))
    size: Annotated[int, Interval(ge=2, le=4)] = 3
    samples: Annotated[int, Ge(100)] = 4000
    draws: Annotated[int, Ge(1000)] = 200_000
    decay: Positive = 0.1
    time: Positive = 80.0


PRESETS = {
    "smoke": Config(seeds=(0, 1), samples=500, draws=2000),
    "pilot": Config(seeds=tuple(range(1000, 1006))),
    "default": Config(),
    "night": Config(seeds=tuple(range(1, 201)), size=4, draws=1_000_000),
}
