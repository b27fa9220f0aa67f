"""Backtracking against Algorithm 1 of the thesis, enumerated in plain Python, and the identity of its calls."""

from itertools import product

import pytest

from mutants import samplers as mutants
from samplers.reference_laws import backtracking, largest_difference, released_backtracking
from trialogue.data.table import Table
from trialogue.samplers import Ancestral, Backtracking, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, RandomTree

RELEASED = [
    {"quota": quota, "stride": stride, "erase_prompt": erase_prompt, "once_per_prefix": once_per_prefix}
    for quota, stride, erase_prompt, once_per_prefix in product((1, 3), (1, 2), (True, False), (True, False))
]


def backtracking_error(sampler, tree: RandomTree, prompt=(), **settings) -> float:
    """Distance of the sampler from Algorithm 1: its distribution, and its expected calls to the oracle."""
    distribution = exact_distribution(sampler(**settings), tree.table(), tree.judges, prompt=prompt)
    reference, queries = backtracking(tree, tree.judges, prompt=prompt, **settings)
    return max(
        largest_difference(distribution.probabilities, reference),
        abs(distribution.expected_calls - queries),
        distribution.failed,
        distribution.never_halts,
    )


@pytest.mark.parametrize("erase_prompt", [False, True])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_backtracking_from_a_prompt_is_algorithm_1(tree, erase_prompt):
    prompt = next(x for x in tree.nodes() if len(x) == 2 and not tree.complete(x))
    for stride in (1, 2, 3):
        settings = {"quota": 2, "stride": stride, "erase_prompt": erase_prompt}
        assert backtracking_error(Backtracking, tree, prompt, **settings) < 1e-12


def released_error(sampler, tree: RandomTree, prompt=(), **settings) -> float:
    """Distance of the sampler from the loop of the released code: its distribution, and its expected calls to the
    oracle.
    """
    distribution = exact_distribution(sampler.released(**settings), tree.table(), tree.judges, prompt=prompt)
    reference, queries = released_backtracking(tree, tree.judges, prompt=prompt, **settings)
    return max(
        largest_difference(distribution.probabilities, reference),
        abs(distribution.expected_calls - queries),
        distribution.failed,
        distribution.never_halts,
    )


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_released_backtracking_is_the_released_loop(tree):
    prompt = next(x for x in tree.nodes() if len(x) == 1 and not tree.complete(x))
    for settings in RELEASED:
        assert released_error(Backtracking, tree, **settings) < 1e-12, settings
        assert released_error(Backtracking, tree, prompt, **settings) < 1e-12, settings


def test_a_redo_that_counts_from_the_beginning_of_the_prompt_is_told_apart():
    tree = RandomTree(7, vocab=2, horizon=5)

    def error(sampler):
        return max(released_error(sampler, tree, (0,), **settings) for settings in RELEASED)

    assert error(Backtracking) < 1e-12
    assert error(mutants.AbsoluteRedoBacktracking) > 1e-3


def fair_law(sampler: Backtracking, rejects, length: int, prompt=()):
    """Exact distribution and queries on fair coins, of which heads (0) is the greedy one."""
    coins = Table(lambda prefix: [0.5, 0.5], 2, max_length=length)
    distribution = exact_distribution(sampler, coins, lambda prefix: not rejects(prefix), prompt=prompt)
    return distribution.probabilities, distribution.expected_calls


def marginal(probabilities, position: int) -> float:
    """Probability of 1 at `position`."""
    return sum(p for x, p in probabilities.items() if x[position])


def test_released_backtracking_redoes_the_first_positions():
    # One backtrack of one token at the third position: as printed it is redone greedily, as released drawn anew.
    for sampler, expected in ((Backtracking(1, 1), 0.0), (Backtracking.released(1, 1), 1 / 16)):
        distribution, _ = fair_law(sampler, lambda prefix: prefix == (1, 1, 1), 4)
        assert sum(p for x, p in distribution.items() if x[:3] == (1, 1, 1)) == pytest.approx(expected)


