"""Oracles with state: the engine leaves no stale position, and results equal those without storage."""

import pytest
import torch

from mutants import storage as mutants
from samplers.stateful_tree import ReadingVerifier, StoredTree
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BestOfN,
    MaskedDecoding,
    Rejection,
    SequentialMonteCarlo,
    ValueGuided,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.moves import Moves
from trialogue.testing.trees import RandomTree

TREE = RandomTree(101, vocab=3, horizon=6, eos=2)
PROMPTS = [(), (0, 1), (1,), (0, 0, 1), (0, 1)]
RUNS = [
    (Ancestral(), TREE.value),
    (Rejection(), TREE.judges),
    (MaskedDecoding(), TREE.value),
    (Backtracking(3, 2), TREE.judges),
    (Backtracking(3, 4, erase_prompt=True), TREE.judges),
    (BestOfN(3), TREE.value),
    (SequentialMonteCarlo(4, 1.0), TREE.value),
    (ValueGuided(), TREE.value),
]


def same_as_without_storage(sampler, value, context=None, **settings) -> bool:
    """Return whether samples and counts are the same with and without storage."""
    settings |= {"num_samples": 4, "max_steps": 200}
    plain = generate(TREE.table(), PROMPTS, sampler=sampler, verifier=value, **settings)
    try:
        stored = generate(
            StoredTree(TREE, context), PROMPTS, sampler=sampler, verifier=ReadingVerifier(value), **settings
        )
    except (AssertionError, IndexError, ValueError):
        return False
    return plain.sequences() == stored.sequences() and torch.equal(plain.queries, stored.queries)


NAMES = [type(sampler).__name__ for sampler, _ in RUNS]


@pytest.mark.parametrize(("memory", "batch_size"), [(1, 1), (1, 64), (7, 5), (1 << 16, 5)])
@pytest.mark.parametrize(("sampler", "value"), RUNS, ids=NAMES)
def test_results_come_from_the_correct_prefixes(sampler, value, memory, batch_size):
    assert same_as_without_storage(sampler, value, memory=memory, batch_size=batch_size)


@pytest.mark.parametrize(
    ("context", "sampler", "value"),
    [
        (mutants.UncopiedContext, *RUNS[6]),
        (mutants.ShortCopyContext, *RUNS[6]),
        (mutants.FreshForkContext, *RUNS[7]),
        (mutants.SharedForkContext, *RUNS[7]),
    ],
    ids=["uncopied", "short-copy", "fresh-fork", "shared-fork"],
)
def test_contexts_that_lose_positions_are_detected(context, sampler, value):
    assert not same_as_without_storage(sampler, value, context, memory=1, batch_size=64)


def test_truncation_keeps_storage_and_hidden_states():
    value = TREE.value
    for sampler in (ValueGuided(), SequentialMonteCarlo(3)):
        plain = generate(truncated(TREE.table(), top_k=2), PROMPTS, sampler=sampler, verifier=value)
        stored = generate(
            truncated(StoredTree(TREE), top_k=2),
            PROMPTS,
            sampler=sampler,
            verifier=ReadingVerifier(value),
            memory=1,
        )
        assert plain.sequences() == stored.sequences()


def test_only_new_positions_are_evaluated():
    run = generate(StoredTree(TREE), [(0, 0, 1)], sampler=Ancestral(), num_samples=1)
    # Positions 0 to 3 of the prompt are evaluated at once, then one position per token except the last.
    assert run.total.positions == 4 + int(run.lengths[0]) - 3 - 1


def test_positions_after_a_shortened_row_are_not_reused_after_packing():
    tree = RandomTree(seed=3, vocab=2, horizon=5)
    batch = batch_of(tree, 4)
    active = torch.tensor([3])
    for token in (0, 1, 0, 1):
        batch.apply(appending(batch, active, token))
        batch.log_probs(active)
    batch.apply(Moves.stay(batch)._replace(length=torch.tensor([0, 0, 0, 1])))
    batch.select(active)
    batch.log_probs(torch.tensor([0]))  # this prefix is cached instead of the longest one
    for token in (1, 0, 1):
        batch.apply(appending(batch, torch.tensor([0]), token))
    answer = batch.log_probs(torch.tensor([0])).exp()[0].tolist()
    assert answer == pytest.approx(tree.conditional((0, 1, 0, 1)), abs=1e-12)


@pytest.mark.parametrize("memory", [1, 1 << 16])
@pytest.mark.parametrize(
    ("sampler", "value"),
    [RUNS[0], RUNS[6], (SequentialMonteCarlo(16, 1.0, resampling="systematic"), TREE.value)],
    ids=["ancestral", "smc", "systematic"],
)
def test_rows_with_the_same_prefix_are_evaluated_once(sampler, value, memory):
    run = generate(
        StoredTree(TREE), sampler=sampler, verifier=value, num_samples=8, batch_size=1024, memory=memory
    )
    # All samples advance at the same pace, so that each requested prefix is one position.
    assert run.total.positions == run.total.distinct_queries
    assert run.total.queries > 1.5 * run.total.distinct_queries


def test_rows_that_were_not_evaluated_continue_from_copied_positions():
    tree = RandomTree(seed=4, vocab=2, horizon=5)
    batch, rows = batch_of(tree, 4), torch.arange(4)
    for token in (0, 1):
        batch.apply(appending(batch, rows, token))
    before = int(batch.meter.positions.sum())
    answers = batch.log_probs(rows)
    # Three positions of one row are evaluated and copied to the other rows.
    assert int(batch.meter.positions.sum()) - before == 3
    assert batch.meter.passes == 1
    assert answers.exp().tolist() == [pytest.approx(tree.conditional((0, 1)))] * 4
    moves = Moves.stay(batch)
    moves.token[:] = torch.tensor([0, 1, 0, 1])
    batch.apply(moves)
    answers = batch.log_probs(rows.flip(0)).exp().tolist()
    expected = [tree.conditional((0, 1, token)) for token in (1, 0, 1, 0)]
    assert answers == [pytest.approx(distribution) for distribution in expected]
    assert int(batch.meter.positions.sum()) - before == 3 + 2


def batch_of(tree, rows):
    """Return a batch of rows at the empty prefix with a cache of one node."""
    batch = Batch(StoredTree(tree), rows, tree.horizon, memory=1)
    zeros = torch.zeros(rows, dtype=torch.int64)
    batch.add(torch.zeros(rows, tree.horizon, dtype=torch.int64), zeros, zeros, zeros + tree.horizon)
    return batch


def appending(batch, rows, token):
    """Return moves that append `token` to `rows`."""
    moves = Moves.stay(batch)
    moves.token[rows] = token
    return moves


@pytest.mark.parametrize(
    ("sampler", "value"), [RUNS[2], RUNS[3], RUNS[7]], ids=[NAMES[2], NAMES[3], NAMES[7]]
)
def test_exact_distributions_of_stateful_oracles_equal_those_of_tables(sampler, value):
    tree = RandomTree(102, vocab=2, horizon=3)
    stored = exact_distribution(sampler, StoredTree(tree), ReadingVerifier(tree.value))
    plain = exact_distribution(sampler, tree.table(), tree.value)
    assert stored.probabilities == pytest.approx(plain.probabilities, abs=1e-13)
    assert stored.expected_calls == pytest.approx(plain.expected_calls)
