"""Backtracking against Algorithm 1 of the thesis, enumerated in plain Python, and the identity of its calls."""

from itertools import product

import pytest

from inference.reference_laws import backtracking, largest_difference
from mutants import walks as mutants
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.inference import Ancestral, Backtracking, generate
from trialogue.inference.laws import exact_law
from trialogue.testing.trees import TREES, RandomTree

SETTINGS = [
    {"quota": quota, "stride": stride, "argmax_redo": argmax_redo}
    for quota, stride, argmax_redo in product((0, 1, 2), (1, 2, 7), (True, False))
] + [{"quota": 2, "stride": stride, "redo_erased_only": True} for stride in (1, 2, 7)]


def backtracking_error(walk, tree: RandomTree, prompt=(), **settings) -> float:
    """Distance of the walk from Algorithm 1: its law, and its expected calls to the oracle."""
    law = exact_law(walk(**settings), tree.table(), tree.judges, prompt=prompt)
    reference, queries = backtracking(tree, tree.judges, prompt=prompt, **settings)
    return max(
        largest_difference(law.probabilities, reference),
        abs(law.expected_queries - queries),
        law.failed,
        law.never_halts,
    )


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_backtracking_is_algorithm_1(tree):
    for settings in SETTINGS:
        assert backtracking_error(Backtracking, tree, **settings) < 1e-12, settings


@pytest.mark.parametrize("erase_prompt", [False, True])
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_backtracking_from_a_prompt_is_algorithm_1(tree, erase_prompt):
    prompt = next(x for x in tree.nodes() if len(x) == 2 and not tree.complete(x))
    for stride in (1, 2, 3):
        settings = {"quota": 2, "stride": stride, "erase_prompt": erase_prompt}
        assert backtracking_error(Backtracking, tree, prompt, **settings) < 1e-12


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.UnlimitedBacktracking,
        mutants.ShortStrideBacktracking,
        mutants.ShortRedoBacktracking,
        mutants.RedoVerifyingBacktracking,
        mutants.CompletionSparingBacktracking,
        mutants.ContraryRedoBacktracking,
        mutants.PromptErasingBacktracking,
    ],
)
def test_broken_backtracking_is_told_apart(mutant):
    def error(walk):
        return max(
            backtracking_error(walk, TREES[1], (0, 1), quota=2, stride=3),
            backtracking_error(walk, TREES[1], quota=1, stride=2),
        )

    assert error(Backtracking) < 1e-12
    assert error(mutant) > 1e-3


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_without_a_quota_it_is_ancestral_sampling(tree):
    table = tree.table()
    assert exact_law(Backtracking(quota=0), table) == exact_law(Ancestral(), table)
    first, second = (generate(table, walk=walk, num_samples=20) for walk in (Backtracking(quota=0), None))
    assert first.sequences() == second.sequences()


def test_only_zero_rejects():
    tree = TREES[1]
    law = exact_law(Backtracking(), tree.table(), tree.value)
    assert largest_difference(law.probabilities, tree.law()) < 1e-12


def test_a_redo_takes_the_lowest_index_among_ties():
    table = Table(lambda prefix: [0.2, 0.4, 0.4], 3, max_length=2)

    def probabilities(walk):
        return exact_law(walk, table, lambda prefix: prefix[-1] == 0).probabilities

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
    law = exact_law(Backtracking(quota=1, stride=9), table, lambda prefix: False)
    # Whatever the first token is, it is erased; the redo is 0, 0, then the end of sequence.
    assert law.probabilities == {(0, 0, 1): pytest.approx(1.0)}
    assert law.expected_queries == pytest.approx(4.0)


def test_calls_are_the_final_length_plus_stride_per_backtrack():
    tree = RandomTree(31, vocab=3, horizon=12)
    quota, stride = 3, 2

    def verdict(prefix):
        return len(prefix) < stride or tree.judges(prefix)

    run = generate(
        tree.table(), walk=Backtracking(quota, stride), verifier=verdict, num_samples=50, trace=True
    )
    assert run.trace is not None
    backtracks = (run.trace.kept < run.trace.length).long()
    counts = run.lengths.new_zeros(50).index_add(0, run.trace.sample, backtracks)
    assert run.queries.tolist() == (run.lengths + stride * counts).tolist()
    assert counts.max() == quota
    assert int(run.queries.max()) <= 12 + quota * stride


@pytest.mark.parametrize(("field", "value"), [("quota", -1), ("stride", 0)])
def test_settings_out_of_range_are_named(field, value):
    with pytest.raises(InputError, match=f"{field}={value}"):
        Backtracking(**{field: value})
