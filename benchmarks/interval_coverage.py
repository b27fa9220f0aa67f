"""Coverage of the ledger's intervals, and of the power that the ledger states, by simulation.

For every distribution, number of replications and level, the script counts how often the interval misses the true mean,
and compares its mean width with Student's. It takes about five minutes on one core and writes the rows from which
`docs/interval-coverage.md` is filled. The tests run the same check with fewer samples.

    python benchmarks/interval_coverage.py [--samples 100000] [--share-samples 20000]
"""

import argparse
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from record import Record
from trialogue.intervals.bounds import critical_value, mean_bounds, share_bounds
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import Criterion, Replication, Statistic
from trialogue_lab.ledger.claims.power import power, smallest_effect
from trialogue_lab.ledger.claims.statistics import decide

Samples = NDArray[np.float64]
Bounds = Callable[[Samples, float], tuple[Samples, Samples]]

REPLICATIONS = (4, 5, 8, 10, 20, 40)
LEVELS = (0.05, 0.05 / 5, 0.05 / 20)
ALLOWED = 1.5
"""Largest accepted rate of misses, relative to the level."""
TRIALS = 200


class Case(NamedTuple):
    """A distribution of one number per replication, its true mean, and the bounds that the ledger uses for it."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Samples]
    mean: float
    bounds: Bounds = mean_bounds


def shares(mean: float, correlation: float, trials: int = TRIALS) -> Case:
    """Return shares of `trials` per replication, with beta-distributed probabilities.

    `correlation` is the correlation of two trials of the same replication. If it is 0, all trials have the same
    probability.
    """

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Samples:
        if correlation == 0:
            return random.binomial(trials, mean, size=shape) / trials
        total = 1 / correlation - 1
        return random.binomial(trials, random.beta(mean * total, (1 - mean) * total, size=shape)) / trials

    return Case(draw, mean, share_bounds)


def lognormal(deviation: float) -> Case:
    """Return lognormal numbers that are averaged as they are."""
    mean = math.exp(deviation**2 / 2)
    return Case(lambda random, shape: np.exp(deviation * random.normal(size=shape)), mean)


def _rounded(random: np.random.Generator, shape: tuple[int, int]) -> Samples:
    return np.round(random.normal(0.3, 1, size=shape))


_INTEGERS = np.arange(-12, 13)
CASES = {
    "normal": Case(lambda random, shape: random.normal(size=shape), 0.0),
    "exponential": Case(lambda random, shape: random.exponential(size=shape), 1.0),
    "lognormal, by logarithms": Case(lambda random, shape: np.log(np.exp(random.normal(size=shape))), 0.0),
    "lognormal (0.5), raw": lognormal(0.5),
    "lognormal (1), raw": lognormal(1.0),
    "Poisson (1)": Case(lambda random, shape: random.poisson(1, size=shape).astype(float), 1.0),
    "normal, rounded": Case(
        _rounded,
        float(np.sum(_INTEGERS * np.diff(stats.norm(0.3, 1).cdf([*(_INTEGERS - 0.5), 12.5])))),
    ),
    "0 or 1, mean 0.9": shares(0.9, 0, trials=1),
    **{
        f"shares, mean {mean}, correlation {correlation}": shares(mean, correlation)
        for mean in (0.5, 0.9, 0.99)
        for correlation in (0, 0.1, 0.3)
    },
}


class Found(NamedTuple):
    """How often an interval missed the true mean, and how wide it was on average relative to Student's."""

    misses: int
    samples: int
    width: float

    def is_covered(self, alpha: float, errors: float = 0.0) -> bool:
        """Return whether the misses are at most `ALLOWED` times those at level `alpha`, plus some standard errors."""
        expected = ALLOWED * alpha * self.samples
        return self.misses <= expected + errors * math.sqrt(expected * (1 - ALLOWED * alpha))


def simulate(name: str, replications: int, alpha: float, samples: int, bounds: Bounds | None = None) -> Found:
    """Count the misses of `bounds`, by default those that the ledger uses for the case.

    A sample without an interval counts as covered, because it decides nothing.
    """
    case = CASES[name]
    random = numpy_generator(0, "coverage", name, replications, samples)
    drawn = case.draw(random, (samples, replications))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (bounds or case.bounds)(drawn, alpha)
    has_interval = np.isfinite(low)
    student = 2 * critical_value(replications, alpha) * drawn.std(axis=1, ddof=1) / math.sqrt(replications)
    width = float((high - low)[has_interval].mean() / student[has_interval].mean())
    return Found(int(np.sum((low > case.mean) | (high < case.mean))), samples, width)


def student_bounds(samples: Samples, alpha: float) -> tuple[Samples, Samples]:
    """Return Student's interval, which does not cover means of skewed numbers."""
    n = samples.shape[1]
    half = critical_value(n, alpha) * samples.std(axis=1, ddof=1) / math.sqrt(n)
    return samples.mean(axis=1) - half, samples.mean(axis=1) + half


