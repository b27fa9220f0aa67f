"""Value functions: tables, outcomes at leaves, errors of known size, and rollouts."""

import math

import numpy as np
import pytest
import torch

from refusals import expect_error
from samplers.reference_distributions import expected_value, largest_difference, normalised, restricted
from trialogue.errors import InputError
from trialogue.samplers import SequentialMonteCarlo, TokenwiseRejection, ValueGuided, generate, values
from trialogue.samplers.exact import exact_distribution, transition_matrix
from trialogue.testing import check_verifier
from trialogue.testing.distributions import verified_values
from trialogue.testing.trees import VIABLE, RandomTree
from trialogue.verifiers import NoisyValues, OutcomeReward, RolloutValues, TableValues

TREE = VIABLE[1]


def table(tree, value) -> TableValues:
    return TableValues({prefix: value(prefix) for prefix in tree.nodes()})


def test_a_table_is_a_function_and_a_verifier_of_prefixes():
    written = table(TREE, TREE.value)
    assert written((0, 1)) == TREE.value((0, 1))
    prefixes = [(), (1,), (0, 1, 1)]
    assert values(written, TREE.table(), prefixes).tolist() == [TREE.value(prefix) for prefix in prefixes]
    check_verifier(written, TREE.table())
    distribution = exact_distribution(
        ValueGuided(), TREE.table(), table(TREE, expected_value(TREE, TREE.value))
    )
    assert largest_difference(distribution.probabilities, restricted(TREE, TREE.value)) < 1e-12


def test_an_invalid_table_is_reported_in_one_line():
    for written, message in (
        ({}, r"table={}: pass a dict"),
        ({(0,): -1.0}, r"the value of \(0,\)=-1.0: use at least 0"),
        ({(0,): math.nan}, r"the value of \(0,\)=nan: use a finite number"),
        ({(0.5,): 1.0}, r"table=0.5: use tuples of token ids as keys"),
        ({"0": 1.0}, r"table='0': use tuples of token ids as keys"),
    ):
        expect_error(message, TableValues, written)


def test_a_missing_prefix_is_reported():
    written = TableValues({(): 1.0, (0,): 1.0})
    with pytest.raises(
        InputError, match=r"prefix=\(1,\): the table of 2 values has no entry for this prefix"
    ):
        generate(TREE.table(), sampler=ValueGuided(), verifier=written)
    expect_error(r"prefix=\(0, 1\)", written, (0, 1))


def value_ratios(noisy, prefixes, tree) -> list[float]:
    """Return the ratio of each noisy value to the exact value."""
    found = values(noisy, tree.table(), prefixes).tolist()
    return [value / tree.value(prefix) for value, prefix in zip(found, prefixes, strict=True)]


def incomplete_prefixes(tree) -> list:
    return [prefix for prefix in tree.nodes() if not tree.complete(prefix)]


LARGE = RandomTree(141, horizon=12)


def test_uniform_errors_have_their_maximum_size_at_every_prefix():
    noisy = NoisyValues(LARGE.value, 0.5)
    ratios = value_ratios(noisy, incomplete_prefixes(LARGE), LARGE)
    assert {round(ratio, 9) for ratio in ratios} == {1.5, round(1 / 1.5, 9)}
    assert abs(sum(ratio > 1 for ratio in ratios) / len(ratios) - 0.5) < 3 * 0.5 / len(ratios) ** 0.5
    assert ratios == value_ratios(NoisyValues(LARGE.value, 0.5), incomplete_prefixes(LARGE), LARGE)
    assert ratios != value_ratios(NoisyValues(LARGE.value, 0.5, seed=1), incomplete_prefixes(LARGE), LARGE)


def test_average_errors_have_the_given_mean():
    noisy = NoisyValues(lambda prefix: 1.0, 0.25, "average", spread=4.0)
    ratios = torch.cat(
        [
            values(
                NoisyValues(lambda prefix: 1.0, 0.25, "average", spread=4.0, seed=seed),
                LARGE.table(),
                incomplete_prefixes(LARGE),
            )
            for seed in range(4)
        ]
    )
    share = 0.25 / ((4 + 1 / 4) / 2 - 1)
    assert {round(ratio, 9) for ratio in ratios.tolist()} == {1.0, 4.0, 0.25}
    error = 3 * float(ratios.std()) / len(ratios) ** 0.5
    assert abs(float(ratios.mean()) - 1.25) < error
    assert abs(float((1 / ratios).mean()) - 1.25) < error
    assert abs(float((ratios != 1).double().mean()) - share) < 3 * (share / len(ratios)) ** 0.5
    check_verifier(noisy, LARGE.table(), [(), (0,)])


