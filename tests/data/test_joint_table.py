"""A joint table has the conditionals of its joint distribution."""

import math

import pytest
import torch

from refusals import calls_without_expected_error
from samplers.chains.small_models import Conditionals, random_joint
from trialogue.data import Ising, JointTable


def test_conditionals_and_energies_are_those_of_the_joint():
    for seed, vocab, sites in ((0, 2, 4), (1, 3, 3)):
        joint = random_joint(seed, vocab, sites)
        model, reference = JointTable(joint), Conditionals(joint)
        states = model.states()
        assert model.probabilities() == pytest.approx(reference.probabilities(), abs=1e-12)
        assert model.energy(states) == pytest.approx(-reference.probabilities().log(), abs=1e-12)
        for number in range(2**sites):
            masked = (torch.tensor([number]) >> torch.arange(sites) & 1).bool().expand_as(states)
            expected = reference.log_probs(states, masked)
            assert model.log_probs(states, masked).exp() == pytest.approx(expected.exp(), abs=1e-12)
    ising = Ising.clique(4, 3, 0.5, 0.2)
    table = JointTable(ising.probabilities().view(2, 2, 2, 2))
    states, masked = ising.states(), torch.tensor([True, False, True, True]).expand(16, -1)
    assert table.log_probs(states, masked).exp() == pytest.approx(ising.log_probs(states, masked).exp())


def test_impossible_contexts_have_uniform_conditionals():
    model = JointTable([[0.0, 0.0], [1.0, 3.0]])
    tokens, masked = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[False, True], [False, True]])
    assert model.log_probs(tokens, masked)[:, 1].exp().tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert model.energy(tokens).tolist() == [math.inf, pytest.approx(-math.log(0.25))]


def test_bad_input_has_one_clear_message():
    model = JointTable([[0.1, 0.4], [0.2, 0.3]])
    cases = [
        ("distribution=", lambda: JointTable([[0.1, 0.2]])),
        ("distribution=-1", lambda: JointTable([-1.0, 2.0])),
        ("tokens=2", lambda: model.energy(torch.tensor([[0, 2]]))),
        ("tokens=", lambda: model.energy(torch.tensor([0, 1]))),
        ("masked=", lambda: model.log_probs(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))),
    ]
    assert calls_without_expected_error(cases) == []
