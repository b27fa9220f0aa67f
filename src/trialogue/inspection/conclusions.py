"""Conclusions of an inspection: sentences about the most important number of a measure, and about its change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from trialogue.display.numbers import format_number
from trialogue.inspection.measures.decoding import TEMPERATURE
from trialogue.inspection.measures.orders import COMPARED, COST, RANDOM
from trialogue.inspection.measures.quantities import Point, Quantity
from trialogue.inspection.picture import Series

CONTROL = "random weights"
_NO_CONTROL = f"It was not compared with {CONTROL}."
_OVERLAP = (
    "The intervals overlap, so this run does not show a difference. A larger --effort, with another --out, gives "
    "shorter intervals."
)
_NO_INTERVAL = "Without intervals, chance is not excluded."
_LEARNED = {
    "copying": ("The model has learned to copy.", "The model does not copy."),
    "brackets": ("The model has learned to close brackets.", "The model does not close brackets correctly."),
}
"""For each measure, the verdicts for a model that is better than random weights, and for one that is worse."""
_BETTER, _WORSE = f"The model is better than {CONTROL}.", f"The model is worse than {CONTROL}."
_ROUNDING = 1e-6
_DETECTED_BYTES = 16
"""Number of bytes within which a departure is often not noticed yet."""


def format_point(point: Point) -> str:
    """Format an estimate as text, with its interval in brackets if it has one. Whole numbers have no decimals.

    Args:
        point: Estimate with its interval.
    """
    if point.low is None or point.high is None:
        return _format(point.value)
    return f"{_format(point.value)} [{_format(point.low)}, {_format(point.high)}]"


def describe_conclusion(measure: str, model: Series, control: Series | None) -> str:
    """Return sentences about the most important number of a measure, with a comparison with random weights if useful.

    A measure with several conclusions has one per line.

    The model differs from random weights if the two 95% confidence intervals do not overlap. If they do, nothing can be
    concluded.

    Args:
        measure: Name of the measure.
        model: Quantities of the model.
        control: Quantities of the same architecture with random weights, if it was measured.
    """
    describe = _DESCRIPTIONS.get(measure)
    described = describe(model, control) if describe else ""
    return described or _describe_number(measure, model, control)


def main_quantity(measure: str, series: Series) -> Quantity | None:
    """Return the most important quantity of a measure, or None if there is none. A curve counts by its last point.

    Args:
        measure: Name of the measure.
        series: Quantities of a model or checkpoint.
    """
    if measure in _MAIN:
        return _find(series, _MAIN[measure])
    numbers = [quantity for quantity in series.quantities if not quantity.along]
    return next((one for one in numbers if one.finding), numbers[0] if numbers else None)


CHANGE_RULE = (
    "A number rose or fell if the 95 % intervals [a, b] of the first and the last one do not overlap. Otherwise, the "
    "difference may be chance."
)
"""Explanation of `describe_change` for readers."""


def describe_change(measure: str, series: Sequence[Series], *, is_training: bool = False) -> str:
    """Return sentences about how the most important number of a measure changed from the first series to the last.

    The number rose or fell if the 95% confidence intervals of the first and the last series do not overlap. For a
    training run, the sentences also state from which step on all intervals are apart from the first one. A series in
    between is mentioned if its interval is above, or below, those of the first and the last series.

    Args:
        measure: Name of the measure.
        series: Quantities of the models or checkpoints, in order.
        is_training: Whether the series are checkpoints of one training run.

    Returns:
        The sentences. Empty if fewer than two series have the number.
    """
    found = [(one.name, quantity) for one in series if (quantity := main_quantity(measure, one))]
    if len(found) < 2:
        return ""
    stated = _describe_main_change(measure, found, is_training=is_training)
    return stated + (_describe_excess_loss(series) if measure == "brackets" else "")


def _describe_main_change(measure: str, found: Sequence[tuple[str, Quantity]], *, is_training: bool) -> str:
    """Return sentences about how a quantity changed, which is given with the name of each series."""
    labels, quantity = [name for name, _ in found], found[0][1]
    points = [one.points[-1] for _, one in found]
    first, last = points[0], points[-1]
    names = dict.fromkeys(one.point_label(one.points[-1]) for _, one in found)
    if len(names) > 1:
        return f"Not comparable, because different quantities were measured: {'; '.join(names)}."
    name = "".join(names) + (f" ({quantity.unit})" if quantity.unit else "")
    order = _compare(last, first)
    start = f"From {labels[0]} to {labels[-1]}, “{name}”"
    ends = f"from {format_point(first)} to {format_point(last)}"
    if first.value == last.value:
        return f"{start} stayed at {format_point(first)}."
    if order == "unknown":
        return f"{start} changed {ends}. {_NO_INTERVAL}"
    inner = list(zip(labels, points, strict=True))[1:-1]
    if order == "overlap":
        stated = f"{start} shows no change, because the intervals overlap ({ends})."
    else:
        stated = f"{start} {'rose' if order == 'higher' else 'fell'} {ends}."
        apart = [_compare(point, first) == order for point in points]
        since = next(label for n, label in enumerate(labels) if all(apart[n:]))
        if is_training and inner:
            stated += f" The change is visible from {since} on."
    for side, extreme in (("higher", max), ("lower", min)):
        beyond = [pair for pair in inner if _compare(pair[1], first) == _compare(pair[1], last) == side]
        if beyond:
            label, point = extreme(beyond, key=lambda pair: pair[1].value)
            stated += f" In between, it was {side}: {format_point(point)} ({label})."
    if quantity.exact is not None and measure != "decoding":
        stated += f" A perfect model has {_format(quantity.exact)}."
    return stated


def _describe_excess_loss(series: Sequence[Series]) -> str:
    """Return a sentence on how the excess loss over the exact distribution changed. Empty if it was not measured."""
    points = [point for one in series if (point := _last_point(one, "excess loss")) is not None]
    if len(points) < 2:
        return ""
    first, last = points[0], points[-1]
    change = {"higher": "rose", "lower": "fell"}.get(_compare(last, first), "changed")
    doubt = " The intervals overlap." if _compare(last, first) == "overlap" else ""
    return (
        f" The excess loss over a perfect model, after {last.at:g} or more brackets, {change} from "
        f"{format_point(first)} to {format_point(last)} nats per bracket.{doubt}"
    )


_MAIN = {
    "context": "gained by ",
    "decoding": f"text, temperature {TEMPERATURE}",
    "interactions": "learned beyond order",
    "patterns": "leaves the pattern",
}
"""Beginning of the name of the most important quantity, for measures where it is not the one with a sentence."""


def _describe_number(measure: str, model: Series, control: Series | None) -> str:
    """Describe the most important number of any measure."""
    quantity = main_quantity(measure, model)
    if quantity is None:
        return ""
    point, unit = quantity.points[0], f" {quantity.unit}" if quantity.unit else ""
    stated = (
        quantity.finding.format(format_point(point))
        if quantity.finding
        else f"{quantity.name}: {format_point(point)}{unit}"
    )
    other = _last_point(control, quantity.name)
    if other is None:
        return f"{stated}. {_NO_CONTROL}"
    stated = f"{stated} ({CONTROL}: {format_point(other)})."
    order = _compare(point, other)
    if order in ("overlap", "unknown"):
        return f"{stated} {_OVERLAP if order == 'overlap' else _NO_INTERVAL}"
    if quantity.exact is None:
        return f"{stated} The difference is unlikely to be chance."
    is_better = abs(point.value - quantity.exact) < abs(other.value - quantity.exact)
    better, worse = _LEARNED.get(measure, (_BETTER, _WORSE))
    return f"{stated} {better if is_better else worse}"


def _describe_consistency(model: Series, control: Series | None) -> str:
    """Compare the difference of the two orders with the information of one token about the other."""
    numbers = [one for one in model.quantities if not one.along]
    difference = next((one for one in numbers if one.finding), None)
    information = next((one for one in numbers if one.name.startswith("information of one token")), None)
    if difference is None or information is None:
        return ""
    other = _last_point(control, difference.name)
    compared = f" ({CONTROL}: {format_point(other)})" if other else ""
    return (
        f"{difference.finding.format(format_point(difference.points[0]))}{compared}. One token has "
        f"{format_point(information.points[0])} nats of information about the other. The difference should be small "
        f"compared with this number."
    )


def _describe_context(model: Series, control: Series | None) -> str:
    """Compare the gains in loss by context, and name the context that is enough for most of the gain."""
    gain = main_quantity("context", model)
    enough = _find(model, "context that matters")
    if gain is None or enough is None:
        return ""
    point, other = gain.points[0], _last_point(control, gain.name)
    stated = (
        f"With {gain.name.removeprefix('gained by ')}, the model loses {format_point(point)} nats less per token than "
        "with one token"
    )
    length = f"About {format_point(enough.points[0])} tokens of context are enough for most of this gain."
    is_gain = point.low is not None and point.low > 0
    if other is None:
        return f"{stated}. {_NO_CONTROL}" + (f" {length}" if is_gain else "")
    stated = f"{stated} ({CONTROL}: {format_point(other)})."
    if point.high is not None and not is_gain:
        return f"{stated} The interval of the model contains 0 or lies below it, so this run does not show a gain."
    return {
        "higher": f"{stated} The model has learned to use context. {length}",
        "lower": f"{stated} The model does not use context.",
        "overlap": f"{stated} {_OVERLAP}",
        "unknown": f"{stated} {_NO_INTERVAL}",
    }[_compare(point, other)]


def _describe_copying(model: Series, control: Series | None) -> str:
    """Compare the mean over the distances, and name the distances at which the model copies better."""
    stated = _describe_number("copying", model, control)
    curve, other = (
        next((quantity for quantity in one.quantities if quantity.name == "copied" and quantity.along), None)
        if one
        else None
        for one in (model, control)
    )
    if curve is None or other is None or len(curve.points) < 2:
        return stated
    random = {point.at: point for point in other.points}
    orders = {point: _compare(point, random[point.at]) for point in curve.points if point.at in random}
    better = [point for point, order in orders.items() if order == "higher"]
    if not better and "unknown" in orders.values():
        return stated
    if not better:
        reason = ", because the intervals overlap there" if set(orders.values()) == {"overlap"} else ""
        return (
            f"{stated} At no single distance does this run show that it copies better than {CONTROL}{reason}."
        )
    best = max(better, key=lambda point: point.value)
    most = (
        f"(most at {best.at:g} tokens: {format_point(best)})"
        if len(better) > 1
        else f"({format_point(best)})"
    )
    sentence = (
        f"{stated} By distance, it copies better than {CONTROL} at {_list_distances(better)} tokens {most}"
    )
    rest = [point for point in orders if point not in better]
    return f"{sentence}, but not measurably at {_list_distances(rest)}." if rest else f"{sentence}."


def _list_distances(points: Sequence[Point]) -> str:
    """Return the distances of points as text, for example "4, 16 and 64"."""
    *others, last = [f"{point.at:g}" for point in points]
    return f"{', '.join(others)} and {last}" if others else last


def _describe_decoding(model: Series, _: Series | None) -> str:
    """Describe the effect of a temperature on texts. It is not compared, because it depends on the sampling rule."""
    quantity = main_quantity("decoding", model)
    if quantity is None:
        return ""
    point = quantity.points[-1]
    return (
        f"At temperature {TEMPERATURE}, texts of {point.at:g} tokens differ from those at temperature 1 by a total "
        f"variation of {format_point(point)}. It is 0 for equal distributions and 1 for distributions without a common "
        "text. If texts must follow the distribution of the model, sample at temperature 1."
    )


def _describe_patterns(model: Series, control: Series | None) -> str:
    """Compare the rates at which continuations leave the pattern."""
    rate = main_quantity("patterns", model)
    if rate is None:
        return ""
    point, other = rate.points[0], _last_point(control, rate.name)
    stated = f"The model leaves a repeated text with a probability of {format_point(point)} at each byte"
    if point.value > 0:
        stated += f", on average after {1 / point.value:.0f} bytes"
    if other is None:
        return f"{stated}. {_NO_CONTROL}"
    stated = f"{stated} ({CONTROL}: {format_point(other)})."
    order = _compare(point, other)
    if order == "lower":
        return f"{stated} The model has learned to continue the text."
    if _survival(control, _DETECTED_BYTES) == 1:
        return (
            f"{stated} {CONTROL.capitalize()} are still in the pattern after {_DETECTED_BYTES} bytes, so this run says "
            "nothing about when the model departs."
        )
    if order == "higher":
        return f"{stated} The model does not continue the text."
    return f"{stated} {_OVERLAP if order == 'overlap' else _NO_INTERVAL}"


def _describe_interactions(model: Series, control: Series | None) -> str:
    """Compare the excess losses on a clone, and state the order of interactions."""
    order = main_quantity("interactions", model)
    if order is None:
        return ""
    learned, other = order.points[0], _last_point(control, order.name)
    stated = f"The model has learned interactions between tokens beyond order {format_point(learned)}"
    if learned.value == 0:
        stated = "The loss of the model is not clearly higher on the clones than on the text"
    if other is None:
        return f"{stated}. {_NO_CONTROL}"
    pairs = [
        (one, one.points[0], excess)
        for one in model.quantities
        if one.name.endswith(" over the text") and (excess := _last_point(control, one.name)) is not None
    ]
    # The clone with the smallest excess loss is the closest to the text.
    higher = [pair for pair in pairs if (pair[1].low or 0) > 0 and _compare(pair[1], pair[2]) == "higher"]
    if higher:
        one, excess, control_excess = min(higher, key=lambda pair: pair[1].value)
        sentence = (
            f"On the clone {one.name.removesuffix(' over the text')}, the loss of the model is {format_point(excess)} "
            f"{one.unit} higher than on the text ({CONTROL}: {format_point(control_excess)}). The model has learned "
            "interactions that this clone lacks."
        )
        if learned.value == other.value:
            return f"{sentence} The order, {format_point(learned)}, is the same for {CONTROL}, so it shows nothing."
        return f"{sentence} {stated} ({CONTROL}: {format_point(other)})."
    if learned.value == other.value:
        return f"{CONTROL.capitalize()} give the same result, so this run shows nothing."
    return (
        f"{stated} ({CONTROL}: {format_point(other)}), but its excess loss on the clones is not higher than for "
        f"{CONTROL}, so this run does not show a difference."
    )


def _describe_orders(model: Series, control: Series | None) -> str:
    """Recommend an order, in one line per number of tokens per pass, and compare each order with random order."""
    compared = _gains_by_positions(model)
    likelihood, costs = main_quantity("orders", model), _find(model, COST)
    if not compared or likelihood is None or costs is None:
        return ""
    if any(point.low is None for gains in compared.values() for point in gains.values()):
        return _NO_INTERVAL
    cost = {point.at: point for point in costs.points}
    other = _last_point(control, likelihood.name)
    lines = []
    for positions, gains in compared.items():
        if positions in cost:
            stated = (
                f"Compared with one token per pass, the log-likelihood in {RANDOM} decreases by "
                f"{format_point(cost[positions])} {costs.unit}."
            )
        else:
            stated = likelihood.finding.format(format_point(likelihood.points[0]))
            stated += f" ({CONTROL}: {format_point(other)})." if other else "."
        number = f"{positions} tokens" if positions > 1 else "one token"
        lines.append(
            f"With {number} per pass, use {_best_order(gains)}. {_compare_orders(gains, costs.unit)} {stated}"
        )
    return "\n".join(lines)


def recommend_orders(model: Series) -> dict[int, str]:
    """Return the order to use for each number of tokens per pass.

    It is the order with the highest log-likelihood among those that are better than random order. If none is shown to
    be better, it is random order.

    Args:
        model: Quantities of the measure `orders`.
    """
    return {positions: _best_order(gains) for positions, gains in _gains_by_positions(model).items()}


def _gains_by_positions(model: Series) -> dict[int, dict[str, Point]]:
    """Return the differences from random order by the number of tokens per pass and by the name of the order."""
    found: dict[int, dict[str, Point]] = {}
    for one in model.quantities:
        if one.name.startswith(COMPARED):
            for point in one.points:
                found.setdefault(int(point.at or 0), {})[one.name.removeprefix(COMPARED)] = point
    return found


def _best_order(gains: Mapping[str, Point]) -> str:
    """Return the best of the orders that are shown to be better than random order, or random order."""
    higher = [name for name, gain in gains.items() if (gain.low or 0) > 0]
    return max(higher, key=lambda name: gains[name].value, default=RANDOM)


def _compare_orders(gains: Mapping[str, Point], unit: str) -> str:
    """Return sentences about the orders that are better or worse than random order."""
    names = sorted(gains, key=lambda name: -gains[name].value)
    higher = [name for name in names if (gains[name].low or 0) > 0]
    lower = [name for name in reversed(names) if (gains[name].high or 0) < 0]
    if higher:
        stated = f"Better than {RANDOM}: {_list_orders(higher, gains)} {unit}."
    elif len(lower) < len(names):
        stated = (
            f"No other order is shown to be better. The largest difference is "
            f"{format_point(gains[names[0]])} {unit}, for {names[0]}."
        )
    else:
        stated = "All other orders are worse."
    return f"{stated} Worse: {_list_orders(lower, gains)}." if lower else stated


def _list_orders(names: Sequence[str], gains: Mapping[str, Point]) -> str:
    """Return orders with their differences from random order as text."""
    return "; ".join(f"{name} {format_point(gains[name])}" for name in names)


def _describe_topics(model: Series, control: Series | None) -> str:
    """Compare the ratio of similarities with 1, because random weights often have no ratio."""
    ratio = main_quantity("topics", model)
    if ratio is None or not ratio.finding or _last_point(control, ratio.name) is not None:
        return ""
    point = ratio.points[0]
    stated = f"{ratio.finding.format(format_point(point))}."
    if point.low is None or point.high is None:
        return f"{stated} {_NO_INTERVAL}"
    if point.low > 1:
        return f"{stated} The model has learned that these words are related."
    if point.high < 1:
        return f"{stated} To the model, words of one topic are less similar."
    return f"{stated} The interval contains 1, so this run does not show that the model relates these words."


_DESCRIPTIONS: dict[str, Callable[[Series, Series | None], str]] = {
    "consistency": _describe_consistency,
    "copying": _describe_copying,
    "context": _describe_context,
    "decoding": _describe_decoding,
    "interactions": _describe_interactions,
    "orders": _describe_orders,
    "patterns": _describe_patterns,
    "topics": _describe_topics,
}
"""Measures whose conclusion is not a comparison of one number. A function returns "" if a quantity is missing."""


def _compare(point: Point, other: Point) -> Literal["higher", "lower", "overlap", "unknown"]:
    """Return whether the first interval is above the second one, below it, or overlaps with it."""
    if point.low is None or point.high is None or other.low is None or other.high is None:
        return "unknown"
    if point.low > other.high:
        return "higher"
    return "lower" if point.high < other.low else "overlap"


def _find(series: Series, start: str) -> Quantity | None:
    return next((one for one in series.quantities if one.name.startswith(start)), None)


def _last_point(series: Series | None, name: str) -> Point | None:
    """Return the last point of the quantity with this name, which is the only point of a single number."""
    named = [one for one in series.quantities if one.name == name] if series else []
    return named[0].points[-1] if named else None


def _survival(series: Series | None, length: int) -> float | None:
    """Return the share of texts that are still in the pattern after `length` bytes."""
    curve = _find(series, "still in the pattern") if series else None
    return next((point.value for point in curve.points if point.at == length), None) if curve else None


def _format(value: float) -> str:
    # Models compute in float32, so smaller numbers are rounding errors.
    value = 0.0 if abs(value) < _ROUNDING else value
    return format_number(int(value) if value.is_integer() else value)
