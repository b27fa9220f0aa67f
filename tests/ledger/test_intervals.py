"""Intervals and power, against closed forms and simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import Series
from scipy import stats

from trialogue.ledger import Counts, Criterion, Quantity, Replication
from trialogue.ledger.claims.intervals import POWER, decide, interval, power, smallest_effect
from trialogue.randomness import numpy_generator

draws = Replication("draw", "seeds")
value = Quantity("value", lambda rows: Series(dtype=float), draws)
factor = Quantity("factor", lambda rows: Series(dtype=float), draws, logarithmic=True)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12, unique=True), st.floats(1e-4, 0.5))
def test_the_interval_is_student_s(values: list[float], alpha: float) -> None:
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    critical = stats.t(len(values) - 1).isf(alpha / 2)
    assert interval(np.array(values), alpha) == pytest.approx(
        (np.mean(values), np.mean(values) - critical * error, np.mean(values) + critical * error),
        rel=1e-9,
        abs=1e-9,
    )


@pytest.mark.parametrize("values", [(3.0,), (3.0, 3.0, 3.0)])
def test_one_number_has_no_interval(values: tuple[float, ...]) -> None:
    found = interval(np.array(values), 0.05)
    assert found.estimate == 3.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (3, 5), (96, 96), (7, 96)])
def test_ties_of_shares_take_clopper_and_pearson(successes: int, trials: int) -> None:
    counts = Counts(pd.Series([successes / 2] * 2), pd.Series([trials / 2] * 2))
    exact = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    found = interval(np.array([successes / trials] * 2), 0.05, counts=counts)
    assert found == pytest.approx((successes / trials, exact.low, exact.high))


def test_a_logarithmic_interval_covers_lognormal_means_where_a_linear_one_does_not() -> None:
    # 20,000 sets of eight ratios; misses of the median 1 at a nominal 0.1 % (20 expected, 60 is over 8 deviations).
    ratios = np.exp(numpy_generator(0, "ratios").normal(size=(20_000, 8)) * 1.2)
    linear = logarithmic = 0
    for row in ratios:
        found = interval(row, 1e-3, logarithmic=True)
        logarithmic += not found.low <= 1 <= found.high
        found = interval(row, 1e-3)
        linear += not found.low <= math.exp(1.2**2 / 2) <= found.high
    assert logarithmic < 60
    assert linear > 1000


@pytest.mark.parametrize("direction", ["above", "below"])
@pytest.mark.parametrize("replications", [2, 5, 20])
@pytest.mark.parametrize("mean", [0.2, 1.0, 1.7])
def test_power_is_the_noncentral_t_s(direction: str, replications: int, mean: float) -> None:
    effect = (mean - 1.0) / (math.sqrt(0.5) / math.sqrt(replications))
    critical = stats.t(replications - 1).isf(0.01 / 2)
    law = stats.nct(replications - 1, effect) if effect else stats.t(replications - 1)
    closed = law.sf(critical) + law.cdf(-critical)
    criterion = Criterion(value, direction, 1.0)  # type: ignore[arg-type]
    pilot = np.array([mean - 0.5, mean + 0.5])
    assert power(criterion, pilot, replications, 0.01) == pytest.approx(closed, abs=1e-5)
    of_logarithms = Criterion(factor, direction, math.e)  # type: ignore[arg-type]
    assert power(of_logarithms, np.exp(pilot), replications, 0.01) == pytest.approx(closed, abs=1e-5)


def test_power_of_equality_is_the_share_of_decided_runs() -> None:
    pilot = np.array([0.9, 1.1])
    criterion = value.near(1.05, margin=0.3)
    deviation = float(np.std(pilot, ddof=1))
    means = stats.norm(1.0, deviation / 2).ppf((np.arange(400) + 0.5) / 400)
    halves = (
        stats.t(3).isf(0.025) * deviation / 2 * np.sqrt(stats.chi2(3).ppf((np.arange(100) + 0.5) / 100) / 3)
    )
    decided = [decide(m - h, m + h, criterion) != "undecided" for m in means for h in halves]
    assert power(criterion, pilot, 4, 0.05) == pytest.approx(np.mean(decided), abs=5e-3)


def test_power_without_spread_is_unknown() -> None:
    assert math.isnan(power(value > 1, np.array([2.0, 2.0]), 5, 0.05))
    assert math.isnan(power(value > 1, np.array([]), 5, 0.05))


@pytest.mark.parametrize("criterion", [value > 3, value < 3, value.near(3, margin=1)])
def test_the_smallest_effect_has_the_stated_power(criterion: Criterion) -> None:
    estimates = np.array([0.0, 1.0, 2.0, 4.0, 2.5, 1.0])
    effect = smallest_effect(criterion, estimates, 0.01)
    centred = estimates - estimates.mean() + 3
    if criterion.direction == "equal":
        found = power(value.near(3, margin=effect), centred, 6, 0.01)
    else:
        found = power(value > 3 - effect, centred, 6, 0.01)
    assert found == pytest.approx(POWER, abs=1e-3)


def test_the_smallest_effect_of_a_ratio_is_a_factor() -> None:
    estimates = np.array([1.0, 2.0, 4.0, 3.0])
    linear = smallest_effect(value > 0, np.log(estimates), 0.05)
    assert smallest_effect(factor > 1, estimates, 0.05) == pytest.approx(math.exp(linear))
    assert math.isnan(smallest_effect(value > 0, np.array([1.0, 1.0]), 0.05))


def test_an_end_beyond_all_numbers_is_infinite() -> None:
    found = interval(np.array([1e-200, 1e200]), 1e-3, logarithmic=True)
    assert found.estimate == pytest.approx(1)
    assert (found.low, found.high) == (0, math.inf)


def test_the_effect_that_two_far_replications_could_have_seen_is_beyond_all_numbers() -> None:
    assert smallest_effect(factor > 1, np.array([37.0, 0.005]), 0.004) == math.inf
