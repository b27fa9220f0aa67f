"""Statistics: named functions that reduce measurements to one number per replication.

A replication is an independent repetition, for example a training with its own seed. Claims compare the mean of a
statistic with a threshold, tables print it with its standard deviation, and figures plot it.

    trainings = Replication("training", "seeds")

    @trainings
    def loss(rows, data):
        return rows["training"].query("data == @data").groupby("seed").loss.mean()

    loss("unseen") - loss("seen") > 0                          # a criterion
    (loss("unseen") / loss("seen")).near(1, margin=0.1)        # a ratio, averaged by its logarithms
"""

import math
import operator
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

from pandas import Series

from trialogue.errors import InputError
from trialogue_lab.ledger.claims.intervals import Counts as Counts
from trialogue_lab.ledger.claims.intervals import counts_from_shares as counts_from_shares
from trialogue_lab.ledger.rows import Rows

Arguments = ParamSpec("Arguments")
Unit = Literal["training", "prompt set", "draw", "exact"]
Direction = Literal["above", "below", "equal"]
Decision = Literal["holds", "refuted", "undecided"]
Computation = Callable[[Rows], "Series[float] | Counts | float"]


@dataclass(frozen=True)
class Replication:
    """The unit that is repeated independently in a study, for example a training with its own seed.

    It is used as a decorator of functions that compute statistics.

    Args:
        unit: "training", "prompt set" or "draw", or "exact" for numbers that are not random.
        count: Config field with the number of replications, or with a list that has one item per replication.
        objects: Trained models shared by all replications, for example "the verifiers trained". Claims then hold only
            for these models and say so.

    Example:
        trainings = Replication("training", "seeds")

        @trainings
        def loss(rows, data):
            return rows["training"].query("data == @data").groupby("seed").loss.mean()
    """

    unit: Unit
    count: str = ""
    objects: str = ""

    def __call__(
        self, compute: "Callable[Concatenate[Rows, Arguments], Series[float] | Counts | float]"
    ) -> "Callable[Arguments, Statistic]":
        """Decorate a function that computes one number per replication from the measurements.

        Args:
            compute: Function of the measurements and further arguments, which returns one number per replication.

        Returns:
            A function of the further arguments only, which returns a `Statistic`.
        """

        @wraps(compute)
        def statistic(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Statistic:
            arguments = [_format_argument(value) for value in args]
            arguments += [f"{key}={_format_argument(value)}" for key, value in kwargs.items()]
            name = f"{compute.__name__}({', '.join(arguments)})" if arguments else compute.__name__
            return Statistic(name, lambda rows: compute(rows, *args, **kwargs), self)

        return statistic

    def required(self, config: Mapping[str, Any]) -> int:
        """Return the number of replications that a run must have.

        Args:
            config: Config values of the run, by field.

        Raises:
            InputError: The config has no field `count`.
        """
        if self.unit == "exact":
            return 1
        if self.count not in config:
            hint = f"the config has no such field: use one of {', '.join(config)}"
            raise InputError("count", self.count, hint)
        value = config[self.count]
        return len(value) if isinstance(value, Sized) else int(value)


exact = Replication("exact")
"""Decorator for statistics that are not random and return one number."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A named function from measurements to one number per replication.

    Comparing it with a number gives a `Criterion`.

    Args:
        name: Name of the statistic.
        compute: Function from measurements to a series with one number per replication, to `Counts`, or to one exact
            number.
        replication: The unit that is repeated independently, for example a training.
        logarithmic: Whether to average logarithms, for positive numbers like ratios and times. The mean is then
            geometric.
        corrections: Reasons for which `compute` was changed after the first run, one per change.
    """

    name: str
    compute: Computation = field(repr=False)
    replication: Replication
    logarithmic: bool = False
    corrections: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """1 plus the number of corrections of the computation."""
        return 1 + len(self.corrections)

    def __call__(self, rows: Rows) -> "Series[float]":
        """Return one number per replication, indexed by its label, or a single number if exact.

        The series is empty if required measurements are missing.
        """
        value, _ = self._evaluate(rows)
        if isinstance(value, Counts):
            return value.successes.astype(float).sort_index() / value.trials.astype(float).sort_index()
        if value is None:
            return Series(dtype=float)
        estimates = value.astype(float) if isinstance(value, Series) else Series([value], dtype=float)
        return estimates.sort_index()

    def counts(self, rows: Rows) -> Counts | None:
        """Return the numbers of successes and trials of each replication. None if the statistic is not a fraction."""
        value, _ = self._evaluate(rows)
        if not isinstance(value, Counts):
            return None
        successes, trials = (each.astype(float).sort_index() for each in value[:2])
        return Counts(successes, trials, value.identical)

    def missing_rows(self, rows: Rows) -> str:
        """Return a message about missing measurements. Empty if none are missing."""
        _, missing = self._evaluate(rows)
        return missing

    def _evaluate(self, rows: Rows) -> tuple["Series[float] | Counts | float | None", str]:
        """Return the value and an empty text, or None and a message about missing measurements."""
        if self.compute not in rows.computed:
            try:
                rows.computed[self.compute] = self.compute(rows), ""
            except LookupError as error:
                rows.computed[self.compute] = None, str(error)
        return rows.computed[self.compute]

    def corrected(self, reason: str) -> "Statistic":
        """Return a copy with the version increased by one. Use it after a change of the computation.

        Args:
            reason: Why the computation was changed.
        """
        return replace(self, corrections=(*self.corrections, reason))

    def as_ratio(self) -> "Statistic":
        """Return a copy that averages logarithms, for positive numbers like ratios and times."""
        return replace(self, logarithmic=True)

    def log(self) -> "Statistic":
        """Return a statistic with the natural logarithm of each number."""
        return Statistic(
            f"log({self.name})", lambda rows: self._numbers(rows).map(math.log), self.replication
        )

    def __add__(self, other: "Statistic | float") -> "Statistic":
        return self._with(other, "+", operator.add)

    def __sub__(self, other: "Statistic | float") -> "Statistic":
        return self._with(other, "-", operator.sub)

    def __mul__(self, factor: float) -> "Statistic":
        return self._with(factor, "*", operator.mul)

    def __truediv__(self, other: "Statistic | float") -> "Statistic":
        """Return the quotient. It averages logarithms if `other` is a statistic."""
        quotient = self._with(other, "/", operator.truediv)
        return replace(quotient, logarithmic=True) if isinstance(other, Statistic) else quotient

    def __gt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "above", threshold)

    def __lt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "below", threshold)

    def near(self, value: float, margin: float) -> "Criterion":
        """Return the criterion that the mean differs from `value` by at most `margin`."""
        return Criterion(self, "equal", value, margin)

    def _numbers(self, rows: Rows) -> "Series[float]":
        """Return one number per replication. Raises `LookupError` if measurements are missing."""
        estimates = self(rows)
        if estimates.empty:
            raise LookupError(self.name)
        return estimates

    def _with(
        self, other: "Statistic | float", sign: str, operation: Callable[[Any, Any], "Series[float]"]
    ) -> "Statistic":
        if not isinstance(other, Statistic):
            name = f"{self.name} {sign} {_format_argument(other)}"
            return Statistic(name, lambda rows: operation(self._numbers(rows), other), self.replication)
        sampled = [side.replication for side in (self, other) if side.replication.unit != "exact"]
        if len({(replication.unit, replication.count) for replication in sampled}) > 1:
            hint = "combine statistics with the same unit and count of replication"
            raise InputError("statistic", f"{self.name} {sign} {other.name}", hint)
        objects = " and ".join(dict.fromkeys(each.objects for each in sampled if each.objects))

        def side(statistic: Statistic, rows: Rows) -> "Series[float] | float":
            numbers = statistic._numbers(rows)
            one_for_all = bool(sampled) and statistic.replication.unit == "exact"
            return float(numbers.iloc[0]) if one_for_all else numbers

        return Statistic(
            f"{self.name} {sign} {_parenthesize(other.name)}",
            lambda rows: operation(side(self, rows), side(other, rows)),
            replace(sampled[0], objects=objects) if sampled else self.replication,
        )


