"""Comparison of backtracking with Algorithm 1 of the thesis and with the released code."""

from itertools import product

import pytest

from samplers.reference_distributions import backtracking, largest_difference, released_backtracking
from trialogue.data.table import Table
from trialogue.samplers import Backtracking
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, RandomTree

RELEASED = [
    {"quota": quota, "stride": stride, "erase_prompt": erase_prompt, "once_per_prefix": once_per_prefix}
    for quota, stride, erase_prompt, once_per_prefix in product((1, 3), (1, 2), (True, False), (True, False))
]


def error_of(sampler, reference, tree: RandomTree, prompt, settings) -> float:
    """Return the distance from a reference in distribution and in expected calls."""
    distribution = exact_distribution(sampler, tree.table(), tree.judges, prompt=prompt)
    expected, queries = reference(tree, tree.judges, prompt=prompt, **settings)
    return max(
        largest_difference(distribution.probabilities, expected),
        abs(distribution.expected_calls - queries),
        distribution.failed,
        distribution.never_halts,
    )


def backtracking_error(sampler, tree: RandomTree, prompt=(), **settings) -> float:
    """Return the distance from Algorithm 1."""
    return error_of(sampler(**settings), backtracking, tree, prompt, settings)


def released_error(sampler, tree: RandomTree, prompt=(), **settings) -> float:
    """Return the distance from the released code."""
    return error_of(sampler.released(**settings), released_backtracking, tree, prompt, settings)


@pytest.mark.parametrize("erase_prompt", [False, True])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_backtracking_from_a_prompt_equals_algorithm_1(tree, erase_prompt):
    prompt = next(x for x in tree.nodes() if len(x) == 2 and not tree.complete(x))
    for stride in (1, 2, 3):
        settings = {"quota": 2, "stride": stride, "erase_prompt": erase_prompt}
        assert backtracking_error(Backtracking, tree, prompt, **settings) < 1e-12


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_released_backtracking_equals_the_released_code(tree):
    prompt = next(x for x in tree.nodes() if len(x) == 1 and not tree.complete(x))
    for settings in RELEASED:
        assert released_error(Backtracking, tree, **settings) < 1e-12, settings
        assert released_error(Backtracking, tree, prompt, **settings) < 1e-12, settings


def test_a_redo_takes_the_lowest_index_among_ties():
    table = Table(lambda prefix: [0.2, 0.4, 0.4], 3, max_length=2)

    def probabilities(sampler):
        return exact_distribution(sampler, table, lambda prefix: prefix[-1] == 0).probabilities

    expected = {(1, token): 0.8 * p for token, p in enumerate((0.2, 0.4, 0.4))}
    expected |= {(0, token): 0.2 * p for token, p in enumerate((0.2, 0.4, 0.4))}
    expected |= {(0, 0): 0.04, (0, 1): 0.16, (0, 2): 0.0}
    assert largest_difference(probabilities(Backtracking(quota=1, stride=1)), expected) < 1e-12
