"""Each prompt under a rule of its own; verifiers that raise; records in order."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from generation.command import Say
from trialogue.oracles import Decoding, Verifier
from trialogue.verifiers.tolerant import Raised, tolerant

MASK = ("--sampler", "masked-decoding", "--max-new-tokens", "8", "--n", "3")
LINES = [
    {"prompt": "the cat", "rule": "regex:[a-c]{2}"},
    {"prompt": "the cat", "rule": {"regex": "[x-z]{3}"}},
    {"prompt": "the cat", "rule": ["regex:[a-f]+", {"json-schema": {"type": "integer"}}]},
    {"prompt": "the cat", "rule": {"json-schema": {"enum": [12, 34]}}},
    {"prompt": "the cat"},
]


def write(lines: list[dict[str, object]]) -> None:
    Path("prompts.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")


def test_every_prompt_obeys_its_own_rule(say: Say) -> None:
    write([line for place, line in enumerate(LINES) if place != 2])
    told = say("--prompts", "prompts.jsonl", "--ordered", *MASK)
    assert told.code == 0, told.err
    assert [(line["id"], line["sample"]) for line in told.lines] == [
        (i, s) for i in range(4) for s in range(3)
    ]
    patterns = ("[a-c]{2}", "[x-z]{3}", "12|34", ".*")
    for line in told.lines:
        assert line["accepted"], line
        assert re.fullmatch(patterns[line["id"]], line["text"], re.DOTALL)
    assert [line.get("rule") for line in told.lines[::3]] == [
        ["regex:[a-c]{2}"],
        ["regex:[x-z]{3}"],
        ['json-schema:{"enum": [12, 34]}'],
        None,
    ]
    # Beside others as alone: equal prompts under two rules share nothing.
    write(LINES[1:2])
    alone = say("--prompts", "prompts.jsonl", *MASK)
    write([{**LINES[0], "id": "other"}, {**LINES[1], "id": 0}])
    beside = say("--prompts", "prompts.jsonl", *MASK)
    assert sorted(line["text"] for line in alone.lines) == sorted(
        line["text"] for line in beside.lines if line["id"] == 0
    )


def test_rules_that_contradict_each_other_name_the_line(say: Say) -> None:
    write(LINES[:3])
    told = say("--prompts", "prompts.jsonl", *MASK)
    assert told.code == 2
    assert "prompts.jsonl:3': verifier=['regex:[a-f]+', 'json-schema:" in told.err


def test_a_run_goes_on_where_rules_are_the_same(say: Say) -> None:
    rules = Path("words.lark")
    rules.write_text('start: "ab" | "ac"')
    write([{"prompt": "the cat", "rule": "lark:words.lark"}])
    first = ("--prompts", "prompts.jsonl", "--out", "out.jsonl", *MASK)
    assert say(*first).code == 0
    write([{"prompt": "the cat", "rule": "lark:words.lark"}, {"prompt": "a", "rule": "regex:[0-9]"}])
    told = say(*first)
    assert told.code == 0
    assert "3 of the samples were there already" in told.err
    rules.write_text('start: "ab"')
    told = say(*first)
    assert told.code == 2
    assert "out.jsonl': line 1 belongs to another run" in told.err
    write([{"prompt": "the cat", "rule": "regex:a"}])
    assert say(*first).code == 2


def test_files_of_rules_lie_beside_the_prompts(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, words = ["python:rules.py:short", "lark:words.lark"], 'start: "ab" | "abc"'
    folder = Path("questions")
    folder.mkdir()
    write([{"prompt": "the cat", "rule": rules}])
    Path("prompts.jsonl").rename(folder / "prompts.jsonl")
    (folder / "rules.py").write_text("def short(text):\n    return len(text) < 3\n")
    (folder / "words.lark").write_text(words)
    # Of the same name in the working directory, and without the function.
    Path("words.lark").write_text("start: /[a-z]/+")
    asked = (*MASK, "--verifier", f"lark:{tmp_path / 'words.lark'}", "--out", str(tmp_path / "out.jsonl"))
    told = say("--prompts", "questions/prompts.jsonl", *asked)
    assert told.code == 0, told.err
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(line["text"], line["rule"]) for line in lines if line["accepted"]] == [("ab", rules)] * 3
    # The same files from elsewhere are the same run.
    monkeypatch.chdir(folder)
    told = say("--prompts", "prompts.jsonl", *asked)
    assert told.code == 0, told.err
    assert "3 of the samples were there already" in told.err
    (tmp_path / "questions" / "words.lark").write_text('start: "ab"')
    assert say("--prompts", "prompts.jsonl", *asked).code == 2


def test_options_on_functions_count_those_of_prompts(say: Say) -> None:
    write([{"prompt": "the cat", "rule": "python:rules.py:has_dog"}])
    told = say("--prompts", "prompts.jsonl", "--verifier-whole", "--max-new-tokens", "2")
    assert told.code == 0, told.err
    write([{"prompt": "the cat"}])
    told = say("--prompts", "prompts.jsonl", "--verifier-whole")
    assert "verifier_whole=True: leave it out" in told.err


RAISING = """
def f(text):
    if len(text) > 6:
        return text.no_such
    return True

