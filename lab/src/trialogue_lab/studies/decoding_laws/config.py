"""Settings of the study: how many oracles are drawn, of which law, and how many are drawn among."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Different, Increasing, Positive, Seeds, Settings
from trialogue_lab.studies.decoding_laws.tasks import LADDER

FAMILIES = tuple(family.name for family in LADDER)
Several = Annotated[int, Ge(2)]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(1, 11))
    """Oracles: the laws of the next token are drawn by seed, of every task its own."""
    families: Different[str] = FAMILIES
    """Rules of the ladder."""
    concentration: Positive = 1.0
    """Of the Dirichlet law that the laws of the next token are drawn from."""
    candidates: Increasing[Several] = (4, 16)
    """Completions that the best is taken of."""
    drawn_among: Increasing[Several] = (2, 4, 16, 64)
    """Masked outputs that one is drawn among, by weight."""
    error: Positive = 1.0
    """Noisy values are a factor of 1 + error above or below the exact ones."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        unknown = [name for name in self.families if name not in FAMILIES]
        if unknown:
            raise InputError("families", unknown[0], f"the rules are {', '.join(FAMILIES)}")


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
