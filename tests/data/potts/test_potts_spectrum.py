"""Compare sparse and dense eigenvalues of transfer matrices, and test degenerate cases."""

import math

import pytest
import torch

from trialogue.data import PottsChain
from trialogue.data.potts import spectrum as potts_spectrum
from trialogue.errors import InputError


@pytest.mark.parametrize(
    ("patterns", "window", "temperature"),
    [
        ([[0], [1]], 11, 4.0),
        ([[0], [1]], 11, 2.0),
        ([[0], [1], [2]], 7, 3.0),
        ([[0, 1, 2], [2, 1, 0]], 7, 2.0),
    ],
)
def test_symmetric_tokens_do_not_hide_an_eigenvalue(patterns, window, temperature, monkeypatch):
    """The second eigenvector is antisymmetric in the patterns, so a symmetric start vector does not contain it."""
    chain = PottsChain.from_patterns(patterns, window)
    assert chain.vocab_size ** (window - 1) > potts_spectrum.DENSE_STATES
    sparse = chain.correlation_length(temperature)
    monkeypatch.setattr(potts_spectrum, "DENSE_STATES", 4096)
    assert sparse == pytest.approx(chain.correlation_length(temperature), rel=1e-6)


def test_unresolved_eigenvalues_of_large_matrices_are_rejected():
    chain = PottsChain.from_patterns([[0], [1]], 11)
    with pytest.raises(
        InputError,
        match=r"^temperature=0\.5: use a higher one: the correlation length is above 1e\+09 .*1024 states",
    ):
        chain.correlation_length(0.5)


def test_cold_chain_with_periodic_ground_state_has_a_correlation_length():
    """The eigenvalues are e^(-1.1 / T) +- e^(-0.5 / T). Some weights underflow in float64."""
    chain, temperature = PottsChain(torch.tensor([[1.1, 0.0], [1.0, 1.1]], dtype=torch.float64)), 0.001
    expected = 0.5 * math.exp(0.6 / temperature)
    assert chain.correlation_length(temperature) == pytest.approx(expected, rel=1e-9)


def test_matrix_with_extreme_weights_is_balanced():
    """The weights along the cycle 0, 1 exceed the range of float64, and token 2 follows itself."""
    table = torch.full((3, 3), 4.0)
    table[0, 1], table[1, 0], table[2, 2] = 0.0, 1.0, 0.51
    temperature = 0.001
    with pytest.raises(
        InputError, match=r"temperature=0\.001: use a higher one: the correlation length is above"
    ):
        PottsChain(table).correlation_length(temperature)