def hangs(text):
    while len(text) > 6:
        pass
    return True
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("f", r"it raised AttributeError: 'str' object has no attribute 'no_such' \(bad.py:4\)"),
        ("hangs", r"it did not return within 0.3 s: fix it, or raise the timeout"),
    ],
)
def test_what_raises_is_rejected_and_says_where(say: Say, name: str, words: str) -> None:
    Path("bad.py").write_text(RAISING)
    sizes = ("--n", "12", "--max-new-tokens", "8")
    asked = ("--prompt", "the cat", *sizes, "--verifier", f"python:bad.py:{name}")
    told = say(*asked, "--verifier-whole", "--verifier-timeout", "0.3", "--on-error", "reject")
    assert told.code == 0, told.err
    for line in told.lines:
        assert line["accepted"] == (len(line["text"]) <= 6)
        if not line["accepted"]:
            assert re.search(f"verifier {name}=.*: {words}", line["reason"]), line["reason"]
    assert {line["accepted"] for line in told.lines} == {True, False}
    # Rejected continuations leave others.
    walked = (
        say(*asked, "--sampler", "tokenwise-rejection", "--top-k", "20", "--on-error", "reject")
        if name == "f"
        else told
    )
    assert walked.code == 0, walked.err
    assert all(len(line["text"]) <= 6 for line in walked.lines if line["accepted"])
    assert say(*asked, "--verifier-whole", "--verifier-timeout", "0.3").code == 2


def test_order_is_kept_or_refused(say: Say) -> None:
    asked = ("--prompt", "the cat", "--prompt", "a list", "--max-new-tokens", "12", "--batch-size", "2")
    assert say(*asked, "--n", "3", "--out", "out.jsonl", "--ordered").code == 0
    told = say(*asked, "--n", "4", "--out", "out.jsonl", "--ordered")
    assert told.code == 2
    why = "more samples of an earlier prompt would come behind later ones: leave it out, or begin anew"
    assert f"ordered=True: {why}" in told.err
    lines = Path("out.jsonl").read_text().splitlines(keepends=True)
    for left, words in (
        (lines[::-1], "the samples that are there are in another order: leave it out"),
        (lines[1:], "more samples of an earlier prompt would come behind"),
        (lines[:4] + lines[5:], "samples that are missing would come behind later ones: leave it out"),
    ):
        Path("out.jsonl").write_text("".join(left))
        told = say(*asked, "--n", "3", "--out", "out.jsonl", "--ordered")
        assert (told.code, f"ordered=True: {words}" in told.err) == (2, True), told.err
    until = say(
        *asked, "--until", "2", "--verifier", "python:rules.py:lower", "--verifier-whole", "--ordered"
    )
    keys = [(line["id"], line["sample"]) for line in until.lines]
    assert keys == sorted(keys)
    assert len(keys) > 3


def test_children_that_one_row_does_not_know_are_known_of_none() -> None:
    class Unsure(Verifier):
        def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
            return torch.ones(len(rows))

        def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
            if len(rows) > 1:
                raise ValueError("one at a time")
            return None if int(rows[0]) else torch.ones(1, 3, dtype=torch.bool)

    judging = tolerant(Unsure(), Raised())
    decoding: Any = None
    assert judging.children(decoding, torch.tensor([0, 1])) is None
    assert judging.children(decoding, torch.tensor([1, 1])) is None
    both = judging.children(decoding, torch.tensor([0, 0]))
    assert both is not None
    assert both.shape == (2, 3)
