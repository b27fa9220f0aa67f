"""Cells of a table of claims, with estimate and criterion in a unit that suits the claim."""

import math
from collections.abc import Callable

from trialogue.display.numbers import plain_exponent
from trialogue.errors import InputError
from trialogue_lab.ledger.counts import Record

CHOSEN = "*"
"""Mark of a threshold or margin that this project chose."""

TOLERANCE = 1e-6
"""Thresholds up to this size allow for rounding errors only, and are shown as zero."""

UNITS: dict[str, Callable[[float], float]] = {
    "": lambda number: number,
    "percent": lambda share: 100 * share,
    "points": lambda share: 100 * share,
    "factor": math.exp,
    "binary factor": lambda exponent: 2**exponent,
    "decimal factor": lambda exponent: 10**exponent,
}
"""Increasing functions that convert estimate, interval and criterion of a claim, by unit.

"factor" turns a natural logarithm of a ratio into the ratio.
"""
_SUFFIXES = {"percent": " %"}


def is_chosen(record: Record) -> bool:
    """Return whether this project chose the threshold or margin of a claim, and the publication gives none."""
    return bool(record["grade"] or (record["margin"] and record["origin"] == "published"))


def is_exact(record: Record) -> bool:
    """Return whether the number of a claim has no sampling error. Comparisons with simulations have an error rate."""
    return record["unit"] == "exact" and record["alpha"] is None


def format_estimate(record: Record, unit: str = "") -> str:
    """Return estimate and confidence interval of a claim, for example "9.3 % [3.2, 26.3]".

    The numbers have at most three digits, and fewer if the interval is wide. They have more if rounding would move a
    number to the other side of the threshold. A number without sampling error has no interval.

    Args:
        record: Record of a claim with an estimate.
        unit: A key of `UNITS` (default: no conversion).
    """
    convert = _find_unit(unit)
    suffix = _SUFFIXES.get(unit, "")
    if record["unit"] == "exact" or record["low"] is None:
        is_rounding = abs(record["estimate"]) <= abs(record["threshold"]) <= TOLERANCE
        number = convert(0.0 if is_rounding and is_exact(record) else record["estimate"])
        return f"{_shorten(number)}{suffix}{'' if is_exact(record) else ' (simulated)'}"
    numbers = [convert(record[key]) for key in ("estimate", "low", "high")]
    estimate, low, high = _round_together(numbers, _convert_bounds(record, convert))
    return f"{estimate}{suffix} [{low}, {high}]"


def format_condition(record: Record, unit: str = "") -> str:
    """Return the criterion of a claim, for example "< 1" or "0.78 to 1.28".

    Args:
        record: Record of a claim that is not withdrawn.
        unit: A key of `UNITS` (default: no conversion).
    """
    convert = _find_unit(unit)
    suffix = _SUFFIXES.get(unit, "") + CHOSEN * is_chosen(record)
    bounds = _convert_bounds(record, convert)
    if len(bounds) == 2:
        return " to ".join(map(_shorten, bounds)) + suffix
    is_above = record["direction"] == "above"
    shown = convert(0.0) if abs(record["threshold"]) <= TOLERANCE else float(f"{bounds[0]:.3g}")
    # A threshold that allows for a rounding error includes the shown number, or excludes it.
    allowed = (shown - bounds[0]) / max(1.0, abs(shown))
    is_included = 1e-14 < abs(allowed) <= 100 * TOLERANCE and (allowed > 0) == is_above
    sign = (">" if is_above else "<") if not is_included else ("≥" if is_above else "≤")
    if shown == 0 and sign == "≤" and convert(record["estimate"]) >= 0:
        sign = "="
    return f"{sign} {_shorten(shown)}{suffix}"


def _convert_bounds(record: Record, convert: Callable[[float], float]) -> list[float]:
    """Return the converted threshold of a claim, or both ends of the range if the claim states equality."""
    threshold, margin = record["threshold"], record["margin"]
    bounds = [threshold - margin, threshold + margin] if record["direction"] == "equal" else [threshold]
    return sorted(map(convert, bounds))


def _round_together(numbers: list[float], bounds: list[float]) -> list[str]:
    """Round an estimate and the ends of its interval to the same decimals, each on its side of the bounds."""
    size = max(map(abs, numbers))
    sides = [abs(numbers[0] - end) for end in numbers[1:] if abs(numbers[0] - end) > TOLERANCE * size]
    step = max(min(sides) / 3, max(sides) / 10) if sides else size
    first = min(math.ceil(-math.log10(step)), 2 - math.floor(math.log10(size)))
    for decimals in range(first, first + 4):
        rounded = [round(number, decimals) for number in numbers]
        is_apart = (
            number == bound or (short - bound) * (number - bound) > 0
            for number, short in zip(numbers, rounded, strict=True)
            for bound in bounds
        )
        if all(is_apart):
            break
    return [f"{short + 0.0:,.{max(0, decimals)}f}" for short in rounded]


def _shorten(number: float) -> str:
    """Format a number with at most three digits, without zeros at the end."""
    if abs(number) >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}"
    return plain_exponent(f"{number:.3g}")


def _find_unit(name: str) -> Callable[[float], float]:
    if name not in UNITS:
        raise InputError("unit", name, f"use one of {', '.join(map(repr, UNITS))}")
    return UNITS[name]
