"""Prompts: files, conversations, system messages, metadata and verifiers."""

import io
import json
import shutil
from pathlib import Path

import pytest
import torch

from models.tiny_pretrained import tiny_oracle, tiny_tokenizer
from refusals import commands_without_expected_error, expect_error
from trialogue.generation.prompts import Prompt, prompts_from_texts, read_prompts
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


def read(tmp_path: Path, content: str | bytes) -> list[Prompt]:
    file = tmp_path / "prompts.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_prompts(str(file))


def test_objects_and_strings_are_read(tmp_path):
    content = '\ufeff{"prompt": "é", "id": "one"}\r\n\n"two"\n{"prompt": "", "id": 7}'
    assert read(tmp_path, content) == [Prompt("one", "é"), Prompt(1, "two"), Prompt(7, "")]
    assert prompts_from_texts(["a", "b"]) == [Prompt(0, "a"), Prompt(1, "b")]


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'"a"\n"b"\n')))
    assert read_prompts("-") == [Prompt(0, "a"), Prompt(1, "b")]


WRONG: list[tuple[str | bytes, str]] = [
    ('"a"\n{"prompt": \n', "prompts.jsonl:2': the line is not JSON"),
    ('"a"\n\n{"id": "b"}', "prompts.jsonl:3': use an object with a text"),
    ('"a"\n{"promt": "b"}', """prompts.jsonl:2': the key "promt" is unknown: did you mean "prompt"?"""),
    ('{"prompt": 3}', "use an object with a text"),
    ('{"prompt": "a", "id": 1.5}', "must be a string or a whole number"),
    ('{"prompt": "a", "id": 1}\n"b"', "use another id: 1 is the id of line 1"),
    ("[" * 100_000, "the line is not JSON"),
    (
        '"a"\n{"prompt": "b", "metadata": {"x": [1e999]}}',
        "prompts.jsonl:2': the line is not JSON: 1e999 (beyond the range of a double) is not a JSON number",
    ),
    (b'"\xff"', "the line is not UTF-8"),
    (
        '"a"\n{"prompt": "b\\ud83d"}',
        "prompts.jsonl:2': remove character 2, which is half of a surrogate pair",
    ),
    ('{"prompt": "a", "id": "\\ud800"}', "id in prompts='"),
    ("\n", "use a file with prompts"),
]


def test_an_invalid_line_of_a_file_is_reported(tmp_path):
    for content, words in WRONG:
        assert words in str(expect_error("", read, tmp_path, content))


def test_a_missing_file_is_reported(tmp_path):
    expect_error("cannot be read: No such file", read_prompts, str(tmp_path / "none.jsonl"))
    expect_error("cannot be read: Is a directory", read_prompts, str(tmp_path))


def test_ids_determine_the_random_streams():
    ids: list[int | str] = [0, 1, 7, "x", "z", "1", "0", -1, 2**31, 2**70]
    streams = [Prompt(one, "A").stream(sample) for one in ids for sample in range(3)]
    assert len(set(streams)) == len(streams)
    assert all(0 <= stream < 2**63 for stream in streams)
    # The streams of prompts without an id must never change.
    assert [Prompt(3, "A").stream(sample) for sample in (0, 5)] == [3 * 2**32, 3 * 2**32 + 5]
    assert [Prompt("x", "A").stream(sample) for sample in (0, 1)] == [
        7314381420601222914,
        7314381420601222915,
    ]
