"""Prompts with separate verifiers, verifiers that raise errors, cached values, and the order of records."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue.generation.verifiers import graded as values
from trialogue.generation.verifiers.graded import CachedGradedVerifier
from trialogue.oracles import Decoding, Verifier
from trialogue.verifiers import FunctionVerifier
from trialogue.verifiers.functions.tolerant import ErrorLog, reject_on_error

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


def test_every_prompt_follows_its_own_verifier(run):
    write([line for place, line in enumerate(LINES) if place != 2])
    result = run("--prompts", "prompts.jsonl", "--ordered", *MASK).checked()
    assert [(line["id"], line["sample"]) for line in result.lines] == [
        (i, s) for i in range(4) for s in range(3)
    ]
    patterns = ("[a-c]{2}", "[x-z]{3}", "12|34", ".*")
    for line in result.lines:
        assert line["accepted"], line
        assert re.fullmatch(patterns[line["id"]], line["text"], re.DOTALL)
    assert [line.get("rule") for line in result.lines[::3]] == [
        ["regex:[a-c]{2}"],
        ["regex:[x-z]{3}"],
        ['json-schema:{"enum": [12, 34]}'],
        None,
    ]
    # Equal prompts with different verifiers do not affect each other.
    write(LINES[1:2])
    alone = run("--prompts", "prompts.jsonl", *MASK)
    write([{**LINES[0], "id": "other"}, {**LINES[1], "id": 0}])
    beside = run("--prompts", "prompts.jsonl", *MASK)
    assert sorted(line["text"] for line in alone.lines) == sorted(
        line["text"] for line in beside.lines if line["id"] == 0
    )


def test_contradictory_verifiers_are_reported_with_the_line(run):
    write(LINES[:3])
    result = run("--prompts", "prompts.jsonl", *MASK)
    assert result.code == 2
    assert "prompts.jsonl:3': verifier=['regex:[a-f]+', 'json-schema:" in result.err


def test_a_run_is_resumed_if_its_verifiers_are_unchanged(run):
    rules = Path("words.lark")
    rules.write_text('start: "ab" | "ac"')
    write([{"prompt": "the cat", "rule": "lark:words.lark"}])
    first = ("--prompts", "prompts.jsonl", "--out", "out.jsonl", *MASK)
    assert run(*first).code == 0
    write([{"prompt": "the cat", "rule": "lark:words.lark"}, {"prompt": "a", "rule": "regex:[0-9]"}])
    result = run(*first).checked()
    assert "3 of them from an earlier run" in result.err
    rules.write_text('start: "ab"')
    result = run(*first)
    assert result.code == 2
    assert "line 1 belongs to a run with other settings" in result.err
    write([{"prompt": "the cat", "rule": "regex:a"}])
    assert run(*first).code == 2


def test_verifier_files_are_found_next_to_the_prompts(run, tmp_path, monkeypatch):
    rules, words = ["python:rules.py:short", "lark:words.lark"], 'start: "ab" | "abc"'
    folder = Path("questions")
    folder.mkdir()
    write([{"prompt": "the cat", "rule": rules}])
    Path("prompts.jsonl").rename(folder / "prompts.jsonl")
    (folder / "rules.py").write_text("def short(text):\n    return len(text) < 3\n")
    (folder / "words.lark").write_text(words)
    # A file of the same name in the working directory has other content.
    Path("words.lark").write_text("start: /[a-z]/+")
    options = (*MASK, "--verifier", f"lark:{tmp_path / 'words.lark'}", "--out", str(tmp_path / "out.jsonl"))
    result = run("--prompts", "questions/prompts.jsonl", *options).checked()
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(line["text"], line["rule"]) for line in lines if line["accepted"]] == [("ab", rules)] * 3
    # The same files from another directory belong to the same run.
    monkeypatch.chdir(folder)
    result = run("--prompts", "prompts.jsonl", *options).checked()
    assert "3 of them from an earlier run" in result.err
    (tmp_path / "questions" / "words.lark").write_text('start: "ab"')
    assert run("--prompts", "prompts.jsonl", *options).code == 2


def test_options_for_functions_apply_to_the_verifiers_of_prompts(run):
    write([{"prompt": "the cat", "rule": "python:rules.py:has_dog"}])
    result = run("--prompts", "prompts.jsonl", "--verifier-whole", "--max-new-tokens", "2").checked()
    write([{"prompt": "the cat"}])
    result = run("--prompts", "prompts.jsonl", "--verifier-whole")
    assert "verifier_whole=True: leave it out" in result.err


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
        ("hangs", r"it did not return within 0.3 s; fix the function or increase the timeout"),
    ],
)
def test_texts_for_which_the_verifier_raises_are_rejected_with_a_reason(run, name, words):
    Path("bad.py").write_text(RAISING)
    sizes = ("--n", "6", "--max-new-tokens", "5")
    options = ("--prompt", "the cat", *sizes, "--verifier", f"python:bad.py:{name}")
    result = run(*options, "--verifier-whole", "--verifier-timeout", "0.3", "--on-error", "reject").checked()
    for line in result.lines:
        assert line["accepted"] == (len(line["text"]) <= 6)
        if not line["accepted"]:
            assert re.search(f"verifier {name}=.*: {words}", line["reason"]), line["reason"]
    assert {line["accepted"] for line in result.lines} == {True, False}
    # Other continuations remain possible.
    stepwise = (
        run(*options, "--sampler", "tokenwise-rejection", "--top-k", "20", "--on-error", "reject")
        if name == "f"
        else result
    )
    assert stepwise.code == 0, stepwise.err
    assert all(len(line["text"]) <= 6 for line in stepwise.lines if line["accepted"])
    assert run(*options, "--verifier-whole", "--verifier-timeout", "0.3").code == 2


def test_a_sampler_without_a_verifier_may_start_with_any_token(run):
    """Grammars without a common first token accept nothing, but ancestral sampling does not use them."""
    grammars = ("--verifier", "regex:[a-c]+", "--verifier", "regex:[x-z]+")
    options = ("--prompt", "the cat", "--max-new-tokens", "2", *grammars)
    (line,) = run(*options, "--sampler", "ancestral").checked().lines
    assert not line["accepted"]
    run(*options, "--sampler", "rejection").require_error("they have no common first token")


def test_a_sorted_output_is_kept_or_rejected(run):
    options = ("--prompt", "the cat", "--prompt", "a list", "--max-new-tokens", "12", "--batch-size", "2")
    assert run(*options, "--n", "3", "--out", "out.jsonl", "--ordered").code == 0
    result = run(*options, "--n", "4", "--out", "out.jsonl", "--ordered")
    assert result.code == 2
    reason = "leave it out or overwrite the file with --force: new samples of an earlier prompt would follow later ones"
    assert f"ordered=True: {reason}" in result.err
    lines = Path("out.jsonl").read_text().splitlines(keepends=True)
    for left, words in (
        (lines[::-1], "the samples in the file are in another order"),
        (lines[1:], "new samples of an earlier prompt would follow"),
        (lines[:4] + lines[5:], "missing samples would follow later ones"),
    ):
        Path("out.jsonl").write_text("".join(left))
        result = run(*options, "--n", "3", "--out", "out.jsonl", "--ordered")
        expected = f"ordered=True: leave it out or overwrite the file with --force: {words}"
        assert (result.code, expected in result.err) == (2, True), result.err
    until = run(
        *options, "--until", "2", "--verifier", "python:rules.py:lower", "--verifier-whole", "--ordered"
    )
    keys = [(line["id"], line["sample"]) for line in until.lines]
    assert keys == sorted(keys)
    assert len(keys) > 3


def test_values_of_children_are_unknown_if_one_row_has_none():
    class Unsure(Verifier):
        def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
            return torch.ones(len(rows))

        def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
            if len(rows) > 1:
                raise ValueError("one at a time")
            return None if int(rows[0]) else torch.ones(1, 3, dtype=torch.bool)

    judging = reject_on_error(Unsure(), ErrorLog())
    decoding: Any = SimpleNamespace(vocab_size=3)
    assert judging.children(decoding, torch.tensor([0, 1])) is None
    assert judging.children(decoding, torch.tensor([1, 1])) is None
    both = judging.children(decoding, torch.tensor([0, 0]))
    assert both is not None
    assert both.shape == (2, 3)


def judge(graded: CachedGradedVerifier, first: int, number: int) -> None:
    """Compute the values of `number` complete sequences of one token each."""
    decoding: Any = SimpleNamespace(
        tokens=torch.arange(first, first + number)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        start=torch.zeros(number, dtype=torch.int64),
        complete=torch.ones(number, dtype=torch.bool),
        eos=None,
    )
    graded.values(decoding, torch.arange(number))


def cached_values(graded: CachedGradedVerifier, *tokens: int) -> list[float | None]:
    number = len(tokens)
    samples: Any = SimpleNamespace(
        tokens=torch.tensor(tokens)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        prompt_lengths=torch.zeros(number, dtype=torch.int64),
    )
    return graded.final(samples)


def test_only_the_latest_values_are_cached(monkeypatch):
    monkeypatch.setattr(values, "_REMEMBERED", 8)
    graded = CachedGradedVerifier(FunctionVerifier(lambda prefix: float(prefix[0])))
    for first in range(0, 100, 2):
        judge(graded, first, 2)
        assert len(graded._values) <= 8
        assert cached_values(graded, first, first + 1) == [first, first + 1]
    assert cached_values(graded, 0, 91, 92, 99) == [None, None, 92.0, 99.0]
    # A value that is computed again becomes the latest.
    judge(graded, 92, 1)
    judge(graded, 200, 7)
    assert cached_values(graded, 92, 99, 206) == [92.0, 99.0, 206.0]
