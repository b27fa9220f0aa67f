"""Oracles with state: no stale position, results without storage, and one application of the head per prefix."""

from typing import ClassVar

import pytest
import torch

from batches import batch_of
from samplers.stateful_tree import ReadingVerifier, StoredContext, StoredTree, prefix_of
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
from trialogue.samplers.prefix.batch import distribution_cache, shared_results, tree
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.testing.trees import RandomTree

TREE = RandomTree(101, vocab=3, horizon=6, eos=2)
# The head maps a hidden state of 6 numbers to 9 tokens.
WIDE_TREE = RandomTree(103, vocab=9, horizon=4, eos=2)
PROMPTS = [(), (0, 1), (1,), (0, 0, 1), (0, 1)]
RUNS = {
    "ancestral": (Ancestral(), "value"),
    "rejection": (Rejection(), "judges"),
    "masked": (MaskedDecoding(), "value"),
    "backtracking": (Backtracking(3, 2), "judges"),
    "erasing": (Backtracking(3, 4, erase_prompt=True), "judges"),
    "best of n": (BestOfN(3), "value"),
    "smc": (SequentialMonteCarlo(4, 1.0), "value"),
    "guided": (ValueGuided(), "value"),
}


@pytest.mark.parametrize(
    ("tree", "truncation"), [(TREE, {}), (WIDE_TREE, {"temperature": 0.7, "top_k": 2})], ids=str
)
@pytest.mark.parametrize("run", RUNS)
def test_results_come_from_the_correct_prefixes(run, tree, truncation):
    """Samples, scores and counts are the same with and without storage."""
    sampler, value = RUNS[run]
    verifier, settings = getattr(tree, value), {"sampler": sampler, "num_samples": 2, "max_steps": 200}
    plain, stored = (truncated(oracle, **truncation) for oracle in (tree.table(), StoredTree(tree)))
    expected = generate(plain, PROMPTS, verifier=verifier, **settings)
    for memory, batch_size in ((1, 1), (1, 64), (7, 5), (1 << 16, 5)):
        settings |= {"memory": memory, "batch_size": batch_size}
        found = generate(stored, PROMPTS, verifier=ReadingVerifier(verifier), **settings)
        assert expected.sequences() == found.sequences(), settings
        assert torch.equal(expected.queries, found.queries), settings
        assert torch.allclose(expected.log_prob, found.log_prob, equal_nan=True), settings


def test_only_new_positions_are_evaluated():
    run = generate(StoredTree(TREE), [(0, 0, 1)], sampler=Ancestral(), num_samples=1)
    # Positions 0 to 3 of the prompt are evaluated at once, then one position per token except the last.
    assert run.total.positions == 4 + int(run.lengths[0]) - 3 - 1


def test_positions_after_a_shortened_row_are_not_reused_after_packing():
    tree = RandomTree(seed=3, vocab=2, horizon=5)
    batch = batch_of(StoredTree(tree), [()] * 4, tree.horizon, memory=1)
    active = torch.tensor([3])
    for token in (0, 1, 0, 1):
        batch.apply(appending(batch, active, token))
        batch.log_probs(active)
    batch.apply(Moves.stay(batch)._replace(length=torch.tensor([0, 0, 0, 1])))
    batch.select(active)
    batch.log_probs(torch.tensor([0]))  # this prefix is cached instead of the longest one
    for token in (1, 0, 1):
        batch.apply(appending(batch, torch.tensor([0]), token))
    probabilities = batch.log_probs(torch.tensor([0])).exp()[0].tolist()
    assert probabilities == pytest.approx(tree.conditional((0, 1, 0, 1)), abs=1e-12)


@pytest.mark.parametrize("memory", [1, 1 << 16])
@pytest.mark.parametrize(
    "sampler",
    [Ancestral(), SequentialMonteCarlo(4, 1.0), SequentialMonteCarlo(16, 1.0, resampling="systematic")],
    ids=repr,
)
def test_rows_with_the_same_prefix_are_evaluated_once(sampler, memory):
    settings = {"num_samples": 8, "batch_size": 1024, "memory": memory}
    run = generate(StoredTree(TREE), sampler=sampler, verifier=TREE.value, **settings)
    # All samples advance at the same pace, so that each requested prefix is one position.
    assert run.total.positions == run.total.distinct_queries
    assert run.total.queries > 1.5 * run.total.distinct_queries


