"""Tasks of a run: exact numbers, counted costs, and one task per network."""

from functools import partial
from itertools import product
from pathlib import Path

from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.type_signature.config import RHO, STREAMS, TESTS, TRIAL_DIVISION, Config
from trialogue_lab.studies.type_signature.exact import measure_exactly
from trialogue_lab.studies.type_signature.networks import NetworkTraining, measure_network
from trialogue_lab.theory.factoring.reduction import second_number_cost


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run: exact computations, counted costs, and trained networks.

    Args:
        config: Settings of the run.

    Returns:
        One task that computes exact numbers by enumeration, one task that counts the operations for generating a
        number, and one task per network. The networks of a seed are trained in order.
    """
    return [
        Part("exact", lambda _: measure_exactly(config.vectors)),
        Part("costs", lambda _: measure_costs(config)),
        *(
            Part(
                f"network-{seed}-{digits}-{place}",
                partial(_measure_network, config, seed, digits, stream),
                str(seed),
            )
            for seed in config.training_seeds
            for digits in config.training_digits
            for place, stream in enumerate(STREAMS)
        ),
    ]


def measure_costs(config: Config) -> MeasuredRows:
    """Count the operations that are needed to write the second number of a tuple, given the first one.

    The tuple contains two primes and their product. If the product comes first, it must be factored. Otherwise, the
    second number is a random prime. Only the operations for its first digit are counted.

    Args:
        config: Settings of the run, with the numbers of digits and of tuples, and the seeds.

    Yields:
        One row per seed, number of digits and routine. The routine is "primality tests" for a random prime, or "trial
        division" or "Pollard's rho" for factoring. `cost` is the mean number of operations.
    """
    for seed, size in product(config.cost_seeds, config.cost_digits):
        easy = partial(second_number_cost, size, "factors-first", config.cost_samples, seed)
        hard = partial(second_number_cost, size, "product-first", config.cost_samples, seed)
        for routine, total in (
            (TESTS, easy().primality_tests),
            (TRIAL_DIVISION, hard(arithmetic=Arithmetic("trial-division")).factoring_steps),
            (RHO, hard().factoring_steps),
        ):
            cost = total / config.cost_samples
            yield {"kind": "cost", "seed": seed, "digits": size, "routine": routine, "cost": cost}


def _measure_network(config: Config, seed: int, digits: int, stream: str, _: Path) -> MeasuredRows:
    training = NetworkTraining(digits, stream, config.training_steps, config.batch_size, config.width)
    return measure_network(training, config.emitted, seed)
