"""Tests of the study `constrained-law`: exact distributions against enumeration, and rows of small runs."""

import dataclasses
import itertools
import math

import pytest

from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.samplers import MaskedDecoding, Rejection, TokenwiseRejection, ValueGuided
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.verifiers import FunctionVerifier
from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.studies.constrained_law import STUDY
from trialogue_lab.studies.constrained_law import statistics as stats
from trialogue_lab.studies.constrained_law.cases import ModelQuestion, make_toy_question
from trialogue_lab.studies.constrained_law.config import PRESETS
from trialogue_lab.studies.constrained_law.distributions import (
    distance,
    estimate_sampling_error,
    simulate_sample_distance,
)
from trialogue_lab.studies.constrained_law.measure import measure_question
from trialogue_lab.studies.constrained_law.tasks import CAPITALS, TASKS
from trialogue_lab.studies.constrained_law.tree import (
    ExploredTreeModel,
    TokenTree,
    compute_first_leaf_distribution,
    explore,
)

SMOKE = PRESETS["smoke"]


def toy(kind: str = "regex", seed: int = 0) -> tuple[ModelQuestion, TokenTree]:
    case = make_toy_question(SMOKE, kind, seed)
    tree = explore(case.oracle, case.verifier, (), SMOKE.max_new_tokens, tolerance=1e-9, max_prefixes=1000)
    return case, tree


@pytest.mark.parametrize(("kind", "seed"), list(itertools.product(TASKS, (0, 1))))
def test_distributions_of_the_tree_agree_with_enumeration(kind: str, seed: int) -> None:
    case, tree = toy(kind, seed)
    target = target_distribution(case.oracle, case.verifier)
    masked = exact_distribution(MaskedDecoding(), case.oracle, case.verifier).probabilities
    assert total_variation(tree.restricted, target) < 1e-12
    assert total_variation(tree.masked, masked) < 1e-12
    # The two distributions are different, so the comparison is not trivial.
    assert total_variation(tree.masked, target) > 0.01
    assert tree.left_p == tree.left_q == 0.0


@pytest.mark.parametrize("sampler", [ValueGuided(), ValueGuided(lazy=False), MaskedDecoding(), Rejection()])
def test_samplers_have_the_same_distribution_on_the_lumped_oracle(
    sampler: ValueGuided | TokenwiseRejection | Rejection,
) -> None:
    case, tree = toy()
    lumped = ExploredTreeModel(tree, case.oracle.eos)
    exact = exact_distribution(sampler, case.oracle, case.verifier)
    lumped_exact = exact_distribution(sampler, lumped, lumped)
    translated = {lumped.leaves[x]: p for x, p in lumped_exact.probabilities.items() if p}
    assert total_variation(translated, {x: p for x, p in exact.probabilities.items() if p}) < 1e-9
    if not isinstance(sampler, Rejection):  # the lumped oracle merges invalid queries of rejection sampling
        assert lumped_exact.expected_calls == pytest.approx(exact.expected_calls)


@pytest.mark.parametrize("kind", TASKS)
def test_first_leaf_distribution_agrees_with_enumeration(kind: str) -> None:
    case, tree = toy(kind, seed=2)
    distribution, queries = compute_first_leaf_distribution(tree)
    exact = exact_distribution(ValueGuided(), case.oracle, case.verifier)
    assert total_variation(distribution, {x: p for x, p in exact.probabilities.items() if p}) < 1e-9
    assert queries == pytest.approx(exact.expected_calls)
    assert total_variation(distribution, tree.masked) > 0.01


def case_of_words(words: set[str], horizon: int, seed: int) -> ModelQuestion:
    """Return a random table of two letters with a verifier of `words`, which may be longer than `horizon`."""

    def distribution(prefix: tuple[int, ...]) -> list[float]:
        return numpy_generator(seed, prefix).dirichlet([0.7] * 3).tolist()

    def text(completion: tuple[int, ...]) -> str:
        return "".join("ab"[token] for token in completion if token != 2)

    def allowed(completion: tuple[int, ...]) -> bool:
        if 2 in completion:
            return text(completion) in words
        return any(word.startswith(text(completion)) for word in words)

    oracle = Table(distribution, vocab_size=3, eos=2, max_length=horizon)
    return ModelQuestion(oracle, FunctionVerifier(allowed), (), text, horizon)


def test_prefixes_without_completion_are_visited_but_have_no_leaves() -> None:
    # After "bb" the only valid continuation, "bbb", is complete and not a word.
    def allowed(completion: tuple[int, ...]) -> bool:
        text = "".join("ab"[token] for token in completion if token != 2)
        if 2 in completion or len(completion) == 3:
            return text in {"a", "ab"}
        return any(word.startswith(text) for word in ("a", "ab", "bbba"))

    case = dataclasses.replace(case_of_words(set(), 3, 1), verifier=FunctionVerifier(allowed))
    tree = explore(case.oracle, case.verifier, (), 3, tolerance=1e-9, max_prefixes=100)
    assert (1, 1) in tree.nodes
    distribution, queries = compute_first_leaf_distribution(tree)
    exact = exact_distribution(ValueGuided(), case.oracle, case.verifier)
    assert total_variation(distribution, {x: p for x, p in exact.probabilities.items() if p}) < 1e-9
    assert queries == pytest.approx(exact.expected_calls)


def test_samplers_on_the_lumped_oracle_end_in_known_leaves() -> None:
    case = case_of_words({"a", "bbbb"}, 5, 3)
    tree = explore(case.oracle, case.verifier, (), 5, tolerance=1e-9, max_prefixes=100)
    partial = dataclasses.replace(tree, leaves={x: p for x, p in tree.leaves.items() if len(x) < 4})
    assert max(map(len, partial.nodes)) > max(map(len, partial.leaves))
    lumped = ExploredTreeModel(partial, case.oracle.eos)
    lumped_exact = exact_distribution(MaskedDecoding(), lumped, lumped)
    assert {lumped.leaves[x] for x, p in lumped_exact.probabilities.items() if p} <= set(partial.leaves)


