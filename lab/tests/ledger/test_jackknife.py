"""Pseudo-values by hand: of means, of means over pairs, and of statistics that replications give together."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from trialogue.randomness import numpy_generator
from trialogue_lab.ledger.claims.jackknife import pair_values, pseudo_values
from trialogue_lab.ledger.rows import NoRows


def test_pseudo_values_of_a_mean_are_the_numbers_themselves() -> None:
    numbers = {7: 1.0, 3: 4.0, 5: 10.0}
    found = pseudo_values([7, 3, 5], lambda labels: float(np.mean([numbers[each] for each in labels])), 2)
    assert found.to_dict() == pytest.approx(numbers)


def test_pseudo_values_of_a_mean_over_pairs_have_it_as_their_mean() -> None:
    between = np.array([[9.0, 1.0, 2.0, 6.0], [8, 8, 3, 4], [7, 7, 7, 5], [0, 0, 0, 0]])
    found = pair_values([10, 11, 12, 13], between, 2)
    assert found.mean() == pytest.approx(21 / 6)
    # Without 10 the mean over pairs is (3 + 4 + 5) / 3.
    assert found[10] == pytest.approx(4 * 21 / 6 - 3 * 4)
    with pytest.raises(NoRows, match="4 replications, where the statistic needs 5"):
        pair_values([10, 11, 12, 13], between, 5)


def test_pseudo_values_of_a_rank_correlation_take_its_bias_away() -> None:
    first, second = numpy_generator(2, "pairs").normal(size=(2, 30))
    second = second + first

    def correlation(labels: list[int]) -> float:
        return float(spearmanr(first[labels], second[labels]).statistic)

    found = pseudo_values(range(30), correlation, 10)
    whole = correlation(list(range(30)))
    assert found.mean() == pytest.approx(whole, abs=0.05)
    assert 0.3 < found.std() / np.sqrt(30) / ((1 - whole**2) / np.sqrt(30)) < 3
