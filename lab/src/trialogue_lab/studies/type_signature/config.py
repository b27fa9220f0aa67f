"""Settings of the study: sizes of the primes, numbers of samples for costs, and the networks."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, MinLen, MultipleOf

from trialogue_lab.ledger import Count, Different, Seeds, Settings

PRODUCT_FIRST = "product first"
FACTORS_FIRST = "factors first"
HIDDEN = "product first, hidden p and q"
STREAMS = (PRODUCT_FIRST, FACTORS_FIRST, HIDDEN)

TRIAL_DIVISION = "trial division"
RHO = "Pollard's rho"
TESTS = "primality tests"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The networks generate tuples of two primes and their product.

    Args:
        vectors: Number of random vectors of factoring probabilities on which a bound on the accuracy of generators is
            tested.
        cost_digits: Numbers of digits of the primes for which the operations of factoring are counted.
        cost_samples: Number of tuples over which a cost is averaged.
        cost_seeds: Seeds of the tuples for which costs are counted.
        training_digits: Numbers of digits of the primes on which networks are trained. All tuples are enumerated.
        training_seeds: Seeds of the networks.
        training_steps: Number of training steps of a network.
        batch_size: Number of tuples per training step.
        width: Width of the networks, which have four heads.
        emitted: Number of tuples that are sampled from a trained network.
    """

    vectors: Count = 1500
    cost_digits: Annotated[Different[Annotated[int, Interval(ge=1, le=9)]], MinLen(2)] = (2, 3, 4, 5, 6, 7)
    cost_samples: Count = 20
    cost_seeds: Seeds = tuple(range(10))
    training_digits: Different[Annotated[int, Interval(ge=1, le=3)]] = (1, 2, 3)
    training_seeds: Seeds = tuple(range(7))
    training_steps: Count = 1000
    batch_size: Count = 64
    width: Annotated[Count, MultipleOf(4)] = 64
    emitted: Count = 1000


PRESETS = {
    "smoke": Config(
        vectors=50,
        cost_digits=(2, 3),
        cost_samples=2,
        cost_seeds=(0, 1),
        training_digits=(1, 2, 3),
        training_seeds=(0, 1),
        training_steps=20,
        batch_size=16,
        width=16,
        emitted=20,
    ),
    "pilot": Config(cost_seeds=tuple(range(100, 110)), training_seeds=tuple(range(100, 104))),
    "default": Config(),
    "night": Config(
        vectors=10_000,
        cost_digits=(2, 3, 4, 5, 6, 7, 8),
        cost_samples=100,
        cost_seeds=tuple(range(20)),
        training_seeds=tuple(range(20)),
        training_steps=4000,
    ),
    "paper": Config(
        vectors=10_000,
        cost_digits=(2, 3, 4, 5, 6, 7, 8, 9),
        cost_samples=100,
        training_seeds=tuple(range(20)),
        training_steps=20_000,
        batch_size=512,
        width=256,
        emitted=10_000,
    ),
}
