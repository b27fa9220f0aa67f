"""Ancestral sampling and rejection against products of conditionals and the restricted law."""

import math

import pytest

from mutants import walks as mutants
from samplers.reference_laws import largest_difference, rejection_queries, restricted
from trialogue.data.table import Table
from trialogue.samplers import Ancestral, Rejection, generate
from trialogue.samplers.exact import exact_law, target_law, total_variation
from trialogue.testing.trees import TREES, VIABLE, RandomTree, viable


def ancestral_error(walk, tree: RandomTree) -> float:
    """Distance of the walk from the product of conditionals and from one query per token."""
    law = exact_law(walk, tree.table())
    free = tree.law()
    tokens = math.fsum(p * len(x) for x, p in free.items())
    return max(largest_difference(law.probabilities, free), abs(law.expected_queries - tokens), law.failed)


def rejection_error(walk, tree: RandomTree) -> float:
    """Distance of the walk from the restricted law and from its cost, relative."""
    law = exact_law(walk, tree.table(), tree.allows)
    cost = rejection_queries(tree, tree.allows)
    return max(
        largest_difference(law.probabilities, restricted(tree, tree.allows)),
        abs(law.expected_queries / cost - 1),
    )


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_ancestral_sampling_is_the_product_of_conditionals(tree):
    assert ancestral_error(Ancestral(), tree) < 1e-12


@pytest.mark.parametrize(
    "mutant", [mutants.UniformAncestral, mutants.TwiceAskingAncestral, mutants.EarlyAncestral]
)
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_broken_ancestral_sampling_is_told_apart(mutant, tree):
    assert ancestral_error(mutant(), tree) > 1e-3


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_rejection_is_the_restricted_law_at_its_cost(tree):
    assert rejection_error(Rejection(), tree) < 1e-12


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.UniformRejection,
        mutants.CredulousRejection,
        mutants.ResumingRejection,
        mutants.EarlyCheckingRejection,
    ],
)
def test_broken_rejection_is_told_apart(mutant):
    assert max(rejection_error(mutant(), tree) for tree in VIABLE) > 1e-3


def test_rejection_costs_length_over_mass_for_a_fixed_length():
    tree = viable(RandomTree(11, vocab=3, horizon=4))
    mass = math.fsum(p for x, p in tree.law().items() if tree.allows(x))
    law = exact_law(Rejection(), tree.table(), tree.allows)
    assert law.expected_queries == pytest.approx(4 / mass, rel=1e-12)


def test_a_prompt_conditions_the_law():
    tree = viable(RandomTree(12, horizon=5))
    prompt = next(x for x in tree.nodes() if len(x) == 2 and tree.allows(x))
    law = exact_law(Rejection(), tree.table(), tree.allows, prompt=prompt)
    assert largest_difference(law.probabilities, restricted(tree, tree.allows, prompt)) < 1e-12
    assert law.expected_queries == pytest.approx(rejection_queries(tree, tree.allows, prompt), rel=1e-12)


def test_fewer_new_tokens_shorten_the_horizon():
    tree, short = RandomTree(13, horizon=5), RandomTree(13, horizon=3)
    law = exact_law(Ancestral(), tree.table(), max_new_tokens=3)
    assert largest_difference(law.probabilities, short.law()) < 1e-12


def test_rejection_of_everything_never_halts():
    law = exact_law(Rejection(), RandomTree(1).table(), lambda prefix: False)
    assert (law.probabilities, law.never_halts, law.expected_queries) == ({}, 1.0, math.inf)


def test_a_complete_prompt_that_is_rejected_is_not_continued():
    table = Table(lambda prefix: [0.5, 0.5], 2, eos=0, max_length=3)
    law = exact_law(Rejection(), table, lambda prefix: len(prefix) > 1, prompt=(0,))
    assert (law.probabilities, law.never_halts, law.expected_queries) == ({(0,): 1.0}, 0.0, 0.0)
    samples = generate(table, [(0,)], walk=Rejection(), verifier=lambda prefix: len(prefix) > 1)
    assert samples.sequences() == [(0,)]
    assert not bool(samples.accepted)


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_the_target_law_is_the_oracle_tilted_by_the_value(tree):
    assert largest_difference(target_law(tree.table(), tree.allows), restricted(tree, tree.allows)) < 1e-12
    assert largest_difference(target_law(tree.table(), tree.value), restricted(tree, tree.value)) < 1e-12
    prompt = next(x for x in tree.nodes() if len(x) == 1)
    assert (
        largest_difference(
            target_law(tree.table(), tree.value, prompt=prompt), restricted(tree, tree.value, prompt)
        )
        < 1e-12
    )


def test_the_target_law_names_only_what_has_weight():
    tree = VIABLE[0]
    assert set(target_law(tree.table(), tree.allows)) == {x for x in tree.law() if tree.allows(x)}


def test_total_variation_counts_missing_mass_as_an_outcome():
    first, second = {(0,): 0.5, (1,): 0.5}, {(0,): 0.25, (1,): 0.25}
    assert total_variation(first, second) == pytest.approx(0.5)
    assert total_variation(first, {(2,): 1.0}) == 1.0
    assert total_variation(first, dict(first)) == 0.0
