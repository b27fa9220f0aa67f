"""Output: live text on a terminal, and records as JSON or as text with weight and reason."""

import io
import json
import shutil
import sys

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from trialogue.generation.output import live_text as streaming
from trialogue.generation.output.live_text import LiveText
from trialogue.generation.output.sink import StandardOutput

COLUMNS = 7


class Terminal(io.StringIO):
    """A terminal with `COLUMNS` columns that interprets the output of `LiveText`."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = [[]]
        self.row = 0
        self.column = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        rest = text
        while rest:
            if rest.startswith("\x1b["):
                count = rest[2:].split("A")[0].split("J")[0]
                if rest[2 + len(count)] == "A":
                    self.row -= int(count)
                    assert self.row >= 0
                else:
                    del self.rows[self.row + 1 :]
                    del self.rows[self.row][self.column :]
                rest = rest[3 + len(count) :]
                continue
            self._put(rest[0])
            rest = rest[1:]
        return len(text)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._next_row()
        elif character == "\r":
            self.column = 0
        else:
            width = cell_len(character)
            if self.column + width > COLUMNS:
                self._next_row()
            row = self.rows[self.row]
            row[self.column :] = [character] + [""] * (width - 1)
            self.column += width

    def _next_row(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append([])

    def text(self) -> str:
        return "\n".join("".join(row) for row in self.rows)


def wrapped(text: str) -> str:
    terminal = Terminal()
    terminal.write(text)
    return terminal.text()


RELATED = st.lists(
    st.tuples(st.integers(0, 30), st.text(alphabet="ab\n東", max_size=12)), min_size=1, max_size=12
)


@pytest.fixture(autouse=True)
def size(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", "1000")
    assert shutil.get_terminal_size() == (COLUMNS, 1000)


@settings(phases=(Phase.explicit, Phase.generate))
@given(RELATED)
def test_the_screen_shows_the_current_text(changes):
    terminal, text = Terminal(), ""
    live = LiveText(terminal)
    for keep, new in changes:
        text = text[:keep] + new
        live.show(text)
        assert terminal.text() == wrapped(text)


def test_a_faulty_row_count_is_detected(monkeypatch):
    monkeypatch.setattr(streaming, "_rows", lambda line, columns: cell_len(line) // columns + 1)
    with pytest.raises(AssertionError):
        test_the_screen_shows_the_current_text()


def test_text_above_the_screen_is_marked(monkeypatch):
    monkeypatch.setenv("LINES", "2")
    terminal = Terminal()
    live = LiveText(terminal)
    live.show("aaaaaaa" * 5)
    live.show("b")
    assert terminal.text().endswith("\n↶\nb")


def test_unchanged_lines_above_the_screen_are_not_rewritten(monkeypatch):
    monkeypatch.setenv("LINES", "1")
    terminal = Terminal()
    live = LiveText(terminal)
    live.show("a\nb\nc")
    live.show("a\nb\nd")
    assert terminal.text() == "a\nb\nd"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("ab\n\nc", "ab\n\nd", 4),
        ("a\n", "a\nb", 2),
        # The last line of a text is incomplete.
        ("a", "a\nb", 0),
        ("a\nb", "a", 0),
        ("a\nb\nc\n", "a\nx\nc\n", 2),
    ],
)
def test_common_lines_are_complete_and_precede_the_first_change(first, second, expected):
    assert streaming._common_lines(first, second) == expected


def test_control_characters_are_displayed_as_symbols():
    terminal = Terminal()
    LiveText(terminal).end("a\x1b[2Jb\rc\td\x7f\x9f\xa0")
    assert terminal.text() == wrapped("a␛[2Jb␍c    d��\xa0\n")


def test_a_file_receives_only_the_final_text():
    stream = io.StringIO()
    live = LiveText(stream)
    for text in ("a", "ab", "a", "ac"):
        live.show(text)
    assert stream.getvalue() == ""
    live.end("ac")
    assert stream.getvalue() == "ac\n"


RECORDS = [
    {"id": 0, "prompt": "say", "text": "yes", "log_weight": -1.5, "reason": None},
    {
        "id": 0,
        "prompt": "say",
        "text": "a\nb\x1b[2J",
        "log_weight": None,
        "reason": "failed: no token allowed",
    },
    {
        "id": 1,
        "prompt": "tell",
        "text": "no",
        "log_weight": None,
        "reason": None,
        "confidence": {"/a": 0.5, "/b\x1b": 0.25},
        "confidence_error": {"/b\x1b": 0.01},
    },
]


def shown(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    output = StandardOutput({0: "say", 1: "tell"})
    for record in RECORDS:
        output.append(record)
    return raw.getvalue().decode()


def test_a_file_receives_json(monkeypatch):
    assert [json.loads(line) for line in shown(monkeypatch, False).splitlines()] == RECORDS


def test_a_terminal_receives_text(monkeypatch):
    assert shown(monkeypatch, True).splitlines() == [
        "say",
        "     -1.50  yes",
        "  rejected  a",
        "            b␛[2J  [failed: no token allowed]",
        "tell",
        "  accepted  no",
        "confidence  /a 0.500, /b␛ 0.250 ± 0.01",
    ]
