"""Evaluation of test cases that a model wrote for a function that appends to a list.

The evaluator reports whether a test case is valid and correct, and where the first error is (thesis section
3.2.2.1 and Table 3.8). It parses Python literals and never executes the text. It also accepts an unfinished
text: an error is the first character after which no continuation can be correct.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from trialogue.validation import Count, validated
from trialogue_lab.data.list_append.literals import (
    Fault,
    Lexeme,
    find_fault,
    find_first_difference,
    read_literal,
    skip_blanks,
)


class CaseError(StrEnum):
    """Type of error in a completion."""

    LINE_WITHOUT_ASSERT = "line without assert"
    FUNCTION_NOT_TESTED = "function not tested"
    FUNCTION_CALL_NO_CLOSING_PARENTHESIS = "function call: no closing parenthesis"
    FUNCTION_CALL_SYNTAX_ERROR = "function call: syntax error"
    FUNCTION_CALL_VALUE_ERROR = "function call: value error"
    FUNCTION_CALL_UNKNOWN_VARIABLE = "function call: unknown variable"
    FIRST_ARGUMENT_TYPE_ERROR = "first argument: type error"
    ONLY_ONE_ARGUMENT = "only one argument"
    MORE_THAN_TWO_ARGUMENTS = "more than two arguments"
    NO_ASSERTION_EQUALITY = "no assertion of equality"
    EXPECTED_OUTPUT_NO_CLOSING_BRACKET = "expected output: no closing bracket"
    EXPECTED_OUTPUT_SYNTAX_ERROR = "expected output: syntax error"
    EXPECTED_OUTPUT_VALUE_ERROR = "expected output: value error"
    EXPECTED_OUTPUT_UNDEFINED_VARIABLE = "expected output: undefined variable"
    EXPECTED_OUTPUT_TYPE_ERROR = "expected output: type error"
    ASSERTION_FAILURE = "assertion failure"
    FEWER_TEST_CASES_THAN_EXPECTED = "fewer test cases than expected"
    EXTRA_CONTENT_AFTER_TASK_COMPLETION = "extra content after task completion"


_CALL_FAULTS = {
    Fault.ENDED: CaseError.FUNCTION_CALL_NO_CLOSING_PARENTHESIS,
    Fault.SYNTAX: CaseError.FUNCTION_CALL_SYNTAX_ERROR,
    Fault.NOT_A_LITERAL: CaseError.FUNCTION_CALL_VALUE_ERROR,
    Fault.UNKNOWN_NAME: CaseError.FUNCTION_CALL_UNKNOWN_VARIABLE,
}
_OUTPUT_FAULTS = {
    Fault.ENDED: CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET,
    Fault.SYNTAX: CaseError.EXPECTED_OUTPUT_SYNTAX_ERROR,
    Fault.NOT_A_LITERAL: CaseError.EXPECTED_OUTPUT_VALUE_ERROR,
    Fault.UNKNOWN_NAME: CaseError.EXPECTED_OUTPUT_UNDEFINED_VARIABLE,
}

Key = tuple[tuple[str, str], ...]
"""Canonical spelling of the list and of the appended item, which identifies a test case."""


class ListAppendCase(NamedTuple):
    """A parsed test case, a line that asserts the result of appending an item to a list.

    Attributes:
        key: Canonical spelling of the list and of the item. Two cases are different if their keys differ (thesis
            footnote 8).
        correct: Whether the asserted result is correct.
        stop: Index of the character at which the line ends.
    """

    key: Key
    correct: bool
    stop: int  # index of the character at which its line ends


class Evaluation(NamedTuple):
    """Result of evaluating a completion of a prompt for test cases.

    Attributes:
        error: Type of the first error, or None if there is no error.
        position: Index of the first erroneous character, or -1 if there is no error.
        cases: The parsed test cases.
    """

    error: CaseError | None
    position: int
    cases: tuple[ListAppendCase, ...]

    @property
    def correct(self) -> int:
        """Number of distinct correct test cases."""
        return distinct_correct([self])


def distinct_correct(evaluations: Iterable[Evaluation]) -> int:
    """Return the number of distinct correct test cases in several completions for the same function."""
    return len({case.key for evaluation in evaluations for case in evaluation.cases if case.correct})


@validated
def evaluate(text: str, name: str, cases: Count = 8, *, final: bool = True) -> Evaluation:
    """Evaluate a completion of a prompt for test cases.

    A test case is a line `assert name(list, item) == expected` with three literals. Blank lines and lines
    that cannot be parsed do not count as test cases.

    Args:
        text: Completion.
        name: Name of the tested function.
        cases: Number of requested test cases. Later ones are ignored.
        final: Whether the text is complete. Otherwise text that can still become correct is not an error.
    """
    error, position, right = None, -1, 0
    read: list[ListAppendCase] = []
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        whole = stop >= 0 or final
        stop = len(text) if stop < 0 else stop
        line = text[start:stop]
        if line.strip():
            if error is None and right == cases:
                blanks = len(line) - len(line.lstrip())
                error, position = CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION, start + blanks
            outcome = _read_line(line + "\n" if whole else line, name)
            if error is None and outcome.error is not None:
                error, position = outcome.error, start + outcome.position
            right += whole and outcome.error is None
            if outcome.key is not None and whole and len(read) < cases:
                read.append(ListAppendCase(outcome.key, outcome.error is None, stop))
        if error is not None and len(read) == cases:
            break
        start = stop + 1
    if error is None and final and right < cases:
        error, position = CaseError.FEWER_TEST_CASES_THAN_EXPECTED, len(text)
    return Evaluation(error, position, tuple(read))


class _ParsedLine(NamedTuple):
    """Result of parsing one line `assert name(list, item) == expected`.

    `key` identifies the test case. It is None if one of the three literals (list, item, expected) could not be parsed.
    `error` is the first error, at index `position`, or None if the line is correct.
    """

    error: CaseError | None = None
    position: int = -1
    key: Key | None = None


class _LineError(Exception):
    """Raised if a line is not a test case, because of `error` at `position`."""

    def __init__(self, error: CaseError, position: int) -> None:
        super().__init__(error, position)
        self.error, self.position = error, position


class _UnfinishedLine(Exception):
    """Raised if the text ends within the line."""


def _read_line(line: str, name: str) -> _ParsedLine:
    """Parse one line. A newline at the end marks it as complete."""
    try:
        indentation = len(line) - len(line.lstrip())
        if indentation:  # a line with only blanks has been skipped before
            raise _LineError(CaseError.LINE_WITHOUT_ASSERT, indentation)
        position = _expect(line, 0, "assert", CaseError.LINE_WITHOUT_ASSERT)
        if line[position:] and line[position] not in " \t":
            raise _LineError(CaseError.LINE_WITHOUT_ASSERT, position)
        position = _expect(line, skip_blanks(line, position), name, CaseError.FUNCTION_NOT_TESTED)
        position = _expect(line, skip_blanks(line, position), "(", CaseError.FUNCTION_NOT_TESTED)
        position = _skip_blanks(line, position)
        _require_list(line, position, _CALL_FAULTS, CaseError.FIRST_ARGUMENT_TYPE_ERROR)
        items, position = _parse_literal(line, position, _CALL_FAULTS)
        position = _parse_comma(line, position)
        item, position = _parse_literal(line, position, _CALL_FAULTS)
        position = _close_call(line, position)
        position = _expect(line, skip_blanks(line, position), "==", CaseError.NO_ASSERTION_EQUALITY)
        return _compare(line, position, items, item)
    except _LineError as wrong:
        return _ParsedLine(wrong.error, wrong.position)
    except _UnfinishedLine:
        return _ParsedLine()


def _compare(line: str, position: int, items: Sequence[Lexeme], item: Sequence[Lexeme]) -> _ParsedLine:
    """Parse the expected output and compare it with `items` after appending `item`."""
    comma = [Lexeme(",", ",", ",", 0)] if len(items) > 2 else []
    wanted = [*items[:-1], *comma, *item, items[-1]]
    key = tuple((lexeme.kind, lexeme.value) for lexeme in (*items, *item))
    try:
        first = _skip_blanks(line, position)
        _require_list(line, first, _OUTPUT_FAULTS, CaseError.EXPECTED_OUTPUT_TYPE_ERROR)
        reading = read_literal(line, first)
        different = find_first_difference(reading.lexemes, wanted)
        if reading.fault is not None and different is None:
            raise _LineError(_OUTPUT_FAULTS[reading.fault], reading.position)
        wrong = None if different is None else (CaseError.ASSERTION_FAILURE, different)
        if reading.stop is None:
            return _ParsedLine(*wrong) if wrong else _ParsedLine()
        rest = skip_blanks(line, reading.stop)
        following = line[rest : rest + 1]
        if following == ",":
            raise _LineError(*(wrong or (CaseError.EXPECTED_OUTPUT_TYPE_ERROR, rest)))
        if following not in ("", "\n", "#"):
            raise _LineError(*(wrong or (_OUTPUT_FAULTS[find_fault(following)], rest)))
        return _ParsedLine(*wrong, key) if wrong else _ParsedLine(key=key)
    except _UnfinishedLine:
        return _ParsedLine()


def _expect(line: str, position: int, wanted: str, error: CaseError) -> int:
    """Return the position after `wanted` in `line`, or raise `_LineError` if `wanted` is not at `position`."""
    for offset, character in enumerate(wanted, position):
        if offset >= len(line):
            raise _UnfinishedLine
        if line[offset] != character:
            raise _LineError(error, offset)
    return position + len(wanted)


def _skip_blanks(line: str, position: int) -> int:
    """Return the first position from `position` on that is not blank."""
    position = skip_blanks(line, position)
    if position == len(line):
        raise _UnfinishedLine
    return position


def _parse_literal(
    line: str, position: int, errors: dict[Fault, CaseError]
) -> tuple[tuple[Lexeme, ...], int]:
    """Parse the Python literal that starts at `position`. Return its lexical tokens and the position after it."""
    reading = read_literal(line, position)
    if reading.fault is not None:
        raise _LineError(errors[reading.fault], reading.position)
    if reading.stop is None:
        raise _UnfinishedLine
    return reading.lexemes, reading.stop


def _require_list(line: str, first: int, errors: dict[Fault, CaseError], other: CaseError) -> None:
    """Raise `_LineError` unless a list starts at `first`."""
    if line[first] != "[":
        reading = read_literal(line, first)
        at_once = reading.position == first
        raise _LineError(errors[reading.fault] if reading.fault and at_once else other, first)


def _parse_comma(line: str, position: int) -> int:
    """Return the position after the comma between the arguments."""
    comma = _skip_blanks(line, position)
    if line[comma] == ")":
        raise _LineError(CaseError.ONLY_ONE_ARGUMENT, comma)
    if line[comma] != ",":
        raise _LineError(_CALL_FAULTS[find_fault(line[comma])], comma)
    second = _skip_blanks(line, comma + 1)
    if line[second] == ")":
        raise _LineError(CaseError.ONLY_ONE_ARGUMENT, second)
    return second


def _close_call(line: str, position: int) -> int:
    """Return the position after the closing parenthesis of the call, which may follow a comma."""
    close = _skip_blanks(line, position)
    if line[close] == ",":
        close = _skip_blanks(line, close + 1)
        if line[close] not in ")\n":
            raise _LineError(CaseError.MORE_THAN_TWO_ARGUMENTS, close)
    if line[close] != ")":
        raise _LineError(_CALL_FAULTS[find_fault(line[close])], close)
    return close + 1