def test_rows_that_were_not_evaluated_continue_from_copied_positions():
    tree = RandomTree(seed=4, vocab=2, horizon=5)
    batch, rows = batch_of(StoredTree(tree), [()] * 4, tree.horizon, memory=1), torch.arange(4)
    for token in (0, 1):
        batch.apply(appending(batch, rows, token))
    before = int(batch.meter.positions.sum())
    log_probs = batch.log_probs(rows)
    # Three positions of one row are evaluated and copied to the other rows.
    assert int(batch.meter.positions.sum()) - before == 3
    assert batch.meter.passes == 1
    assert log_probs.exp().tolist() == [pytest.approx(tree.conditional((0, 1)))] * 4
    moves = Moves.stay(batch)
    moves.token[:] = torch.tensor([0, 1, 0, 1])
    batch.apply(moves)
    distributions = batch.log_probs(rows.flip(0)).exp().tolist()
    expected = [tree.conditional((0, 1, token)) for token in (1, 0, 1, 0)]
    assert distributions == [pytest.approx(distribution) for distribution in expected]
    assert int(batch.meter.positions.sum()) - before == 3 + 2


def appending(batch, rows, token):
    """Return moves that append `token` to `rows`."""
    moves = Moves.stay(batch)
    moves.token[rows] = token
    return moves


@pytest.mark.parametrize("sampler", [MaskedDecoding(), Backtracking(3, 2), ValueGuided()], ids=repr)
def test_exact_distributions_of_stateful_oracles_equal_those_of_tables(sampler):
    tree = RandomTree(102, vocab=2, horizon=3)
    stored = exact_distribution(sampler, StoredTree(tree), ReadingVerifier(tree.value))
    plain = exact_distribution(sampler, tree.table(), tree.value)
    assert stored.probabilities == pytest.approx(plain.probabilities, abs=1e-13)
    assert stored.expected_calls == pytest.approx(plain.expected_calls)


# The head maps a hidden state of 6 numbers to 9 tokens.
# No prompt is a prefix of another one.
SEPARATE_PROMPTS = [(0, 1), (1,), (0, 1)]
SETTINGS = {"num_samples": 4, "max_steps": 200, "seed": 3}


class CountedHead(StoredContext):
    """A context that lists the prefixes to which the head was applied."""

    applied: ClassVar[list[tuple[int, ...]]] = []

    def log_probs(self, features):
        type(self).applied += [prefix_of(row) for row in features.tolist()]
        return super().log_probs(features)


def run(oracle, sampler, value, **settings):
    return generate(oracle, SEPARATE_PROMPTS, sampler=sampler, verifier=value, **SETTINGS, **settings)


def test_distributions_stay_with_their_prefixes_after_a_removal(monkeypatch):
    monkeypatch.setattr(tree, "_FIRST_NODES", 16)
    prompts = [(one, other) for one in range(5) for other in range(5) if 2 not in (one, other)]
    settings = {
        "sampler": ValueGuided(lazy=False),
        "verifier": WIDE_TREE.value,
        "num_samples": 3,
        "batch_size": 5,
    }
    expected = generate(WIDE_TREE.table(), prompts, **settings)
    applied = []
    for forget in (tree.NodeTree.forget, lambda *_: None):
        monkeypatch.setattr(tree.NodeTree, "forget", forget)
        CountedHead.applied = []
        found = generate(StoredTree(WIDE_TREE, CountedHead), prompts, **settings)
        assert found.sequences() == expected.sequences()
        torch.testing.assert_close(found.log_prob, expected.log_prob)
        applied.append(CountedHead.applied)
    assert applied[0] == applied[1]


@pytest.mark.parametrize(
    "sampler",
    [Rejection(), Backtracking(3, 2), SequentialMonteCarlo(4, 1.0), ValueGuided()],
    ids=repr,
)
def test_a_sampler_that_goes_back_applies_the_head_once_to_each_prefix(sampler):
    value = WIDE_TREE.judges if isinstance(sampler, Rejection | Backtracking) else WIDE_TREE.value
    CountedHead.applied = []
    taken = run(StoredTree(WIDE_TREE, CountedHead), sampler, value)
    assert len(CountedHead.applied) == len(set(CountedHead.applied)) < taken.total.queries


def test_a_full_cache_removes_the_oldest_entries_first(monkeypatch):
    monkeypatch.setattr(
        shared_results,
        "DistributionCache",
        lambda tree, limit: distribution_cache.DistributionCache(
            tree, limit, most_bytes=5 * WIDE_TREE.vocab * 8
        ),
    )
    CountedHead.applied = []
    sampler, value = ValueGuided(), WIDE_TREE.value
    taken = run(StoredTree(WIDE_TREE, CountedHead), sampler, value, batch_size=2)
    assert len(set(CountedHead.applied)) < len(CountedHead.applied) < taken.total.queries
    assert taken.sequences() == run(WIDE_TREE.table(), sampler, value).sequences()
