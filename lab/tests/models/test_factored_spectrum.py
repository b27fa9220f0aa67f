"""Tests of the polynomial order of factored attention by the Walsh-Hadamard spectrum of its logits."""

import pytest
import torch

from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue_lab.studies.interaction_order.logit_spectrum import logit_spectrum

SITES = 12


def relative_spectrum(net) -> torch.Tensor:
    """Return the largest coefficient of the logits by number of other tokens, relative to the overall maximum."""
    found = logit_spectrum(net, SITES)
    return found / found.max()


def config(layers, **fields):
    return FactoredAttentionConfig(vocab_size=2, sites=SITES, layers=layers, **fields)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_spectrum_ends_at_the_order_of_the_architecture(layers):
    spectrum = relative_spectrum(FactoredAttention(config(layers), seed=layers))
    top = 2 ** (layers - 1)
    assert spectrum[top] > 1e-9
    assert spectrum[top + 1 :].max() < 1e-10
    assert config(layers).max_order == top + 1


def test_layer_norm_has_all_orders():
    spectrum = relative_spectrum(FactoredAttention(config(2, layer_norm=True)))
    assert spectrum[3:9].min() > 1e-9
    assert config(2, layer_norm=True).max_order == SITES
    assert config(5).max_order == SITES
