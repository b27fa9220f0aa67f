"""Prompts as conversations, with system messages, metadata and verifiers."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from models.tiny_pretrained import tiny_oracle, tiny_tokenizer
from refusals import commands_without_expected_error, expect_error
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import next_log_probs
from trialogue.samplers import generate

TOKENIZATION = Tokenization(tiny_tokenizer())
USER = {"role": "user", "content": "hi"}


def write_prompts(**lines: object) -> None:
    Path("prompts.jsonl").write_text("\n".join(json.dumps(line) for line in lines.values()), "utf-8")


def tool_call(arguments: object) -> dict[str, object]:
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "tool_calls": [call]}


def text_of(messages: object, **settings: object) -> str:
    return TOKENIZATION.tokenizer.decode(TOKENIZATION.chat(messages, **settings))


def test_messages_are_formatted_by_the_template():
    assert text_of([USER], system="be brief") == "<s>system: be brief</s><s>user: hi</s><s>assistant: "
    parts = [{"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}]
    assert text_of(parts) == "<s>user: h\ni</s><s>assistant: "
    # An answer at the end is continued, as in the pipelines of transformers.
    assert text_of([USER, {"role": "assistant", "content": "ye"}]) == "<s>user: hi</s><s>assistant: ye"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], r"messages=\[\]: give a list"),
        ("hi", None),
        ([3], r"messages\[0\]=3: give an object"),
        ([USER, {"content": "a"}], r"messages\[1\].role=None: use one of system"),
        ([{"role": "robot", "content": "a"}], r"messages\[0\].role='robot': use one of system"),
        ([{"role": "user"}], r"messages\[0\].content=None: give a text"),
        ([{"role": "user", "content": [{"type": "image"}]}], r"messages\[0\].content=.*: give a text, or"),
        ([{"role": "user", "content": ["a", "b"]}], r"messages\[0\].content=.*: give a text, or"),
        ([tool_call("3")], r"messages\[0\].tool_calls=3: the arguments must be a JSON object"),
        ([tool_call("null")], r"messages\[0\].tool_calls=None: the arguments must be a JSON object"),
        ([tool_call([])], r"messages\[0\].tool_calls=\[\]: the arguments must be a JSON object"),
        ([{"role": "assistant", "tool_calls": [{"name": "f"}]}], r"messages\[0\].tool_calls=.*: write each"),
        ([{"role": "system", "content": "x"}, USER], r"system='y': the messages already begin with a system"),
    ],
)
def test_invalid_messages_are_reported(messages, message):
    if message is None:
        assert TOKENIZATION.chat(messages)
        return
    expect_error(f"^{message}", TOKENIZATION.chat, messages, system="y")


def test_errors_of_the_template_are_reported(monkeypatch):
    monkeypatch.setattr(TOKENIZATION.tokenizer, "chat_template", "{{ raise_exception('no system here') }}")
    message = r"messages=\['user'\]: the chat template of the model does not accept these messages: .*no sys"
    expect_error(message, TOKENIZATION.chat, "hi")


def test_records_contain_the_conversation(shell):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    write_prompts(
        a={"messages": [USER], "id": "a", "metadata": {"split": "test", "n": 1.5}, "tools": tools},
        b={"prompt": "the cat", "metadata": {}},
    )
    message = shell("--prompts prompts.jsonl --max-new-tokens 5 --ordered --log-probs --chat").checked()
    first, second = message.lines
    assert (first["id"], first["messages"], first["tools"]) == ("a", [USER], tools)
    assert (first["metadata"], "prompt" in first) == ({"split": "test", "n": 1.5}, False)
    assert (second["prompt"], second["metadata"], "messages" in second) == ("the cat", {}, False)
    oracle = tiny_oracle()
    prompt = oracle.tokenization.chat([USER], tools=tools)
    assert sum(first["log_probs"]) == pytest.approx(first["log_prob"], rel=1e-4)
    assert len(first["log_probs"]) == len(first["tokens"])
    distribution = next_log_probs(oracle, torch.tensor([prompt]))[0]
    assert first["log_probs"][0] == pytest.approx(float(distribution[first["tokens"][0]]), rel=1e-3)
    assert first["generation_config"] == {"used": {"eos_token_id": 2}, "ignored": {}}


def test_a_system_message_precedes_every_prompt(shell):
    write_prompts(a={"messages": [USER]})
    message = shell("--prompts prompts.jsonl --system 'be brief' --max-new-tokens 5")
    plain = shell("--prompts prompts.jsonl --max-new-tokens 5")
    oracle = tiny_oracle()
    expected = generate(oracle, [oracle.tokenization.chat([USER], system="be brief")], max_new_tokens=5)
    assert tuple(message.lines[0]["tokens"]) == expected[0].tokens != tuple(plain.lines[0]["tokens"])
    assert message.lines[0]["run"] != plain.lines[0]["run"]


def test_records_list_the_used_and_ignored_generation_settings(shell, model, tmp_path):
    shutil.copytree(model, tmp_path / "own")
    config = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "eos_token_id": [2, 7], "pad_token_id": 0}
    (tmp_path / "own" / "generation_config.json").write_text(json.dumps(config))
    arguments = "--model own --prompt a --max-new-tokens 2 --temperature 0.6"
    [line] = shell(f"{arguments}", own_model=False).lines
    used = {"do_sample": True, "temperature": 0.6, "eos_token_id": [2, 7]}
    assert line["generation_config"] == {"used": used, "ignored": {"top_p": 0.9}}


LINES: list[tuple[dict[str, object], str]] = [
    ({"messages": [{"role": "user"}]}, "messages[0].content=None"),
    ({"messages": [USER], "prompt": "a"}, 'leave out "prompt" or "messages"'),
    (
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]},
        "the tool 'f' has no \"parameters\"",
    ),
    ({"prompt": "a", "tools": []}, 'leave out "tools", or use "messages"'),
    ({"prompt": "a", "metadata": 3}, 'its "metadata" must be an object'),
    ({"prompt": "a", "rule": 3}, 'its "rule" must be KIND:CONTENT'),
    ({"prompt": "a", "rule": "regex:("}, "prompts.jsonl:1': regex='(': "),
]


def test_an_invalid_line_is_reported(run):
    for line, words in LINES:
        write_prompts(a=line)
        assert not commands_without_expected_error([("--prompts prompts.jsonl", words)], run)
    needed = "system='b': add --chat"
    assert not commands_without_expected_error([("--prompt a --system b", needed)], run)
