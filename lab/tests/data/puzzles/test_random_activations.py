"""Tests of models with random activations: the distribution of tokens against enumeration, and costs."""

import itertools
import math

import pytest

from one_line_errors import refusals
from refusals import expect_error
from trialogue.samplers.exact import total_variation
from trialogue_lab.data.puzzles import random_activations
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_activations import RandomActivations, activated_factors
from uniform_rows import uniform_distribution


@pytest.mark.parametrize("order", ["product-first", "factors-first"])
@pytest.mark.parametrize("digits", [1, 2])
def test_random_activations_preserve_the_distribution_without_factoring(digits: int, order: str) -> None:
    tuples = SemiprimeTuples(digits, order)
    found = activated_factors(tuples).distribution()
    assert total_variation(found, uniform_distribution(tuples.states())) < 1e-14
    cost = tuples.arithmetic.cost
    assert (cost.factorings, cost.factoring_steps, cost.primality_tests) == (0, 0, 0)
    assert cost.multiplications == tuples.size * 4 * digits


def test_distribution_sums_over_all_activations_and_tokens() -> None:
    """Two layers have weights that depend on all previous activations and tokens."""

    def activation(prefix: tuple[int, ...], activations: tuple[int, ...]) -> list[float]:
        return [1.0 + sum(prefix), 2.0 + sum(activations), 0.0, 1.0 + len(activations)][
            : 2 + 2 * (len(activations) % 2)
        ]

    def token(prefix: tuple[int, ...], activations: tuple[int, ...]) -> list[float]:
        return [1.0, float(activations[0] + len(prefix)), 0.5 + activations[-1]]

    expected: dict[tuple[int, ...], float] = {}
    for h in itertools.product(range(4), repeat=4):
        for x in itertools.product(range(3), repeat=2):
            probability = 1.0
            for place in range(2):
                for layer in range(2):
                    weights = activation(x[:place], h[: 2 * place + layer])
                    value = h[2 * place + layer]
                    probability *= weights[value] / math.fsum(weights) if value < len(weights) else 0.0
                weights = token(x[:place], h[: 2 * place + 2])
                probability *= weights[x[place]] / math.fsum(weights)
            expected[x] = expected.get(x, 0.0) + probability
    model = RandomActivations(activation, token, 2, 3, layers=2)
    assert math.fsum(expected.values()) == pytest.approx(1)
    assert total_variation(model.distribution(), expected) < 1e-14


test_invalid_input_is_rejected = refusals(
    "{}",
    [
        (lambda: activated_factors(SemiprimeTuples(8)), r"^digits=8: there are about"),
        (
            lambda: RandomActivations(lambda *_: [], lambda *_: [1.0, 1.0], 2, 2).distribution(),
            r"^activation=\(0,\): after \(\) give non-negative finite weights",
        ),
        (
            lambda: RandomActivations(lambda *_: [1.0], lambda *_: [1.0], 2, 2).distribution(),
            r"^token=\(1\.0,\): after \(\) give 2 non-negative",
        ),
    ],
)


def test_too_many_activations_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_activations, "ENUMERABLE_STATES", 100)
    model = RandomActivations(lambda *_: [1.0] * 11, lambda *_: [1.0, 0.0], 2, 2)
    expect_error(r"^length=2: the draws up to position 1 have over 100 outcomes", model.distribution)
