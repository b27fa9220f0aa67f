"""Rejection sampling with a table: exact distributions on many trees, faulty variants, tables and budgets."""

import math
import warnings
from itertools import pairwise
from typing import ClassVar
from unittest.mock import patch

import pytest

from batches import AllChildrenVerifier
from refusals import expect_error
from trialogue.data import Table
from trialogue.samplers import AdaptiveRejection, Ancestral, generate, truncated
from trialogue.samplers.exact import exact_distribution, target_distribution
from trialogue.samplers.prefix import adaptive_rejection, rejection_draws
from trialogue.samplers.prefix.contract.objects import ObjectColumn
from trialogue.samplers.prefix.output.reasons import explain_failure
from trialogue.samplers.prefix.rejection_table import ACCEPTED, REJECTED, Child, RejectionTable, merge_tables
from trialogue.testing import check_sampler
from trialogue.testing.samplers import SAMPLER_CHECKS
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


@pytest.mark.parametrize("number", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_samples_have_exactly_the_restricted_distribution(number):
    runs = [(tree, tree.allows) for tree in SMALL_TREES[:number]]
    runs += [(tree, AllChildrenVerifier(tree.allows)) for tree in WIDE_TREES[:number]]
    assert max(residual(AdaptiveRejection(), *run) for run in runs) < 1e-14


class FromTable(AdaptiveRejection):
    """Start every sample from the table in `start`."""

    start = None

    def init(self, decoding):
        empty = super().init(decoding)
        return empty._replace(table=ObjectColumn([self.start] * len(decoding.lengths)))


def from_table(table, **fields):
    """Return `FromTable` with a table and other fields."""
    sampler = FromTable(**fields)
    object.__setattr__(sampler, "start", table)
    return sampler


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
        sampler = from_table(table)
        errors.append(residual(sampler, tree, verifier))
        calls.append(exact_distribution(sampler, tree.table(), verifier).expected_calls)
    return errors, calls


@pytest.mark.parametrize("wrap", [lambda rule: rule, AllChildrenVerifier], ids=["values", "mask"])
def test_samples_are_exact_and_cheaper_after_any_number_of_samples(wrap):
    for tree in SMALL_TREES[:3]:
        errors, calls = errors_after_samples(tree, wrap(tree.allows))
        assert max(errors) < 1e-14
        assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(calls))


def test_accepted_outputs_are_not_used_up():
    with patch.object(adaptive_rejection, "ACCEPTED", REJECTED):
        errors = [max(errors_after_samples(tree, tree.allows)[0]) for tree in SMALL_TREES[:3]]
    assert min(errors) > 0.1


def test_samples_of_a_round_do_not_depend_on_later_rounds_or_on_the_batch():
    trees = SMALL_TREES[:3]

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


def weights_error(
    sampler, oracle, allows, wrap=lambda rule: rule, started=lambda **fields: AdaptiveRejection(**fields)
):
    """Return the largest relative error of E[exp(log_weight) 1(x)] = p(x) C over the accepted sequences x.

    C is the expected number of attempts, 1 + P(one attempt is rejected) + P(two are rejected) + ..., computed from
    samplers without weights. `started` creates these samplers, with the same initial table as `sampler`.
    """
    verifier = wrap(allows)
    probabilities = exact_distribution(Ancestral(), oracle).probabilities
    target = {x: p for x, p in probabilities.items() if all(allows(x[:n]) for n in range(1, len(x) + 1))}
    attempts = range(1, sampler.max_attempts + 1)
    rejected = [
        exact_distribution(started(max_attempts=most), oracle, verifier).failed if target else 0.0
        for most in attempts
    ]
    weights = exact_distribution(sampler, oracle, verifier).weights
    constant = 1 + math.fsum(rejected)
    errors = [abs(weights.get(x, 0.0) / (constant * p) - 1) for x, p in target.items()]
    return max(*errors, *(weight for x, weight in weights.items() if x not in target), 0.0, 0.0)


