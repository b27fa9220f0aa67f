"""Masks before top-k and top-p: exact distributions and weights, and the number of verifier calls."""

import math

import pytest
import torch

from batches import AllChildrenVerifier, batch_of
from samplers.reference_distributions import largest_difference, masked_first
from trialogue.data.table import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import (
    MaskedDecoding,
    SequentialMonteCarlo,
    TokenwiseRejection,
    Truncated,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.masking import mask_with_mass
from trialogue.testing.distributions import verified_values
from trialogue.testing.trees import VIABLE, RandomTree
from trialogue.verifiers import FunctionVerifier, Product

CUTS = [
    {"top_p": 0.9},
    {"top_p": 0.55},
    {"top_k": 1},
    {"top_k": 2, "temperature": 2.0},
    {"temperature": 0.0},
    {"temperature": 0.5, "top_p": 0.8},
    {"min_p": 0.4},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.9, "min_p": 0.3},
]


class BoundedAllChildren(AllChildrenVerifier):
    """A verifier of all children at once with values of at most 1."""

    most = 1.0


class Bounded(FunctionVerifier):
    """A function with values of at most 1, called with one prefix at a time."""

    most = 1.0


def mask_error(sampler, tree, rule, cut, verifier=Bounded) -> float:
    """Return the distance from the defined distribution, weights and failures, and the missing mass."""
    distribution = exact_distribution(sampler, Truncated(tree.table(), **cut), verifier(rule))
    reference, proper, stuck = masked_first(tree, rule, **cut)
    total = math.fsum(distribution.probabilities.values()) + distribution.failed
    if sampler.rows_per_sample > 1:
        # Resampling changes the probabilities of outputs, but neither their support nor their weights.
        expected = {x: w for x, w in proper.items() if w > 0}
        return max(largest_difference(distribution.weights, expected), abs(total - 1))
    return max(
        largest_difference(distribution.probabilities, reference),
        largest_difference(distribution.weights, proper),
        abs(distribution.failed - stuck),
        abs(total - 1),
    )


@pytest.mark.parametrize("verifier", [Bounded, BoundedAllChildren])
@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("tree", VIABLE, ids=str)
def test_the_mask_is_applied_before_the_truncation(tree, cut, verifier):
    for rule in (tree.allows, tree.judges):
        assert mask_error(MaskedDecoding(), tree, rule, cut, verifier=verifier) < 1e-12


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("tree", [tree for tree in VIABLE if len(tree.distribution()) <= 9], ids=str)
def test_particles_are_drawn_from_the_truncated_product_of_distribution_and_value(tree, cut):
    for particles in (1, 2):
        sampler = SequentialMonteCarlo(particles, 1.0, "mask")
        assert mask_error(sampler, tree, verified_values(tree), cut) < 1e-12


def largest_mask_error(sampler) -> float:
    return max(mask_error(sampler, tree, tree.allows, cut) for tree in VIABLE[2:4] for cut in CUTS)


@pytest.mark.parametrize(
    "sampler",
    [MaskedDecoding(mask_first=False), SequentialMonteCarlo(1, proposal="mask", mask_first=False)],
    ids=repr,
)
def test_truncation_before_the_mask_equals_tokenwise_rejection(sampler):
    assert largest_mask_error(sampler) > 1e-3
    for tree in VIABLE[:4]:
        for cut in CUTS[:4]:
            oracle = truncated(tree.table(), **cut)
            distribution = exact_distribution(sampler, oracle, tree.judges)
            redraw = exact_distribution(TokenwiseRejection(), oracle, tree.judges)
            assert largest_difference(distribution.probabilities, redraw.probabilities) < 1e-12
            assert abs(distribution.failed - redraw.never_halts) < 1e-12


VOCAB = 80


def distributions(count: int) -> torch.Tensor:
    """Return distributions (count, VOCAB) of many shapes: peaked, flat, with ties and with zeros."""
    draw = numpy_generator(83, "distributions")
    logits = torch.from_numpy(draw.normal(size=(count, VOCAB))) * torch.linspace(0.1, 4, count)[:, None]
    logits[1::5] = logits[1::5].round()
    logits[2::5, 60:] = -math.inf
    return logits.log_softmax(-1)


def count_judged_and_wrong(judge_type, cut, share, *, most=1.0, parts=()) -> tuple[int, int]:
    """Return the number of judged continuations of 30 prefixes, and the number of prefixes with a wrong truncation."""
    all_distributions, draw = distributions(30), numpy_generator(84, "values", share)
    values = (draw.random((30, VOCAB)) < share) * (
        most * draw.random((30, VOCAB)) if 1 < most < math.inf else 1.0
    )
    values[:, 7] = 1.0  # at least one token is allowed
    judged = 0

    def value(prefix):
        nonlocal judged
        judged += 1
        return float(values[prefix])

    verifier = FunctionVerifier(value)
    verifier.most = most
    oracle = truncated(Table(lambda prefix: all_distributions[prefix[0]].exp(), VOCAB, max_length=2), **cut)
    batch, rows = batch_of(oracle, [(row,) for row in range(30)], 2, start=1), torch.arange(30)
    judge = judge_type(Product(*parts, verifier), batch)
    uncut = batch.log_probs(rows, cut=False)
    found = judge.leading_children(rows, uncut)
    expected = batch.cut(uncut + torch.from_numpy(values).log()) > -math.inf
    kept = batch.cut(uncut + found.log()) > -math.inf
    return judged, int((expected != kept).any(1).sum())


LAZY = [
    {"top_k": 1},
    {"top_k": 5},
    {"top_p": 0.6},
    {"top_p": 0.95},
    {"min_p": 0.2},
    {"top_k": 9, "top_p": 0.8},
]


@pytest.mark.parametrize("most", [1.0, 3.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("cut", LAZY, ids=str)
def test_continuations_are_judged_until_the_truncation_is_certain(cut, share, most):
    judged, wrong = count_judged_and_wrong(CachedVerifier, cut, share, most=most)
    assert wrong == 0
    assert judged < 30 * VOCAB


def test_few_continuations_are_judged_if_most_are_accepted():
    assert count_judged_and_wrong(CachedVerifier, {"top_k": 1}, 1.0)[0] == 30
    assert count_judged_and_wrong(CachedVerifier, {"top_k": 5}, 1.0)[0] == 150
    # Without an upper bound on the values, any continuation may be the best one.
    assert count_judged_and_wrong(CachedVerifier, {"top_k": 1}, 1.0, most=math.inf)[0] == int(
        (distributions(30) > -math.inf).sum()
    )


def test_calls_of_the_verifier_are_counted():
    tree = RandomTree(7, vocab=3)
    calls = []
    rule = FunctionVerifier(lambda prefix: (calls.append(prefix), True)[1])
    run = generate(truncated(tree.table(), top_k=1), verifier=rule, sampler=MaskedDecoding())
    assert run.verifier_calls.tolist() == [len(calls)] == [3]


def test_mass_of_allowed_tokens_is_accurate_wherever_they_are():
    vocab = 1000
    log_probs = torch.linspace(0, -120, vocab).repeat(4, 1)
    log_probs[3] = torch.linspace(-12, 0, vocab)
    allowed = torch.zeros(4, vocab, dtype=torch.bool)
    allowed[0, 990:], allowed[1, [3, 700]], allowed[3] = True, True, True
    masked, mass = mask_with_mass(log_probs, allowed)
    assert torch.equal(masked, torch.where(allowed, log_probs, -torch.inf))
    assert torch.allclose(mass, masked.double().logsumexp(1), rtol=0, atol=1e-6)
    assert mass[2] == -torch.inf
