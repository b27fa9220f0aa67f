"""Exact costs against plain recursion, the walks' own laws and the numbers of section 3.1."""

import math

import mpmath
import pytest
import torch

from mutants.modules import altered
from one_line_errors import refusals
from samplers.reference_distributions import rejection_queries, tokenwise
from trialogue.data import Dyck, Table
from trialogue.data.puzzles.hidden_string import (
    SubsetSum,
    fair_bits,
    hidden_string_task,
    some_zero_task,
)
from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.samplers import TokenwiseRejection
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import VIABLE
from trialogue_lab.theory.query_complexity import costs, rejection_cost, tokenwise_cost, tokenwise_success

UNIFORM = Table(lambda _: (0.25,) * 4, 4)


def error_on_trees(names, enough: float = math.inf) -> float:
    """Greatest relative distance from costs by recursion over the definitions."""
    worst = 0.0
    for tree in VIABLE:
        table = tree.table()
        worst = max(
            worst, abs(names["rejection_cost"](table, tree.allows) / rejection_queries(tree, tree.allows) - 1)
        )
        for rule in (tree.allows, tree.judges):
            _, queries, stuck = tokenwise(tree, rule)
            cost, success = names["tokenwise_cost"](table, rule), names["tokenwise_success"](table, rule)
            worst = max(
                worst,
                abs(success - (1 - stuck)),
                float(cost != queries) if queries == math.inf else abs(cost / queries - 1),
            )
            for most in (1, 3):
                law = exact_distribution(TokenwiseRejection(max_rejections=most), table, rule)
                bounded = names["tokenwise_cost"](table, rule, max_rejections=most)
                success = names["tokenwise_success"](table, rule, max_rejections=most)
                worst = max(worst, abs(bounded / law.expected_calls - 1), abs(success - (1 - law.failed)))
        if worst > enough:
            break
    return worst


def test_costs_on_trees() -> None:
    assert error_on_trees(vars(costs)) < 1e-12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("calls += float(level.weights @ draws)", "calls += float(level.weights.sum())"),
        (
            "torch.where(chance > 0, _found(chance, most) / chance, most)",
            "torch.where(chance > 0, 1 / chance, most)",
        ),
        ("calls += float(level.weights.sum())", "calls += 1"),
        ("ends[:, self.oracle.eos] = True", "pass"),
        ("return calls / accepted if", "return calls if"),
    ],
)
def test_broken_costs_are_told_apart(old: str, new: str) -> None:
    assert error_on_trees(altered(costs, (old, new), compiled=False), enough=1e-3) > 1e-3


def error_of_rare_acceptance(names) -> float:
    """Greatest relative error where each of two tokens is accepted with a probability from 1e-300 to 1."""
    worst = mpmath.mpf(0)
    with mpmath.workdps(1000):
        for weight in (1e-300, 1e-100, 1e-18, 1e-17, 1e-15, 1e-9, 1e-3, 0.3, 1.0, 1e3, 1e17):
            table = Table(lambda _, weight=weight: (1.0, weight), 2, max_length=2)
            chance = mpmath.mpf(weight) / (1 + mpmath.mpf(weight))
            for most in (None, 1, 2, 7, 1000, 10**9):
                found = 1 if most is None else 1 - (1 - chance) ** most
                cost = found / chance * (1 + found)
                got = names["tokenwise_cost"](table, only_ones, max_rejections=most)
                success = names["tokenwise_success"](table, only_ones, max_rejections=most)
                worst = max(worst, abs(got / cost - 1))
                if found**2 > 1e-300:
                    worst = max(worst, abs(success / found**2 - 1))
        return float(worst)


def only_ones(sequence: tuple[int, ...]) -> bool:
    return 0 not in sequence


def test_costs_of_rare_acceptance() -> None:
    assert error_of_rare_acceptance(vars(costs)) < 1e-12


def test_costs_of_rare_acceptance_by_subtraction_are_told_apart() -> None:
    change = ("-torch.expm1(most * torch.log1p(-chance))", "1 - (1 - chance) ** most")
    assert error_of_rare_acceptance(altered(costs, change, compiled=False)) > 1e-3


def test_acceptance_below_double_precision_is_one_line() -> None:
    rare = Table(lambda _: (1.0, 1e-305), 2, max_length=1)
    rarer = Table(lambda _: (1.0, 1e-160), 2, max_length=2)
    for call in (
        lambda: tokenwise_cost(rare, only_ones),
        lambda: tokenwise_success(rare, only_ones, max_rejections=2),
        lambda: rejection_cost(rare, only_ones),
        lambda: rejection_cost(rarer, only_ones),
    ):
        with pytest.raises(InputError, match=r"^verifier=.*below 1e-300"):
            call()


