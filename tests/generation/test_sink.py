"""Records on standard output: JSON, or text with weight and reason on a terminal."""

import io
import json
import sys

import pytest

from trialogue.generation.output.sink import StandardOutput

RECORDS = [
    {"id": 0, "prompt": "say", "text": "yes", "log_weight": -1.5, "reason": None},
    {
        "id": 0,
        "prompt": "say",
        "text": "a\nb\x1b[2J",
        "log_weight": None,
        "reason": "failed: no token allowed",
    },
    {"id": 1, "prompt": "tell", "text": "no", "log_weight": None, "reason": None},
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
    ]
