"""Tests of magnetisation chains of cliques against full transition matrices and published hitting times."""

import math

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.data.ising.model import Ising
from trialogue_lab.theory.cliques.chains import (
    block_chain,
    escape_probability,
    hitting_probability,
    log_hitting_times,
    parallel_chain,
)
from trialogue_lab.theory.masking.block_laws import block_distribution, block_dynamics

# Expected steps of block Gibbs sampling from R_{-1} to R_1, for k = 1 to 10, 10 sites, a clique of 4 and fields 5.
HITTING = {
    1: [20.9, 10.1, 6.54, 4.73, 3.63, 2.88, 2.32, 1.86, 1.44, 1],
    2: [45.5, 13.3, 7.45, 5.05, 3.75, 2.92, 2.33, 1.87, 1.44, 1],
    3: [1.0e4, 418, 29.5, 10.4, 5.55, 3.59, 2.57, 1.92, 1.44, 1],
    4: [4.3e6, 8.5e5, 33.4, 10.8, 5.65, 3.62, 2.57, 1.92, 1.45, 1],
    5: [2.4e9, 9.5e8, 64.2, 19.0, 8.99, 5.22, 3.35, 2.26, 1.53, 1],
    6: [3e12, 7e11, 1.2e4, 199, 41.1, 13.9, 5.97, 2.99, 1.67, 1],
}
PARALLEL = {1: 1.0, 2: 1.0, 3: 0.738, 4: 0.0033, 5: 6.6e-6, 6: 1.1e-9}


def log_times(coupling, size):
    return log_hitting_times(block_chain(10, 4, coupling, 5.0, size))


@pytest.mark.parametrize("coupling", HITTING)
def test_hitting_times_agree_with_published_values(coupling):
    found = [math.exp(log_times(coupling, size)[0]) for size in range(1, 11)]
    assert found == pytest.approx(HITTING[coupling], rel=0.05 if coupling == 6 else 0.015)
    within = hitting_probability(parallel_chain(4, coupling, 5.0), 1000)[0]
    assert within == pytest.approx(PARALLEL[coupling], rel=0.02)


def test_expected_times_of_the_parallel_chain_agree_with_published_values():
    found = [math.exp(log_hitting_times(parallel_chain(4, coupling, 5.0))[0]) for coupling in (1, 2, 3, 4)]
    assert found == pytest.approx([1.07, 4.23, 748, 3.0e5], rel=0.01)


def lump_states(matrix, up):
    """Return the chain on the number of up spins, and check that states with equal numbers have equal rows."""
    size = int(up.max()) + 1
    first = [int(torch.nonzero(up == number)[0, 0]) for number in range(size)]
    chain = torch.zeros(len(matrix), size, dtype=torch.float64).index_add_(1, up, matrix)
    for number in range(size):
        assert float((chain[up == number] - chain[first[number]]).abs().max()) < 1e-13
    return chain[first].numpy()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_block_chain_is_the_lumped_block_dynamics(size):
    model = Ising.clique(5, 3, coupling=0.7, field=torch.tensor([0.2, 0.2, 0.2, -0.4, 1.0]))
    matrix = block_dynamics(model.probabilities(), block_distribution(5, 2, block_size=size))
    expected = lump_states(matrix, model.states()[:, :3].sum(1))
    np.testing.assert_allclose(np.exp(block_chain(5, 3, 0.7, 0.2, size)), expected, atol=1e-14)
    # Counting ordered pairs would double the coupling.
    assert np.abs(np.exp(block_chain(5, 3, 1.4, 0.2, size)) - expected).max() > 0.01


def test_parallel_chain_is_the_lumped_parallel_sampler():
    model = Ising.clique(4, 4, coupling=0.6, field=0.1)
    each = model.site_log_probs(model.states()).exp()  # (states, sites, 2)
    matrix = torch.stack(
        [each.gather(2, y.expand(16, 4)[:, :, None])[:, :, 0].prod(1) for y in model.states()], 1
    )
    expected = lump_states(matrix, model.states().sum(1))
    np.testing.assert_allclose(np.exp(parallel_chain(4, 0.6, 0.1)), expected, atol=1e-14)


def test_hitting_and_escape_probabilities_agree_with_repeated_steps():
    log_matrix, initial = parallel_chain(4, 0.5, 0.1), np.eye(5)[0]
    matrix = np.exp(log_matrix)
    not_escaped, not_hit = initial.copy(), initial.copy()
    for _ in range(7):
        not_escaped, not_hit = not_escaped @ matrix, not_hit @ matrix
        not_escaped[2:], not_hit[4:] = 0, 0
    assert escape_probability(log_matrix, 1, 7)[0] == pytest.approx(1 - not_escaped.sum(), abs=1e-14)
    assert hitting_probability(log_matrix, 7)[0] == pytest.approx(1 - not_hit.sum(), abs=1e-14)
    assert hitting_probability(log_matrix, 0).tolist() == [0, 0, 0, 0, 1]


def test_rows_sum_to_one_for_cliques_of_150_sites():
    for log_matrix in (block_chain(2000, 150, 60.0, 0.02, 1990), parallel_chain(150, 60.0, 0.02)):
        np.testing.assert_allclose(np.exp(log_matrix).sum(1), 1, atol=1e-9)


test_invalid_input_is_rejected = refusals(
    "^{}=",
    [
        (lambda: block_chain(4, 5, 1.0, 0.0, 1), "clique"),
        (lambda: block_chain(4, 2, 1.0, 0.0, 5), "block_size"),
        (lambda: log_hitting_times(np.array([[0.0, -math.inf], [-math.inf, 0.0]])), "log_matrix"),
        (lambda: log_hitting_times(np.zeros((2, 2))), "log_matrix"),
        (lambda: log_hitting_times(np.full((2, 2), -math.inf)), "log_matrix"),
        (lambda: hitting_probability(np.log(np.full((2, 2), 0.4)), 1), "log_matrix"),
    ],
)
