"""Settings of the study: random distributions, noise, samplers and numbers of passes."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from annotated_types import Ge, Interval, MinLen

from trialogue.errors import InputError
from trialogue_lab.ledger import Different, Increasing, Positive, Seeds, Settings, Share

Family = Literal["clique", "Ising chain", "Potts chain", "brackets", "hidden Markov", "table"]
FAMILIES: tuple[Family, ...] = get_args(Family)
TWO_TOKENS: Final = ("clique", "Ising chain")
"""Families whose vocabulary has two tokens."""
NOISE: Final = 0.3
"""Standard deviation of the noise in the logits that claims are about."""
LARGE_NOISE: Final = 1.0
"""Standard deviation of the noise of badly trained conditionals."""
Noise = Annotated[float, Interval(ge=0, le=5)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Args:
        seeds: Seeds of the random distributions. Each seed draws one distribution of each family.
        families: Kinds of distributions.
        noises: Standard deviations of the noise in the logits of the conditionals. They include 0, 0.3 and 1.
        sizes: Numbers of positions that a pass reveals, for samplers with a fixed number.
        passes_per_token: Numbers of passes of remasking samplers, per position. They include 1, 4 and 16.
        eta: Strength of remasking: the probability that a pass masks a revealed token.
        lengths: Lengths of the mixtures of two coins, for which the smallest number of passes is computed. Claims are
            about the last two.
        precision: Divergence in nats that this number of passes must reach.
    """

    seeds: Seeds = tuple(range(1, 13))
    families: Different[Family] = FAMILIES
    noises: Increasing[Noise] = (0.0, 0.1, NOISE, LARGE_NOISE)
    sizes: Increasing[Annotated[int, Ge(2)]] = (2, 3)
    passes_per_token: Increasing[Positive] = (1.0, 2.0, 4.0, 16.0)
    eta: Share = 0.2
    lengths: Annotated[Increasing[Annotated[int, Ge(4)]], MinLen(2)] = (16, 64, 256, 1024)
    precision: Positive = 0.05

    def check(self) -> None:
        """Raise `InputError` if a value is missing that claims are about."""
        for field, needed in (
            ("noises", {0.0, NOISE, LARGE_NOISE}),
            ("sizes", {2}),
            ("passes_per_token", {1.0, 4.0, 16.0}),
        ):
            missing = needed - set(getattr(self, field))
            if missing:
                raise InputError(field, getattr(self, field), f"include {min(missing)}")


PRESETS = {
    "smoke": Config(
        seeds=(0,),
        families=("Ising chain", "hidden Markov"),
        noises=(0.0, NOISE, LARGE_NOISE),
        sizes=(2,),
        passes_per_token=(1.0, 4.0, 16.0),
        lengths=(16, 64),
    ),
    "pilot": Config(seeds=tuple(range(1001, 1005))),
    "default": Config(),
    "night": Config(seeds=tuple(range(1, 65)), noises=(0.0, 0.05, 0.1, 0.2, NOISE, 0.5, LARGE_NOISE)),
}
