"""Rejection sampling with a table: exact distributions on many trees, faulty variants, tables and budgets."""

import math
from typing import ClassVar
from unittest.mock import patch

import pytest

from batches import AllChildrenVerifier
from mutants.samplers import FirstVisitMask, StayingRejection
from trialogue.samplers import AdaptiveRejection, Rejection, generate
from trialogue.samplers.exact import exact_distribution, target_distribution
from trialogue.samplers.prefix import adaptive_rejection
from trialogue.samplers.prefix.contract.objects import Objects
from trialogue.samplers.prefix.rejection_table import ACCEPTED, REJECTED, Child, RejectionTable, merged
from trialogue.testing.trees import RandomTree, viable

SMALL_TREES = [viable(RandomTree(seed, eos=(None, 1)[seed % 2], sparse=seed % 5 == 0)) for seed in range(100)]
WIDE_TREES = [
    viable(RandomTree(seed, vocab=3, horizon=2 + seed % 2, eos=(None, 1)[seed % 2])) for seed in range(100)
]


def residual(sampler, tree, verifier):
    """Return the largest error of the probabilities, and the largest probability of a run without output."""
    target = target_distribution(tree.table(), tree.allows)
    found = exact_distribution(sampler, tree.table(), verifier)
    errors = (
        abs(found.probabilities.get(x, 0.0) - target.get(x, 0.0)) for x in {**target, **found.probabilities}
    )
    return max(*errors, found.failed, found.never_halts)


@pytest.mark.parametrize("number", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_samples_have_exactly_the_restricted_distribution(number):
    runs = [(tree, tree.allows) for tree in SMALL_TREES[:number]]
    runs += [(tree, AllChildrenVerifier(tree.allows)) for tree in WIDE_TREES[:number]]
    assert max(residual(AdaptiveRejection(), *run) for run in runs) < 1e-14


@pytest.mark.parametrize("mutant", [StayingRejection(), FirstVisitMask()], ids=repr)
def test_a_table_that_changes_within_an_attempt_biases_the_samples(mutant):
    errors = [residual(mutant, tree, AllChildrenVerifier(tree.allows)) for tree in WIDE_TREES[:20]]
    assert sum(error > 0.01 for error in errors) > 10


class FromTable(AdaptiveRejection):
    """Start every sample from the table in `start`."""

    start = None

    def init(self, decoding):
        empty = super().init(decoding)
        return empty._replace(table=Objects([self.start] * len(decoding.lengths)))


class Recorded(AdaptiveRejection):
    """Store the tables from which rounds start."""

    tables: ClassVar[list] = []

    def merged(self, start, ends):
        state = super().merged(start, ends)
        self.tables.append(state.table.items[0])
        return state


def errors_after_samples(tree, verifier):
    """Return the errors of the distribution of the next sample after 1 to 40 samples, and its expected calls."""
    Recorded.tables.clear()
    generate(tree.table(), sampler=Recorded(share=1), verifier=verifier, num_samples=41, seed=3)
    assert len(Recorded.tables) == 40
    errors, calls = [], []
    for table in dict.fromkeys(Recorded.tables):
        sampler = FromTable()
        object.__setattr__(sampler, "start", table)
        errors.append(residual(sampler, tree, verifier))
        calls.append(exact_distribution(sampler, tree.table(), verifier).expected_calls)
    return errors, calls


@pytest.mark.parametrize("wrap", [lambda rule: rule, AllChildrenVerifier], ids=["values", "mask"])
def test_samples_are_exact_and_cheaper_after_any_number_of_samples(wrap):
    for tree in SMALL_TREES[:6]:
        errors, calls = errors_after_samples(tree, wrap(tree.allows))
        assert max(errors) < 1e-14
        assert calls == sorted(calls, reverse=True)


def test_accepted_outputs_are_not_used_up():
    with patch.object(adaptive_rejection, "ACCEPTED", REJECTED):
        errors = [max(errors_after_samples(tree, tree.allows)[0]) for tree in SMALL_TREES[:3]]
    assert min(errors) > 0.1


def test_samples_of_a_round_do_not_depend_on_later_rounds_or_on_the_batch():
    trees = SMALL_TREES[:6]

    def drawn(num_samples, batch_size, share=4):
        return [
            generate(
                tree.table(),
                [(), (0,)],
                sampler=AdaptiveRejection(share=share),
                verifier=lambda prefix: prefix[-1:] != (1,),
                num_samples=num_samples,
                batch_size=batch_size,
                seed=5,
            )
            for tree in trees
        ]

    for long, short in zip(drawn(12, 7), drawn(12, 1), strict=True):
        assert long.tokens.tolist() == short.tokens.tolist()
        assert long.calls.tolist() == short.calls.tolist()
    for long, first in zip(drawn(12, 7), drawn(4, 7), strict=True):
        assert long.tokens[:4].tolist() == first.tokens[:4].tolist()


def test_it_never_needs_more_calls_than_rejection():
    for tree in SMALL_TREES[:20]:
        calls = [
            exact_distribution(sampler, tree.table(), verifier).expected_calls
            for sampler, verifier in (
                (Rejection(), tree.allows),
                (AdaptiveRejection(), tree.allows),
                (AdaptiveRejection(), AllChildrenVerifier(tree.allows)),
            )
        ]
        assert calls[0] >= calls[1] - 1e-9
        assert calls[1] >= calls[2] - 1e-9


def test_simulated_calls_agree_with_expected_calls():
    tree = SMALL_TREES[2]
    truth = exact_distribution(AdaptiveRejection(), tree.table(), tree.allows).expected_calls
    queries = generate(
        tree.table(), sampler=AdaptiveRejection(), verifier=tree.allows, num_samples=4000, seed=1
    ).queries.double()
    # A difference of six standard errors has probability 2e-9.
    assert abs(float(queries.mean()) - truth) < 6 * float(queries.std()) / math.sqrt(4000)


def test_a_constraint_that_nothing_satisfies_fails():
    tree = RandomTree(2)
    found = exact_distribution(AdaptiveRejection(), tree.table(), lambda prefix: len(prefix) < 3)
    assert (found.failed, found.never_halts, found.probabilities) == (pytest.approx(1), 0, {})
    samples = generate(
        tree.table(), sampler=AdaptiveRejection(), verifier=lambda prefix: len(prefix) < 3, num_samples=3
    )
    assert samples.stopped == ["failed"] * 3


def test_masses_far_below_the_precision_of_floats_remain_positive():
    rare = RejectionTable(-80.0, {0: Child(math.log1p(-1e-35), REJECTED)})
    assert rare.log_open == -80.0
    assert RejectionTable(-math.inf, {3: Child(-1.0, rare)}).log_open == -81.0


def test_a_union_contains_the_prefixes_of_both_tables():
    first = RejectionTable(math.log(0.5), {0: Child(math.log(0.5), REJECTED)})
    second = RejectionTable(math.log(0.75), {1: Child(math.log(0.25), REJECTED)})
    union = merged(first, second)
    assert list(union.children) == [0, 1]
    assert union.log_open == pytest.approx(math.log(0.25))
    assert merged(union, REJECTED) is REJECTED
    assert merged(None, union) is merged(union, None) is union
    below = RejectionTable(-math.inf, {2: Child(0.0, ACCEPTED)})
    deep = merged(
        RejectionTable(-1.0, {0: Child(-1.0, below)}), RejectionTable(-1.0, {0: Child(-1.0, first)})
    )
    assert list(deep.children[0].table.children) == [0, 2]
