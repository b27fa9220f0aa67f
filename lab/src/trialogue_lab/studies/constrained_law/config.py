"""Settings of the study: the model, the questions and the numbers of samples."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Probability, Seeds, Settings, Some


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run, which compares samplers of a language model under a constraint.

    The model answers questions under a constraint, for example a regular expression. In masked decoding, forbidden next
    tokens get probability zero. All allowed answers are enumerated, so that exact distributions are known.

    Args:
        model: Name of the language model. Empty for a random model with four letters, which tests use.
        seeds: Seeds of the questions. Each seed selects one question per kind of constraint.
        sizes: Values of N for weighted masked decoding, which generates N masked outputs and selects one by its
            importance weight. The first must be 1.
        particles: Numbers of particles of sequential Monte Carlo.
        simulations: Number of outputs of sequential Monte Carlo. They are simulated on the enumerated answers, without
            the model.
        samples: Number of outputs that each sampler generates with the model.
        max_new_tokens: Maximum number of tokens of an answer.
        tolerance: Fraction of the probability of all allowed answers that the enumeration may omit.
        max_prefixes: Maximum number of prefixes that the enumeration visits.
        max_queries: Maximum number of model calls for one output.
    """

    model: str = "smollm2"
    seeds: Seeds = tuple(range(8))
    sizes: Increasing[Count] = (1, 4, 16, 64, 256)
    particles: Some[Annotated[int, Ge(2)]] = (4, 16)
    simulations: Count = 1000
    samples: Count = 32
    max_new_tokens: Count = 28
    tolerance: Probability = 2e-2
    max_prefixes: Count = 4000
    max_queries: Count = 4000

    def check(self) -> None:
        """Raise `InputError` if the first number in `sizes` is not 1."""
        if self.sizes[0] != 1:
            raise InputError("sizes", self.sizes, "start with 1, which is masked decoding")


PRESETS = {
    "smoke": Config(
        model="", seeds=(0,), sizes=(1, 4), particles=(4,), samples=40, max_new_tokens=5, tolerance=1e-9
    ),
    "pilot": Config(seeds=tuple(range(100, 105))),
    "default": Config(),
    "night": Config(seeds=tuple(range(40))),
    "paper": Config(model="HuggingFaceTB/SmolLM2-1.7B-Instruct", seeds=tuple(range(40)), samples=512),
}
