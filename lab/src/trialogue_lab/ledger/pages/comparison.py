"""Two results of one study side by side: what differs in the configs, the claims and the tables."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from trialogue.display.numbers import ABSENT, format_number
from trialogue.errors import InputError
from trialogue_lab.ledger.entries import judged
from trialogue_lab.ledger.pages.tables import Spread
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.ledger.study import Study


@dataclass(frozen=True)
class Comparison:
    """Lines of text, each a name, the first result's value, the second's, and what else there is to say."""

    config: list[tuple[str, str, str]]
    claims: list[tuple[str, str, str, str]]
    tables: list[tuple[str, list[tuple[str, str, str, str]]]]


def compare(study: Study[Any], first: Result, second: Result) -> Comparison:
    """Compare two results of `study`; raises `InputError` where either belongs to another study."""
    for result in (first, second):
        if result.study != study.name:
            hint = f"is of the study {result.study}, the other of {study.name}: compare results of one study"
            raise InputError("result", str(result.folder), hint)
    return Comparison(_configs(first, second), _claims(study, first, second), _tables(study, first, second))


def _configs(first: Result, second: Result) -> list[tuple[str, str, str]]:
    left = {"version": first.version, **first.config}
    right = {"version": second.version, **second.config}
    names = list(dict.fromkeys([*left, *right]))
    shown = [(name, str(left.get(name, ABSENT)), str(right.get(name, ABSENT))) for name in names]
    return [line for line in shown if line[1] != line[2]]


def _claims(study: Study[Any], first: Result, second: Result) -> list[tuple[str, str, str, str]]:
    pairs = zip(judged(study, first).verdicts, judged(study, second).verdicts, strict=True)
    return [
        (
            left.claim.id,
            f"{left.answer}: {format_number(left.estimate)}",
            f"{right.answer}: {format_number(right.estimate)}",
            difference(left.estimate, right.estimate),
        )
        for left, right in pairs
    ]


def _tables(
    study: Study[Any], first: Result, second: Result
) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    compared = []
    for table in study.tables:
        left, right = table.filled(study.rows(first)), table.filled(study.rows(second))
        lines = []
        for key in dict.fromkeys([*left, *right]):
            a, b = (cells.get(key, Spread(None)).value for cells in (left, right))
            shown = (format_number(a, table.digits), format_number(b, table.digits))
            lines.append((" · ".join(key), *shown, difference(a, b)))
        compared.append((table.title, lines))
    return compared


def difference(first: object, second: object) -> str:
    """The second number minus the first, with its sign; a dash where either is no number."""
    if isinstance(first, bool) or isinstance(second, bool):
        return ABSENT
    if not isinstance(first, Real) or not isinstance(second, Real):
        return ABSENT
    change = float(second) - float(first)
    return f"{'+' if change > 0 else ''}{format_number(change)}"
