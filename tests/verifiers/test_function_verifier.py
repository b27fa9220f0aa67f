"""Verifiers from functions of tokens or text: their arguments, their return values and their timeouts."""

import math
import re
import signal
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch

from batches import batch_of
from refusals import expect_error
from samplers.small_languages import LETTERS, tokenization
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.oracles import Verifier
from trialogue.samplers import Rejection, generate
from trialogue.verifiers import FunctionVerifier, TextVerifier, python_verifier
from trialogue.verifiers.functions.file_function import FileFunction
from trialogue.verifiers.functions.file_worker import serve
from trialogue.verifiers.functions.timeout import CallTimeoutError, call_within

TEXT = tokenization(LETTERS)
A, B, C, AB, FIRST, SECOND, _, _, EOS = range(9)
LIMIT = 8
LONG = 1000
"""Seconds that no call takes, even if the machine is busy for a while."""


ORACLE = Table(lambda prefix: [1.0] * TEXT.vocab_size, TEXT.vocab_size, eos=EOS)


def evaluate(verifier, sequences=((A,),), prompts=0) -> list[float]:
    batch = batch_of(ORACLE, sequences, LIMIT, prompts)
    return verifier.values(batch, torch.arange(len(sequences))).tolist()


CASES = [
    ((A, FIRST), "a", "a"),
    ((A, FIRST, SECOND), "aé", "aé"),
    ((FIRST, SECOND, EOS), "é", "é"),
    ((A, FIRST, EOS), "a\N{REPLACEMENT CHARACTER}", "a\N{REPLACEMENT CHARACTER}"),
    ((A, B, C, A, B, C, A, FIRST), "abcabca\N{REPLACEMENT CHARACTER}", "cabca\N{REPLACEMENT CHARACTER}"),
    ((EOS,), "", ""),
    ((), "", ""),
]


@pytest.mark.parametrize("scope", ["completion", "sequence"])
def test_a_function_of_text_receives_complete_characters(scope):
    seen = []
    verifier = TextVerifier(lambda text: seen.append(text) or 1.0, TEXT, scope)
    # The fifth case has a prompt.
    prompts = [2 if len(tokens) == LIMIT else 0 for tokens, _, _ in CASES]
    evaluate(verifier, [tokens for tokens, _, _ in CASES], prompts)
    assert seen == [completion if scope == "completion" else sequence for _, sequence, completion in CASES]


def test_an_end_of_sequence_token_with_text_is_not_part_of_the_text():
    seen = []
    oracle = Table(lambda prefix: [1.0] * 3, 3, eos=C)
    batch = batch_of(oracle, [(A, C), (A, B)], 4)
    TextVerifier(lambda text: seen.append(text) or 1.0, TEXT).values(batch, torch.arange(2))
    assert seen == ["a", "ab"]


@pytest.mark.parametrize("kind", [FunctionVerifier, lambda f, **kw: TextVerifier(f, TEXT, **kw)])
def test_a_function_may_be_restricted_to_complete_sequences(kind):
    seen = []
    verifier = kind(lambda prefix: seen.append(len(prefix)) or 0.25, whole=True)
    assert isinstance(verifier, Verifier)
    assert evaluate(verifier, [(A,), (A, EOS), (), (A,) * LIMIT]) == [1.0, 0.25, 1.0, 0.25]
    assert len(seen) == 2


def test_numbers_of_all_types_are_accepted_as_values():
    for value, expected in (
        (True, 1),
        (0, 0),
        (np.float32(0.5), 0.5),
        (torch.tensor(0.25), 0.25),
        (Decimal("0.125"), 0.125),
    ):
        assert evaluate(FunctionVerifier(lambda prefix, value=value: value)) == [expected]


def test_invalid_return_values_are_reported():
    message = r"^verifier rule=\(0,\): it returned .*; return a finite non-negative number or a bool$"
    numbers = (None, math.nan, math.inf, -0.5, 10**400, 1j)
    for value in (*numbers, "1", b"1", [1, 2], torch.ones(1), np.ones((1, 1)), {}):

        def rule(prefix, value=value):
            return value

        assert len(str(expect_error(message, evaluate, FunctionVerifier(rule)))) < 200


