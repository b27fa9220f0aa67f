"""Tests of intervals and power against closed forms and simulations."""

import importlib
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import Series
from scipy import stats

from trialogue.intervals.bounds import mean_bounds, share_bounds
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import Counts, Criterion, Replication, Statistic
from trialogue_lab.ledger.claims.intervals import interval
from trialogue_lab.ledger.claims.power import POWER, power, replications_to_decide, smallest_effect
from trialogue_lab.ledger.claims.statistics import decide

draws = Replication("draw", "seeds")
value = Statistic("value", lambda rows: Series(dtype=float), draws)
factor = Statistic("factor", lambda rows: Series(dtype=float), draws, logarithmic=True)

samples = st.lists(st.floats(-100, 100), min_size=2, max_size=12, unique=True).filter(
    lambda values: np.std(values) > 1e-6
)
levels = st.floats(1e-4, 0.2)


def counts_of(successes: list[float], trials: float, *, identical: bool = False) -> Counts:
    numbers = Series(successes)
    return Counts(numbers, numbers * 0 + trials, identical)


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the benchmark that writes the table of the documentation."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    return importlib.import_module("interval_coverage")


@given(samples, levels)
def test_the_interval_contains_student_s_and_is_wider_at_a_stricter_level(
    values: list[float], alpha: float
) -> None:
    numbers = np.array(values)
    half = stats.t(len(values) - 1).isf(alpha / 2) * np.std(values, ddof=1) / math.sqrt(len(values))
    found, stricter = interval(numbers, alpha), interval(numbers, alpha / 2)
    assert found.estimate == pytest.approx(np.mean(values), abs=1e-9)
    assert found.low <= (found.estimate - half) + 1e-9 * half
    assert found.high >= (found.estimate + half) - 1e-9 * half
    assert stricter.low < found.low
    assert found.high < stricter.high


@given(samples, levels, st.floats(0.1, 10), st.floats(-10, 10))
def test_the_interval_does_not_depend_on_unit_origin_or_sign(
    values: list[float], alpha: float, scale: float, shift: float
) -> None:
    numbers = np.array(values)
    found, moved = interval(numbers, alpha), interval(shift - scale * numbers, alpha)
    ends = (shift - scale * found.high, shift - scale * found.low)
    assert (moved.low, moved.high) == pytest.approx(ends, rel=1e-6, abs=1e-5 * (ends[1] - ends[0]))


def test_a_large_sample_without_skewness_has_student_s_interval() -> None:
    numbers = np.array([*range(-30, 31)], dtype=np.float64)
    half = stats.t(60).isf(0.005) * numbers.std(ddof=1) / math.sqrt(61)
    assert interval(numbers, 0.01) == pytest.approx((0, -half, half))


@pytest.mark.parametrize("values", [(3.0,), (3.0, 3.0, 3.0), (0.1,) * 7])
def test_equal_numbers_have_no_interval(values: tuple[float, ...]) -> None:
    found = interval(np.array(values), 0.05)
    assert found.estimate == pytest.approx(values[0])
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (3, 5), (96, 96), (7, 96)])
def test_trials_are_pooled_only_if_they_are_declared_identical(successes: int, trials: int) -> None:
    counts = counts_of([successes / 2] * 2, trials / 2, identical=True)
    exact = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    found = interval(np.array([successes / trials] * 2), 0.05, counts=counts)
    assert found == pytest.approx((successes / trials, exact.low, exact.high))
    separate = interval(np.array([successes / trials] * 2), 0.05, counts=counts._replace(identical=False))
    assert separate.high - separate.low > found.high - found.low


@pytest.mark.parametrize(("ones", "n"), [(0, 5), (1, 5), (3, 5), (24, 24), (7, 40), (1, 1)])
def test_shares_of_one_trial_have_clopper_pearson_intervals(ones: int, n: int) -> None:
    values = [1.0] * ones + [0.0] * (n - ones)
    exact = stats.binomtest(ones, n).proportion_ci(0.99, method="exact")
    found = interval(np.array(values), 0.01, counts=counts_of(values, 1))
    assert found == pytest.approx((ones / n, exact.low, exact.high), abs=1e-7)


@pytest.mark.parametrize("share", [0.5, 0.97, 1.0])
def test_equal_shares_have_the_interval_of_one_trial_each(share: float) -> None:
    """The mean of n equal shares and 1, with uniform Dirichlet weights, is 1 - (1 - share) Beta(n, 1)."""
    found = interval(np.array([share] * 4), 0.05, counts=counts_of([share * 200] * 4, 200))
    tail = 0.025 ** (1 / 4)
    assert found == pytest.approx((share, share * tail, 1 - (1 - share) * tail), abs=1e-7)


