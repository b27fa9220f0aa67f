"""Settings of the study: targets, errors of values, small trees, and curves of a verifier."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Count, Increasing, Positive, Probability, Seeds, Settings

Lengths = Increasing[Annotated[int, Ge(2)]]


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Sequential Monte Carlo (SMC) extends several sequences, called particles. The value of a prefix is the expected
    outcome of its completions. A Bellman error is log(value of a prefix / expected value one token later).

    Args:
        seeds: Seeds of the random targets, trees and curves.
        tolerance: Largest total variation distance from the target at which the number of particles counts as
            sufficient.
        lengths: Sequence lengths for perfect values. The target is a product over positions.
        branch_lengths: Sequence lengths for values with Bellman errors. The first token decides the outcome.
        total_error: Sum of the Bellman errors along a sequence, if each error is proportional to 1 / length.
        constant_error: Size of each Bellman error, if it does not depend on the length.
        constant_lengths: Sequence lengths for constant Bellman errors. Each is 1.5 times the previous one.
        trees: Number of small random trees per seed.
        tree_length: Length of the sequences of these trees.
        tree_particles: Number of particles of SMC on these trees.
        curves: Number of random ROC curves of each kind, per seed.
        levels: Number of different scores of the verifier that has an ROC curve.
        budgets: Numbers n of outputs from which best-of-n and rejection return one.
        large_budget: Number n of outputs that represents unlimited computation.
        draw_seeds: Seeds of independent sets of SMC outputs.
        draws: Number of outputs in each set.
        draw_length: Number of tokens of these outputs.
        draw_particles: Number of particles for these outputs.
        tilt: Parameter of their target, which has a factor 1 + tilt per token 0 and 1 - tilt per token 1.
    """

    seeds: Seeds = tuple(range(1, 17))
    tolerance: Probability = 0.1
    lengths: Lengths = (64, 256, 1024, 4096)
    branch_lengths: Lengths = (8, 16, 32, 64)
    total_error: Positive = 1.0
    constant_error: Positive = 0.1
    constant_lengths: Lengths = (8, 12, 18)
    trees: Annotated[int, Ge(3)] = 30
    tree_length: Annotated[int, Interval(ge=2, le=5)] = 3
    tree_particles: Annotated[int, Interval(ge=2, le=3)] = 2
    curves: Count = 500
    levels: Annotated[int, Ge(2)] = 6
    budgets: Lengths = (2, 4, 8, 16)
    large_budget: Count = 10_000
    draw_seeds: Seeds = tuple(range(1, 9))
    draws: Count = 2000
    draw_length: Annotated[int, Ge(2)] = 32
    draw_particles: Annotated[int, Ge(2)] = 8
    tilt: Probability = 0.5


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        lengths=(16, 64),
        branch_lengths=(4, 8),
        constant_lengths=(4, 6, 9),
        trees=4,
        tree_length=2,
        curves=20,
        draw_seeds=(0, 1),
        draws=50,
        draw_length=8,
        draw_particles=4,
    ),
    "pilot": Config(seeds=tuple(range(1000, 1003)), draw_seeds=tuple(range(1000, 1002))),
    "default": Config(),
    "night": Config(
        seeds=tuple(range(1, 101)),
        lengths=(64, 256, 1024, 4096, 16384),
        branch_lengths=(8, 16, 32, 64, 128),
        trees=60,
        draw_seeds=tuple(range(1, 25)),
        draws=4000,
    ),
}