def test_released_backtracking_accumulates_and_judges_again():
    # The second position is rejected twice: drawn anew after the first backtrack, greedy after the second.
    distribution, queries = fair_law(Backtracking.released(2, 1), lambda prefix: len(prefix) == 2, 3)
    assert (marginal(distribution, 1), queries) == (pytest.approx(0.0), pytest.approx(5.0))
    # As printed a redone token is not judged, so that one backtrack is all.
    distribution, queries = fair_law(Backtracking(2, 1), lambda prefix: len(prefix) == 2, 3)
    assert (marginal(distribution, 1), queries) == (pytest.approx(0.0), pytest.approx(4.0))
    # Once per prefix: where the second draw repeats the first, it stays.
    once = Backtracking.released(2, 1, once_per_prefix=True)
    distribution, queries = fair_law(once, lambda prefix: len(prefix) == 2, 3)
    assert (marginal(distribution, 1), queries) == (pytest.approx(0.25), pytest.approx(4.5))


def test_released_backtracking_into_the_prompt_covers_twice_what_it_erased():
    sampler = Backtracking.released(1, 2, erase_prompt=True)
    distribution, queries = fair_law(sampler, lambda prefix: prefix == (1, 1), 5, prompt=(1, 1))
    assert distribution == {(0, 0, 0, 0, bit): pytest.approx(0.5) for bit in (0, 1)}
    assert queries == pytest.approx(5.0)


def test_erasing_the_prompt_against_the_setting_is_told_apart():
    assert backtracking_error(mutants.PromptErasingBacktracking, TREES[1], (0, 1), quota=2, stride=3) > 1e-3


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_without_a_quota_it_is_ancestral_sampling(tree):
    table = tree.table()
    assert exact_distribution(Backtracking(quota=0), table) == exact_distribution(Ancestral(), table)
    first, second = (
        generate(table, sampler=sampler, num_samples=20) for sampler in (Backtracking(quota=0), None)
    )
    assert first.sequences() == second.sequences()


def test_only_zero_rejects():
    tree = TREES[1]
    distribution = exact_distribution(Backtracking(), tree.table(), tree.value)
    assert largest_difference(distribution.probabilities, tree.distribution()) < 1e-12


def test_a_redo_takes_the_lowest_index_among_ties():
    table = Table(lambda prefix: [0.2, 0.4, 0.4], 3, max_length=2)

    def probabilities(sampler):
        return exact_distribution(sampler, table, lambda prefix: prefix[-1] == 0).probabilities

    expected = {(1, token): 0.8 * p for token, p in enumerate((0.2, 0.4, 0.4))}
    expected |= {(0, token): 0.2 * p for token, p in enumerate((0.2, 0.4, 0.4))}
    assert (
        largest_difference(
            probabilities(Backtracking(quota=1, stride=1)),
            expected | {(0, 0): 0.04, (0, 1): 0.16, (0, 2): 0.0},
        )
        < 1e-12
    )
    assert (
        largest_difference(
            probabilities(mutants.HighestTieBacktracking(quota=1, stride=1)),
            probabilities(Backtracking(1, 1)),
        )
        > 1e-3
    )


def test_a_redo_stops_at_the_end_of_sequence_and_is_not_verified():
    table = Table(lambda prefix: [0.6, 0.4] if len(prefix) < 2 else [0.1, 0.9], 2, eos=1, max_length=9)
    distribution = exact_distribution(Backtracking(quota=1, stride=9), table, lambda prefix: False)
    # Whatever the first token is, it is erased; the redo is 0, 0, then the end of sequence.
    assert distribution.probabilities == {(0, 0, 1): pytest.approx(1.0)}
    assert distribution.expected_calls == pytest.approx(4.0)


def test_calls_are_the_final_length_plus_stride_per_backtrack():
    tree = RandomTree(31, vocab=3, horizon=12)
    quota, stride = 3, 2

    def verdict(prefix):
        return len(prefix) < stride or tree.judges(prefix)

    run = generate(
        tree.table(), sampler=Backtracking(quota, stride), verifier=verdict, num_samples=50, trace=True
    )
    assert run.trace is not None
    backtracks = (run.trace.kept < run.trace.length).long()
    counts = run.lengths.new_zeros(50).index_add(0, run.trace.sample, backtracks)
    assert run.queries.tolist() == (run.lengths + stride * counts).tolist()
    assert counts.max() == quota
    assert int(run.queries.max()) <= 12 + quota * stride