def pooled_bounds(samples: Samples, alpha: float) -> tuple[Samples, Samples]:
    """Return Clopper and Pearson's interval of all trials together, which does not cover if trainings differ."""
    successes, trials = samples.sum(axis=1) * TRIALS, samples.shape[1] * TRIALS
    low = stats.beta.ppf(alpha / 2, successes, trials - successes + 1)
    high = stats.beta.ppf(1 - alpha / 2, successes + 1, trials - successes)
    return np.where(successes == 0, 0.0, low), np.where(successes == trials, 1.0, high)


VALUE = Statistic("value", lambda _: pd.Series(dtype=float), Replication("draw", "seeds"))


class Power(NamedTuple):
    """Runs whose pilots stated a power in a range: how many of all runs, and the share of them that decided."""

    stated: float
    runs: int
    decided: float


def simulate_power(
    pilot: int, replications: int, alpha: float, runs: int, stated: tuple[float, float] = (0.8, 0.95)
) -> Power:
    """Simulate normal pilots and runs of `VALUE > 0`, with effects of all sizes.

    Effects are uniform from 0 to twice the smallest effect of a run that has the true deviation.

    Power cannot be stated correctly for every single effect, because a pilot does not know the effect. It can be for
    effects of all sizes together.
    """
    criterion: Criterion = VALUE > 0
    random = numpy_generator(0, "power", pilot, replications, alpha)
    spread = np.arange(replications, dtype=np.float64)
    effects = random.uniform(0, 2 * smallest_effect(criterion, spread / spread.std(ddof=1), alpha), size=runs)
    pilots = effects[:, None] + random.normal(size=(runs, pilot))
    low, high = mean_bounds(effects[:, None] + random.normal(size=(runs, replications)), alpha)
    decided = np.array([decide(*ends, criterion) != "undecided" for ends in zip(low, high, strict=True)])
    powers = np.array([power(criterion, each, replications, alpha) for each in pilots])
    selected = (powers >= stated[0]) & (powers < stated[1])
    return Power(float(powers[selected].mean()), int(selected.sum()), float(decided[selected].mean()))


def simulate_effect(replications: int, alpha: float, runs: int) -> float:
    """Return the share of runs that decide at the smallest effect which a run before them stated."""
    random = numpy_generator(0, "smallest effect", replications, alpha)
    stated = [smallest_effect(VALUE > 0, each, alpha) for each in random.normal(size=(runs, replications))]
    low, high = mean_bounds(random.normal(size=(runs, replications)) + np.array(stated)[:, None], alpha)
    return float(np.mean((low > 0) | (high <= 0)))


def record_coverage(record: Record, samples: int, share_samples: int) -> None:
    for name, case in CASES.items():
        count = share_samples if case.bounds is share_bounds else samples
        record.add(name, count, what="samples")
        for replications in REPLICATIONS:
            for alpha in LEVELS:
                found = simulate(name, replications, alpha, count)
                setting = {"replications": replications, "alpha": alpha}
                record.add(name, found.misses / count / alpha, what="misses", **setting)
                record.add(name, found.width, what="width", **setting)
                print(f"{name:40} n={replications:<3} alpha={alpha:<7} {found}")
                if not found.is_covered(alpha):
                    print("    NOT COVERED")


def record_power(record: Record) -> None:
    for replications in (5, 8, 20, 40):
        for alpha in (LEVELS[0], LEVELS[-1]):
            for pilot in (3, 5, 8):
                result = simulate_power(pilot, replications, alpha, 4000)
                setting = {"pilot": pilot, "replications": replications, "alpha": alpha}
                for what, number in result._asdict().items():
                    record.add("power", number, what=what, **setting)
                print(f"{setting} {result}")
            decided = simulate_effect(replications, alpha, 1000)
            record.add("smallest effect", decided, replications=replications, alpha=alpha)
            print(f"smallest effect n={replications} alpha={alpha}: decided {decided:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000, help="samples per cell (default: 100000)")
    parser.add_argument(
        "--share-samples", type=int, default=20_000, help="samples per cell of shares (default: 20000)"
    )
    parser.add_argument(
        "--only", choices=["coverage", "power"], help="run one part and keep the other's rows"
    )
    arguments = parser.parse_args()
    record = Record("interval_coverage")
    if arguments.only != "power":
        record_coverage(record, arguments.samples, arguments.share_samples)
    if arguments.only != "coverage":
        record_power(record)
    of_power = ("power", "smallest effect")
    kept = {
        "coverage": lambda row: row["contender"] in of_power,
        "power": lambda row: row["contender"] not in of_power,
    }
    record.write(kept.get(arguments.only, lambda _: False))


if __name__ == "__main__":
    main()
