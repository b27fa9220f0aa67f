"""Comparison of two results of one study.

Numbers count as equal if they differ by at most `TOLERANCE`, relative to the larger one, or by at most 1e-12. The
exact numbers of a claim also count as equal if both are at most `TOLERANCE`, because they are then rounding errors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

from trialogue.display.numbers import ABSENT, format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.counts import Record
from trialogue_lab.ledger.entries import judged, ledger_records
from trialogue_lab.ledger.pages.claim_cells import is_exact
from trialogue_lab.ledger.pages.claim_tables import find_measured, format_criterion, format_numbers
from trialogue_lab.ledger.pages.tables import CellValue
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.ledger.settings import format_value
from trialogue_lab.ledger.study import Study


class ComparedClaim(NamedTuple):
    """A claim with its verdicts in two results, as text.

    Args:
        title: Title or statement.
        first: First verdict and numbers, for example "holds: 0.7 [0.6, 0.8]".
        second: Second verdict and numbers.
        difference: Difference of the estimates, "0" if both are equal, or `ROUNDING`.
        criterion: Condition under which the claim holds, for example "> 0.5".
        measured: What the number is. Empty if it is unknown.
    """

    title: str
    first: str
    second: str
    difference: str
    criterion: str = ""
    measured: str = ""

    @property
    def verdicts(self) -> tuple[str, str]:
        """The first and the second verdict, without numbers."""
        return self.first.partition(":")[0], self.second.partition(":")[0]


@dataclass(frozen=True)
class Comparison:
    """Differences between two results of a study, as rows of text.

    Args:
        config: Field, first value and second value of each config field that differs.
        claims: The claims of the study with both verdicts.
        tables: For each table, its title and rows with cell, first value, second value and difference.
    """

    config: list[tuple[str, str, str]]
    claims: list[ComparedClaim]
    tables: list[tuple[str, list[tuple[str, str, str, str]]]]

    def __str__(self) -> str:
        """Return a sentence on what differs and what it means."""
        fields = ", ".join(field for field, *_ in self.config if field != "version")
        cells = [line for _, lines in self.tables for line in lines if not is_one_sided(line)]
        parts = [f"The settings differ in {fields}" if fields else "The settings are equal"]
        for name, lines in (("claims", self.claims), ("table cells", cells)):
            if lines:
                parts.append(f"{sum(not is_equal(line) for line in lines)} of {len(lines)} {name} differ")
        tested = [claim.verdicts for claim in self.claims if "not tested" not in claim.verdicts]
        changed = sum(first != second for first, second in tested)
        if not tested:
            meaning = "no verdict can differ, because no claim was tested in both results"
        else:
            meaning = f"{changed or 'none'} of the {len(tested)} verdicts changed"
        return f"{', '.join(parts)}, and {meaning}."


TOLERANCE = 1e-6
"""Largest relative difference of numbers that count as equal, and largest rounding error."""


ROUNDING = "rounding"
"""Difference of two numbers that are both rounding errors."""


def is_equal(line: Sequence[str]) -> bool:
    """Return whether a row of a comparison has equal numbers or texts, and no verdict that changed.

    Args:
        line: Name, first value, second value and difference.
    """
    if line[3] == ROUNDING:
        return line[1].partition(":")[0] == line[2].partition(":")[0]
    if "not tested" in f"{line[1]}{line[2]}":
        return line[3] in ("0", ABSENT)
    return line[1] == line[2] and line[3] in ("0", ABSENT)


def is_one_sided(line: Sequence[str]) -> bool:
    """Return whether a table cell has a value in only one of the results.

    Args:
        line: Name, first value, second value and difference.
    """
    return line[1] != line[2] and ABSENT in line[1:3]


def compare(study: Study[Any], first: Result, second: Result) -> Comparison:
    """Return the differences between two results of a study.

    Args:
        study: The study, an experiment that tests claims of a publication.
        first: A result.
        second: Another result.

    Raises:
        InputError: A result belongs to another study.
    """
    for result in (first, second):
        if result.study != study.name:
            hint = f"is a result of {result.study}, not of {study.name}: compare results of one study"
            raise InputError("result", str(result.folder), hint)
    return Comparison(
        _compare_configs(first, second),
        _compare_claims(study, first, second),
        _compare_tables(study, first, second),
    )


def _compare_configs(first: Result, second: Result) -> list[tuple[str, str, str]]:
    left = {"version": first.version, **first.config}
    right = {"version": second.version, **second.config}
    names = list(dict.fromkeys([*left, *right]))
    return [
        (name, format_value(left.get(name, ABSENT)), format_value(right.get(name, ABSENT)))
        for name in names
        if left.get(name, ABSENT) != right.get(name, ABSENT)
    ]


def _compare_claims(study: Study[Any], first: Result, second: Result) -> list[ComparedClaim]:
    entries = [replace(judged(study, result), withdrawn=()) for result in (first, second)]
    claims = []
    for left, right in zip(*(ledger_records([entry]) for entry in entries), strict=True):
        difference = format_difference(left["estimate"], right["estimate"])
        numbers = [format_numbers(left), format_numbers(right)]
        if all(_is_rounding(one) for one in (left, right)):
            difference = ROUNDING
        elif all(
            format_difference(left[name], right[name]) in ("0", ABSENT)
            for name in ("estimate", "low", "high")
        ):
            # Numbers that are equal up to rounding are shown with the same digits.
            numbers[1] = numbers[0]
        before, after = (
            f"{one['verdict']}: {text}" for one, text in zip((left, right), numbers, strict=True)
        )
        title, criterion = str(left["title"] or left["statement"]), format_criterion(left)
        claims.append(ComparedClaim(title, before, after, difference, criterion, find_measured(left)))
    return claims


def _is_rounding(record: Record) -> bool:
    """Return whether the number of a claim is exact and at most a rounding error."""
    return is_exact(record) and record["estimate"] is not None and abs(record["estimate"]) <= TOLERANCE


def _compare_tables(
    study: Study[Any], first: Result, second: Result
) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    compared = []
    for table in study.tables:
        left, right = table.evaluate(study.rows(first)), table.evaluate(study.rows(second))
        lines = []
        for key in dict.fromkeys([*left, *right]):
            a, b = (cells.get(key, CellValue(None)).value for cells in (left, right))
            difference = format_difference(a, b)
            shown = (
                format_number(a, table.digits),
                format_number(a if difference == "0" else b, table.digits),
            )
            lines.append((" · ".join(key), *shown, difference))
        compared.append((table.title, lines))
    return compared


def format_difference(first: object, second: object) -> str:
    """Return `second - first` with its sign, "0" if they are equal, or a dash if one is not a number."""
    numbers = [value for value in (first, second) if isinstance(value, Real) and not isinstance(value, bool)]
    if len(numbers) < 2:
        return ABSENT
    left, right = map(float, numbers)
    if math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=1e-12):
        return "0"
    change = right - left
    return f"{'+' if change > 0 else ''}{format_number(change)}"