def test_errors_depend_on_the_last_token_only():
    ratios = value_ratios(NoisyValues(TREE.value, 0.3, "last token"), incomplete_prefixes(TREE), TREE)
    expected = [
        1.0 if not prefix else 1.3 if prefix[-1] == 0 else 1 / 1.3 for prefix in incomplete_prefixes(TREE)
    ]
    assert ratios == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["uniform", "average", "last token"])
def test_outcomes_have_no_error_and_leaves_keep_their_distribution(kind):
    noisy = NoisyValues(TREE.value, 0.5, kind, spread=20.0)
    leaves = [prefix for prefix in TREE.nodes() if TREE.complete(prefix)]
    assert value_ratios(noisy, leaves, TREE) == [1.0] * len(leaves)
    assert largest_difference(leaf_distribution(TREE, noisy), restricted(TREE, TREE.value)) < 1e-12
    check_verifier(noisy, TREE.table(), [(), (0,)])


def leaf_distribution(tree, verifier) -> dict:
    """Return the stationary distribution of leaves, computed from the transitions of the sampler."""
    states, transitions = transition_matrix(ValueGuided(stop_at_leaf=False), tree.table(), verifier)
    distribution = np.abs(np.linalg.svd(transitions.toarray().T - np.eye(len(states)))[2][-1])
    return normalised({x: float(p) for x, p in zip(states, distribution, strict=True) if tree.complete(x)})


def test_outcomes_replace_values_at_leaves():
    reward = OutcomeReward(TREE.value, TREE.allows)
    found = values(reward, TREE.table(), list(TREE.nodes())).tolist()
    expected = [
        float(TREE.allows(prefix)) if TREE.complete(prefix) else TREE.value(prefix) for prefix in TREE.nodes()
    ]
    assert found == expected
    assert largest_difference(leaf_distribution(TREE, reward), restricted(TREE, TREE.allows)) < 1e-12
    assert largest_difference(leaf_distribution(TREE, TREE.value), restricted(TREE, TREE.allows)) > 1e-2
    check_verifier(reward, TREE.table(), [(), (0,)])


def test_positive_values_of_prefixes_without_a_positive_outcome_are_reported():
    message = r"values=0\.\d+: every completion of \(.*\) has the outcome 0; return 0 for this prefix"
    with pytest.raises(InputError, match=message):
        exact_distribution(
            ValueGuided(), TREE.table(), OutcomeReward(TREE.value, TREE.allows, viability=True)
        )
    viable = OutcomeReward(verified_values(TREE), TREE.allows, viability=True)
    assert largest_difference(leaf_distribution(TREE, viable), restricted(TREE, TREE.allows)) < 1e-12


def test_rollouts_estimate_the_value():
    exact, count = expected_value(TREE, TREE.allows), 400
    nodes = incomplete_prefixes(TREE)
    estimates = values(RolloutValues(TREE.allows, count), TREE.table(), nodes).tolist()
    for prefix, estimate in zip(nodes, estimates, strict=True):
        value = exact(prefix)
        assert abs(estimate - max(value, 0.5 / count)) < 5 * (value * (1 - value) / count) ** 0.5 + 1e-9


class RecordingRollouts(RolloutValues):
    """Record the number of tokens that each evaluated prefix may still be extended by."""

    def values(self, decoding, rows):
        self.remaining = [
            *getattr(self, "remaining", []),
            *(decoding.limit - decoding.lengths)[rows].tolist(),
        ]
        return super().values(decoding, rows)


def test_every_token_of_a_rollout_counts_as_a_query_of_its_sample():
    rollouts, nodes = RecordingRollouts(TREE.allows, 3, floor=0.0), list(TREE.nodes())
    table_verifier = TableValues(
        dict(
            zip(
                nodes,
                values(RolloutValues(TREE.allows, 3, floor=0.0), TREE.table(), nodes).tolist(),
                strict=True,
            )
        )
    )
    for sampler in (TokenwiseRejection(), ValueGuided(), SequentialMonteCarlo(2)):
        rollouts.remaining = []
        run = generate(TREE.table(), sampler=sampler, verifier=rollouts, seed=3, max_steps=200)
        expected = generate(TREE.table(), sampler=sampler, verifier=table_verifier, seed=3, max_steps=200)
        assert run.sequences() == expected.sequences()
        assert int(run.queries) == int(expected.queries) + 3 * sum(rollouts.remaining)
    assert sum(rollouts.remaining) > 0


def test_rollout_values_depend_on_the_prefix_and_the_seed_only():
    for verifier in (RolloutValues(TREE.allows, 4), RolloutValues(TREE.value, 2, seed=5)):
        check_verifier(verifier, TREE.table(), [(), (0,)])
    different = [
        values(RolloutValues(TREE.value, 2, seed=seed), TREE.table(), incomplete_prefixes(TREE))
        for seed in (0, 1)
    ]
    assert not torch.equal(*different)
