"""The command `trialogue score`."""

import json
from pathlib import Path

import pytest

from models.tiny_pretrained import tiny_oracle
from refusals import commands_without_expected_error
from trialogue import confidence, score
from trialogue.verifiers import GrammarVerifier


@pytest.fixture
def scored(model, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)

    def run(lines, *words):
        (tmp_path / "texts.jsonl").write_text(
            "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
        )
        code, out, err = run_command("score", "--model", model, "--texts", "texts.jsonl", *words)
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()]

    return run


def test_texts_are_scored_and_judged(scored):
    lines = [
        {"prompt": "the cat", "text": " sat", "id": "joined"},
        "1984",
        {"prompt": "the", "text": "cat", "tokens": [4, 8]},
    ]
    joined, year, tokens = scored(lines, "--regex", "[0-9]+")
    expected = score(tiny_oracle(), ["the cat"], [" sat"])
    assert joined["log_prob"] == pytest.approx(float(expected.log_prob), abs=1e-4)
    assert joined["log_probs"] == pytest.approx(expected.token_log_probs[0].tolist(), abs=1e-4)
    assert [one["id"] for one in (joined, year, tokens)] == ["joined", 1, 2]
    assert (joined["accepted"], year["accepted"], year["reason"]) == (False, True, None)
    assert joined["reason"].startswith("rejected at")
    assert tokens["tokens"] == [4, 8]
    assert "accepted" not in scored(lines)[0]
    both = scored(lines, "--regex", "[0-9]+", "--choice", "1984", "1985")
    assert [one["reason"] and one["reason"].partition(":")[0] for one in both] == ["regex", None, "regex"]


SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "b": {"type": "integer", "minimum": 1, "maximum": 300}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
)


def test_confidence_of_fields(scored, run):
    text = '{"a":1,"b":7}'
    found, other = scored(
        [{"prompt": "the cat", "text": text}, "no JSON"], "--json-schema", SCHEMA, "--confidence"
    )
    model = tiny_oracle()
    expected = confidence(model, "the cat", text, GrammarVerifier.json_schema(SCHEMA, model.tokenization))
    assert found["confidence"] == pytest.approx(
        {pointer: field.probability for pointer, field in expected.items()}, rel=1e-3
    )
    assert found["confidence_error"] == pytest.approx({"/b": expected["/b"].standard_error}, rel=1e-3)
    assert other["confidence"] is None
    words = ("--prompt", "the cat", "--max-new-tokens", "30", "--json-schema", SCHEMA)
    made = run(*words, "--confidence").checked().lines
    assert list(made[0]["confidence"]) == ["/a", "/b"]
    assert all(0 < share <= 1 for share in made[0]["confidence"].values())
    run("--prompt", "the cat", "--confidence").require_error("use it with one JSON verifier")


def test_samples_of_generate_get_their_log_probabilities(run, run_command, model):
    made = run("--prompt", "the cat", "--n", "5", "--max-new-tokens", "6", "--out", "samples.jsonl")
    assert made.code == 0, made.err
    code, _, err = run_command("score", "--model", model, "--texts", "samples.jsonl", "--out", "scores.jsonl")
    assert code == 0, err
    samples, scores = (
        [json.loads(line) for line in Path(file).read_text().splitlines()]
        for file in ("samples.jsonl", "scores.jsonl")
    )
    pairs = list(zip(samples, scores, strict=True))
    assert [one["sample"] for one, _ in pairs] == [one["sample"] for _, one in pairs]
    for sample, found in pairs:
        assert found["log_prob"] == pytest.approx(sample["log_prob"], abs=1e-4)


def test_bad_input(model, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("empty", ""),
        ("list", "[1]"),
        ("broken", '"a"\n{"text": '),
        ("tokens", '{"text": "a", "tokens": [1.5]}'),
        ("large", '{"text": "a", "tokens": [9000]}'),
        ("raises", '"a"'),
    ):
        (tmp_path / f"{name}.jsonl").write_text(text)
    (tmp_path / "rule.py").write_text("def check(text):\n    raise ValueError('no')\n")
    command = f"score --model {model} --texts"
    assert not commands_without_expected_error(
        [
            ("score --texts list.jsonl", "model"),
            (f"score --model {model}", "use --texts FILE.jsonl"),
            (f"{command} none.jsonl", "it cannot be read"),
            (f"{command} empty.jsonl", "it contains none"),
            (f"{command} list.jsonl", '''list.jsonl:1': use an object with a text as "text"'''),
            (f"{command} broken.jsonl", "broken.jsonl:2': the line is not JSON"),
            (f"{command} tokens.jsonl", """tokens.jsonl:1': its "tokens" must be"""),
            (f"{command} large.jsonl", "large.jsonl:1"),
            (f"{command} raises.jsonl --verifier python:rule.py:check", "no"),
            (f"{command} raises.jsonl --confidence", "use it with one JSON verifier"),
            (f"{command} raises.jsonl --sampler exact", "--sampler"),
            (f"{command} raises.jsonl --prompt the", "no such option: see `trialogue score --help`"),
            (f"{command} raises.jsonl --out none/deep.jsonl", "there is no folder"),
        ],
        run_command,
    )
    code, out, err = run_command(
        *f"{command} raises.jsonl --verifier python:rule.py:check --on-error reject".split()
    )
    assert code == 0, err
    assert "no" in json.loads(out)["reason"]
