"""Statistics: named functions from rows to one number per replication, or to one exact number.

Claims compare a statistic with a threshold, tables print its mean and standard deviation, and figures plot it.

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
    """The unit of replication of a study. It decorates functions that compute statistics.

    Args:
        unit: The unit of replication, or "exact" for numbers without sampling error.
        count: The config field that holds the number of replications, or a sequence with one item per replication.
        objects: Trained objects that all replications share, for example "the verifiers trained". Claims then hold for
            these objects only, and their full statements name them.
    """

    unit: Unit
    count: str = ""
    objects: str = ""

    def __call__(
        self, compute: "Callable[Concatenate[Rows, Arguments], Series[float] | Counts | float]"
    ) -> "Callable[Arguments, Statistic]":
        """Return a function that takes the further arguments of `compute` and returns a `Statistic`.

        Args:
            compute: Function of the rows and further arguments, which returns one number per replication.
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
"""Replication of statistics without sampling error, which return one number."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A statistic of rows, with one number per replication. Its comparison with a number is a `Criterion`.

    Args:
        name: Name of the statistic.
        compute: Function from rows to a series by replication, to `Counts`, or to one exact number.
        replication: The unit of replication.
        logarithmic: Average the logarithms of the numbers, which must be positive, for example ratios or times. The
            estimate is then the geometric mean.
        corrections: Reasons for which the computation was changed after the first run, one per change.
    """

    name: str
    compute: Computation = field(repr=False)
    replication: Replication
    logarithmic: bool = False
    corrections: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """Version of the computation, which is 1 plus the number of corrections."""
        return 1 + len(self.corrections)

    def __call__(self, rows: Rows) -> "Series[float]":
        """Return one number per replication, in the order of their labels, or a single number if exact.

        The series is empty if the rows needed by the statistic are missing.
        """
        value, _ = self._evaluate(rows)
        if isinstance(value, Counts):
            return value.successes.astype(float).sort_index() / value.trials.astype(float).sort_index()
        if value is None:
            return Series(dtype=float)
        estimates = value.astype(float) if isinstance(value, Series) else Series([value], dtype=float)
        return estimates.sort_index()

    def counts(self, rows: Rows) -> Counts | None:
        """Return the numbers of successes and trials of each replication, or None if the statistic is not a share."""
        value, _ = self._evaluate(rows)
        if not isinstance(value, Counts):
            return None
        successes, trials = (each.astype(float).sort_index() for each in value[:2])
        return Counts(successes, trials, value.identical)

    def missing_rows(self, rows: Rows) -> str:
        """Return a text that names the required rows that are missing. Empty if all rows are present."""
        _, missing = self._evaluate(rows)
        return missing

    def _evaluate(self, rows: Rows) -> tuple["Series[float] | Counts | float | None", str]:
        """Return the value and an empty text, or None and which rows are missing."""
        try:
            return self.compute(rows), ""
        except LookupError as error:
            return None, str(error)

    def corrected(self, reason: str) -> "Statistic":
        """Return a copy of the statistic with one more correction, which increases its version.

        Args:
            reason: Why the computation was changed.
        """
        return replace(self, corrections=(*self.corrections, reason))

    def as_ratio(self) -> "Statistic":
        """Return a copy of the statistic that is averaged by logarithms, for positive numbers like ratios and times."""
        return replace(self, logarithmic=True)

    def log(self) -> "Statistic":
        """Return the statistic of the natural logarithms of the numbers."""
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
        """Return the quotient. It is logarithmic if `other` is a statistic."""
        quotient = self._with(other, "/", operator.truediv)
        return replace(quotient, logarithmic=True) if isinstance(other, Statistic) else quotient

    def __gt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "above", threshold)

    def __lt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "below", threshold)

    def near(self, value: float, margin: float) -> "Criterion":
        """Return the criterion that the mean of the statistic is close to a value.

        Args:
            value: The value.
            margin: Largest difference from the value.
        """
        return Criterion(self, "equal", value, margin)

    def _numbers(self, rows: Rows) -> "Series[float]":
        """Return the estimates. Raises `LookupError` if there are none, also for combined statistics."""
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
    """A condition on the mean of a statistic over replications.

    Args:
        statistic: The statistic.
        direction: "above" or "below" the threshold, or "equal" to it within the margin.
        threshold: The threshold, a finite number.
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
        """Smallest and largest value that meet the criterion. They are included only for the direction "equal"."""
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
        "holds" if the interval is inside the region of the criterion, "refuted" if it is outside, and "undecided"
        otherwise.
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
