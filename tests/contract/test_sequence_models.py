"""Requirements on every model of sequences, and faulty models that must be rejected."""

import pytest
import torch

from contract.test_chains import MODELS
from mutants import sequence_models as mutants
from refusals import expect_error, expect_failure
from trialogue.data import Ising, PottsChain, ising_grid
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.samplers import ChainRule
from trialogue.testing import check_energy, check_joint, check_masked
from trialogue.testing.chains import small_ising

ISING = small_ising()
LARGE = {
    "clique": Ising.clique(14, 12, 0.2, torch.linspace(-0.3, 0.5, 14)),
    "grid": ising_grid(3, 4, 0.4),
    "potts": PottsChain(torch.arange(27.0).view(3, 3, 3) % 7).at(9, temperature=2.0),
}


@pytest.mark.parametrize("name", ["ising", "clique", "potts", "masked"])
def test_masked_oracles_keep_their_contract(name):
    check_masked(MODELS[name], distribution=MODELS[name].probabilities())
    check_masked(ChainRule(MODELS[name]), distribution=MODELS[name].probabilities())


@pytest.mark.parametrize("name", ["ising", "clique", "energy", "energy-of-ising", "potts"])
def test_energies_keep_their_contract(name):
    check_energy(MODELS[name])


@pytest.mark.parametrize("name", ["ising", "clique", "potts"])
def test_joint_draws_keep_their_contract(name):
    check_joint(MODELS[name])
    check_joint(ChainRule(MODELS[name]))


@pytest.mark.parametrize("name", LARGE)
def test_larger_models_keep_their_contract(name):
    check_masked(LARGE[name])
    check_energy(LARGE[name])
    check_joint(LARGE[name])


def test_a_network_keeps_its_contract():
    config = TransformerConfig(
        vocab_size=3, layers=1, width=8, heads=2, mlp_width=8, max_length=4, causal=False
    )
    check_masked(MaskedTransformer(Transformer(config)), sites=4, tolerance=1e-5)


@pytest.mark.parametrize(
    ("mutant", "check", "message"),
    [
        (mutants.Unnormalised, check_masked, "whose sum differs from 1"),
        (mutants.Peeking, check_masked, "depends on masked tokens"),
        (mutants.Batched, check_masked, "depends on the batch"),
        (mutants.Flat, check_masked, r"log_probs has the shape \(4, 2\) instead of \(16, 4, 2\)"),
        (mutants.StaleSites, check_masked, "site_log_probs and log_probs of site 0 differ"),
        (mutants.OtherLogits, check_masked, "site_logits and site_log_probs differ"),
        (mutants.ShiftedTokens, check_masked, "token_logits and site_logits differ by 1"),
        (mutants.StaleWeights, check_masked, "site_log_weights and log_probs of site 0 differ"),
        (mutants.StaleWeights, check_energy, "site_log_weights of site 0 and the energies differ"),
        (mutants.NoNumber, check_energy, "NaN"),
        (mutants.Bottomless, check_energy, "-inf"),
        (mutants.Impossible, check_energy, "has no sequence of finite energy"),
        (mutants.Centred, check_energy, "energies that depend on the other rows"),
        (mutants.Nodewise, check_joint, "samples of the block .* differ by"),
        (mutants.Spilling, check_joint, "changes sites outside of the block"),
    ],
)
def test_the_contracts_reject_faulty_models(mutant, check, message):
    check(ISING)
    expect_failure(message, check, mutant(ISING.coupling, ISING.field))


def test_the_checked_methods_must_exist():
    expect_error("model='Energies': it is not an instance of `Masked`", check_masked, MODELS["energy"])
    expect_error("model='Conditionals': it is not an instance of `Energy`", check_energy, MODELS["masked"])


def test_another_distribution_is_rejected():
    other = mutants.OtherDistribution(ISING.coupling, ISING.field)
    check_masked(other)
    with pytest.raises(AssertionError, match="from the conditionals of the distribution"):
        check_masked(other, distribution=ISING.probabilities())