def test_interval_of_shares_is_gaffke_s_near_an_end_and_the_usual_interval_elsewhere() -> None:
    near = np.array([0.2, 0.9, 1.0, 0.95, 0.6])
    low, high = share_bounds(near[None], 0.05)
    weights = numpy_generator(0, "weights").dirichlet(np.ones(6), 200_000)
    assert high[0] == pytest.approx(np.quantile(weights @ np.append(near, 1), 0.975), abs=2e-3)
    assert low[0] == pytest.approx(np.quantile(weights @ np.append(near, 0), 0.025), abs=4e-3)
    far = np.array([[0.50, 0.52, 0.47, 0.49, 0.51, 0.5, 0.53, 0.48]])
    assert np.array_equal(share_bounds(far, 0.01), mean_bounds(far, 0.01))
    both = np.array([near, far[0, :5]])
    assert share_bounds(both, 0.05)[0] == pytest.approx([low[0], mean_bounds(far[:, :5], 0.05)[0][0]])


NUMBERS = (
    "normal",
    "exponential",
    "lognormal, by logarithms",
    "lognormal (0.5), raw",
    "lognormal (1), raw",
    "Poisson (1)",
    "normal, rounded",
)
SHARES = (
    "0 or 1, mean 0.9",
    *(f"shares, mean {m}, correlation {c}" for m in (0.5, 0.9, 0.99) for c in (0, 0.1, 0.3)),
)
ERRORS = 5
"""Number of standard errors by which the misses may exceed the allowed number."""


def test_coverage_is_simulated_for_the_documented_cases(coverage: ModuleType) -> None:
    assert set(coverage.CASES) == {*NUMBERS, *SHARES}


@pytest.mark.parametrize("alpha", [0.05, 0.0025])
@pytest.mark.parametrize("name", NUMBERS)
def test_intervals_of_means_have_the_nominal_coverage(coverage: ModuleType, name: str, alpha: float) -> None:
    for replications in (4, 20):
        found = coverage.simulate(name, replications, alpha, 10_000)
        assert found.is_covered(alpha, ERRORS), (replications, found)


@pytest.mark.parametrize("name", SHARES)
def test_intervals_of_means_of_shares_have_the_nominal_coverage(coverage: ModuleType, name: str) -> None:
    for replications in (4, 10):
        found = coverage.simulate(name, replications, 0.05, 2000)
        assert found.is_covered(0.05, ERRORS), (replications, found)


@pytest.mark.parametrize(
    ("bounds", "name", "alpha"),
    [("student_bounds", "exponential", 0.01), ("mean_bounds", "shares, mean 0.99, correlation 0.3", 0.01)],
)
def test_coverage_check_rejects_intervals_that_do_not_cover(
    coverage: ModuleType, bounds: str, name: str, alpha: float
) -> None:
    found = coverage.simulate(name, 8, alpha, 4000, getattr(coverage, bounds))
    assert not found.is_covered(alpha, ERRORS), found


def test_logarithmic_interval_is_the_exponential_of_the_interval_of_logarithms() -> None:
    ratios = np.array([0.5, 2.0, 3.0, 1.5, 1.1])
    of_logs = interval(np.log(ratios), 0.01)
    assert interval(ratios, 0.01, logarithmic=True) == pytest.approx(np.exp(of_logs))


def simulated(mean: float, error: float, deviation: float, n: int, criterion: Criterion) -> float:
    """Return the share of decided runs at level 0.01 if the mean has the standard error `error`."""
    random = numpy_generator(1, "runs", n)
    runs = mean + error * random.normal(size=(20_000, 1)) + deviation * random.normal(size=(20_000, n))
    ends = zip(*mean_bounds(runs, 0.01), strict=True)
    return float(np.mean([decide(low, high, criterion) != "undecided" for low, high in ends]))


@pytest.mark.parametrize("criterion", [value > 1, value < 1, value.near(1.5, margin=2)])
@pytest.mark.parametrize("replications", [3, 20])
def test_power_is_the_share_of_decided_runs(criterion: Criterion, replications: int) -> None:
    pilot = np.array([1.4, 1.9, 2.4, 1.6])
    deviation = np.std(pilot, ddof=1) * math.sqrt(3 / stats.chi2(3).ppf(0.1))
    expected = simulated(float(pilot.mean()), deviation / 2, deviation, replications, criterion)
    # The widths of 4,000 samples are averaged: a standard error of at most 0.008, and 0.0035 of the simulation here.
    assert power(criterion, pilot, replications, 0.01) == pytest.approx(expected, abs=0.03)
    if criterion.direction != "equal":
        of_logarithms = Criterion(factor, criterion.direction, math.e)
        linear = power(criterion, pilot, replications, 0.01)
        assert power(of_logarithms, np.exp(pilot), replications, 0.01) == pytest.approx(linear)


@pytest.mark.parametrize("replications", [5, 20])
def test_power_does_not_depend_on_the_sign(replications: int) -> None:
    pilot = np.array([1.4, 1.9, 2.4, 1.6])
    below, above = (
        power(value < 1.3, pilot, replications, 0.05),
        power(value > -1.3, -pilot, replications, 0.05),
    )
    assert below == pytest.approx(above, abs=0.005)  # the ends of 2,000 simulated intervals differ


