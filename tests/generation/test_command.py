"""`trialogue generate` with every sampler and every kind of verifier gives the samples of the library."""

import math
import re

import pytest

from generation.command import REGEX
from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from training.planted_signal import marked_texts
from trialogue.samplers import SAMPLERS, Backtracking, generate, values
from trialogue.training.probes.probe_files import load_probe, save_probe
from trialogue.training.probes.probe_training import ProbeTrainingConfig, train_verifier
from trialogue.verifiers import GrammarVerifier, ProbeVerifier


def test_samples_equal_those_of_the_library(shell, model):
    options = "--sampler backtracking --quota 2 --stride=1 --no-argmax-redo --seed 5"
    result = shell(
        f"--prompt 'the cat' --n 4 --max-new-tokens 9 --verifier 'regex:[a-z ]*' {options}"
    ).checked()
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
    lines = sorted(result.lines, key=lambda line: line["sample"])
    assert [tuple(line["tokens"]) for line in lines] == samples.completions()
    assert [line["text"] for line in lines] == samples.texts()
    assert [line["accepted"] for line in lines] == samples.accepted.tolist()
    assert [line["queries"] for line in lines] == samples.queries.tolist()
    assert [line["verifier_calls"] for line in lines] == samples.verifier_calls.tolist()
    for line, log_prob in zip(lines, samples.log_prob.tolist(), strict=True):
        assert math.isclose(line["log_prob"], log_prob, rel_tol=1e-6)
        assert (line["id"], line["prompt"], line["log_weight"]) == (0, "the cat", None)
    assert re.fullmatch(
        r"4 samples, \d accepted, \d+ model calls \([\d.]+ per sample\), "
        r"\d+ verifier calls \([\d.]+ per token\), [\d.]+ tokens/s, [\d.]+ s",
        result.err.splitlines()[-1],
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
def test_every_sampler_runs(sampler, shell):
    budget = "--max-queries 300 --max-new-tokens 4 --n 2 --top-k 300"
    result = shell(
        f"--prompt a --verifier python:rules.py:no_cat --sampler {sampler} {budget}", OPTIONS.get(sampler, "")
    ).checked()
    assert len(result.lines) == 2
    assert all(line["accepted"] for line in result.lines)


def test_every_finished_sample_has_a_finish_reason(shell):
    prompt = "--prompt 'the cat'"
    cut = shell(f"{prompt} --verifier {REGEX} --sampler ancestral --max-new-tokens 3").lines[0]
    assert (cut["accepted"], cut["ended"]) == (False, "max_new_tokens")
    assert cut["reason"] == "cut at max_new_tokens=3: rejected by the verifier"
    failed = shell(
        f"{prompt} --verifier {REGEX} --sampler masked-decoding", "--no-mask-first --temperature 0"
    )
    assert (failed.lines[0]["reason"], failed.lines[0]["ended"]) == (
        "failed: no token allowed among those that temperature, top_k, top_p and min_p keep",
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


def test_exact_samples_say_why_they_failed_or_that_they_fell_back(shell):
    exact = "--prompt 'the cat' --sampler exact --max-new-tokens 4"
    used_up = "no sequence accepted in max_attempts=1 attempts"
    failed = shell(f"{exact} --verifier {REGEX} --max-attempts 1").lines[0]
    assert failed["reason"] == f"failed: {used_up}"
    result = shell(f"{exact} --verifier {REGEX} --max-attempts 1 --then mask --n 5")
    fallen = result.lines[0]
    assert f"trialogue: 5 of 5 samples: {used_up}, then masked decoding" in result.err
    assert (fallen["reason"], fallen["remark"]) == (None, f"{used_up}, then masked decoding")
    assert fallen["log_weight"] < 0
    nothing = shell(f"{exact} --verifier 'regex:[a-c]{{9}}' --top-k 3").lines[0]
    expected = (
        "failed: no sequence within the length limit is accepted with all of its prefixes among those that"
    )
    assert nothing["reason"] == f"{expected} temperature, top_k, top_p and min_p keep"


def test_validation_errors_of_complete_texts_are_reported(shell):
    schema = """--verifier 'json-schema:{"enum": ["a"], "not": {"const": "a"}}'"""
    why = "$: 'a' should not be valid under {'const': 'a'}"
    drawn = shell(f"--prompt 'the cat' {schema} --sampler masked-decoding --n 2")
    assert {line["text"] for line in drawn.lines} == {'"a"'}
    assert {line["reason"] for line in drawn.lines} == {f"failed: the text is complete but invalid: {why}"}


def test_every_failure_has_a_reason(shell):
    prompt = "--prompt 'the cat' --n 20"
    schema = """--verifier 'json-schema:{"type": "array", "items": {"enum": ["abc"]}, "minItems": 3}'"""
    mask = "--sampler masked-decoding"
    short = shell(f"{prompt} {schema} {mask} --max-new-tokens 4").lines
    words = (
        "failed: no token allowed; max_new_tokens=4 is probably too small to complete the text, "
        "which ends in the field /0"
    )
    assert {line["reason"] for line in short} == {words}
    dead = "--verifier python:rules.py:one_token --verifier-reads tokens --max-new-tokens 8"
    dead_end = [line for line in shell(f"{prompt} {dead} {mask}").lines if not line["accepted"]]
    assert {line["reason"] for line in dead_end} == {"failed: no token allowed"}
    tries = "--verifier 'regex:[a-z]*' --sampler stationary-value-guided --steps 1 --tries 3"
    missed = shell(f"{prompt} {tries} --max-new-tokens 8").lines
    assert "failed: no first token has a value above 0, or no leaf was reached in 3 tries" in {
        line["reason"] for line in missed
    }
    particles = "--sampler smc --particles 3"
    extinct = shell(f"{prompt} --verifier 'regex:[a-c]{{5}}' {particles} --max-new-tokens 8").lines
    assert "failed: all 3 rows were rejected" in {line["reason"] for line in extinct}


@pytest.mark.parametrize(
    ("sampler", "kind", "hint"),
    [
        ("value-guided", "probe", "use --top-k K to evaluate only K of them, which changes the target"),
        ("masked-decoding", "python", "use --top-k K or --top-p P to evaluate only the most likely ones"),
        ("value-guided", "regex", None),
        ("smc", "python", None),
        ("exact", "python", None),
        ("exact --max-attempts 1 --then mask", "python", "leave out --then mask, or use --top-k K"),
    ],
)
def test_a_warning_about_many_verifier_calls_is_printed(sampler, kind, hint, shell, probe):
    spec = {"probe": f"probe:{probe}", "python": "python:rules.py:no_cat", "regex": "'regex:(?s:.*)'"}[kind]
    options = f"--prompt 'the cat' --verifier {spec} --max-new-tokens 2 --sampler {sampler}"
    words = f"requires the values of up to {tiny_oracle().vocab_size} continuations of every prefix"
    result = shell(f"{options} --n 3")
    assert (result.code, result.err.count(words)) == (0, hint is not None), result.err
    assert hint is None or f"one at a time: {hint}" in result.err
    assert words not in shell(f"{options} --top-k 5").err
    if sampler == "value-guided":
        assert words not in shell(f"{options} --candidates 5").err


def test_samples_without_a_weight_have_the_weight_null(shell):
    common = "--prompt 'the cat' --n 12 --max-new-tokens 3"
    for sampler in ("best-of-n", "value-guided"):
        lines = shell(f"{common} --verifier python:rules.py:no_cat --sampler {sampler} --top-k 9").lines
        assert {line["log_weight"] for line in lines} == {None}
    weighted = shell(f"{common} --verifier 'regex:[a-z]{{0,9}}' --sampler weighted-rejection").lines
    assert {line["log_weight"] is None for line in weighted} == {False}
    # An unfinished sample has no weight, because it has no completion.
    given_up = shell(f"{common} --verifier 'regex:[a-z]{{0,9}}' --sampler weighted-rejection --max-steps 1")
    assert [(line["accepted"], line["log_weight"]) for line in given_up.lines] == [(False, None)] * 12


def test_a_replacement_character_is_not_a_stop_string(shell):
    lines = shell("--prompt 'the cat' --stop '�' --n 8 --max-new-tokens 20").lines
    # Invalid UTF-8 is displayed as the replacement character but does not equal it.
    assert any("\ufffd" in line["text"] for line in lines)
    assert {line["ended"] for line in lines} <= {"eos", "max_new_tokens"}


def test_functions_receive_text_or_tokens_as_requested(shell):
    common = "--sampler weighted-rejection --max-new-tokens 12 --n 4"
    tokens = shell(f"--prompt aaaa --verifier python:rules.py:few_a --verifier-reads tokens {common}").lines
    assert all(line["accepted"] and line["tokens"].count(68) < 2 for line in tokens)
    result = shell(f"--prompt 'the cat' --verifier python:rules.py:no_cat --verifier-scope sequence {common}")
    assert result.code == 2
    assert "prompt='the cat': change the verifier, which rejects the prompt" in result.err
    whole = shell(f"--prompt 'the dog' --verifier python:rules.py:no_cat --verifier-scope sequence {common}")
    assert all(line["accepted"] for line in whole.lines)


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    config = ProbeTrainingConfig(layers=(1,), depths=(1,), threshold="youden", epochs=5)
    file = train_verifier(tiny_oracle(), marked_texts(120), config, name="marked.jsonl")
    path = tmp_path_factory.mktemp("probe") / "a@b.safetensors"
    save_probe(file, path)
    return str(path)


@pytest.mark.parametrize(
    ("sampler", "threshold"),
    [("rejection", 0.3), ("block-best-of-n", None), ("ancestral", None), ("ancestral", 0.3), ("smc", 0.3)],
)
def test_a_probe_gives_verdicts_or_values_depending_on_the_sampler(sampler, threshold, shell, probe):
    spec = f"probe:{probe}" + (f"@{threshold}" if threshold else "")
    result = shell(
        f"--prompt 'the cat' --verifier {spec} --sampler {sampler} --n 6 --max-new-tokens 4"
    ).checked()
    file, oracle = load_probe(probe), tiny_oracle()
    graded = ProbeVerifier(file.probe, file.layer)
    samples = generate(
        oracle,
        ["the cat"],
        sampler=SAMPLERS[sampler](),
        verifier=file.verifier(threshold) if sampler in ("rejection", "smc") else graded,
        num_samples=6,
        max_new_tokens=4,
    )
    lines = sorted(result.lines, key=lambda line: line["sample"])
    assert [tuple(line["tokens"]) for line in lines] == samples.completions()
    # Values of the probe for each sequence alone.
    threshold_used = file.threshold if threshold is None else threshold
    graded_values = [float(values(graded, oracle, [one])[0]) for one in samples.sequences()]
    for line, value, accepted in zip(lines, graded_values, samples.accepted.tolist(), strict=True):
        assert math.isclose(line["value"], value, rel_tol=1e-4)
        if sampler in ("rejection", "smc"):
            assert line["accepted"] is accepted
        else:
            assert line["accepted"] is (value >= threshold_used)
            assert line["accepted"] or f"value {value:.3f}"[:-2] in line["reason"]
            assert line["accepted"] or line["reason"].endswith(f" below the threshold {threshold_used:.4g}")
    if sampler == "ancestral" and threshold is None:
        assert {line["accepted"] for line in lines} == {True, False}


def test_values_of_functions_are_recorded(shell):
    common = "--prompt 'the cat' --n 8 --max-new-tokens 6"
    lines = shell(f"{common} --verifier python:rules.py:share_of_a --sampler best-of-n").lines
    assert [line["value"] for line in lines] == [(1 + line["text"].count("a")) / 100 for line in lines]
    lines = shell(f"{common} --verifier python:rules.py:share_of_a --verifier python:rules.py:lower").lines
    for line in lines:
        lower = line["text"] == line["text"].lower()
        assert line["value"] == (1 + line["text"].count("a")) / 100 * lower
    assert {line["value"] for line in shell(common).lines} == {None}


def test_a_probe_of_another_model_is_rejected(shell, probe, tmp_path):
    tiny_model(hidden_size=32).save_pretrained(tmp_path / "wide")
    tiny_tokenizer().save_pretrained(tmp_path / "wide")
    shell(f"--prompt a --verifier probe:{probe} --model wide").require_error("does not fit this model")
    (tmp_path / "p.safetensors").write_bytes(b"no probe")
    result = shell("--prompt a --verifier probe:p.safetensors")
    assert (result.code, result.err.count("\n")) == (2, 1)