def test_distance_of_sample_counts_exceeds_the_distance_of_their_distribution() -> None:
    distribution, number = {"a": 0.6, "b": 0.3}, 4  # the remaining 0.1 violates the constraint
    target = {"a": 0.5, "b": 0.5}
    outcomes = {"a": 0.6, "b": 0.3, "": 0.1}
    exact = 0.0
    for sampled in itertools.product(outcomes, repeat=number):
        counts = {x: sampled.count(x) / number for x in distribution}
        exact += math.prod(outcomes[x] for x in sampled) * distance(counts, target)
    assert simulate_sample_distance(distribution, target, number, 0, rounds=100_000) == pytest.approx(
        exact, abs=5e-3
    )
    assert distance(distribution, target) < exact - 0.02


def test_unexplored_mass_bounds_the_missing_mass() -> None:
    case, full_tree = toy(seed=1)
    partial_tree = explore(
        case.oracle, case.verifier, (), SMOKE.max_new_tokens, tolerance=0.2, max_prefixes=1000
    )
    missing_p = full_tree.accepted_mass - partial_tree.accepted_mass
    missing_q = 1 - math.fsum(partial_tree.masked.values())
    assert -1e-12 <= missing_p <= partial_tree.left_p + 1e-12
    assert missing_q == pytest.approx(partial_tree.left_q)


def test_large_trees_and_unsatisfiable_constraints_are_rejected() -> None:
    case = make_toy_question(SMOKE, "regex", 0)
    with pytest.raises(InputError, match="max_prefixes=2: "):
        explore(case.oracle, case.verifier, (), 5, tolerance=1e-9, max_prefixes=2)
    with pytest.raises(InputError, match="allows no completion"):
        explore(case.oracle, FunctionVerifier(lambda _: 0), (), 5, tolerance=1e-9, max_prefixes=9)


def test_distances_include_missing_mass() -> None:
    assert distance({"a": 0.5}, {"a": 1.0}) == 0.5
    assert distance({"a": 0.5, "b": 0.5}, {"a": 1.0}) == 0.5
    assert estimate_sampling_error({"a": 1.0}, 10) == 0.0
    assert estimate_sampling_error({"a": 0.5, "b": 0.5}, 100) == pytest.approx(0.0399, abs=1e-3)


def test_seeds_have_different_questions() -> None:
    for make in TASKS.values():
        tasks = [make(seed) for seed in range(20)]
        assert len({task.question for task in tasks}) == len(tasks)
        assert tasks[3] == make(3)
    assert any(city in TASKS["regex"](0).constraint.replace("\\", "") for city in CAPITALS.values())


def question(seed: int, kind: str, mass: float, ess: float, tv: float) -> list[dict[str, object]]:
    """Return rows of a question with ten queries per answer. `tv` is the distance of one masked sample."""
    exact = {"seed": seed, "kind": kind}
    return [
        exact | {"measure": "tree", "accepted_mass": mass, "unexplored_p": 0.0, "unexplored_q": 0.01},
        exact | {"measure": "run", "rule": "no rule", "queries": 10.0},
        *(
            exact
            | {"measure": "exact", "rule": "masked, weighted", "size": size, "tv": tv / size, "drawn_tv": 0.3}
            | {"ess_per_query": ess}
            for size in (1, 4)
        ),
        exact | {"measure": "simulated", "rule": "smc", "size": 4, "tv": tv / 2},
    ]


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    rows = Rows(
        [
            # Rejection needs 100 queries, with 0.01 effective samples per query.
            *question(0, "regex", 0.1, 0.1, 0.4),
            # It needs 10,000 queries, with 0.0001 effective samples per query.
            *question(0, "json-schema", 0.001, 0.1, 0.8),
            *question(1, "regex", 0.1, 0.01, 0.2),
        ],
        STUDY.kind,
    )
    assert stats.rejection_queries()(rows).item() == pytest.approx((100 * 10_000 * 100) ** (1 / 3))
    assert stats.gain_over_rejection()(rows).tolist() == pytest.approx([(1 + 3) / 2, 0])
    assert stats.samples_over_rejection()(rows).item() == pytest.approx(10)
    assert stats.best_weighted()(rows).tolist() == pytest.approx([0.15, 0.05])
    assert stats.gain_of_resampling_on_the_way()(rows).tolist() == pytest.approx([0, -0.2])
    assert stats.decoded("exact", "masked, weighted", size=1, kind="regex")(rows).tolist() == [0.4, 0.2]
    calls = [{"measure": "exact", "rule": "smc", "seed": 0, "queries": number} for number in (10.0, 1000.0)]
    assert stats.typical_calls("exact", "smc")(Rows(calls, STUDY.kind)).tolist() == pytest.approx([100])
    assert stats.decoded("run", "smc")(rows).empty


def test_particles_without_a_matching_number_of_samples_have_no_estimate() -> None:
    config = dataclasses.replace(SMOKE, seeds=(0,), sizes=(1, 2), particles=(4, 8))
    measured = [
        {"seed": 0, "kind": kind, **row}
        for kind in TASKS
        for row in measure_question(make_toy_question(config, kind, 0), config, 0)
    ]
    rows = Rows(measured, STUDY.kind)
    assert stats.gain_of_resampling_on_the_way()(rows).empty
    assert svg(STUDY.figures[0], rows).startswith("<?xml")
