"""Expected visits of Markov chains, against the solution of linear equations."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from trialogue.randomness import numpy_generator
from trialogue.samplers.exact.propagation import has_cycles, propagate


@pytest.mark.parametrize("seed", range(10))
def test_expected_visits_solve_the_linear_equations(seed):
    """Moves may go to earlier states, and return to a state."""
    random = numpy_generator(seed, "propagation")
    moves = random.random((12, 12)) * (random.random((12, 12)) < 0.2)
    order = random.permutation(12)
    acyclic = np.triu(moves, 1)[order[:, None], order]
    start = random.random(12)
    assert not has_cycles(csr_array(acyclic))
    for matrix, smallest in ((acyclic, 0.0), (0.9 * moves / moves.sum(1).max(), 1e-15)):
        expected = np.linalg.solve(np.eye(12) - matrix.T, start)
        assert propagate(csr_array(matrix), start, smallest) == pytest.approx(expected, abs=1e-12)


def test_loops_and_longer_cycles_are_found():
    assert has_cycles(csr_array(np.diag([0.0, 0.5, 0.0])))
    assert has_cycles(csr_array(np.array([[0, 0.5, 0], [0, 0, 1], [0.5, 0, 0]])))
