"""Files of prompts: accepted content, and errors with the line number."""

import io
from pathlib import Path

from refusals import expect_error
from trialogue.generation.prompts import Prompt, prompts_from_texts, read_prompts


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


def test_an_invalid_line_is_reported(tmp_path):
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
