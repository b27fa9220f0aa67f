"""What a digit costs in each order of the tuple, for the study `type-signature`."""

from collections.abc import Iterator, Sequence
from typing import Any

from trialogue.data.puzzles.metered_arithmetic import Arithmetic
from trialogue.studies.type_signature_rows import RHO, TESTS, TRIAL_DIVISION
from trialogue.theory.factoring.reduction import second_number_cost


def cost_rows(digits: Sequence[int], samples: int, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Mean cost of the first digit of the tuple's second number, given the first, by seed, size and routine."""
    for seed in seeds:
        for size in digits:
            tests = second_number_cost(size, "factors-first", samples, seed)
            divisions = second_number_cost(
                size, "product-first", samples, seed, arithmetic=Arithmetic("trial-division")
            )
            iterations = second_number_cost(size, "product-first", samples, seed)
            for routine, cost in (
                (TESTS, tests.primality_tests),
                (TRIAL_DIVISION, divisions.factoring_steps),
                (RHO, iterations.factoring_steps),
            ):
                yield {"kind": "cost", "seed": seed, "digits": size, "routine": routine, "cost": cost}
