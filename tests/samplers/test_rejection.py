"""Rejection, whole and token by token: costs, prompts, the target distribution, and propositions of the thesis."""

import math
from itertools import product

import pytest
import torch

from samplers.reference_laws import largest_difference, rejection_queries, restricted
from trialogue.data import Dyck, Table
from trialogue.samplers import Ancestral, MaskedDecoding, Rejection, TokenwiseRejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.testing.trees import VIABLE, RandomTree, viable


def test_a_prompt_conditions_the_law():
    tree = viable(RandomTree(12, horizon=5))
    prompt = next(x for x in tree.nodes() if len(x) == 2 and tree.allows(x))
    distribution = exact_distribution(Rejection(), tree.table(), tree.allows, prompt=prompt)
    assert largest_difference(distribution.probabilities, restricted(tree, tree.allows, prompt)) < 1e-12
    assert distribution.expected_calls == pytest.approx(
        rejection_queries(tree, tree.allows, prompt), rel=1e-12
    )


def test_fewer_new_tokens_shorten_the_horizon():
    tree, short = RandomTree(13, horizon=5), RandomTree(13, horizon=3)
    distribution = exact_distribution(Ancestral(), tree.table(), max_new_tokens=3)
    assert largest_difference(distribution.probabilities, short.distribution()) < 1e-12


def test_rejection_of_everything_never_halts():
    distribution = exact_distribution(Rejection(), RandomTree(1).table(), lambda prefix: False)
    assert (distribution.probabilities, distribution.never_halts, distribution.expected_calls) == (
        {},
        1.0,
        math.inf,
    )


def test_a_complete_prompt_that_is_rejected_is_not_continued():
    table = Table(lambda prefix: [0.5, 0.5], 2, eos=0, max_length=3)
    distribution = exact_distribution(Rejection(), table, lambda prefix: len(prefix) > 1, prompt=(0,))
    assert (distribution.probabilities, distribution.never_halts, distribution.expected_calls) == (
        {(0,): 1.0},
        0.0,
        0.0,
    )
    samples = generate(table, [(0,)], sampler=Rejection(), verifier=lambda prefix: len(prefix) > 1)
    assert samples.sequences() == [(0,)]
    assert not bool(samples.accepted)


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_the_target_law_is_the_oracle_tilted_by_the_value(tree):
    assert (
        largest_difference(target_distribution(tree.table(), tree.allows), restricted(tree, tree.allows))
        < 1e-12
    )
    assert (
        largest_difference(target_distribution(tree.table(), tree.value), restricted(tree, tree.value))
        < 1e-12
    )
    prompt = next(x for x in tree.nodes() if len(x) == 1)
    assert (
        largest_difference(
            target_distribution(tree.table(), tree.value, prompt=prompt), restricted(tree, tree.value, prompt)
        )
        < 1e-12
    )


def test_the_target_law_names_only_what_has_weight():
    tree = VIABLE[0]
    assert set(target_distribution(tree.table(), tree.allows)) == {
        x for x in tree.distribution() if tree.allows(x)
    }


def test_total_variation_counts_missing_mass_as_an_outcome():
    first, second = {(0,): 0.5, (1,): 0.5}, {(0,): 0.25, (1,): 0.25}
    assert total_variation(first, second) == pytest.approx(0.5)
    assert total_variation(first, {(2,): 1.0}) == 1.0
    assert total_variation(first, dict(first)) == 0.0


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


UNIFORM = Table(lambda _: [0.25] * 4, vocab_size=4)


@pytest.mark.parametrize("length", [4, 6, 8])
def test_ancestral_sampling_has_the_law_of_log_prob(length):
    dyck = Dyck(length, (0.3, 0.7), 0.6)
    distribution = exact_distribution(Ancestral(), dyck)
    strings = [x for x, p in distribution.probabilities.items() if p > 0]
    exact = dyck.log_prob(torch.tensor(strings)).exp().tolist()
    assert len(strings) == {4: 8, 6: 40, 8: 224}[length]
    assert max(abs(distribution.probabilities[x] - p) for x, p in zip(strings, exact, strict=True)) < 1e-12
    assert distribution.expected_calls == pytest.approx(length, abs=1e-12)
    other = Dyck(length, (0.3, 0.7), 0.601)
    assert (
        total_variation(distribution.probabilities, exact_distribution(Ancestral(), other).probabilities)
        > 1e-4
    )


def test_tokenwise_rejection_of_a_uniform_oracle_costs_what_it_should():
    dyck = Dyck(8)
    distribution = exact_distribution(TokenwiseRejection(), UNIFORM, dyck, max_new_tokens=8)
    assert distribution.expected_calls == pytest.approx(19.28, abs=5e-3)
    assert math.fsum(distribution.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_rejection_of_a_uniform_oracle_is_uniform_on_the_language():
    dyck = Dyck(6)
    distribution = exact_distribution(Rejection(), UNIFORM, dyck, max_new_tokens=6)
    assert distribution.expected_calls == pytest.approx(6 * 4**6 / 40, rel=1e-10)
    assert (
        total_variation(distribution.probabilities, target_distribution(UNIFORM, dyck, max_new_tokens=6))
        < 1e-12
    )
    assert list(distribution.probabilities.values()) == pytest.approx([1 / 40] * 40, abs=1e-13)
