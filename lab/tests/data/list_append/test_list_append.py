"""Tests of the evaluator of test cases on examples of the thesis, known errors and Python's parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusals import expect_error
from trialogue_lab.data.list_append.cases import CaseError, distinct_correct, evaluate
from trialogue_lab.data.list_append.prompts import OOD_NAMES, TRAINING_NAMES, PromptLayout, random_names

KNK = """assert knk([], 2) == [2]
assert knk([1], 2) == [1, 2]
assert knk([1, 3], 2) == [1, 3, 2]
assert knk([1, 3, 5], 2) == [1, 3, 5, 2]
assert knk([1, 3, 5, 7], 2) == [1, 3, 5, 7, 2]
assert knk([1, 3, 5, 7, 9], 2) == [1, 3, 5, 7, 9, 2]
assert knk([1, 3, 5, 7, 9, 11], 2) == [1, 3, 5, 7, 9, 11, 2]
def sum_list(l):
    return sum(l)
List 8 test cases of the above function sum_list, one in each line:
assert sum_list([]) == 0
assert sum_list([1]) == 1
"""
OVS = """assert ovs([], 1) == [1]
assert ovs([2], 1) == [1, 2]
assert ovs([1, 2], 1) == [1, 1, 2]
assert ovs([1, 2], 3) == [1, 2, 3]
assert ovs([1, 2], 0) == [0, 1, 2]
assert ovs([1, 2, 3], 4) == [1, 2, 3, 4]
assert ovs([], 0) == [0]
assert ovs([1, 2], 0) == [0, 1, 2]
"""
GOOD = "assert abc([1], 2) == [1, 2]\n"


def is_viable(text: str, name: str, cases: int) -> bool:
    """Return whether a continuation of `text` can be free of errors."""
    error = evaluate(text, name, cases, final=False).error
    return error in (None, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION)


def test_completions_of_table_3_8_have_the_published_errors() -> None:
    first = evaluate(KNK, "knk")
    assert (first.correct, len(first.cases)) == (7, 7)
    assert (first.error, first.position) == (CaseError.LINE_WITHOUT_ASSERT, KNK.index("def"))
    second = evaluate(OVS, "ovs")
    assert [case.correct for case in second.cases] == [True, False, False, True, False, True, True, False]
    assert (second.correct, second.error) == (4, CaseError.ASSERTION_FAILURE)
    assert second.position == OVS.index("[1, 2]") + 1
    assert distinct_correct([first, first, second]) == 7 + 4


@pytest.mark.parametrize(
    ("line", "error", "error_text"),
    [
        ("x = 1", CaseError.LINE_WITHOUT_ASSERT, "x"),
        ("assert abd([1], 2) == [1, 2]", CaseError.FUNCTION_NOT_TESTED, "d("),
        ("assert abc([1], 2 == [1, 2]", CaseError.FUNCTION_CALL_VALUE_ERROR, "=="),
        ("assert abc([1,", CaseError.FUNCTION_CALL_NO_CLOSING_PARENTHESIS, "\n"),
        ("assert abc([1 2], 2) == [1, 2]", CaseError.FUNCTION_CALL_SYNTAX_ERROR, "2], 2) =="),
        ("assert abc([1] * 3, 2) == [1, 2]", CaseError.FUNCTION_CALL_VALUE_ERROR, "*"),
        ("assert abc([x], 2) == [1, 2]", CaseError.FUNCTION_CALL_UNKNOWN_VARIABLE, "x]"),
        ("assert abc((1,), 2) == [1, 2]", CaseError.FIRST_ARGUMENT_TYPE_ERROR, "(1,)"),
        ("assert abc([1]) == [1]", CaseError.ONLY_ONE_ARGUMENT, ") =="),
        ("assert abc([1], 2, 3) == [1, 2]", CaseError.MORE_THAN_TWO_ARGUMENTS, "3)"),
        ("assert abc([1], 2) is [1, 2]", CaseError.NO_ASSERTION_EQUALITY, "is"),
        ("assert abc([1], 2) == [1, 2", CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET, "\n"),
        ("assert abc([1], 2) == [1,, 2]", CaseError.EXPECTED_OUTPUT_SYNTAX_ERROR, ", 2]"),
        ("assert abc([1], 2) == [1, 2] + []", CaseError.EXPECTED_OUTPUT_VALUE_ERROR, "+"),
        ("assert abc([1], 2) == [y]", CaseError.EXPECTED_OUTPUT_UNDEFINED_VARIABLE, "y"),
        ("assert abc([1], 2) == 3", CaseError.EXPECTED_OUTPUT_TYPE_ERROR, "3"),
        ("assert abc([1], 2) == [1, 25]", CaseError.ASSERTION_FAILURE, "5]"),
        ("assert abc([1], 2) == [1]", CaseError.ASSERTION_FAILURE, "]\n"),
        ("    assert abc([1], 2) == [1, 2]", CaseError.LINE_WITHOUT_ASSERT, "assert"),
        ("assert abc([], 'ab') == ['ab", CaseError.EXPECTED_OUTPUT_NO_CLOSING_BRACKET, "\n"),
        ('assert abc([1], 2) == [1, 2], "message"', CaseError.EXPECTED_OUTPUT_TYPE_ERROR, ', "m'),
    ],
)
def test_each_error_is_found_at_its_first_character(line: str, error: CaseError, error_text: str) -> None:
    text = GOOD + line + "\n"
    found = evaluate(text, "abc", 3)
    assert found.error == error
    assert found.position == text.rindex(error_text)
    assert is_viable(text[: found.position], "abc", 3)
    assert not is_viable(text[: found.position + 1], "abc", 3)


def test_too_few_and_too_many_cases_are_errors() -> None:
    assert evaluate(GOOD, "abc", 2).error == CaseError.FEWER_TEST_CASES_THAN_EXPECTED
    assert evaluate(GOOD, "abc", 2, final=False).error is None
    assert evaluate(GOOD * 2, "abc", 2).error is None
    extra = evaluate(GOOD * 2 + "\n  def", "abc", 2)
    assert (extra.error, extra.position) == (CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION, 2 * len(GOOD) + 3)
    assert is_viable(GOOD * 2 + "\n  def", "abc", 2)
    assert len(evaluate(GOOD * 5, "abc", 2).cases) == 2


@pytest.mark.parametrize(
    "line",
    [
        "assert abc([[1], [2]], [3]) == [[1], [2], [3]]",
        "assert abc([1], [2]) == [1, [2]]",
        "assert abc(['a'], \"b\") == [\"a\", 'b']",
        "assert  abc ( [ 1.0 , ] , (2,) , )==[1,(2, ),]  # yes",
        "assert abc([], '\\'') == [\"'\"]",
        "assert abc([-1, None, True], 0.50) == [-1, None, True, .5]",
    ],
)
def test_other_spellings_of_correct_cases_are_accepted(line: str) -> None:
    found = evaluate(line, "abc", 1)
    assert found.error is None, found
    assert found.correct == 1
    for stop in range(len(line)):
        assert is_viable(line[:stop], "abc", 1), line[:stop]


def test_deeply_nested_and_very_long_texts_are_evaluated() -> None:
    for text in ("[" * 50_000, "assert abc(" + "[" * 50_000 + "]" * 50_000 + ", 9" * 10_000):
        evaluate(text, "abc")
    huge = "9" * 30_000
    assert evaluate(f"assert abc([], {huge}) == [{huge}]", "abc", 1).correct == 1


VALUES = st.recursive(
    st.integers(-20, 120)
    | st.sampled_from([0.5, -2.25, True, False, None])
    | st.text("ab'\"\\\n ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=2).map(tuple),
    max_leaves=6,
)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.lists(VALUES, max_size=3), VALUES, st.lists(VALUES, max_size=4))
def test_generated_lines_are_judged_as_in_python(
    items: list[object], item: object, expected: list[object]
) -> None:
    """The line is made from Python values, so its correctness is known."""
    for output in ([*items, item], expected):
        line = f"assert abc({items!r}, {item!r}) == {output!r}\n"
        right = repr(output) == repr([*items, item])
        found = evaluate(line, "abc", 1)
        assert found.correct == right
        assert (found.error is None) == right
        if not right:
            assert found.error == CaseError.ASSERTION_FAILURE
            assert is_viable(line[: found.position], "abc", 1)
            assert not is_viable(line[: found.position + 1], "abc", 1)


PIECES = [*"ab\\'[](), 102-.x#\n", "\\'", ", ", "True", "Fa", "None"]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.sampled_from(["", "", "", " ", "\t  "]),
    st.lists(VALUES, max_size=2),
    VALUES,
    st.integers(0, 40),
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
)
def test_first_error_is_the_end_of_the_longest_viable_prefix(
    indentation: str, items: list[object], item: object, position: int, noise: str
) -> None:
    """The evaluation of a whole text agrees with the evaluation of each prefix."""
    call, output = f"{indentation}assert abc({items!r}, {item!r}) == ", repr([*items, item])
    for text in (
        call + output[:position] + noise + output[position:] + "\n",
        (call + output)[:position] + noise + "\n",
    ):
        found = evaluate(text, "abc", 1)
        viable = [is_viable(text[:stop], "abc", 1) for stop in range(len(text) + 1)]
        assert viable == sorted(viable, reverse=True)
        if found.error in (
            None,
            CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION,
            CaseError.FEWER_TEST_CASES_THAN_EXPECTED,
        ):
            assert all(viable)
        else:
            assert viable.index(False) == found.position + 1, (text, found)


def test_prompts_have_the_layout_of_table_3_7() -> None:
    prompt = PromptLayout().prompt("knk", 3)
    lines = prompt.split("\n")
    assert lines[:3] == ["def f(a, b):", "    return a + b", ""]
    assert lines[12:] == [
        "",
        "def knk(l, item):",
        "    assert type(l) is list",
        "    l.append(item)",
        "    return l",
        "",
        "List 8 test cases of the above function knk, one in each line:",
        "",
    ]
    for line in lines[4:12]:
        call, _, total = line.removeprefix("assert f(").partition(") == ")
        assert sum(map(int, call.split(", "))) == int(total)
    assert PromptLayout().prompt("knk", 4) != prompt == PromptLayout().prompt("knk", 3)


def test_extra_demonstrations_are_correct_and_have_new_names() -> None:
    prompt = PromptLayout(cases=4, examples=2).prompt("add", 0)
    shown = prompt.split("def ")[2:]
    assert len(shown) == 3
    for block in shown[:-1]:
        name, cases = block[:3], block.partition("each line:\n")[2].strip()
        assert evaluate(cases, name, 4).error is None
        assert name not in (*TRAINING_NAMES, *OOD_NAMES)
    names = random_names(50, 1, TRAINING_NAMES)
    assert len(set(names)) == 50
    assert not set(names) & set(TRAINING_NAMES)
    expect_error(r"^n=20000", random_names, 20_000, 0)