def test_errors_of_a_function_are_reported_with_its_argument():
    def rule(given):
        raise KeyError(f"two\nlines {given[:1]}")

    with pytest.raises(
        InputError, match=r"^verifier rule=\(0, 0, 0, 0, 0, 0, \.\.\.\): it raised KeyError: "
    ) as caught:
        evaluate(FunctionVerifier(rule), [(A,) * LIMIT])
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(
        InputError, match=r"^verifier rule='ab': it raised KeyError: 'two.*lines a' \(.*.py:\d+\)$"
    ):
        evaluate(TextVerifier(rule, TEXT), [(AB,)])
    with pytest.raises(InputError, match=r"^verifier rule=\(0,\): it raised KeyError: "):
        generate(Table(lambda prefix: [1.0], 1, max_length=1), sampler=Rejection(), verifier=rule)


def test_a_function_that_exits_the_program_is_reported():
    for leave, name in (
        (sys.exit, "SystemExit"),
        (lambda: sys.exit("no\nmore"), "SystemExit: no more"),
        (lambda: next(iter(())), "StopIteration"),
        (lambda: raising(GeneratorExit())(()), "GeneratorExit"),
    ):
        for timeout in (None, LONG):
            rule = FunctionVerifier(lambda prefix, leave=leave: leave(), timeout=timeout)
            expect_error(rf"=\(0,\): it raised {name}( \(.*.py:\d+\))?$", evaluate, rule)


def loops(prefix):
    while True:
        pass


def backtracks(prefix):
    return re.match(r"(a+)+$", "a" * 60 + "b") is None


def swallows(prefix):
    try:
        time.sleep(LONG)
        return True
    except:  # noqa: E722 (users write this)
        return False


def fails_when_interrupted(prefix):
    try:
        time.sleep(LONG)
    except BaseException:
        raise ValueError("no answer") from None


def returns_at_last(prefix):
    try:
        time.sleep(LONG)
    finally:
        return True  # noqa: B012 (users write this)


@pytest.mark.parametrize("function", [loops, backtracks, swallows, fails_when_interrupted, returns_at_last])
def test_a_function_that_does_not_return_is_reported(function):
    message = r"it did not return within 0\.05 s; fix the function or increase the timeout$"
    with pytest.raises(InputError, match=rf"^verifier {function.__name__}=\(0,\): {message}"):
        evaluate(FunctionVerifier(function, timeout=0.05))


def test_a_function_that_returns_in_time_is_not_interrupted():
    for _ in range(20):
        assert evaluate(FunctionVerifier(lambda prefix: time.sleep(0.001) is None, timeout=LONG)) == [1.0]
    with pytest.raises(InputError, match="it raised TimeoutError: no answer"):
        evaluate(FunctionVerifier(raising(TimeoutError("no answer")), timeout=LONG))
    with pytest.raises(KeyboardInterrupt):
        evaluate(FunctionVerifier(raising(KeyboardInterrupt()), timeout=LONG))


def raising(error):
    def function(prefix):
        raise error

    return function


def in_a_thread(run) -> list[BaseException | None]:
    outcome = []

    def caught():
        try:
            run()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=caught)
    thread.start()
    thread.join()
    return outcome


def test_timeouts_work_outside_the_main_thread():
    release = threading.Event()
    results = []
    assert in_a_thread(lambda: results.append(call_within(LONG, str.upper, "a"))) == [None]
    assert results == ["A"]
    (overdue,) = in_a_thread(lambda: call_within(0.02, lambda event: event.wait(), release))
    assert isinstance(overdue, CallTimeoutError)
    (error,) = in_a_thread(lambda: call_within(LONG, raising(LookupError()), "a"))
    assert isinstance(error, LookupError)
    release.set()


@pytest.fixture
def alarms():
    """Count alarms of the program. The timer and the handler of the test runner are restored."""
    counted = []
    handler = signal.signal(signal.SIGALRM, lambda *_: counted.append(None))
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    yield counted
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, delay, interval)


def test_an_alarm_of_the_program_keeps_its_time(alarms):
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, LONG)
    assert call_within(LONG, lambda pause: time.sleep(pause) or 1, 0.02) == 1
    with pytest.raises(CallTimeoutError):
        call_within(0.02, loops, ())
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    assert LONG - (time.monotonic() - began) - 0.01 < left < LONG - 0.04
    assert alarms == []


