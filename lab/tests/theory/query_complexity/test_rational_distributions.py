"""Laws as fractions: Proposition 3.1.2 without rounding, and the walks' own laws."""

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


def fair(_: tuple[int, ...]) -> tuple[int, int]:
    return (1, 1)


def some_zero(length: int):
    return lambda prefix: len(prefix) < length or 0 in prefix


@pytest.mark.parametrize("length", range(1, 7))
def test_proposition_3_1_2(length: int) -> None:
    rule = some_zero(length)
    law, target = tokenwise_distribution(fair, rule, length), restricted_distribution(fair, rule, length)
    last = (*(1,) * (length - 1), 0)
    assert law.pop(last) == Fraction(1, 2 ** (length - 1))
    assert set(law.values()) <= {Fraction(1, 2**length)}
    assert set(target.values()) == {Fraction(1, 2**length - 1)}
    both = tokenwise_distribution(fair, rule, length), target
    assert rational_variation(*both) == Fraction(2**length - 2, 2**length * (2**length - 1))


def test_they_are_the_laws_of_the_walk() -> None:
    def tilted(prefix: tuple[int, ...]) -> tuple[int, int, int]:
        return (1 + sum(prefix), 2, len(prefix))

    def rule(prefix: tuple[int, ...]) -> bool:
        return sum(prefix) <= 2 if len(prefix) < 3 else sum(prefix) in (1, 2)

    table = Table(lambda prefix: [float(weight) for weight in tilted(prefix)], 3, max_length=3)
    law = tokenwise_distribution(tilted, rule, 3)
    assert {x: float(p) for x, p in law.items()} == pytest.approx(
        exact_distribution(TokenwiseRejection(), table, rule).probabilities
    )
    target = restricted_distribution(tilted, rule, 3)
    assert {x: float(p) for x, p in target.items()} == pytest.approx(target_distribution(table, rule))
    assert sum(target.values()) == 1


test_bad_input_is_named = refusals(
    "^{}",
    [
        (lambda: restricted_distribution(fair, lambda prefix: False, 2), "accepts=None: accept at least one"),
        (lambda: tokenwise_distribution(fair, some_zero(30), 30), "length=30: there are more than"),
        (
            lambda: tokenwise_distribution(lambda _: (2, -1), some_zero(2), 2),
            "conditional=.*: give non-negative weights",
        ),
    ],
)
