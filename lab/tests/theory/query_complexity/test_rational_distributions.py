"""Tests of distributions as fractions: Proposition 3.1.2 without rounding, and exact distributions of samplers."""

from fractions import Fraction

import pytest

from one_line_errors import refusals
from trialogue.data.table import Table
from trialogue.samplers import TokenwiseRejection
from trialogue.samplers.exact import exact_distribution, target_distribution
from trialogue_lab.theory.query_complexity import (
    rational_variation,
    restricted_distribution,
    tokenwise_distribution,
)


def uniform(_: tuple[int, ...]) -> tuple[int, int]:
    return (1, 1)


def some_zero(length: int):
    return lambda prefix: len(prefix) < length or 0 in prefix


@pytest.mark.parametrize("length", range(1, 7))
def test_proposition_3_1_2_holds_exactly(length: int) -> None:
    accepts = some_zero(length)
    distribution = tokenwise_distribution(uniform, accepts, length)
    target = restricted_distribution(uniform, accepts, length)
    last = (*(1,) * (length - 1), 0)
    assert distribution.pop(last) == Fraction(1, 2 ** (length - 1))
    assert set(distribution.values()) <= {Fraction(1, 2**length)}
    assert set(target.values()) == {Fraction(1, 2**length - 1)}
    pair = tokenwise_distribution(uniform, accepts, length), target
    assert rational_variation(*pair) == Fraction(2**length - 2, 2**length * (2**length - 1))


def test_fractions_agree_with_exact_distributions_of_samplers() -> None:
    def weights(prefix: tuple[int, ...]) -> tuple[int, int, int]:
        return (1 + sum(prefix), 2, len(prefix))

    def accepts(prefix: tuple[int, ...]) -> bool:
        return sum(prefix) <= 2 if len(prefix) < 3 else sum(prefix) in (1, 2)

    table = Table(lambda prefix: [float(each) for each in weights(prefix)], 3, max_length=3)
    distribution = tokenwise_distribution(weights, accepts, 3)
    assert {x: float(p) for x, p in distribution.items()} == pytest.approx(
        exact_distribution(TokenwiseRejection(), table, accepts).probabilities
    )
    target = restricted_distribution(weights, accepts, 3)
    assert {x: float(p) for x, p in target.items()} == pytest.approx(target_distribution(table, accepts))
    assert sum(target.values()) == 1


test_errors_name_the_invalid_argument = refusals(
    "^{}",
    [
        (
            lambda: restricted_distribution(uniform, lambda prefix: False, 2),
            "accepts=None: accept at least one",
        ),
        (lambda: tokenwise_distribution(uniform, some_zero(30), 30), "length=30: there are more than"),
        (
            lambda: tokenwise_distribution(lambda _: (2, -1), some_zero(2), 2),
            "conditional=.*: give non-negative weights",
        ),
    ],
)