def test_a_call_that_ends_at_the_same_time_as_its_alarm_leaves_no_timer(alarms):
    for _ in range(300):
        try:
            assert call_within(0.001, lambda pause: time.sleep(pause) or 1, 0.001) == 1
        except CallTimeoutError:
            continue
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    time.sleep(0.02)
    assert alarms == []
    with pytest.raises(CallTimeoutError):
        call_within(0.02, time.sleep, LONG)


def test_an_alarm_of_the_program_does_not_interrupt_the_function(alarms):
    def undisturbed(pause):
        before = len(alarms)
        time.sleep(pause)
        return len(alarms) == before

    signal.setitimer(signal.ITIMER_REAL, 0.01)
    assert call_within(LONG, undisturbed, 0.05)
    for _ in range(1000):
        if alarms:
            break
        time.sleep(0.01)
    assert len(alarms) == 1


SOURCE = """
from dataclasses import dataclass

@dataclass
class Rule:
    letter: str

def even(given):
    return len(given) % 2 == 0

def starts(text):
    return text.startswith(Rule("a").letter)

number = 3
"""


def test_a_function_is_loaded_from_a_file(tmp_path):
    path = tmp_path / "my rules.py"
    path.write_text(SOURCE)
    text = python_verifier(path, "starts", TEXT)
    assert (type(text), text.scope) == (TextVerifier, "completion")
    assert evaluate(text, [(A,), (B,), (B, AB)], [0, 0, 1]) == [1, 0, 1]
    tokens = python_verifier(str(path), "even", scope="sequence", whole=True)
    assert (type(tokens), tokens.scope) == (FunctionVerifier, "sequence")
    assert evaluate(tokens, [(A,), (A, EOS), (A, A, EOS)]) == [1, 1, 0]


