"""Comparison of two results of one study."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from trialogue.display.numbers import ABSENT, format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.entries import judged
from trialogue_lab.ledger.pages.tables import CellValue
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.ledger.study import Study


@dataclass(frozen=True)
class Comparison:
    """Differences between two results of a study, as rows of text.

    Args:
        config: Field, first value and second value of each config field that differs.
        claims: Claim id, first verdict, second verdict and difference of the estimates.
        tables: For each table, its title and rows with cell, first value, second value and difference.
    """

    config: list[tuple[str, str, str]]
    claims: list[tuple[str, str, str, str]]
    tables: list[tuple[str, list[tuple[str, str, str, str]]]]


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
    shown = [(name, str(left.get(name, ABSENT)), str(right.get(name, ABSENT))) for name in names]
    return [line for line in shown if line[1] != line[2]]


def _compare_claims(study: Study[Any], first: Result, second: Result) -> list[tuple[str, str, str, str]]:
    pairs = zip(judged(study, first).verdicts, judged(study, second).verdicts, strict=True)
    return [
        (
            left.claim.id,
            f"{left.answer}: {format_number(left.estimate)}",
            f"{right.answer}: {format_number(right.estimate)}",
            format_difference(left.estimate, right.estimate),
        )
        for left, right in pairs
    ]


def _compare_tables(
    study: Study[Any], first: Result, second: Result
) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    compared = []
    for table in study.tables:
        left, right = table.evaluate(study.rows(first)), table.evaluate(study.rows(second))
        lines = []
        for key in dict.fromkeys([*left, *right]):
            a, b = (cells.get(key, CellValue(None)).value for cells in (left, right))
            shown = (format_number(a, table.digits), format_number(b, table.digits))
            lines.append((" · ".join(key), *shown, format_difference(a, b)))
        compared.append((table.title, lines))
    return compared


def format_difference(first: object, second: object) -> str:
    """Return `second - first` with its sign, or a dash if one is not a number."""
    numbers = [value for value in (first, second) if isinstance(value, Real) and not isinstance(value, bool)]
    if len(numbers) < 2:
        return ABSENT
    change = float(numbers[1]) - float(numbers[0])
    return f"{'+' if change > 0 else ''}{format_number(change)}"