def test_power_without_spread_is_unknown() -> None:
    assert math.isnan(power(value > 1, np.array([2.0, 2.0]), 5, 0.05))
    assert math.isnan(power(value > 1, np.array([]), 5, 0.05))
    assert math.isnan(power(value > 1, np.array([2.0, 2.1]), 5, 0.05))
    assert not math.isnan(power(value > 1, np.array([2.0, 2.1, 2.2]), 5, 0.05))


def test_runs_decide_with_the_power_of_their_pilots(coverage: ModuleType) -> None:
    honest = coverage.simulate_power(3, 20, 0.05, 1000)
    assert honest.runs > 50
    assert honest.decided > 0.8


@pytest.mark.parametrize("criterion", [value > 3, value < 3, value.near(3, margin=1)])
def test_the_smallest_effect_has_the_stated_power(criterion: Criterion) -> None:
    estimates = np.array([0.0, 1.0, 2.0, 4.0, 2.5, 1.0])
    effect = smallest_effect(criterion, estimates, 0.01)
    deviation = np.std(estimates, ddof=1) * math.sqrt(5 / stats.chi2(5).ppf(0.1))
    if criterion.direction == "equal":
        found = simulated(3, 0, deviation, 6, value.near(3, margin=effect))
    else:
        found = simulated(3 + effect, 0, deviation, 6, value > 3)
    assert found == pytest.approx(POWER, abs=0.03)


def test_the_smallest_effect_of_many_replications_is_that_of_a_normal_mean() -> None:
    estimates = np.array([-1.0, 1.0] * 250)
    deviation = np.std(estimates, ddof=1) * math.sqrt(499 / stats.chi2(499).ppf(0.1))
    expected = (stats.norm.isf(0.005) + stats.norm.ppf(POWER)) * deviation / math.sqrt(500)
    assert smallest_effect(value > 0, estimates, 0.01) == pytest.approx(expected, rel=0.02)


def test_runs_decide_at_the_stated_smallest_effect(coverage: ModuleType) -> None:
    assert coverage.simulate_effect(5, 0.05, 200) > POWER


def test_the_smallest_effect_of_a_ratio_is_a_factor() -> None:
    estimates = np.array([1.0, 2.0, 4.0, 3.0])
    linear = smallest_effect(value > 0, np.log(estimates), 0.05)
    assert smallest_effect(factor > 1, estimates, 0.05) == pytest.approx(math.exp(linear))
    assert math.isnan(smallest_effect(value > 0, np.array([1.0, 1.0]), 0.05))


def spread(mean: float, count: int = 50) -> np.ndarray:
    """Return numbers with this mean and the standard deviation 1."""
    return mean + np.array([-1.0, 1.0] * (count // 2)) * math.sqrt((count - 1) / count)


@pytest.mark.parametrize(
    ("criterion", "mean", "expected"),
    [
        # (1.9600 + 0.8416)^2 / 0.1^2, because the interval must exclude the threshold on one side.
        (value > 0, 0.1, 785),
        (value < 0, 0.1, 785),
        (value > 1, 1.2, 196),
        # (1.9600 + 1.2816)^2 / 0.1^2, because the interval must lie within both margins.
        (value.near(0, margin=0.1), 0.0, 1051),
    ],
)
def test_replications_to_decide_are_those_of_a_normal_mean(
    criterion: Criterion, mean: float, expected: int
) -> None:
    assert replications_to_decide(criterion, spread(mean), 0.05) == pytest.approx(expected, rel=0.02)


def test_replications_to_decide_of_a_ratio_are_those_of_its_logarithm() -> None:
    ratios = np.exp(spread(0.2))
    assert replications_to_decide(factor > 1, ratios, 0.05) == replications_to_decide(
        value > 0, np.log(ratios), 0.05
    )


def test_replications_to_decide_may_be_too_many_or_unknown() -> None:
    # (1.9600 + 0.8416)^2 / 0.02^2 = 19,622.
    assert replications_to_decide(value > 0, spread(0.02), 0.05) is None
    assert replications_to_decide(value > 0, np.array([1.0, 1.0, 1.0]), 0.05) is None
    assert replications_to_decide(factor > 1, np.array([0.0, 1.0, 2.0]), 0.05) is None


@pytest.mark.parametrize("mean", [0.8, 0.25])
def test_runs_decide_with_the_replications_to_decide(mean: float) -> None:
    needed = replications_to_decide(value > 0, spread(mean, 6), 0.01)
    assert needed is not None
    assert simulated(mean, 0, 1, needed, value > 0) == pytest.approx(POWER, abs=0.03)
    assert simulated(mean, 0, 1, needed // 2, value > 0) < POWER - 0.15


def test_interval_ends_that_overflow_are_infinite() -> None:
    found = interval(np.array([1e-200, 1e200]), 1e-3, logarithmic=True)
    assert found.estimate == pytest.approx(1)
    assert (found.low, found.high) == (0, math.inf)


def test_smallest_effects_that_overflow_are_infinite() -> None:
    assert smallest_effect(factor > 1, np.array([37.0, 0.005]), 0.004) == math.inf
