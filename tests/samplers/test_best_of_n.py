"""Best of n against all tuples of draws and against the closed form."""

import pytest

from mutants import samplers as mutants
from samplers.reference_laws import best_of, best_of_closed_form, largest_difference
from trialogue.errors import InputError
from trialogue.samplers import BestOfN, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, VIABLE

SMALL = [tree for tree in TREES if len(tree.distribution()) <= 20]


def best_of_error(sampler, tree, rule, n) -> float:
    """Distance from the distribution of the first of the greatest, and from n completions' worth of queries."""
    distribution = exact_distribution(sampler(n), tree.table(), rule)
    tokens = n * sum(p * len(x) for x, p in tree.distribution().items())
    return max(
        largest_difference(distribution.probabilities, best_of(tree, rule, n)),
        abs(distribution.expected_calls - tokens),
    )


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("tree", SMALL, ids=str)
def test_best_of_n_has_its_law(tree, n):
    assert best_of_error(BestOfN, tree, tree.value, n) < 1e-12
    assert best_of_error(BestOfN, tree, tree.allows, n) < 1e-12


def test_best_of_three():
    assert best_of_error(BestOfN, TREES[0], TREES[0].value, 3) < 1e-12


@pytest.mark.parametrize("tree", SMALL, ids=str)
def test_two_closed_forms_agree(tree):
    for n in (1, 2, 3):
        for rule in (tree.value, tree.allows):
            assert largest_difference(best_of(tree, rule, n), best_of_closed_form(tree, rule, n)) < 1e-12


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        (mutants.IndifferentBestOfN, "allows"),
        (mutants.WorstOfN, "allows"),
        (mutants.IndifferentBestOfN, "value"),
        (mutants.WorstOfN, "value"),
    ],
)
def test_broken_best_of_n_is_told_apart(mutant, rule):
    tree = VIABLE[0]
    assert best_of_error(mutant, tree, getattr(tree, rule), 2) > 1e-3


def first_of_the_greatest(sampler) -> bool:
    """Whether each sample is the first of the greatest of the candidates that its streams draw.

    In distribution it does not matter which of equals is taken, since the draws are exchangeable.
    """
    tree, n = VIABLE[0], 3
    chosen = generate(tree.table(), sampler=sampler(n), verifier=tree.allows, num_samples=40).sequences()
    drawn = generate(tree.table(), num_samples=40 * n).sequences()
    groups = [drawn[start : start + n] for start in range(0, len(drawn), n)]
    return chosen == [max(group, key=tree.allows) for group in groups]


def test_the_first_of_equals_is_taken():
    assert first_of_the_greatest(BestOfN)
    assert not first_of_the_greatest(mutants.LastBestOfN)
    assert best_of_error(mutants.LastBestOfN, VIABLE[0], VIABLE[0].allows, 2) < 1e-12


def test_no_candidates_is_an_error():
    with pytest.raises(InputError, match="candidates=0"):
        BestOfN(0)
