"""The best searcher for a hidden string: its dynamic program against all searchers, and the searcher as it runs."""

from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from mutants.modules import altered
from one_line_errors import refusals
from trialogue.data.puzzles.hidden_string import HiddenString
from trialogue_lab.theory.query_complexity import (
    hidden_string_optimum,
    hidden_string_values,
    hidden_strings,
    search_hidden_string,
)


def best_of_all_searchers(candidates: int, infer_last: bool) -> Fraction:
    """Least expected queries over all ways to ask on, by the set of candidates that may still be the hidden string.

    Queries that tell nothing (short prefixes, candidates that are out) leave the set as it is, and cost one more.
    """

    @cache
    def value(left: frozenset[int]) -> Fraction:
        if len(left) == 1:
            return Fraction(0 if infer_last else 1)
        return min(1 + Fraction(len(left) - 1, len(left)) * value(left - {asked}) for asked in left)

    return value(frozenset(range(candidates)))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_optimum_is_that_of_all_searchers(length: int) -> None:
    candidates = 2 ** (length - 1)
    assert hidden_string_optimum(length) == best_of_all_searchers(candidates, True)
    assert hidden_string_values(candidates)[-1] == best_of_all_searchers(candidates, True)
    queried = hidden_string_values(candidates, infer_last=False)[-1]
    assert queried == best_of_all_searchers(candidates, False) == Fraction(candidates + 1, 2)


def test_known_optima() -> None:
    assert hidden_string_optimum(4) == Fraction(35, 8)
    assert hidden_string_optimum(8) == Fraction(8255, 128)
    assert hidden_string_optimum(1) == 0
    for length in range(1, 13):
        assert hidden_string_values(2 ** (length - 1))[-1] == hidden_string_optimum(length)


def bits(length: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=length))


def searches_well(search) -> bool:
    """In a fixed order the cost of each hidden string is its place; every answer is right."""
    order = bits(3)
    for infer_last in (True, False):
        for place, hidden in enumerate(order):
            found = search(HiddenString(hidden), 4, order=order, infer_last=infer_last)
            if found != (HiddenString(hidden).answer, min(place + 1, 7 if infer_last else 8)):
                return False
    return True


def test_the_searcher_takes_as_many_queries_as_the_place_of_the_string() -> None:
    assert searches_well(search_hidden_string)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("% 2 == 0:", "% 2 == 1:"),
        ("queries == len(candidates) - 1", "queries == len(candidates) - 2"),
        ("queries + 1)", "queries)"),
        ("sum(candidate) % 2", "0"),
    ],
)
def test_broken_searchers_are_told_apart(old: str, new: str) -> None:
    assert not searches_well(altered(hidden_strings, (old, new), compiled=False)["search_hidden_string"])


def test_what_is_not_found_is_a_failure() -> None:
    order = [(0, 0), (0, 1)]
    for infer_last in (True, False):  # candidates that are not in the order cannot be excluded
        assert search_hidden_string(HiddenString((1, 1)), 3, order=order, infer_last=infer_last) == (None, 2)
    assert search_hidden_string(HiddenString(()), 1) == ((0,), 0)
    assert search_hidden_string(HiddenString(()), 1, infer_last=False) == ((0,), 1)


test_bad_input_is_named = refusals(
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
