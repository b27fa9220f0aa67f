"""Tests of exact costs against recursion, exact distributions of samplers and the values of section 3.1."""

import math
from functools import partial

import mpmath
import pytest
import torch

from one_line_errors import refusals
from refusals import expect_error
from samplers.reference_distributions import rejection_queries, tokenwise
from trialogue.data import Dyck, Table
from trialogue.data.puzzles.hidden_string import SubsetSum, fair_bits, hidden_string_task, some_zero_task
from trialogue.oracles import Verifier
from trialogue.samplers import TokenwiseRejection
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import VIABLE
from trialogue_lab.theory.query_complexity import rejection_cost, tokenwise_cost, tokenwise_success

UNIFORM = Table(lambda _: (0.25,) * 4, 4)
close = partial(pytest.approx, rel=1e-12, abs=1e-12)


def test_costs_agree_with_recursion_on_random_trees() -> None:
    for tree in VIABLE:
        table = tree.table()
        assert rejection_cost(table, tree.allows) == close(rejection_queries(tree, tree.allows))
        for rule in (tree.allows, tree.judges):
            _, queries, stuck = tokenwise(tree, rule)
            assert tokenwise_success(table, rule) == close(1 - stuck)
            assert tokenwise_cost(table, rule) == close(queries)
            for most in (1, 3):
                distribution = exact_distribution(TokenwiseRejection(max_rejections=most), table, rule)
                assert tokenwise_cost(table, rule, max_rejections=most) == close(distribution.expected_calls)
                success = tokenwise_success(table, rule, max_rejections=most)
                assert success == close(1 - distribution.failed)


def only_ones(sequence: tuple[int, ...]) -> bool:
    return 0 not in sequence


def test_costs_are_precise_for_small_acceptance_probabilities() -> None:
    with mpmath.workdps(1000):
        for weight in (1e-300, 1e-100, 1e-18, 1e-17, 1e-15, 1e-9, 1e-3, 0.3, 1.0, 1e3, 1e17):
            table = Table(lambda _, weight=weight: (1.0, weight), 2, max_length=2)
            chance = mpmath.mpf(weight) / (1 + mpmath.mpf(weight))
            for most in (None, 1, 2, 7, 1000, 10**9):
                found = 1 if most is None else 1 - (1 - chance) ** most
                cost = found / chance * (1 + found)
                got = tokenwise_cost(table, only_ones, max_rejections=most)
                success = tokenwise_success(table, only_ones, max_rejections=most)
                assert abs(got / cost - 1) < 1e-12
                assert found**2 <= 1e-300 or abs(success / found**2 - 1) < 1e-12


def test_acceptance_below_double_precision_raises_a_one_line_error() -> None:
    rare = Table(lambda _: (1.0, 1e-305), 2, max_length=1)
    rarer = Table(lambda _: (1.0, 1e-160), 2, max_length=2)
    for call in (
        lambda: tokenwise_cost(rare, only_ones),
        lambda: tokenwise_success(rare, only_ones, max_rejections=2),
        lambda: rejection_cost(rare, only_ones),
        lambda: rejection_cost(rarer, only_ones),
    ):
        expect_error(r"^verifier=.*below 1e-300", call)


def cost_of_dyck(length: int) -> tuple[float, float]:
    dyck = Dyck(length, (0.5, 0.5))
    return tuple(cost(UNIFORM, dyck, max_new_tokens=length) for cost in (rejection_cost, tokenwise_cost))


@pytest.mark.parametrize(("length", "rejection", "tokenwise"), [(8, 2341, 19.28), (16, 1.877e5, 35.72)])
def test_costs_of_dyck_strings_agree_with_published_values(
    length: int, rejection: float, tokenwise: float
) -> None:
    found = cost_of_dyck(length)
    assert found == pytest.approx((rejection, tokenwise), rel=3e-4)
    strings = math.comb(length, length // 2) // (length // 2 + 1) * 2 ** (length // 2)
    assert found[0] == pytest.approx(length * 4**length / strings, rel=1e-12)


def test_prefixes_of_arbitrary_functions_are_not_merged() -> None:
    """Functions of prefixes give the same costs as objects with a state, and are called for every prefix."""
    dyck, prefixes = Dyck(6, (0.3, 0.7)), []

    def distribution(prefix: tuple[int, ...]) -> list[float]:
        prefixes.append(prefix)
        return [0.25] * 4

    def balanced(prefix: tuple[int, ...]) -> bool:
        tokens = torch.tensor([prefix], dtype=torch.int64).view(1, -1)
        ended = len(prefix) == 6
        return bool(dyck.is_member(tokens) if ended else dyck.is_prefix(tokens))

    costs_of_pairs = [
        (rejection_cost(oracle, rule, max_new_tokens=6), tokenwise_cost(oracle, rule, max_new_tokens=6))
        for oracle, rule in ((UNIFORM, dyck), (Table(distribution, 4), balanced))
    ]
    assert costs_of_pairs[0] == pytest.approx(costs_of_pairs[1], rel=1e-12)
    assert len(prefixes) == sum(4**size for size in range(6))


@pytest.mark.parametrize("hidden", [(), (1,), (0, 1, 1), (1, 0) * 15])
def test_perfect_verifier_does_not_reduce_the_cost_of_a_hidden_string(hidden: tuple[int, ...]) -> None:
    oracle, verifier, length = hidden_string_task(hidden)
    found = 2.0 ** -len(hidden)
    assert rejection_cost(oracle, verifier) == pytest.approx(length / found)
    assert tokenwise_cost(oracle, verifier) == (math.inf if hidden else 1)
    for most in (1, 4):
        assert tokenwise_success(oracle, verifier, max_rejections=most) == pytest.approx(found)
        bounded = tokenwise_cost(oracle, verifier, max_rejections=most)
        assert bounded == pytest.approx(length - 1 + found + (1 - found) * most)


def test_costs_continue_a_prompt() -> None:
    oracle, verifier, _ = some_zero_task(4)
    assert rejection_cost(oracle, verifier, prompt=(1, 1)) == pytest.approx(2 / 0.75)
    assert tokenwise_cost(oracle, verifier, prompt=(0,)) == pytest.approx(3)
    assert tokenwise_cost(oracle, verifier, prompt=(1, 1, 1)) == pytest.approx(2)


class ConstantVerifier(Verifier):
    most = 1.0

    def values(self, decoding, rows):
        return torch.ones(len(rows))


test_errors_name_the_invalid_argument = refusals(
    "^{}",
    [
        (
            lambda: tokenwise_cost(UNIFORM, ConstantVerifier(), max_new_tokens=32, max_nodes=1000),
            r"max_nodes=1000: 1024 prefixes of 5 tokens, of up to 4\^32 sequences, .*generate",
        ),
        (lambda: rejection_cost("coin", Dyck(8)), "oracle='str'"),
        (lambda: rejection_cost(fair_bits(3), SubsetSum), "verifier='SubsetSum'"),
    ],
)