def test_invalid_files_are_reported(tmp_path):
    path = tmp_path / "rule.py"
    for source, name, message in (
        (None, "f", "python='.*rule.py': there is no such file"),
        (SOURCE, "odd", "python='.*rule.py:odd': .*; its functions: Rule, even, starts$"),
        ("x = 1", "x", "python='.*rule.py:x': the file has no such function; its functions: none$"),
        ("def f(:", "f", "python='.*rule.py': it cannot be run: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "f", "python='.*rule.py': it cannot be run: SystemExit: 3$"),
        ("import letters_elsewhere", "f", "python='.*': it cannot be run: ModuleNotFoundError: No module"),
    ):
        if source is not None:
            path.write_text(source)
        expect_error(f"^{message}", python_verifier, path, name)


def test_output_of_functions_is_redirected_to_standard_error(tmp_path, capfd):
    path = tmp_path / "rule.py"
    path.write_text("print('loaded')\ndef f(text):\n    print(text)\n    return 1 / (text != 'b')\n")
    verifier = python_verifier(path, "f", TEXT, timeout=LONG)
    assert evaluate(verifier, [(AB,), (C,)]) == [1, 1]
    with pytest.raises(InputError, match="it did not return"):
        evaluate(FunctionVerifier(lambda prefix: print("called") or loops(prefix), timeout=0.05))
    print("sample")
    assert capfd.readouterr() == ("sample\n", "loaded\nab\nc\ncalled\n")


def test_a_process_that_hangs_in_c_code_is_ended_and_restarted(tmp_path):
    path = tmp_path / "rule.py"
    path.write_text(
        "import os\ncalls = []\n"
        "def f(text):\n    calls.append(text)\n"
        "    if text == 'ab':\n        next(iter(int, 1) for _ in iter(int, 1) if not sum(iter(int, 1)))\n"
        "    if text == 'b':\n        os.kill(os.getpid(), 9)\n"
        "    return len(calls) < 3\n"
    )
    verifier = python_verifier(path, "f", TEXT, timeout=LONG)
    assert evaluate(verifier, [(A,), (C,), (A, A)]) == [1, 1, 0]
    brief = python_verifier(path, "f", TEXT, timeout=0.5)
    # The function runs in C code, which an alarm does not interrupt.
    expect_error(r"verifier f='ab': it did not return within 0\.5 s", evaluate, brief, [(AB,)])
    assert evaluate(brief, [(A,)]) == [1]
    expect_error("verifier f='b': it ended its process \\(signal 9\\)", evaluate, verifier, [(A,), (B,)])
    assert evaluate(verifier, [(A,)]) == [1]


def test_threads_that_share_a_function_of_a_file_get_all_their_results(tmp_path):
    path = tmp_path / "rule.py"
    path.write_text("def f(text):\n    return int(text)\n")
    function, results = FileFunction(path, "f"), {}

    def call_all(first: int) -> None:
        texts = [str(first + number) for number in range(20)]
        results[first] = [[*function.call_all(texts, LONG)] for _ in range(50)]

    threads = [threading.Thread(target=call_all, args=(first,), daemon=True) for first in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {first: [[*range(first, first + 20)]] * 50 for first in (0, 100)}


def test_a_function_can_be_called_again_after_an_interrupt(tmp_path, alarms):
    path = tmp_path / "rule.py"
    path.write_text(
        "import os, signal\n"
        "def f(text):\n"
        "    if text == 'now':\n        os.kill(os.getppid(), signal.SIGALRM)\n"
        "    return len(text)\n"
    )
    function = FileFunction(path, "f")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(function.call_all(["now"] + ["then"] * 20_000, None))
    # If unread results remained in the pipe, both processes would wait for space to write.
    result = []
    calling = threading.Thread(
        target=lambda: result.extend(function.call_all(["a" * 2_000_000], None)), daemon=True
    )
    calling.start()
    calling.join(20)
    assert result == [2_000_000]


def test_errors_in_a_file_are_reported_with_their_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rule.py").write_text(
        "def f(text):\n    if text == 'b':\n        return {}[text]\n    return True\n"
    )
    verifier = python_verifier("rule.py", "f", TEXT)
    with pytest.raises(InputError, match=r"verifier f='b': it raised KeyError: 'b' \(rule.py:3\)$"):
        evaluate(verifier, [(A,), (B,), (C,)])
    # Unread results of earlier calls must not be returned for later calls.
    assert evaluate(verifier, [(A,), (C,)]) == [1, 1]


def test_a_file_imports_modules_from_its_folder_only(tmp_path):
    paths, modules, rules = list(sys.path), set(sys.modules), []
    for letter in "ab":
        folder = tmp_path / letter
        folder.mkdir()
        (folder / "letters.py").write_text(f"LETTER = {letter!r}\n")
        (folder / "late.py").write_text("from letters import LETTER\n")
        (folder / "rule.py").write_text(
            "from letters import LETTER\n"
            "def early(text):\n    return LETTER in text\n"
            "def late(text):\n    import late\n    return late.LETTER in text\n"
        )
        rules += [python_verifier(folder / "rule.py", name, TEXT) for name in ("early", "late")]
    for _ in range(2):
        assert [evaluate(rule, [(A,), (B,)]) for rule in rules] == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert sys.path == paths
    assert not {"letters", "late"} & (set(sys.modules) - modules)


def test_the_maximum_value_follows_from_the_annotation_or_the_argument():
    def decides(prefix) -> bool:
        return len(prefix) < 3

    assert FunctionVerifier(decides).most == TextVerifier(decides, TEXT).most == 1.0
    assert FunctionVerifier(len).most == FunctionVerifier(lambda prefix: True).most == math.inf
    assert FunctionVerifier(len, most=9).most == 9.0
    assert FunctionVerifier(len, most=0.5, whole=True).most == 1.0
    expect_error("most=0: use a number above 0", FunctionVerifier, len, most=0)
    with pytest.raises(InputError, match=r"verifier len=.*: it returned 3, which is above most=2"):
        evaluate(FunctionVerifier(len, most=2), [(A, B, C)])


@pytest.mark.parametrize("error", [EOFError, ConnectionResetError, BrokenPipeError])
def test_the_process_of_a_function_ends_quietly_if_its_parent_has_ended(error, tmp_path, monkeypatch):
    class Closed:
        def send_bytes(self, message):
            pass

        def recv_bytes(self):
            raise error

    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.path", list(sys.path))
    path = tmp_path / "rule.py"
    path.write_text("def rule(text):\n    return True\n", encoding="utf-8")
    assert serve(Closed(), str(path), "rule.py", "rule") is None
