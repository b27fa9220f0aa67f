"""Tests of spectra of logits against the Walsh-Hadamard transform and orders of interactions."""

import pytest
import torch

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import enumerate_sequences
from trialogue_lab.studies.interaction_order.logit_spectrum import compute_logit_spectrum


def walsh_hadamard_spectrum(net: FactoredAttention, sites: int) -> torch.Tensor:
    """Return the largest coefficient of the logit of 1 over 0 at site 0 by number of other tokens."""
    states = enumerate_sequences(2, sites - 1)
    tokens = torch.cat((torch.zeros(len(states), 1, dtype=torch.int64), states), 1)
    log_weights = net.site_log_weights(tokens, torch.zeros(len(tokens), dtype=torch.int64))
    logit = (log_weights[:, 1] - log_weights[:, 0]).view([2] * (sites - 1))
    for axis in range(sites - 1):
        zero, one = logit.unbind(axis)
        logit = torch.stack((zero + one, zero - one), axis)
    sizes, coefficients = states.sum(1), logit.abs().flatten()
    return torch.stack([coefficients[sizes == size].max() for size in range(sites)])


def test_spectrum_of_two_values_agrees_with_walsh_hadamard() -> None:
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=2, sites=7, layers=3), seed=4)
    found, expected = compute_logit_spectrum(net, 7), walsh_hadamard_spectrum(net, 7)
    torch.testing.assert_close(found / found.max(), expected / expected.max(), rtol=1e-9, atol=1e-12)


def test_layer_norm_and_five_layers_have_all_orders() -> None:
    for fields in ({"layers": 2, "layer_norm": True}, {"layers": 5}):
        assert FactoredAttentionConfig(vocab_size=2, sites=12, **fields).max_order == 12


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("site", [0, 2, 4])
def test_spectrum_of_k_body_interactions_ends_at_k_minus_1_other_sites(order: int, site: int) -> None:
    model = ManyBody.random(5, 3, order=order, scale=1.0, seed=1)
    spectrum = compute_logit_spectrum(model, 5, site)
    assert spectrum[order - 1] > 1e-3 * spectrum.max()
    assert spectrum[order:].max() < 1e-12 * spectrum.max()


@pytest.mark.parametrize(("sites", "site", "field"), [(22, 0, "sites"), (0, 0, "sites"), (3, 3, "site")])
def test_errors_name_the_invalid_argument(sites: int, site: int, field: str) -> None:
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=2, sites=max(sites, 1)))
    with pytest.raises(InputError) as caught:
        compute_logit_spectrum(net, sites, site)
    assert caught.value.field == field