def cost_of_dyck(length: int, names=None) -> tuple[float, float]:
    dyck, names = Dyck(length, (0.5, 0.5)), names or vars(costs)
    asked = (UNIFORM, dyck)
    return (
        names["rejection_cost"](*asked, max_new_tokens=length),
        names["tokenwise_cost"](*asked, max_new_tokens=length),
    )


@pytest.mark.parametrize(("length", "rejection", "tokenwise"), [(8, 2341, 19.28), (16, 1.877e5, 35.72)])
def test_dyck_strings_by_a_uniform_oracle(length: int, rejection: float, tokenwise: float) -> None:
    found = cost_of_dyck(length)
    assert found == pytest.approx((rejection, tokenwise), rel=3e-4)
    strings = math.comb(length, length // 2) // (length // 2 + 1) * 2 ** (length // 2)
    assert found[0] == pytest.approx(length * 4**length / strings, rel=1e-12)


def test_merging_what_is_not_alike_is_noticed() -> None:
    careless = altered(
        costs,
        (
            "tokens if memory is None else memory, torch.cat(known))",
            "tokens[:, :0], torch.cat(known)[:, :1])",
        ),
        compiled=False,
    )
    assert cost_of_dyck(8, careless)[1] != pytest.approx(19.28, rel=3e-4)


def test_nothing_is_merged_that_nobody_says_is_alike() -> None:
    """The same costs by functions, which say nothing, and by a law that looks at its prefix."""
    dyck, told = Dyck(6, (0.3, 0.7)), []

    def law(prefix: tuple[int, ...]) -> list[float]:
        told.append(prefix)
        return [0.25] * 4

    def balanced(prefix: tuple[int, ...]) -> bool:
        tokens = torch.tensor([prefix], dtype=torch.int64).view(1, -1)
        ended = len(prefix) == 6
        return bool(dyck.is_member(tokens) if ended else dyck.is_prefix(tokens))

    both = [
        (rejection_cost(oracle, rule, max_new_tokens=6), tokenwise_cost(oracle, rule, max_new_tokens=6))
        for oracle, rule in ((UNIFORM, dyck), (Table(law, 4), balanced))
    ]
    assert both[0] == pytest.approx(both[1], rel=1e-12)
    assert len(told) == sum(4**size for size in range(6))


@pytest.mark.parametrize("hidden", [(), (1,), (0, 1, 1), (1, 0) * 15])
def test_a_perfect_verifier_is_no_help_on_the_hidden_string(hidden: tuple[int, ...]) -> None:
    oracle, verifier, length = hidden_string_task(hidden)
    found = 2.0 ** -len(hidden)
    assert rejection_cost(oracle, verifier) == pytest.approx(length / found)
    assert tokenwise_cost(oracle, verifier) == (math.inf if hidden else 1)
    for most in (1, 4):
        assert tokenwise_success(oracle, verifier, max_rejections=most) == pytest.approx(found)
        bounded = tokenwise_cost(oracle, verifier, max_rejections=most)
        assert bounded == pytest.approx(length - 1 + found + (1 - found) * most)


def test_a_prompt_is_given() -> None:
    oracle, verifier, _ = some_zero_task(4)
    assert rejection_cost(oracle, verifier, prompt=(1, 1)) == pytest.approx(2 / 0.75)
    assert tokenwise_cost(oracle, verifier, prompt=(0,)) == pytest.approx(3)
    assert tokenwise_cost(oracle, verifier, prompt=(1, 1, 1)) == pytest.approx(2)


class Silent(Verifier):
    most = 1.0

    def values(self, decoding, rows):
        return torch.ones(len(rows))


test_bad_input_is_named = refusals(
    "^{}",
    [
        (
            lambda: tokenwise_cost(UNIFORM, Silent(), max_new_tokens=32, max_nodes=1000),
            r"max_nodes=1000: 1024 prefixes of 5 tokens, of up to 4\^32 sequences, .*generate",
        ),
        (lambda: rejection_cost("coin", Dyck(8)), "oracle='str'"),
        (lambda: rejection_cost(fair_bits(3), SubsetSum), "verifier='SubsetSum'"),
    ],
)
