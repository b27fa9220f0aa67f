"""Rejection of entire sequences and of tokens: costs, prompts, blocks of tokens, and the target distribution."""

import pytest

from samplers.reference_distributions import largest_difference, rejection_queries, restricted
from trialogue.data.table import Table
from trialogue.samplers import Ancestral, Rejection, TokenwiseRejection, WeightedRejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.samplers.prefix import weighted_rejection
from trialogue.testing.trees import VIABLE, RandomTree, viable


def test_a_prompt_conditions_the_distribution():
    tree = viable(RandomTree(12, horizon=5))
    prompt = next(x for x in tree.nodes() if len(x) == 2 and tree.allows(x))
    distribution = exact_distribution(Rejection(), tree.table(), tree.allows, prompt=prompt)
    assert largest_difference(distribution.probabilities, restricted(tree, tree.allows, prompt)) < 1e-12
    assert distribution.expected_calls == pytest.approx(
        rejection_queries(tree, tree.allows, prompt), rel=1e-12
    )


def test_max_new_tokens_shortens_the_horizon():
    tree, short = RandomTree(13, horizon=5), RandomTree(13, horizon=3)
    distribution = exact_distribution(Ancestral(), tree.table(), max_new_tokens=3)
    assert largest_difference(distribution.probabilities, short.distribution()) < 1e-12


def test_a_rejected_complete_prompt_is_not_continued():
    table = Table(lambda prefix: [0.5, 0.5], 2, eos=0, max_length=3)
    distribution = exact_distribution(Rejection(), table, lambda prefix: len(prefix) > 1, prompt=(0,))
    assert distribution.probabilities == {(0,): 1.0}
    assert distribution.never_halts == distribution.expected_calls == 0
    samples = generate(table, [(0,)], sampler=Rejection(), verifier=lambda prefix: len(prefix) > 1)
    assert samples.sequences() == [(0,)]
    assert not bool(samples.accepted)


@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_the_target_distribution_is_proportional_to_probability_times_value(tree):
    start = next(x for x in tree.nodes() if len(x) == 1)
    for rule, prompt in ((tree.allows, ()), (tree.value, ()), (tree.value, start)):
        target = target_distribution(tree.table(), rule, prompt=prompt)
        assert largest_difference(target, restricted(tree, rule, prompt)) < 1e-12


def test_total_variation_counts_missing_mass_as_an_outcome():
    first, second = {(0,): 0.5, (1,): 0.5}, {(0,): 0.25, (1,): 0.25}
    assert total_variation(first, second) == pytest.approx(0.5)
    assert total_variation(first, {(2,): 1.0}) == 1.0
    assert total_variation(first, dict(first)) == 0.0


def test_a_sample_without_rejections_left_fails():
    table = Table(lambda _: [0.0, 1.0], 2, max_length=2)
    sampler = TokenwiseRejection(max_rejections=3)
    samples = generate(table, sampler=sampler, verifier=lambda prefix: not any(prefix), num_samples=4)
    assert samples.stopped == ["failed"] * 4
    assert samples.completions() == [()] * 4
    assert samples.queries.tolist() == [3] * 4
    assert sampler.failure_reason == "no token allowed in max_rejections=3 draws in a row at one position"


@pytest.mark.parametrize("size", [1, 2])
def test_drawing_by_blocks_of_the_vocabulary_gives_the_same_distribution(monkeypatch, size):
    tree = RandomTree(15, vocab=4, horizon=2)
    single_block = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    monkeypatch.setattr(weighted_rejection, "_BLOCK", size)
    blocks = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    assert blocks.probabilities == pytest.approx(single_block.probabilities, abs=1e-12)
    assert blocks.weights == pytest.approx(single_block.weights, abs=1e-12)


def test_only_drawn_tokens_are_judged():
    wide = Table(lambda prefix: [0.45, 0.45] + [0.1 / 998] * 998, 1000, max_length=20)
    run = generate(wide, sampler=WeightedRejection(), verifier=lambda y: y[-1] != 0, num_samples=20)
    assert run.queries.tolist() == [20] * 20
    assert int(run.verifier_calls.sum()) < 4 * 20 * 20