def weighted_runs(number):
    """Return models and constraints, half of them with a mask: trees without a cut, with top-k and with top-p."""
    for place, tree in enumerate(WIDE_TREES[:number]):
        wrap = AllChildrenVerifier if place % 2 else lambda rule: rule
        for cut in ({}, {"top_k": 2}, {"top_p": 0.8}):
            yield truncated(tree.table(), **cut), tree.allows, wrap


@pytest.mark.parametrize("number", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_samples_with_a_fallback_are_properly_weighted(number):
    samplers = [AdaptiveRejection(max_attempts=most, then="mask") for most in (1, 2)]
    assert max(weights_error(sampler, *run) for run in weighted_runs(number) for sampler in samplers) < 1e-12


@pytest.mark.parametrize("name", ["declarations", "weights", "complete prompts", "batch independence"])
def test_the_fallback_keeps_the_contract_of_samplers(name):
    SAMPLER_CHECKS[name](AdaptiveRejection(max_attempts=1, then="mask"))


@pytest.mark.slow
def test_the_fallback_passes_all_checks_of_samplers():
    check_sampler(AdaptiveRejection(max_attempts=1, then="mask"))


def test_weights_are_right_for_every_table_from_which_a_sample_starts():
    for tree in WIDE_TREES[:2]:
        verifier = AllChildrenVerifier(tree.allows)
        sampler = Recorded(max_attempts=1, share=2, then="mask")
        Recorded.tables.clear()
        generate(tree.table(), sampler=sampler, verifier=verifier, num_samples=12, seed=1)
        assert len(Recorded.tables) == 5
        for table in dict.fromkeys(Recorded.tables):
            error = weights_error(
                from_table(table, max_attempts=2, then="mask"),
                tree.table(),
                tree.allows,
                AllChildrenVerifier,
                lambda table=table, **fields: from_table(table, **fields),
            )
            assert error < 1e-12


def test_a_fallback_needs_a_bound_on_the_attempts():
    expect_error("max_attempts=None: give the number of attempts", AdaptiveRejection, then="mask")
    assert not AdaptiveRejection(max_attempts=2).weighted


def test_a_sample_says_that_it_fell_back_or_why_it_failed():
    tree = SMALL_TREES[2]

    def outcomes(oracle, verifier, **fields):
        sampler = AdaptiveRejection(max_attempts=1, **fields)
        samples = generate(oracle, sampler=sampler, verifier=verifier, num_samples=40, seed=2)
        return {(bool(sample.accepted), sample.stopped, sample.remark) for sample in samples}

    used_up = "no sequence accepted in max_attempts=1 attempts"
    assert outcomes(tree.table(), tree.allows) == {(True, "", None), (False, "failed", used_up)}
    fallen = f"{used_up}, then masked decoding"
    assert outcomes(tree.table(), tree.allows, then="mask") == {(True, "", None), (True, "", fallen)}
    dead_end = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    stuck = f"{used_up}, and no token allowed in masked decoding"
    viable_at_first = outcomes(dead_end, lambda prefix: prefix == (0,) or prefix[:1] == (1,), then="mask")
    assert viable_at_first == {(True, "", None), (True, "", fallen), (False, "failed", stuck)}
    # After one attempt at the only token, nothing is left.
    certain = Table(lambda prefix: [1.0, 0.0], 2, max_length=2)
    nothing = AdaptiveRejection.failure_reason
    for fields in ({}, {"then": "mask"}):
        assert outcomes(certain, lambda prefix: False, **fields) == {(False, "failed", nothing)}


def test_a_failure_names_the_attempts_or_the_constraint_and_its_truncation():
    sampler = AdaptiveRejection(max_attempts=3)
    nothing = "no sequence within the length limit is accepted with all of its prefixes"
    for cut, remark, expected in (
        (False, nothing, nothing),
        (True, nothing, f"{nothing} among those that temperature, top_k, top_p and min_p keep"),
        (
            True,
            "no sequence accepted in max_attempts=3 attempts",
            "no sequence accepted in max_attempts=3 attempts",
        ),
    ):
        settings = {"length": 1, "drawn": 0, "max_new_tokens": 8, "context": None, "refusal": None}
        assert explain_failure(sampler, cut=cut, remark=remark, **settings) == expected


def test_a_bound_on_model_calls_biases_the_samples():
    # Token 0 ends a sequence. The outputs (0,) and (1, 0) are equally probable, and (2, 0) is rejected at token 2.
    oracle = Table(
        lambda prefix: [0, 1, 0] if prefix == (3,) else [1, 0, 0] if prefix else [1, 1, 1], 3, eos=0
    )
    verifier = AllChildrenVerifier(lambda prefix: 2 not in prefix)
    exact = exact_distribution(AdaptiveRejection(), oracle, verifier, max_new_tokens=2).probabilities
    assert exact == pytest.approx({(0,): 0.5, (1, 0): 0.5})
    settings = {"verifier": verifier, "max_new_tokens": 2, "num_samples": 6000, "seed": 4}
    samples = generate(oracle, sampler=AdaptiveRejection(), max_queries=2, **settings)
    # (0,) needs one call. After token 2 in the first call, one call is left, which suffices for (0,) only.
    short = 1 / 3 + 1 / 3 * 1 / 2
    share = (samples.lengths == 1)[samples.accepted].double().mean()
    due = short / (short + 1 / 3)
    deviation = math.sqrt(due * (1 - due) / 6000 / (short + 1 / 3))
    assert abs(share - due) < 6 * deviation < due - 0.5


def test_a_mask_that_contradicts_the_values_is_named():
    class Contradictory(AllChildrenVerifier):
        def children(self, decoding, rows):
            values = super().children(decoding, rows)
            values[decoding.lengths[rows] == 1, 1] = 0.0
            return values

    expect_error(
        r"verifier=\(\d, 1\): its mask excludes the last token of this prefix, but the value of the prefix is 1",
        generate,
        SMALL_TREES[0].table(),
        sampler=AdaptiveRejection(),
        verifier=Contradictory(lambda prefix: True),
        num_samples=20,
    )


def test_an_upper_bound_in_a_table_does_not_bias_the_samples():
    oracle = Table(lambda prefix: [0.5, 0.5], 2, max_length=2)
    bound = RejectionTable(math.log(0.9), {0: Child(math.log(0.5), REJECTED)})
    table = RejectionTable(math.log(0.5), {0: Child(math.log(0.5), bound)})

    def largest_error():
        found = exact_distribution(from_table(table), oracle, lambda prefix: prefix != (0, 0))
        return max(abs(found.probabilities[x] - 1 / 3) for x in ((0, 1), (1, 0), (1, 1)))

    assert largest_error() < 1e-15
    # Without the correction of the bound, the prefix (0,) is drawn too often.
    with patch.object(rejection_draws, "_TOLERANCE", 1.0):
        assert largest_error() > 0.1


def test_masses_of_a_union_remain_positive_far_below_the_precision_of_floats():
    # The only accepted sequence has probability 1e-18 at the prompt.
    oracle = Table(lambda prefix: [0.5, 0.5, 1e-18] if not prefix else [0, 0, 1], 3, max_length=2)

    def allows(prefix):
        return len(prefix) < 2 or prefix[0] == 2

    def after(token):
        visited = RejectionTable(-math.inf, {})
        return RejectionTable(math.log(0.5 + 1e-18), {token: Child(math.log(0.5), visited)})

    union = merge_tables(after(0), after(1))
    assert union.log_open >= math.log(1e-18)
    found = exact_distribution(from_table(union), oracle, allows)
    assert found.probabilities == pytest.approx({(2, 2): 1.0}, abs=1e-15)


@pytest.mark.parametrize("jitter", [0.0, 1e-6, 5e-5])
def test_a_union_of_noisy_tables_keeps_rare_sequences(jitter):
    """Two tables of the prefix (0,) are computed with slightly different probabilities of its rejected tokens."""
    rare = 5e-7
    first, second = 0.6, 0.4 - rare
    tables = [
        RejectionTable(math.log(second + rare), {0: Child(math.log(first), REJECTED)}),
        RejectionTable(
            math.log(first * (1 - jitter) + rare), {1: Child(math.log(second * (1 + jitter)), REJECTED)}
        ),
    ]
    at_prompt = [RejectionTable(math.log(rare), {0: Child(math.log(1 - rare), table)}) for table in tables]

    def conditional(prefix):
        if not prefix:
            return (1 - rare, rare, 0.0)
        return (first, second, rare) if prefix == (0,) else (0.0, 1.0, 0.0)

    oracle = Table(conditional, 3, max_length=2)
    found = exact_distribution(
        from_table(merge_tables(*at_prompt)), oracle, lambda x: len(x) < 2 or x[0] != 0 or x[1] == 2
    ).probabilities
    assert {x: p for x, p in found.items() if p} == pytest.approx({(0, 2): 0.5, (1, 1): 0.5}, abs=1e-6)


def test_a_union_contains_the_prefixes_of_both_tables():
    first = RejectionTable(math.log(0.5), {0: Child(math.log(0.5), REJECTED)})
    second = RejectionTable(math.log(0.75), {1: Child(math.log(0.25), REJECTED)})
    union = merge_tables(first, second)
    assert list(union.children) == [0, 1]
    assert math.log(0.25) <= union.log_open < math.log(0.25) + 1e-3
    assert union.log_open > math.log(0.25)
    assert merge_tables(union, REJECTED) is REJECTED
    assert merge_tables(None, union) is merge_tables(union, None) is union
    below = RejectionTable(-math.inf, {2: Child(0.0, ACCEPTED)})
    deep = merge_tables(
        RejectionTable(-1.0, {0: Child(-1.0, below)}), RejectionTable(-1.0, {0: Child(-1.0, first)})
    )
    assert list(deep.children[0].table.children) == [0, 2]


def test_tables_of_long_outputs_are_compared_and_counted():
    def deep(log_prob):
        table = ACCEPTED
        for _ in range(5_000):
            table = RejectionTable(-1.0, {0: Child(log_prob, table), 1: Child(-2.0, REJECTED)})
        return table

    first, second, other = deep(-1.0), deep(-1.0), deep(-1.5)
    assert len(first) == 10_001
    assert first is not second
    assert (first, hash(first)) == (second, hash(second))
    assert first != other
    assert list(dict.fromkeys([first, second, other])) == [first, other]
    with patch.object(RejectionTable, "__hash__", lambda table: 0):
        assert first == second
        assert first != other
        assert RejectionTable(-1.0, {0: Child(-1.0, second)}) != RejectionTable(-1.0, {1: Child(-1.0, first)})
    assert ACCEPTED not in (first, 1)


def test_a_union_of_tables_whose_probabilities_disagree_warns_and_uses_no_differences():
    """The second table of the prefix (0,) is computed with probabilities that differ by 5 percent, as in bfloat16."""
    first, second, rest, at_prompt, jitter = 0.6, 0.36, 0.04, 0.9, 0.05
    tables = [
        RejectionTable(math.log(second + rest), {0: Child(math.log(first), REJECTED)}),
        RejectionTable(math.log(first + rest), {1: Child(math.log(second * (1 + jitter)), REJECTED)}),
    ]
    oracle = Table(
        lambda prefix: (
            (at_prompt, 1 - at_prompt, 0.0)
            if not prefix
            else (first, second, rest)
            if prefix == (0,)
            else (0.0, 1.0, 0.0)
        ),
        3,
        max_length=2,
    )

    def allows(prefix):
        return len(prefix) < 2 or prefix[0] != 0 or prefix[1] == 2

    def largest_error(shift):
        trees = [
            RejectionTable(math.log(1 - at_prompt), {0: Child(math.log(at_prompt) + noise, table)})
            for noise, table in zip((0.0, shift), tables, strict=True)
        ]
        found = exact_distribution(from_table(merge_tables(*trees)), oracle, allows).probabilities
        target = target_distribution(oracle, allows)
        return max(abs(found.get(x, 0.0) / p - 1) for x, p in target.items())

    with pytest.warns(RuntimeWarning, match="differ by more than 0.01%"):
        assert largest_error(2e-4) < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The disagreement of these tables is not visible, because they have no token in common.
        assert largest_error(5e-5) > 0.1
