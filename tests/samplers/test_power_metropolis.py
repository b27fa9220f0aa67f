"""Metropolis-Hastings for powers of the model: exact distributions, detailed balance, and the released code."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue import tilted
from trialogue.data import Table
from trialogue.samplers import PowerMetropolis, generate
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation
from trialogue.testing.distributions import verified_values
from trialogue.testing.trees import RandomTree

from .power_references import PowerReference

TREES = [
    RandomTree(
        seed, vocab=2 + (seed % 4 == 0), horizon=3, eos=(0, 1, 1, None)[seed % 4], sparse=seed % 5 == 0
    )
    for seed in range(200)
]
SAMPLERS = [
    PowerMetropolis(num_steps=1),
    PowerMetropolis(2.5, num_steps=2, proposal_temperature=1.0),
    PowerMetropolis(0.5, num_steps=3, proposal_temperature=0.7),
    PowerMetropolis(4.0, num_steps=2, num_blocks=2),
    PowerMetropolis(2.0, num_steps=1, num_blocks=3, proposal_temperature=0.8),
    PowerMetropolis.released(4.0, num_steps=3, num_blocks=1),
    PowerMetropolis.released(2.5, num_steps=2, num_blocks=2),
]


def error_of(sampler, tree, value=None):
    """Return the largest difference between the exact distribution of the sampler and the reference."""
    found = exact_distribution(sampler, tree.table(), value)
    truth, calls = PowerReference(sampler, tree, value).output()
    outputs = {x: p for x, p in truth.items() if tree.complete(x)}
    errors = (
        abs(found.probabilities.get(x, 0.0) - outputs.get(x, 0.0)) for x in found.probabilities | outputs
    )
    failed = sum(p for x, p in truth.items() if x not in outputs)
    return max(*errors, abs(found.failed - failed), abs(found.expected_calls - calls), found.never_halts)


@pytest.mark.parametrize("number", [7, pytest.param(200, marks=pytest.mark.slow)])
def test_the_distribution_is_that_of_the_reference(number):
    errors = [error_of(SAMPLERS[place % 7], tree) for place, tree in enumerate(TREES[:number])]
    assert max(errors) < 1e-12
    valued = [
        error_of(SAMPLERS[place % 5], tree, verified_values(tree))
        for place, tree in enumerate(TREES[:number])
    ]
    assert max(valued) < 1e-12


def kernel_of(reference, texts):
    """Return the transition matrix of one step between complete texts."""
    horizon, places = reference.tree.horizon, {text: place for place, text in enumerate(texts)}
    matrix = np.zeros((len(texts), len(texts)))
    for text, place in places.items():
        for after, p in reference.transitions(text, horizon)[0].items():
            matrix[place, places[after]] += p
    return matrix


def test_a_step_is_reversible_for_the_target():
    for place, tree in enumerate(TREES):
        reference = PowerReference(SAMPLERS[place % 5], tree, (None, tree.value)[place % 2])
        target = reference.target()
        flow = np.array(list(target.values()))[:, None] * kernel_of(reference, list(target))
        assert abs(flow - flow.T).max() < 1e-12
        assert abs(flow.sum() - 1) < 1e-12


def test_the_reference_converges_to_the_target():
    for tree in TREES[:20]:
        reference = PowerReference(SAMPLERS[tree.seed % 5], tree, tree.value)
        target = reference.target()
        values = {x: p ** (reference.alpha - 1) * tree.value(x) for x, p in tree.distribution().items()}
        power = target_distribution(tree.table(), lambda x, values=values: values.get(x, 1.0))
        assert target == pytest.approx(power, abs=1e-12)
        after = np.linalg.matrix_power(kernel_of(reference, list(target)), 4096)
        assert abs(after - list(target.values())).max() < 1e-9


class EarlyEnds(RandomTree):
    """A tree in which every text ends with probability 0.15 at each position."""

    def conditional(self, prefix):
        others = np.array(super().conditional(prefix)[1:])
        return (0.15, *(0.85 * others / others.sum()).tolist())


def test_the_released_code_leaves_the_target_where_texts_end_early():
    distances = {"released": [], "corrected": []}
    for seed in range(10):
        tree = EarlyEnds(seed, vocab=3, horizon=4, eos=0)
        for name, sampler in (
            ("released", PowerMetropolis.released(2.0, num_blocks=1)),
            ("corrected", PowerMetropolis(2.0)),
        ):
            reference = PowerReference(sampler, tree)
            # The released code can leave texts that end nowhere.
            texts = [text for text in tree.nodes() if text and (name == "released" or tree.complete(text))]
            start = np.array([reference.draws((), 4).get(text, (0.0,))[0] for text in texts])
            after = start @ np.linalg.matrix_power(kernel_of(reference, texts), 100)
            distances[name].append(
                total_variation(dict(zip(texts, after.tolist(), strict=True)), reference.target())
            )
        if seed < 2:
            assert error_of(PowerMetropolis.released(2.0, 2, 1), tree) < 1e-12
    assert min(distances["released"]) > 0.9
    assert max(distances["corrected"]) < 0.01


@dataclass(frozen=True)
class AfterPrompt:
    """The part of a tree below a prompt."""

    tree: RandomTree
    prompt: tuple[int, ...]

    @property
    def horizon(self):
        return self.tree.horizon - len(self.prompt)

    @property
    def eos(self):
        return self.tree.eos

    def children(self, prefix):
        after = len(self.prompt)
        return [(child[after:], p) for child, p in self.tree.children(self.prompt + prefix)]


@pytest.mark.parametrize("sampler", [*SAMPLERS[3:5], SAMPLERS[6]], ids=repr)
def test_cuts_and_blocks_begin_after_the_prompt(sampler):
    tree = RandomTree(3, vocab=2, horizon=4, eos=1)
    truth, calls = PowerReference(sampler, AfterPrompt(tree, (0,))).output()
    found = exact_distribution(sampler, tree.table(), prompt=(0,))
    complete = {(0, *x): p for x, p in truth.items() if tree.complete((0, *x))}
    assert found.probabilities == pytest.approx(complete, abs=1e-12)
    assert found.expected_calls == pytest.approx(calls)


@pytest.mark.parametrize("sampler", SAMPLERS[:4], ids=repr)
def test_a_target_is_a_factor_like_a_value(sampler):
    tree = RandomTree(5, vocab=2, horizon=3, eos=1)
    rewarded = tilted(lambda x: math.log(2 + sum(x) / 3), 2.0)
    first = exact_distribution(sampler, tree.table(), rewarded).probabilities
    second = exact_distribution(sampler, tree.table(), lambda x: (2 + sum(x) / 3) ** 2).probabilities
    assert first == pytest.approx(second, abs=1e-12)


def test_an_output_of_value_zero_is_left():
    table = Table(lambda prefix: [0.99, 0.01], 2, max_length=2)
    value = {(0, 0): 0.0, (0, 1): 1e-300, (1, 0): 1e-300, (1, 1): 1e-300}
    found = exact_distribution(PowerMetropolis(1.0, num_steps=1), table, lambda x: value.get(x, 1.0))
    start = 0.99**2
    # The cut is 0 or 1 with equal probability.
    left = start * (0.5 * (1 - start) + 0.5 * 0.01)
    assert found.probabilities[0, 0] == pytest.approx(start - left)


def test_long_outputs_have_finite_ratios():
    table = Table(lambda last: [0.5, 0.4999, 1e-4] if last[-1:] == (0,) else [0.7, 0.3, 1e-12], 3, memory=1)
    for sampler in (
        PowerMetropolis(num_steps=2, num_blocks=2),
        PowerMetropolis.released(2.0, 1, 2, proposal_temperature=1.5),
    ):
        run = generate(table, sampler=sampler, num_samples=4, max_new_tokens=400, verifier=lambda x: 0.5)
        assert set(run.stopped) == {""}
        assert run.lengths.tolist() == [400] * 4
        assert bool(torch.isfinite(run.log_prob).all())
        assert 400 < float(run.queries.double().mean()) < 400 + 600 * sampler.num_steps


@pytest.mark.parametrize("field", ["alpha", "proposal_temperature"])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_power_that_is_not_positive_is_refused(field, value):
    expect_error(f"{field}={value}: use a number above 0", PowerMetropolis, **{field: value})


def test_infinite_powers_are_refused():
    expect_error("alpha=inf: use a finite number", PowerMetropolis, math.inf)
