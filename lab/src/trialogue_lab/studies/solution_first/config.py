"""Settings of the study: numbers of vectors, objects, puzzles and digits."""

from dataclasses import dataclass
from typing import Annotated, get_args

from annotated_types import Interval, MinLen

from trialogue_lab.data.puzzles.arithmetic import Order
from trialogue_lab.ledger import Count, Different, Increasing, Seeds, Settings

PRODUCT_FIRST = "product-first"
FACTORS_FIRST = "factors-first"
ORDERS: tuple[Order, ...] = get_args(Order)
"""Orders of the numbers in a tuple of two primes and their product."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    Args:
        stopped_digits: Numbers of digits of the random numbers that end with a stop token. All numbers are enumerated.
        objects: Numbers of objects in twenty questions.
        rounds: Number of questions per game.
        clues: Numbers of clues of a Sudoku puzzle of 16 cells.
        puzzles: Number of Sudoku puzzles over which look-ups are averaged.
        density_digits: Numbers of digits of the primes whose first digits are sampled by the approximate density of
            primes.
        vectors: Number of random vectors of success probabilities for which the bound on the overlap is tested.
        cost_digits: Numbers of digits of the primes in tuples of two primes and their product, for which costs are
            counted.
        cost_samples: Number of tuples over which a cost is averaged.
        cost_seeds: Seeds of these tuples.
    """

    stopped_digits: Different[Annotated[int, Interval(ge=1, le=5)]] = (1, 2, 3, 4)
    objects: Different[Annotated[int, Interval(ge=64, le=1 << 16)]] = (256, 1024, 4096)
    rounds: Annotated[int, Interval(ge=2, le=12)] = 8
    clues: Different[Annotated[int, Interval(ge=0, le=16)]] = (4, 6, 8)
    puzzles: Count = 20
    density_digits: Annotated[Increasing[Annotated[int, Interval(ge=4, le=7)]], MinLen(3)] = (4, 5, 6, 7)
    vectors: Count = 10_000
    cost_digits: Annotated[Increasing[Annotated[int, Interval(ge=1, le=4)]], MinLen(2)] = (1, 2, 3)
    cost_samples: Count = 3
    cost_seeds: Seeds = tuple(range(6))


PRESETS = {
    "smoke": Config(
        stopped_digits=(1, 2),
        objects=(128, 256),
        rounds=4,
        clues=(4,),
        puzzles=2,
        density_digits=(4, 5, 6),
        vectors=200,
        cost_digits=(1, 2),
        cost_samples=1,
        cost_seeds=(0, 1),
    ),
    "pilot": Config(density_digits=(4, 5, 6), vectors=1000, cost_seeds=tuple(range(100, 106))),
    "default": Config(),
    "night": Config(objects=(256, 1024, 4096, 16_384), puzzles=100, vectors=100_000, cost_samples=20),
    "paper": Config(
        stopped_digits=(1, 2, 3, 4, 5),
        objects=(256, 1024, 4096, 16_384, 65_536),
        rounds=10,
        puzzles=1000,
        vectors=1_000_000,
        cost_digits=(1, 2, 3, 4),
        cost_samples=20,
        cost_seeds=tuple(range(20)),
    ),
}
