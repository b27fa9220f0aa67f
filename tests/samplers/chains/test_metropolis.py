"""Metropolis from its definition, and a ring on which a fixed order of sites is not ergodic."""

import pytest
import torch

from samplers.chains.small_models import Energies, random_ising, random_joint, ring
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.samplers import Gibbs, Metropolis, run_chain
from trialogue.samplers.exact import chain_ergodicity, ergodicity, transition_matrix


@pytest.mark.parametrize(
    "model", [random_ising(1, 3), Energies(random_joint(2, 3, 3))], ids=["spins", "three values"]
)
def test_transitions_follow_the_definition(model):
    distribution, states = model.probabilities(), whole_sequences(model.vocab_size, 3)
    expected = torch.zeros(len(states), len(states), dtype=torch.float64)
    for x in range(len(states)):
        for y in range(len(states)):
            if int((states[x] != states[y]).sum()) == 1:
                expected[x, y] = (
                    min(1.0, float(distribution[y] / distribution[x])) / 3 / (model.vocab_size - 1)
                )
        expected[x, x] = 1 - expected[x].sum()
    torch.testing.assert_close(transition_matrix(Metropolis(), model), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("sites", [4, 5, 6])
def test_a_fixed_order_is_not_ergodic_on_a_ring_without_field(sites):
    """The distribution is invariant, but the states fall into several closed classes."""
    model = ring(sites, 0.5)
    matrix = transition_matrix(Metropolis("sweep"), model)
    distribution = model.probabilities()
    torch.testing.assert_close(distribution @ matrix, distribution, rtol=0, atol=1e-15)
    assert ergodicity(matrix).closed_classes > 1
    with pytest.raises(InputError, match=r"not ergodic on this model, because its 2.* closed classes"):
        run_chain(Metropolis("sweep"), model, start=torch.zeros(1, sites).long(), steps=1)
    for chain in (Gibbs(), Gibbs("sweep"), Metropolis()):
        assert chain_ergodicity(chain, model).ergodic
    assert chain_ergodicity(Metropolis("sweep"), ring(sites, 0.5, field=0.1)).ergodic
