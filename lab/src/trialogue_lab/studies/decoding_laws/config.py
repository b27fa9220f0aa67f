"""Settings of the study: the random models, the constraints, and the numbers of samples of some decoding methods."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import require_choice
from trialogue_lab.ledger import Different, Increasing, Positive, Seeds, Settings
from trialogue_lab.studies.decoding_laws.tasks import LADDER

FAMILIES = tuple(family.name for family in LADDER)
Several = Annotated[int, Ge(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run, which compares decoding methods on random language models under constraints.

    Args:
        seeds: Seeds of the random models. Each seed gives one model for every constraint and maximum length.
        families: Names of the constraints.
        concentration: Concentration of the Dirichlet distribution from which next-token distributions are sampled.
        candidates: Numbers n of outputs for best-of-n sampling.
        drawn_among: Values of N for weighted masked decoding. This method generates N outputs in which forbidden tokens
            are masked, and selects one by its importance weight.
        error: Relative error of noisy values, which guide some methods. An exact value is multiplied or divided by 1 +
            `error`.
    """

    seeds: Seeds = tuple(range(1, 11))
    families: Different[str] = FAMILIES
    concentration: Positive = 1.0
    candidates: Increasing[Several] = (4, 16)
    drawn_among: Increasing[Several] = (2, 4, 16, 64)
    error: Positive = 1.0

    def check(self) -> None:
        """Raise `InputError` if the name of a constraint is unknown."""
        for name in self.families:
            require_choice("families", name, FAMILIES)


PRESETS = {
    "smoke": Config(
        seeds=(0, 100),
        families=("first token", "JSON", "palindrome"),
        candidates=(2, 16),
        drawn_among=(2, 16),
    ),
    "pilot": Config(seeds=tuple(range(1000, 1004))),
    "default": Config(),
    "night": Config(seeds=tuple(range(1, 101))),
}
