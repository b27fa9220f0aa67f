"""Settings of the study: language models, values and outputs."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from trialogue_lab.ledger import Count, Seeds, Settings

TOKENS_PER_CASE = 17
"""Largest number of tokens of a correct test case with two list items."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The value of a prefix is the probability that the model's completion consists of correct and distinct test cases.

    Args:
        seeds: Seeds of the repetitions. Each one has its own model, values and function names.
        cases: Number of test cases that a completion must contain.
        training_steps: Number of training steps of the language model.
        rollout_names: Number of function names whose completions train the values.
        rollouts: Number of completions per function name.
        probe_depth: Number of layers of the probe that predicts values.
        probe_epochs: Number of epochs of the training of the probe.
        names: Number of function names for which test cases are sampled.
        outputs: Number of outputs per function name, for each method.
        references: Number of further outputs of rejection per function name, with which distributions are compared.
        max_queries: Stop an output after this many model calls. It then counts as not accepted.
    """

    seeds: Seeds = tuple(range(1, 7))
    cases: Annotated[Count, Le(8)] = 2
    training_steps: Count = 600
    rollout_names: Count = 400
    rollouts: Count = 4
    probe_depth: Count = 2
    probe_epochs: Count = 30
    names: Count = 6
    outputs: Annotated[int, Ge(2)] = 24
    references: Annotated[int, Ge(2)] = 100
    max_queries: Count = 10_000

    @property
    def max_new_tokens(self) -> int:
        """Maximum number of tokens of a completion, which include the end of sequence."""
        return TOKENS_PER_CASE * self.cases + 1


PRESETS = {
    "smoke": Config(
        seeds=(0,),
        cases=1,
        training_steps=400,
        rollout_names=40,
        probe_epochs=2,
        names=1,
        outputs=3,
        references=8,
        max_queries=300,
    ),
    "pilot": Config(seeds=(1001, 1002), outputs=10, references=50),
    "default": Config(),
    # The settings of `default` with new seeds.
    "night": Config(seeds=tuple(range(200, 212))),
}
