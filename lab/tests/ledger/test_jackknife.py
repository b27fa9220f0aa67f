"""Tests of pseudo-values of means and of means over pairs."""

import numpy as np
import pytest

from trialogue_lab.ledger.claims.jackknife import pair_values, pseudo_values
from trialogue_lab.ledger.rows import NoRows


def test_pseudo_values_of_a_mean_are_the_numbers() -> None:
    numbers = {7: 1.0, 3: 4.0, 5: 10.0}
    found = pseudo_values([7, 3, 5], lambda labels: float(np.mean([numbers[each] for each in labels])), 2)
    assert found.to_dict() == pytest.approx(numbers)


def test_pseudo_values_of_a_mean_over_pairs_agree_with_hand_computation() -> None:
    between = np.array([[9.0, 1.0, 2.0, 6.0], [8, 8, 3, 4], [7, 7, 7, 5], [0, 0, 0, 0]])
    found = pair_values([10, 11, 12, 13], between, 2)
    assert found.mean() == pytest.approx(21 / 6)
    # Without 10 the mean over pairs is (3 + 4 + 5) / 3.
    assert found[10] == pytest.approx(4 * 21 / 6 - 3 * 4)
    with pytest.raises(NoRows, match="4 replications, but the statistic needs 5"):
        pair_values([10, 11, 12, 13], between, 5)


def test_a_mean_over_pairs_needs_three_replications() -> None:
    assert pair_values([0, 1, 2], np.ones((3, 3)), 2).tolist() == pytest.approx([1, 1, 1])
    with pytest.raises(NoRows, match="2 replications, but the statistic needs 3"):
        pair_values([0, 1], np.ones((2, 2)), 2)
