"""Tests of the optimal search for a hidden string against an enumeration of searchers."""

from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from one_line_errors import refusals
from trialogue.data.puzzles.hidden_string import HiddenString
from trialogue_lab.theory.query_complexity import (
    hidden_string_optimum,
    hidden_string_values,
    search_hidden_string,
)


def enumerate_searchers(candidates: int, infer_last: bool) -> Fraction:
    """Return the smallest expected number of queries, by dynamic programming over sets of possible strings.

    Queries without information (short prefixes and excluded candidates) add one query and do not change the set.
    """

    @cache
    def value(remaining: frozenset[int]) -> Fraction:
        if len(remaining) == 1:
            return Fraction(0 if infer_last else 1)
        return min(
            1 + Fraction(len(remaining) - 1, len(remaining)) * value(remaining - {candidate})
            for candidate in remaining
        )

    return value(frozenset(range(candidates)))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_optimum_agrees_with_enumeration_of_searchers(length: int) -> None:
    candidates = 2 ** (length - 1)
    assert hidden_string_optimum(length) == enumerate_searchers(candidates, True)
    assert hidden_string_values(candidates)[-1] == enumerate_searchers(candidates, True)
    queried = hidden_string_values(candidates, infer_last=False)[-1]
    assert queried == enumerate_searchers(candidates, False) == Fraction(candidates + 1, 2)


def test_optimum_has_known_values() -> None:
    assert hidden_string_optimum(4) == Fraction(35, 8)
    assert hidden_string_optimum(8) == Fraction(8255, 128)
    assert hidden_string_optimum(1) == 0
    for length in range(1, 13):
        assert hidden_string_values(2 ** (length - 1))[-1] == hidden_string_optimum(length)


def bits(length: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=length))


def searches_well(search) -> bool:
    """Return whether every result is right, and its cost is the position of the hidden string in the order."""
    order = bits(3)
    for infer_last in (True, False):
        for place, hidden in enumerate(order):
            found = search(HiddenString(hidden), 4, order=order, infer_last=infer_last)
            if found != (HiddenString(hidden).answer, min(place + 1, 7 if infer_last else 8)):
                return False
    return True


def test_number_of_queries_is_the_position_of_the_string() -> None:
    assert searches_well(search_hidden_string)


def test_search_without_the_hidden_string_fails() -> None:
    order = [(0, 0), (0, 1)]
    for infer_last in (True, False):  # candidates that are not in the order cannot be excluded
        assert search_hidden_string(HiddenString((1, 1)), 3, order=order, infer_last=infer_last) == (None, 2)
    assert search_hidden_string(HiddenString(()), 1) == ((0,), 0)
    assert search_hidden_string(HiddenString(()), 1, infer_last=False) == ((0,), 1)


test_errors_name_the_invalid_argument = refusals(
    "^{}",
    [
        (
            lambda: search_hidden_string(HiddenString((1,)), 2, order=[(5,)]),
            "order=5: item 1, item 1: use at most 1",
        ),
        (
            lambda: search_hidden_string(HiddenString((1,)), 2, order=[(0, 1)]),
            r"order=\(0, 1\): give candidates of 1 bits",
        ),
    ],
)
