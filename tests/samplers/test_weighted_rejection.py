"""Weighted rejection: the masked distribution of every token, and an unbiased, independent estimate of its mass,
exactly.
"""

import itertools
import math
from collections import Counter, defaultdict

import pytest
import torch

from mutants import samplers as mutants
from samplers.reference_laws import largest_difference
from trialogue.data.table import Table
from trialogue.enumeration import Enumeration
from trialogue.randomness import generator
from trialogue.samplers import WeightedRejection, generate
from trialogue.samplers.prefix import weighted_rejection
from trialogue.samplers.prefix.weighted_rejection import draw_accepted

SETS = [accepted for size in range(4) for accepted in itertools.combinations(range(4), size)]
PAIRS = [(0, 1), (2, 3)]


class Members:
    """A judge of single tokens: 1 inside the set."""

    def __init__(self, accepted):
        self.verdicts = torch.zeros(4, dtype=torch.float64)
        self.verdicts[list(accepted)] = 1

    def candidates(self, rows, tokens):
        return self.verdicts[tokens]


def joint_law(draw, distribution, accepted):
    """Exact joint distribution of the token drawn and of the estimate, to ten digits, from the distribution (4,) of
    tokens.
    """
    enumeration, row, joint = Enumeration(1, 1), torch.zeros(1, dtype=torch.int64), defaultdict(float)

    def run():
        return draw(distribution.log()[None], row, row, Members(accepted), enumeration.choose)

    for weight, (token, log_mass, _) in enumeration.branches(run):
        joint[int(token), round(float(log_mass.exp()), 10)] += float(weight)
    return {outcome: weight for outcome, weight in joint.items() if weight > 0}


def draw_error(draw, accepted, seed=0) -> float:
    """Distance from the masked distribution, from an unbiased mass, and from independence of the two."""
    distribution = 0.05 + torch.rand(
        4, generator=generator(seed, "distribution of tokens"), dtype=torch.float64
    )
    distribution /= distribution.sum()
    mass = math.fsum(float(distribution[token]) for token in accepted)
    joint = joint_law(draw, distribution, accepted)
    tokens, masses = Counter(), Counter()
    for (token, estimate), weight in joint.items():
        tokens[token] += weight
        masses[estimate] += weight
    masked = {token: float(distribution[token]) / mass for token in accepted} if accepted else {-1: 1.0}
    product = {(token, estimate): tokens[token] * masses[estimate] for token in tokens for estimate in masses}
    expected = math.fsum(estimate * weight for estimate, weight in masses.items())
    return max(largest_difference(tokens, masked), abs(expected - mass), largest_difference(joint, product))


@pytest.mark.parametrize("accepted", SETS, ids=str)
def test_the_estimate_is_unbiased_and_independent_of_the_token(accepted):
    assert draw_error(draw_accepted, accepted) < 1e-9  # the estimates are compared to ten digits


@pytest.mark.parametrize("size", [1, 2, 3])
def test_drawing_by_blocks_of_the_vocabulary_is_the_same(monkeypatch, size):
    monkeypatch.setattr(weighted_rejection, "_BLOCK", size)
    for accepted in [(), *PAIRS]:
        assert draw_error(draw_accepted, accepted) < 1e-9


@pytest.mark.parametrize(
    "draw", [mutants.COUNTING, mutants.FIRST_LOOP, mutants.REPLACING, mutants.LATE], ids=str
)
def test_biased_or_dependent_estimates_are_told_apart(draw):
    right = mutants.BrokenDraw()
    assert max(draw_error(right, accepted) for accepted in PAIRS) < 1e-9
    assert max(draw_error(draw, accepted) for accepted in PAIRS) > 1e-3


def test_little_mass_is_estimated_to_full_precision():
    distribution = torch.tensor([[1 - 1e-30, 1e-30, 1e-32, 1e-33]], dtype=torch.float64)
    row = torch.zeros(1, dtype=torch.int64)

    def likeliest(log_weights, rows):
        return log_weights.argmax(1)

    token, log_mass, _ = draw_accepted(distribution.log(), row, row, Members((2, 3)), likeliest)
    # 1 - m_k by subtraction would be zero.
    expected = 1 / (1 + 1 / 1.011e-30 + 1 / 1.1e-32)
    assert (int(token), float(log_mass.exp())) == (2, pytest.approx(expected, rel=1e-12))


def test_the_verifier_judges_what_is_drawn_and_not_the_vocabulary():
    wide = Table(lambda prefix: [0.45, 0.45] + [0.1 / 998] * 998, 1000, max_length=20)
    run = generate(wide, sampler=WeightedRejection(), verifier=lambda y: y[-1] != 0, num_samples=20)
    assert run.queries.tolist() == [20] * 20
    assert int(run.verifier_calls.sum()) < 4 * 20 * 20
