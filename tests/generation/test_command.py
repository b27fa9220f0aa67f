"""`trialogue generate`: its output is that of the library, for every sampler and every kind of verifier."""

import json
import math
import re
import shlex
from pathlib import Path

import pytest
import torch

from generation.command import REGEX, Say
from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from training.planted_signal import marked_texts
from trialogue.oracles import padded
from trialogue.samplers import SAMPLERS, Backtracking, generate
from trialogue.samplers.prefix.batch import Batch
from trialogue.training.probe_files import ProbeFile, load_probe, save_probe
from trialogue.training.probe_training import ProbeTrainingConfig, train_verifier
from trialogue.verifiers import GrammarVerifier, ProbeVerifier


def test_samples_are_those_of_the_library(shell: Say, model: str) -> None:
    options = "--sampler backtracking --quota 2 --stride=1 --no-argmax-redo --seed 5"
    told = shell(f"--prompt 'the cat' --n 4 --max-new-tokens 9 --verifier 'regex:[a-z ]*' {options}")
    assert told.code == 0
    oracle = tiny_oracle()
    samples = generate(
        oracle,
        ["the cat"],
        sampler=Backtracking(quota=2, stride=1, argmax_redo=False),
        verifier=GrammarVerifier.regex("[a-z ]*", oracle.tokenization),
        num_samples=4,
        max_new_tokens=9,
        seed=5,
    )
    lines = sorted(told.lines, key=lambda line: line["sample"])
    assert [tuple(line["tokens"]) for line in lines] == samples.completions()
    assert [line["text"] for line in lines] == samples.texts()
    assert [line["accepted"] for line in lines] == samples.accepted.tolist()
    assert [line["queries"] for line in lines] == samples.queries.tolist()
    assert [line["verifier_calls"] for line in lines] == samples.verifier_calls.tolist()
    for line, log_prob in zip(lines, samples.log_prob.tolist(), strict=True):
        assert math.isclose(line["log_prob"], log_prob, rel_tol=1e-6)
        assert (line["id"], line["prompt"], line["log_weight"]) == (0, "the cat", None)
    assert re.fullmatch(
        r"4 samples, \d accepted, \d+ queries, \d+ verifier calls \([\d.]+ a token\), [\d.]+ tokens/s, [\d.]+ s",
        told.err.splitlines()[-1],
    )