@dataclass(frozen=True)
class Criterion:
    """A testable condition: the mean of a statistic is above, below or equal to a threshold.

    The mean is over replications, which are independent repetitions such as trainings.

    Args:
        statistic: The statistic.
        direction: "above" or "below" the threshold, or "equal" to it within the margin.
        threshold: A finite number.
        margin: Largest difference from the threshold for the direction "equal", above 0. Unused otherwise.

    Raises:
        InputError: The threshold or the margin is out of range.
    """

    statistic: Statistic
    direction: Direction
    threshold: float
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise InputError("threshold", self.threshold, f"{self.statistic.name}: use a finite number")
        if self.direction == "equal" and not 0 < self.margin < math.inf:
            raise InputError("margin", self.margin, f"{self.statistic.name}: use a finite number above 0")

    @property
    def region(self) -> tuple[float, float]:
        """Interval of means that meet the criterion, as lower and upper end. Only "equal" includes the ends."""
        if self.direction == "above":
            return self.threshold, math.inf
        if self.direction == "below":
            return -math.inf, self.threshold
        return self.threshold - self.margin, self.threshold + self.margin


def decide(low: float, high: float, criterion: Criterion) -> Decision:
    """Decide a criterion from a confidence interval of the mean.

    Args:
        low: Lower end of the interval.
        high: Upper end of the interval.
        criterion: The criterion.

    Returns:
        "holds" if all values of the interval meet the criterion, "refuted" if none does, and "undecided" otherwise.
    """
    bottom, top = criterion.region
    if criterion.direction == "above":
        inside, outside = low > bottom, high <= bottom
    elif criterion.direction == "below":
        inside, outside = high < top, low >= top
    else:
        inside, outside = bottom <= low and high <= top, high < bottom or low > top
    return "holds" if inside else "refuted" if outside else "undecided"


def _format_argument(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _parenthesize(name: str) -> str:
    return f"({name})" if " - " in name or " + " in name else name
