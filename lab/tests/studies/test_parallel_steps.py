"""Tests of parallel refinement steps of translations against transition matrices of chains."""

import itertools
import math

import pytest
import torch

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.oracles import Energy, enumerate_sequences
from trialogue.samplers import Gibbs, IndependentParallel
from trialogue.samplers.chains.conditionals import site_distributions
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser
from trialogue_lab.studies.translation_dependency.language import make_phrases, make_translation_model
from trialogue_lab.studies.translation_dependency.parallel_steps import (
    ParallelSteps,
    compute_divergence_and_variation,
    compute_refinement_distributions,
)
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence


@pytest.fixture(scope="module")
def language():
    return make_translation_model(make_phrases(((1, 1), (1, 2))), coupling=1.0, swapping=0.3, slips=0.01)


def _exact_distribution(language, sites):
    weights = (-language.energy(enumerate_sequences(language.vocab_size, sites))).exp()
    return weights / weights.sum()


@pytest.mark.parametrize("start", ["mask", "random"])
def test_distributions_follow_the_transition_matrix_of_parallel_updates(language, start):
    distributions = compute_refinement_distributions(language, 3, 3, start)
    matrix = transition_matrix(IndependentParallel(), language, sites=3)
    for before, after in itertools.pairwise(distributions):
        assert (before @ matrix - after).abs().max() < 1e-12
        assert (before @ transition_matrix(Gibbs(), language, sites=3) - after).abs().max() > 1e-3
    assert torch.allclose(distributions.sum(1), torch.ones(4, dtype=torch.float64))


def test_distributions_continue_from_a_given_start(language):
    distributions = compute_refinement_distributions(language, 3, 3)
    assert torch.equal(compute_refinement_distributions(language, 3, 2, distributions[1]), distributions[1:])
    expect_error("start=", compute_refinement_distributions, language, 3, 2, distributions[1] * 2)


def test_divergence_after_the_first_pass_from_masks_is_the_total_correlation(language):
    exact = _exact_distribution(language, 3)
    first = compute_refinement_distributions(language, 3, 0)[0]
    best = closest_in_divergence(exact.view((language.vocab_size,) * 3))
    assert compute_divergence_and_variation(exact, first)[0] == pytest.approx(best.distance)
    assert best.distance > 0.3
    assert (first - torch.from_numpy(best.joint()).flatten()).abs().max() < 1e-12


@pytest.mark.parametrize("correct", [0.15, 0.9])
def test_distributions_of_a_denoiser_follow_the_refinement_chain(language, correct):
    denoiser = Denoiser(language, correct, 40)
    chain = Refinement(choice="sampled", keep="nothing")
    matrix = transition_matrix(chain, denoiser, sites=3)
    distributions = compute_refinement_distributions(denoiser, 3, 2)
    for before, after in itertools.pairwise(distributions):
        assert (before @ matrix - after).abs().max() < 1e-12
    alone = transition_matrix(chain, language, sites=3)
    assert (alone - transition_matrix(IndependentParallel(), language, sites=3)).abs().max() < 1e-12
    assert (alone - matrix).abs().max() > 0.1


class _Uniform(Energy):
    vocab_size = 2

    def energy(self, tokens):
        return torch.zeros(len(tokens))


def test_oracles_without_masks_are_rejected():
    expect_error("masked model", compute_refinement_distributions, _Uniform(), 3, 1)
    with pytest.raises(InputError, match="start="):
        compute_refinement_distributions(
            make_translation_model([[[0, 1]]], coupling=0.0, slips=0.1), 2, 1, "nothing"
        )


def test_missing_mass_counts_in_divergence_and_variation(language):
    sites = site_distributions(language, enumerate_sequences(5, 2)).exp()
    step = ParallelSteps(sites * 0.9)
    start = torch.full((25,), 1 / 25, dtype=torch.float64)
    assert float(step(start).sum()) == pytest.approx(0.81)
    exact = _exact_distribution(language, 2)
    divergence, variation = compute_divergence_and_variation(exact, exact * 0.9)
    assert divergence == pytest.approx(-math.log(0.9))
    assert variation == pytest.approx(0.1)


def test_invalid_steps_are_rejected():
    expect_error("shape", ParallelSteps, torch.ones(3, 2, 2))
    expect_error("at most one", ParallelSteps, torch.ones(4, 2, 2))
    with pytest.raises(InputError, match="more than"):
        compute_refinement_distributions(
            make_translation_model(make_phrases(((9, 9),)), coupling=0.0, slips=0.1), 9, 1
        )