OPTIONS = {
    "best-of-n": "--candidates 3",
    "block-best-of-n": "--candidates 2 --block-delimiter a",
    "smc": "--particles 3 --proposal mask",
    "value-guided": "--no-lazy --candidates 290 --momentum 1",
    "stationary-value-guided": "--steps 20 --tries 30 --node last",
    "block-value-guided": "--block-tokens 2",
    "outcome-rejection": "--most 1.0",
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_walk_runs(sampler: str, shell: Say) -> None:
    budget = "--max-queries 300 --max-new-tokens 4 --n 2 --top-k 300"
    told = shell(
        f"--prompt a --verifier python:rules.py:no_cat --sampler {sampler} {budget}",
        OPTIONS.get(sampler, ""),
    )
    assert told.code == 0, told.err
    assert len(told.lines) == 2
    assert all(line["accepted"] for line in told.lines)


def test_reasons(shell: Say) -> None:
    prompt = "--prompt 'the cat'"
    cut = shell(f"{prompt} --verifier {REGEX} --sampler ancestral --max-new-tokens 3").lines[0]
    assert (cut["accepted"], cut["ended"]) == (False, "max_new_tokens")
    assert cut["reason"] == "cut at max_new_tokens=3: rejected by the verifier"
    failed = shell(
        f"{prompt} --verifier {REGEX} --sampler masked-decoding",
        "--no-mask-first --temperature 0",
    )
    assert (failed.lines[0]["reason"], failed.lines[0]["ended"]) == (
        "failed: no token allowed of those that temperature, top_k, top_p and min_p leave",
        None,
    )
    assert failed.lines[0]["log_weight"] is None
    spent = shell(f"{prompt} --verifier {REGEX} --sampler rejection --max-queries 20 --max-new-tokens 5")
    assert spent.lines[0]["reason"] == "max_queries"
    stepped = shell(f"{prompt} --verifier {REGEX} --sampler rejection --max-steps 7 --max-new-tokens 5")
    assert stepped.lines[0]["reason"] == "max_steps"
    stopped = shell(rf"{prompt} --stop e --stop '\n' --stop zzz --n 20 --max-new-tokens 60").lines
    assert {"stop"} <= {line["ended"] for line in stopped}
    assert not any(set("e\n") & set(line["text"]) for line in stopped)
    ended = shell(f"{prompt} --verifier 'regex:[a-z]?' --sampler weighted-rejection").lines[0]
    assert (ended["ended"], ended["reason"]) == ("eos", None)


def test_what_is_wrong_with_a_whole_text_is_said(shell: Say) -> None:
    schema = """--verifier 'json-schema:{"enum": ["a"], "not": {"const": "a"}}'"""
    why = "$: 'a' should not be valid under {'const': 'a'}"
    drawn = shell(f"--prompt 'the cat' {schema} --sampler masked-decoding --n 2")
    assert {line["text"] for line in drawn.lines} == {'"a"'}
    assert {line["reason"] for line in drawn.lines} == {f"failed: the text is whole and not valid: {why}"}


def test_reasons_of_failures(shell: Say) -> None:
    prompt = "--prompt 'the cat' --n 20"
    schema = """--verifier 'json-schema:{"type": "array", "items": {"enum": ["abc"]}, "minItems": 3}'"""
    mask = "--sampler masked-decoding"
    short = shell(f"{prompt} {schema} {mask} --max-new-tokens 4").lines
    words = "failed: no token allowed, with max_new_tokens=4 leaving room for one more only"
    assert {line["reason"] for line in short} == {words}
    dead = "--verifier python:rules.py:one_token --verifier-reads tokens --max-new-tokens 8"
    dead_end = [line for line in shell(f"{prompt} {dead} {mask}").lines if not line["accepted"]]
    assert {line["reason"] for line in dead_end} == {"failed: no token allowed"}
    tries = "--verifier 'regex:[a-z]*' --sampler stationary-value-guided --steps 1 --tries 3"
    missed = shell(f"{prompt} {tries} --max-new-tokens 8").lines
    assert "failed: no first token has a value above 0, or no leaf was met in 3 tries" in {
        line["reason"] for line in missed
    }
    particles = "--sampler smc --particles 3"
    extinct = shell(f"{prompt} --verifier 'regex:[a-c]{{5}}' {particles} --max-new-tokens 8").lines
    assert "failed: all 3 rows were rejected" in {line["reason"] for line in extinct}


@pytest.mark.parametrize("sampler", ["value-guided", "masked-decoding", "smc"])
@pytest.mark.parametrize("kind", ["probe", "python", "regex"])
def test_what_judges_the_vocabulary_one_by_one_is_said(
    sampler: str, kind: str, shell: Say, probe: str
) -> None:
    spec = {"probe": f"probe:{probe}", "python": "python:rules.py:no_cat", "regex": "'regex:(?s:.*)'"}[kind]
    options = f"--prompt 'the cat' --verifier {spec} --max-new-tokens 2 --sampler {sampler}"
    words = f"asks about up to {tiny_oracle().vocab_size} continuations of every prefix"
    told = shell(f"{options} --n 3")
    assert told.code == 0, told.err
    assert told.err.count(words) == (kind != "regex" and sampler != "smc")
    assert words not in shell(f"{options} --top-k 5").err
    if sampler == "value-guided":
        assert words not in shell(f"{options} --candidates 5").err


def test_a_weight_is_null_where_there_is_none(shell: Say) -> None:
    common = "--prompt 'the cat' --n 12 --max-new-tokens 3"
    for sampler in ("best-of-n", "value-guided"):
        lines = shell(f"{common} --verifier python:rules.py:no_cat --sampler {sampler} --top-k 9").lines
        assert {line["log_weight"] for line in lines} == {None}
    weighted = shell(f"{common} --verifier 'regex:[a-z]{{0,9}}' --sampler weighted-rejection").lines
    assert {line["log_weight"] is None for line in weighted} == {False}
    # The weight so far of a sample that is given up is that of no completion.
    given_up = shell(f"{common} --verifier 'regex:[a-z]{{0,9}}' --sampler weighted-rejection --max-steps 1")
    assert [(line["accepted"], line["log_weight"]) for line in given_up.lines] == [(False, None)] * 12


def test_what_is_no_text_is_no_stop_string(shell: Say) -> None:
    lines = shell("--prompt 'the cat' --stop '�' --n 8 --max-new-tokens 20").lines
    # Bytes that are no UTF-8 are shown as the character, and are not the character.
    assert any("\ufffd" in line["text"] for line in lines)
    assert {line["ended"] for line in lines} <= {"eos", "max_new_tokens"}


@pytest.mark.parametrize("sampler", ["masked-decoding", "tokenwise-rejection"])
@pytest.mark.parametrize("spec", ["regex:[a-z]{1,3}", "python:rules.py:short_word"])
def test_rules_judge_the_text_before_the_stop_string(spec: str, sampler: str, shell: Say) -> None:
    told = shell(
        f"--prompt 'the cat' --n 12 --max-new-tokens 3 --stop ' ' --stop ', ' --verifier {spec}",
        f"--sampler {sampler} --max-steps 300",
    )
    assert told.code == 0, told.err
    stopped = [line for line in told.lines if line["ended"] == "stop"]
    assert stopped
    assert all(line["accepted"] and re.fullmatch("[a-z]{0,3}", line["text"]) for line in stopped)


def test_prompts_from_a_file_and_a_chat(shell: Say, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a cat", "id": "x"}\n"東京"\n', encoding="utf-8")
    lines = shell("--prompts p.jsonl --max-new-tokens 2 --n 2").lines
    assert sorted((str(line["id"]), line["sample"], line["prompt"]) for line in lines) == [
        ("1", 0, "東京"),
        ("1", 1, "東京"),
        ("x", 0, "a cat"),
        ("x", 1, "a cat"),
    ]
    plain, chat = (shell(f"--prompt hi --max-new-tokens 9 {option}").lines[0] for option in ("", "--chat"))
    assert plain["tokens"] != chat["tokens"]
    oracle = tiny_oracle()
    wanted = generate(oracle, [oracle.tokenization.chat("hi")], max_new_tokens=9).completions()
    assert [tuple(chat["tokens"])] == wanted


def test_several_verifiers_must_all_accept(shell: Say, tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [1, 12, 2]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    (tmp_path / "grammar.lark").write_text('start: "{" /[^}]*/ "}"', encoding="utf-8")
    specs = (
        "json-schema:schema.json",
        "lark:grammar.lark",
        "regex:[^ ]*2[^ ]*",
        f"json-schema:{json.dumps(schema)}",
    )
    told = shell(
        "--prompt n --sampler weighted-rejection --n 8",
        *(f"--verifier {shlex.quote(spec)}" for spec in (*specs, "python:rules.py:lower")),
    )
    assert told.code == 0, told.err
    accepted = [json.loads(line["text"])["n"] for line in told.lines if line["accepted"]]
    assert set(accepted) <= {12, 2}
    assert len(accepted) >= 4


def test_functions_get_what_was_asked_for(shell: Say) -> None:
    common = "--sampler weighted-rejection --max-new-tokens 12 --n 4"
    tokens = shell(f"--prompt aaaa --verifier python:rules.py:few_a --verifier-reads tokens {common}").lines
    assert all(line["accepted"] and line["tokens"].count(68) < 2 for line in tokens)
    told = shell(f"--prompt 'the cat' --verifier python:rules.py:no_cat --verifier-scope sequence {common}")
    assert told.code == 2
    assert "prompt='the cat': the verifier rejects it as it stands" in told.err
    whole = shell(f"--prompt 'the dog' --verifier python:rules.py:no_cat --verifier-scope sequence {common}")
    assert all(line["accepted"] for line in whole.lines)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = ProbeTrainingConfig(layers=(1,), depths=(1,), threshold="youden", epochs=5)
    file = train_verifier(tiny_oracle(), marked_texts(120), config, name="marked.jsonl")
    path = tmp_path_factory.mktemp("probe") / "a@b.safetensors"
    save_probe(file, path)
    return str(path)


@pytest.mark.parametrize("sampler", ["rejection", "best-of-n", "block-best-of-n", "ancestral", "smc"])
@pytest.mark.parametrize("threshold", [None, 0.3])
def test_a_probe_gives_verdicts_to_walks_that_reject_and_else_values(
    sampler: str, threshold: float | None, shell: Say, probe: str
) -> None:
    spec = f"probe:{probe}" + (f"@{threshold}" if threshold else "")
    told = shell(f"--prompt 'the cat' --verifier {spec} --sampler {sampler} --n 6 --max-new-tokens 4")
    assert told.code == 0, told.err
    file = load_probe(probe)
    verdicts = sampler == "rejection" or (threshold is not None and sampler == "smc")
    verifier = file.verifier(threshold) if verdicts else ProbeVerifier(file.probe, file.layer)
    samples = generate(
        tiny_oracle(),
        ["the cat"],
        sampler=SAMPLERS[sampler](),
        verifier=verifier,
        num_samples=6,
        max_new_tokens=4,
    )
    lines = sorted(told.lines, key=lambda line: line["sample"])
    assert [tuple(line["tokens"]) for line in lines] == samples.completions()
    # What the probe says of each of them alone, in one more pass of the model.
    values = [_value(file, sequence) for sequence in samples.sequences()]
    for line, value, accepted in zip(lines, values, samples.accepted.tolist(), strict=True):
        assert math.isclose(line["value"], value, rel_tol=1e-4)
        if sampler in ("rejection", "smc"):
            assert line["accepted"] is accepted
            continue
        least = file.threshold if threshold is None else threshold
        assert line["accepted"] is (value >= least)
        assert line["accepted"] or f"value {value:.3f}"[:-2] in line["reason"]
        assert line["accepted"] or line["reason"].endswith(f" below the threshold {least:.4g}")
    if sampler == "ancestral" and threshold is None:
        assert {line["accepted"] for line in lines} == {True, False}


def _value(file: ProbeFile, sequence: tuple[int, ...]) -> float:
    """The probability of a sequence by a probe, without a sampler."""
    batch, (tokens, length) = (
        Batch(tiny_oracle(), 1, len(sequence) + 1, layers=(1,)),
        padded([sequence], len(sequence) + 1),
    )
    batch.add(tokens, length, length, length + 1)
    with torch.inference_mode():
        return float(ProbeVerifier(file.probe, file.layer).values(batch, torch.tensor([0]))[0])


def test_values_of_functions_are_recorded(shell: Say) -> None:
    common = "--prompt 'the cat' --n 8 --max-new-tokens 6"
    lines = shell(f"{common} --verifier python:rules.py:share_of_a --sampler best-of-n").lines
    assert [line["value"] for line in lines] == [(1 + line["text"].count("a")) / 100 for line in lines]
    lines = shell(f"{common} --verifier python:rules.py:share_of_a --verifier python:rules.py:lower").lines
    for line in lines:
        lower = line["text"] == line["text"].lower()
        assert line["value"] == (1 + line["text"].count("a")) / 100 * lower
    assert {line["value"] for line in shell(common).lines} == {None}


def test_a_probe_that_does_not_fit_is_refused(shell: Say, probe: str, tmp_path: Path) -> None:
    tiny_model(hidden_size=32).save_pretrained(tmp_path / "wide")
    tiny_tokenizer().save_pretrained(tmp_path / "wide")
    told = shell(f"--prompt a --verifier probe:{probe} --model wide")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "does not fit this model" in told.err
    (tmp_path / "p.safetensors").write_bytes(b"no probe")
    told = shell("--prompt a --verifier probe:p.safetensors")
    assert (told.code, told.err.count("\n")) == (2, 1)


def test_help_lists_options_and_the_fields_of_the_walk(shell: Say) -> None:
    told = shell("--sampler backtracking --help", own_model=False)
    assert told.code == 0
    for words in ("--verifier SPEC", "--quota", "--max-new-tokens", "(1000 for each of"):
        assert words in told.out


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_help_on_a_walk_names_no_objects_of_python(sampler: str, shell: Say) -> None:
    told = shell(f"--sampler {sampler} --help", own_model=False).out.partition(
        f"usage: trialogue generate --sampler {sampler}"
    )[2]
    if sampler == "ancestral":
        return
    assert not re.findall(r"`[A-Z]\w*`", told)
    assert "`erase_prompt`" not in told
    assert len(told) > 200
