"""Grammars on the command line: JSON schemas, pydantic models, tools, and errors in them."""

import json
from functools import partial
from pathlib import Path

import pytest

from generation.command import PROMPT
from refusals import commands_without_expected_error

MASK = ("--sampler", "masked-decoding", "--n", "4", "--max-new-tokens", "60")
SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": [1, 2]}, "m": {"enum": [1, 2]}},
    "required": ["n", "m"],
    "additionalProperties": False,
}
MODELS = """
from pydantic import BaseModel, model_validator

from bounds import MOST

class Pair(BaseModel):
    model_config = {"extra": "forbid"}
    n: bool
    m: bool

    @model_validator(mode="after")
    def differ(self):
        import bounds
        print("judging")
        if self.n + self.m > bounds.MOST:
            raise ValueError("too many")
        return self

class Failing(BaseModel):
    model_config = {"extra": "forbid"}
    n: bool

    @model_validator(mode="after")
    def fail(self):
        raise KeyError("n")
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    (tmp_path / "bounds.py").write_text("MOST = 1", encoding="utf-8")
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("f", "g")]
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")


def test_each_kind_of_grammar_has_an_option_and_a_default_mask(run, files):
    Path("schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    Path("words.lark").write_text('start: "ab" | "ac"', encoding="utf-8")
    for options, spec in (
        (("--json-schema", "schema.json"), "json-schema:schema.json"),
        (("--regex", "[a-c]{2}"), "regex:[a-c]{2}"),
        (("--choice", "a b", "1.5", "/é\n*"), 'choice:["a b", "1.5", "/\\u00e9\\n*"]'),
        (("--grammar", "words.lark"), "lark:words.lark"),
        (("--pydantic", "models.py:Pair"), "pydantic:models.py:Pair"),
    ):
        result = run(*PROMPT, *options, *MASK[2:]).checked()
        longer = run(*PROMPT, "--verifier", spec, *MASK)
        assert [line["text"] for line in result.lines] == [line["text"] for line in longer.lines], options
        if options[0] == "--choice":
            assert {line["text"] for line in result.lines} <= set(options[1:])
    Path("prompts.jsonl").write_text('{"prompt": "the cat", "rule": "regex:[a-c]{2}"}', encoding="utf-8")
    of_prompts = run("--prompts", "prompts.jsonl", *MASK[2:])
    assert [line["accepted"] for line in of_prompts.lines] == [True] * 4
    both = run(*PROMPT, "--regex", "[a-c]{2}", "--choice", "ab", "xy", "--verifier", "regex:.*", *MASK[2:])
    assert {line["text"] for line in both.lines} == {"ab"}
    drawn = run(*PROMPT, "--regex", "[a-c]{2}", "--sampler", "ancestral", *MASK[2:])
    assert not all(line["accepted"] for line in drawn.lines)


def test_texts_can_be_completed_within_the_token_limit(run):
    text = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    Path("text.json").write_text(json.dumps({**text, "additionalProperties": False}), encoding="utf-8")
    options = (*PROMPT, "--json-schema", "text.json", "--n", "4", "--max-new-tokens")
    reason = (
        "failed: no token allowed; max_new_tokens={} is probably too small to complete the text, "
        "which ends in the field /x"
    )
    plain = run(*options, "14")
    assert {line["reason"] for line in plain.lines} == {None, reason.format(14)}
    limited = run(*options, "14", "--within-limit")
    assert [(line["accepted"], line["reason"]) for line in limited.lines] == [(True, None)] * 4
    assert "within_limit" not in plain.err + limited.err
    short = run(*options, "7", "--within-limit")
    warning = "the shortest known text of a verifier has 8 tokens, more than the limit of 7"
    assert f"within_limit: {warning}, so that texts will be incomplete" in short.err
    assert {line["reason"] for line in short.lines} == {reason.format(7)}


def test_white_space_is_optional(run):
    spec = ("--verifier", f"json-schema:{json.dumps(SCHEMA)}", *MASK)
    compact = [line["text"] for line in run(*PROMPT, *spec).lines if line["accepted"]]
    assert compact
    assert all(text == json.dumps(json.loads(text), separators=(",", ":")) for text in compact)
    flexible = run(*PROMPT, *spec, "--json-whitespace", "flexible").lines
    assert any(set(" \n\t\r") & set(line["text"]) for line in flexible)


def test_a_pydantic_model_is_read_from_a_file(run, files):
    result = run(*PROMPT, "--verifier", "pydantic:models.py:Pair", *MASK).checked()
    accepted = [json.loads(line["text"]) for line in result.lines if line["accepted"]]
    assert accepted
    assert all(pair["n"] + pair["m"] <= 1 for pair in accepted)
    assert "judging" in result.err


def test_tool_calls_follow_their_definitions(run, files):
    result = run(*PROMPT, "--verifier", "tools:tools.json", *MASK).checked()
    accepted = [json.loads(line["text"]) for line in result.lines if line["accepted"]]
    assert accepted
    assert {call["name"] for call in accepted} <= {"f", "g"}
    assert all(set(call["arguments"].values()) <= {1, 2} for call in accepted)


MISTAKES: list[tuple[str, str]] = [
    ("--json-schema bad.json", "json_schema='bad.json': it is not JSON"),
    ("--json-schema {}", "json_schema='{}': it constrains nothing"),
    ("--regex [", "regex='[': "),
    ("--choice --chat", "choice=None: --choice: add a value"),
    ("--grammar none.lark", "grammar='none.lark': the file none.lark cannot be read"),
    ("--pydantic models.py", "pydantic='models.py': write it as pydantic:FILE.py:CLASS"),
    ("--verifier choice:a", "choice='a': it is not valid JSON"),
    ("--verifier tools:[]", "tools=[]: pass a non-empty list of tool definitions"),
    ("--verifier tools:none.json", "the file none.json cannot be read"),
    ("--verifier pydantic:models.py:Pear", "the file has no such class; its classes: Pair, Failing"),
    ("--verifier pydantic:bad.json:Pair", "it cannot be run"),
    ("--verifier pydantic:bounds.py:MOST", "it has no JSON Schema"),
    ("--verifier pydantic:models.py:Failing", "it raised KeyError: 'n'"),
    ("--verifier regex:a --json-whitespace flexible", "json_whitespace='flexible': leave it out"),
]


def test_mistakes_are_reported_in_one_line(run, files):
    assert not commands_without_expected_error(MISTAKES, partial(run, *PROMPT, *MASK))
