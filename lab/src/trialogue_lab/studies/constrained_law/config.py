"""Settings of the study: the model, the questions and the effort."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Probability, Seeds, Settings, Some


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    model: str = "smollm2"
    """Empty for a random table over four letters, for tests."""
    seeds: Seeds = tuple(range(8))
    """Questions are drawn by seed, one of every kind of rule."""
    sizes: Increasing[Count] = (1, 4, 16, 64, 256)
    """Numbers of weighted samples that one output is drawn from."""
    particles: Some[Annotated[int, Ge(2)]] = (4, 16)
    """Particles of sequential Monte Carlo."""
    simulations: Count = 1000
    """Outputs of sequential Monte Carlo that are simulated on the tree."""
    samples: Count = 32
    """Outputs that every walk is run for."""
    max_new_tokens: Count = 28
    tolerance: Probability = 2e-2
    """Share of the laws that may be left unexplored."""
    max_prefixes: Count = 4000
    """Largest size of the token tree."""
    max_queries: Count = 4000
    """The most that one run of a walk may ask."""

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if self.sizes[0] != 1:
            raise InputError("sizes", self.sizes, "must begin with 1, which is masked decoding")


PRESETS = {
    "smoke": Config(
        model="", seeds=(0, 1), sizes=(1, 4), particles=(4,), samples=40, max_new_tokens=5, tolerance=1e-9
    ),
    "pilot": Config(seeds=tuple(range(100, 105))),
    "default": Config(),
    "night": Config(seeds=tuple(range(40))),
    "paper": Config(model="HuggingFaceTB/SmolLM2-1.7B-Instruct", seeds=tuple(range(40)), samples=512),
}
