"""Tokenwise rejection against its closed distribution and cost, and the propositions and examples of the thesis."""

import math
from itertools import product

import pytest

from samplers.reference_laws import largest_difference
from trialogue.data.table import Table
from trialogue.samplers import MaskedDecoding, Rejection, TokenwiseRejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation


def coins(length: int) -> Table:
    return Table(lambda prefix: [0.5, 0.5], 2, max_length=length)


def test_a_sample_out_of_rejections_says_so():
    table = Table(lambda _: [0.0, 1.0], 2, max_length=2)
    sampler = TokenwiseRejection(max_rejections=3)
    samples = generate(table, sampler=sampler, verifier=lambda prefix: not any(prefix), num_samples=4)
    assert samples.stopped == ["failed"] * 4
    assert samples.completions() == [()] * 4
    assert samples.queries.tolist() == [3] * 4
    assert sampler.failure_reason == "no token allowed in max_rejections=3 draws in a row at one position"


@pytest.mark.parametrize("length", range(1, 7))
def test_proposition_3_1_1(length):
    def zeros(prefix):
        return not any(prefix)

    assert exact_distribution(Rejection(), coins(length), zeros).expected_calls == pytest.approx(
        length * 2**length
    )
    assert exact_distribution(TokenwiseRejection(), coins(length), zeros).expected_calls == pytest.approx(
        2 * length
    )
    assert exact_distribution(MaskedDecoding(), coins(length), zeros).expected_calls == length


@pytest.mark.parametrize(
    ("length", "distance"), [(1, 0), (2, 1 / 6), (3, 3 / 28), (4, 7 / 120), (5, 15 / 496)]
)
def test_proposition_3_1_2(length, distance):
    def some_zero(prefix):
        return len(prefix) < length or 0 in prefix

    distribution = exact_distribution(TokenwiseRejection(), coins(length), some_zero).probabilities
    last = (*(1,) * (length - 1), 0)
    expected = {x: 2.0**-length for x in product((0, 1), repeat=length) if 0 in x} | {
        last: 2.0 ** (1 - length)
    }
    assert largest_difference(distribution, expected) < 1e-12
    restricted_law = target_distribution(coins(length), some_zero)
    assert total_variation(distribution, restricted_law) == pytest.approx(distance, abs=1e-12)
    assert total_variation(distribution, restricted_law) == pytest.approx(
        (2**length - 2) / (2**length * (2**length - 1)), abs=1e-12
    )


def test_exactly_two_ones_of_six():
    def two_ones(prefix):
        return sum(prefix) <= 2 <= sum(prefix) + 6 - len(prefix)

    assert exact_distribution(TokenwiseRejection(), coins(6), two_ones).expected_calls == pytest.approx(8.5)
    assert exact_distribution(Rejection(), coins(6), two_ones).expected_calls == pytest.approx(25.6)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_the_parity_instance_of_theorem_3_1_1_defeats_a_perfect_verifier(length):
    hidden = tuple(index % 2 for index in range(length - 1))

    def distribution(prefix):
        if len(prefix) < length - 1:
            return [0.5, 0.5]
        token = (sum(prefix) + (prefix != hidden)) % 2
        return [1.0 - token, float(token)]

    def even(prefix):
        return len(prefix) < length or sum(prefix) % 2 == 0

    table = Table(distribution, 2, max_length=length)
    lost = 1 - 2.0 ** (1 - length)
    answer = (*hidden, sum(hidden) % 2)
    redraw = exact_distribution(TokenwiseRejection(), table, even)
    assert redraw.probabilities == {answer: pytest.approx(1 - lost)}
    assert redraw.never_halts == pytest.approx(lost)
    assert redraw.expected_calls == math.inf
    mask = exact_distribution(MaskedDecoding(), table, even)
    assert mask.probabilities == {answer: pytest.approx(1 - lost)}
    assert mask.failed == pytest.approx(lost)
    assert mask.expected_calls == length
    assert exact_distribution(Rejection(), table, even).probabilities == {answer: pytest.approx(1.0)}
