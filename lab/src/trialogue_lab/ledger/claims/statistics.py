"""Statistics: functions from rows to one number per replication, or to one exact number, written once.

A claim sets a statistic against a threshold, a table prints it as mean and deviation, a figure draws it with its bars.

    trainings = Replication("training", "seeds")

    @trainings
    def loss(rows, data):
        return rows["training"].query("data == @data").groupby("seed").loss.mean()

    loss("unseen") - loss("seen") > 0                          # a criterion
    (loss("unseen") / loss("seen")).near(1, margin=0.1)        # a ratio, whose interval is one of logarithms
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
from trialogue_lab.ledger.claims.intervals import shares_of as shares_of
from trialogue_lab.ledger.rows import Rows

Arguments = ParamSpec("Arguments")
Unit = Literal["training", "prompt set", "draw", "exact"]
Direction = Literal["above", "below", "equal"]
Decision = Literal["holds", "refuted", "undecided"]


Computation = Callable[[Rows], "Series[float] | Counts | float"]


@dataclass(frozen=True)
class Replication:
    """What a study repeats: its unit, and the field of the config that says how often.

    `count` names a field that holds a number, or things of which each is one replication. `objects` names trained
    objects that all replications share, such as "the verifiers trained": what is said is then said of these objects.
    A replication decorates a function of rows and further arguments; what it makes of the arguments is a `Statistic`.
    """

    unit: Unit
    count: str = ""
    objects: str = ""

    def __call__(
        self, compute: "Callable[Concatenate[Rows, Arguments], Series[float] | Counts | float]"
    ) -> "Callable[Arguments, Statistic]":
        """The function from arguments to the `Statistic` that `compute` gives with them."""

        @wraps(compute)
        def statistic(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Statistic:
            words = [_word(value) for value in args] + [f"{k}={_word(value)}" for k, value in kwargs.items()]
            name = f"{compute.__name__}({', '.join(words)})" if words else compute.__name__
            return Statistic(name, lambda rows: compute(rows, *args, **kwargs), self)

        return statistic

    def required(self, config: Mapping[str, Any]) -> int:
        """How many replications a run with the values `config` has."""
        if self.unit == "exact":
            return 1
        if self.count not in config:
            hint = f"no such field to count replications by: the config has {', '.join(config)}"
            raise InputError("count", self.count, hint)
        value = config[self.count]
        return len(value) if isinstance(value, Sized) else int(value)


exact = Replication("exact")
"""The replication of what is computed without sampling error: its statistics return one number."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A named number of rows for each replication; compared with a number it is a `Criterion`.

    `logarithmic` statistics are positive, such as ratios and times: their interval is that of their logarithms, and
    their estimate is the geometric mean. `corrections` are the reasons for which the statistic has changed since it
    was first run; `version` counts them.
    """

    name: str
    compute: Computation = field(repr=False)
    replication: Replication
    logarithmic: bool = False
    corrections: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """1, and one more for every correction."""
        return 1 + len(self.corrections)

    def __call__(self, rows: Rows) -> "Series[float]":
        """One number per replication, in their order; a single one for an exact statistic.

        Empty where the rows do not hold what the statistic asks for: another kind, another setting.
        """
        value = self._value(rows)
        if isinstance(value, Counts):
            return value.successes.astype(float).sort_index() / value.trials.astype(float).sort_index()
        if value is None:
            return Series(dtype=float)
        estimates = value.astype(float) if isinstance(value, Series) else Series([value], dtype=float)
        return estimates.sort_index()

    def counts(self, rows: Rows) -> Counts | None:
        """Successes and trials of each replication, where the statistic is a share that counts them."""
        value = self._value(rows)
        if not isinstance(value, Counts):
            return None
        successes, trials = (each.astype(float).sort_index() for each in value[:2])
        return Counts(successes, trials, value.identical)

    def absence(self, rows: Rows) -> str:
        """What the rows lack that the statistic asks for; empty where they hold all of it."""
        try:
            self.compute(rows)
        except LookupError as error:
            return str(error)
        return ""

    def _value(self, rows: Rows) -> "Series[float] | Counts | float | None":
        """What the statistic gives, None where the rows do not hold what it asks for."""
        try:
            return self.compute(rows)
        except LookupError:
            return None

    def corrected(self, reason: str) -> "Statistic":
        """This statistic, whose computation differs for `reason` from the one that earlier results were run with."""
        return replace(self, corrections=(*self.corrections, reason))

    def as_ratio(self) -> "Statistic":
        """This statistic, whose numbers are positive, averaged by their logarithms: a ratio, or a time."""
        return replace(self, logarithmic=True)

    def log(self) -> "Statistic":
        """The natural logarithm."""
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
        """The quotient, of two statistics a logarithmic one."""
        quotient = self._with(other, "/", operator.truediv)
        return replace(quotient, logarithmic=True) if isinstance(other, Statistic) else quotient

    def __gt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "above", threshold)

    def __lt__(self, threshold: float) -> "Criterion":
        return Criterion(self, "below", threshold)

    def near(self, value: float, margin: float) -> "Criterion":
        """The criterion that the statistic differs from `value` by at most `margin`."""
        return Criterion(self, "equal", value, margin)

    def _numbers(self, rows: Rows) -> "Series[float]":
        """The estimates, or `LookupError` where there are none, so that what is built on them has none either."""
        estimates = self(rows)
        if estimates.empty:
            raise LookupError(self.name)
        return estimates

    def _with(
        self, other: "Statistic | float", sign: str, operation: Callable[[Any, Any], "Series[float]"]
    ) -> "Statistic":
        if not isinstance(other, Statistic):
            name = f"{self.name} {sign} {_word(other)}"
            return Statistic(name, lambda rows: operation(self._numbers(rows), other), self.replication)
        sampled = [side.replication for side in (self, other) if side.replication.unit != "exact"]
        if len({(replication.unit, replication.count) for replication in sampled}) > 1:
            raise InputError("statistic", f"{self.name} {sign} {other.name}", "both must be repeated alike")
        objects = " and ".join(dict.fromkeys(each.objects for each in sampled if each.objects))

        def side(statistic: Statistic, rows: Rows) -> "Series[float] | float":
            numbers = statistic._numbers(rows)
            one_for_all = bool(sampled) and statistic.replication.unit == "exact"
            return float(numbers.iloc[0]) if one_for_all else numbers

        return Statistic(
            f"{self.name} {sign} {_grouped(other.name)}",
            lambda rows: operation(side(self, rows), side(other, rows)),
            replace(sampled[0], objects=objects) if sampled else self.replication,
        )


@dataclass(frozen=True)
class Criterion:
    """What a claim asks of a statistic: to lie above or below a threshold, or within a margin of it.

    Raises `InputError` for a threshold that is not finite or a margin that is not positive.
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
        """The values for which the claim is true; a finite end belongs to it only where `direction` is equal."""
        if self.direction == "above":
            return self.threshold, math.inf
        if self.direction == "below":
            return -math.inf, self.threshold
        return self.threshold - self.margin, self.threshold + self.margin


def decide(low: float, high: float, criterion: Criterion) -> Decision:
    """Hold the interval `low..high` against the criterion's region: inside, outside, or across its edge."""
    bottom, top = criterion.region
    if criterion.direction == "above":
        inside, outside = low > bottom, high <= bottom
    elif criterion.direction == "below":
        inside, outside = high < top, low >= top
    else:
        inside, outside = bottom <= low and high <= top, high < bottom or low > top
    return "holds" if inside else "refuted" if outside else "undecided"


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _grouped(name: str) -> str:
    return f"({name})" if " - " in name or " + " in name else name
