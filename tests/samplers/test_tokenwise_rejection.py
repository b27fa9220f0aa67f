"""Tokenwise rejection against its closed distribution and cost, and the propositions and examples of the thesis."""

import math
from itertools import product

import pytest

from mutants import samplers as mutants
from samplers.reference_laws import largest_difference, restricted, tokenwise
from trialogue.data.table import Table
from trialogue.samplers import MaskedDecoding, Rejection, TokenwiseRejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.testing.trees import VIABLE, RandomTree, viable


def coins(length: int) -> Table:
    return Table(lambda prefix: [0.5, 0.5], 2, max_length=length)


def redraw_error(sampler, tree: RandomTree, rule) -> float:
    """Distance from q, from C (relative), and from the mass that never halts."""
    distribution = exact_distribution(sampler(), tree.table(), rule)
    reference, queries, stuck = tokenwise(tree, rule)
    if math.isinf(queries) or math.isinf(distribution.expected_calls):
        cost = 0.0 if queries == distribution.expected_calls else math.inf
    else:
        cost = abs(distribution.expected_calls / queries - 1)
    return max(
        largest_difference(distribution.probabilities, reference),
        abs(distribution.never_halts - stuck),
        distribution.failed,
        cost,
    )


def mask_error(sampler, tree: RandomTree, rule) -> float:
    """Distance from q, from p(x) 1[x in A], and from the mass that fails."""
    distribution = exact_distribution(sampler(), tree.table(), rule)
    reference, _, stuck = tokenwise(tree, rule)
    proper = {x: p for x, p in tree.distribution().items() if x in reference}
    return max(
        largest_difference(distribution.probabilities, reference),
        largest_difference(distribution.weights, proper),
        abs(distribution.failed - stuck),
        distribution.never_halts,
    )


@pytest.mark.parametrize(
    ("sampler", "error"), [(TokenwiseRejection, redraw_error), (MaskedDecoding, mask_error)]
)
@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_tokenwise_rejection_has_its_closed_law_and_cost(sampler, error, tree):
    assert error(sampler, tree, tree.allows) < 1e-12
    assert error(sampler, tree, tree.judges) < 1e-12


@pytest.mark.parametrize(
    ("mutant", "error"),
    [
        (mutants.UniformTokenwise, redraw_error),
        (mutants.UniformMask, mask_error),
        (mutants.LastUncheckedTokenwise, redraw_error),
        (mutants.LastUncheckedMask, mask_error),
        (mutants.UnweightedMask, mask_error),
        (mutants.InverseWeightMask, mask_error),
    ],
)
def test_broken_tokenwise_rejection_is_told_apart(mutant, error):
    assert max(error(mutant, tree, tree.allows) for tree in VIABLE) > 1e-3


def test_weights_of_the_mask_with_a_perfect_verifier_are_the_restricted_law():
    tree = viable(RandomTree(21, vocab=3))
    distribution = exact_distribution(MaskedDecoding(), tree.table(), tree.allows)
    proper = {x: p for x, p in tree.distribution().items() if tree.allows(x)}
    assert largest_difference(distribution.weights, proper) < 1e-12
    assert total_variation(distribution.probabilities, restricted(tree, tree.allows)) > 1e-3


def bounded_error(sampler, tree: RandomTree, rule, most: int) -> float:
    """Distance from the distribution, the cost and the failing mass of at most `most` rejections at each position."""
    reference, queries, failed = {}, 0.0, 0.0
    below = [((), 1.0)]
    while below:
        prefix, mass = below.pop()
        if tree.complete(prefix):
            reference[prefix] = mass
            continue
        accepted = [(child, p) for child, p in tree.children(prefix) if rule(child)]
        missed = 1 - math.fsum(p for _, p in accepted)
        queries += mass * sum(missed**draw for draw in range(most))
        failed += mass * missed**most
        below += [(child, mass * p * sum(missed**draw for draw in range(most))) for child, p in accepted]
    distribution = exact_distribution(sampler(max_rejections=most), tree.table(), rule)
    return max(
        largest_difference(distribution.probabilities, reference),
        abs(distribution.failed - failed),
        distribution.never_halts,
        abs(distribution.expected_calls / queries - 1),
    )


@pytest.mark.parametrize("tree", VIABLE, ids=str)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_bounded_rejections_fail_and_cost_what_they_should(tree, most):
    assert bounded_error(TokenwiseRejection, tree, tree.allows, most) < 1e-12
    assert bounded_error(TokenwiseRejection, tree, tree.judges, most) < 1e-12


@pytest.mark.parametrize("mutant", [mutants.HoardingTokenwise, mutants.PatientTokenwise])
def test_a_bound_that_is_another_is_told_apart(mutant):
    assert max(bounded_error(mutant, tree, tree.allows, 2) for tree in VIABLE) > 1e-3


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
