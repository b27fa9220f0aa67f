"""`trialogue generate`: its output is that of the library, survives kills, and every bad input is one line."""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import trialogue
from models.tiny_pretrained import save_tiny, tiny_model, tiny_oracle, tiny_tokenizer
from training.planted_signal import marked_texts
from trialogue import cli
from trialogue.generation import run
from trialogue.inference import WALKS, Backtracking, GrammarVerifier, ProbeVerifier, generate
from trialogue.training.probe_files import load_probe, save_probe
from trialogue.training.probe_training import ProbeTrainingConfig, train_verifier

REGEX = "regex:[a-c]{1,3}"
RULES = """
import time

def lower(text):
    return text == text.lower()

def few_a(tokens):
    return tokens.count(68) < 2

def slow(text):
    time.sleep(0.15)
    return True

def raising(text):
    raise KeyError("no\\nsuch key")

def late(text):
    if len(text) > 3:
        raise ValueError("too late")
    return True

def hanging(text):
    while True:
        pass

def nonsense(text):
    return "yes"

def no_cat(text):
    return "cat" not in text
"""


class Told(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Say = Callable[..., Told]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def say(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Say:
    """Run `trialogue generate` with the tiny model in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")

    def said(*tokens: str, own_model: bool = True) -> Told:
        capfd.readouterr()
        try:
            code = cli.main(("generate", *(("--model", model) if own_model else ()), *tokens))
        except SystemExit as error:
            code = int(error.code or 0)
        return Told(code, *capfd.readouterr())

    return said


def start(folder: Path, *tokens: str) -> "subprocess.Popen[str]":
    (folder / "rules.py").write_text(RULES, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "trialogue.cli", "generate", *tokens],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(trialogue.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_samples_are_those_of_the_library(say: Say, model: str) -> None:
    options = ("--walk", "backtracking", "--quota", "2", "--stride=1", "--no-argmax-redo", "--seed", "5")
    told = say(
        "--prompt", "the cat", "--n", "4", "--max-new-tokens", "9", "--verifier", "regex:[a-z ]*", *options
    )
    assert told.code == 0
    oracle = tiny_oracle()
    samples = generate(
        oracle,
        ["the cat"],
        walk=Backtracking(quota=2, stride=1, argmax_redo=False),
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
        assert (line["id"], line["prompt"], line["log_weight"]) == (0, "the cat", 0.0)
    assert re.fullmatch(r"4 samples, \d accepted, \d+ queries, [\d.]+ tokens/s, [\d.]+ s\n", told.err)


WALK_FIELDS = {
    "best-of-n": ("--candidates", "3"),
    "block-best-of-n": ("--candidates", "2", "--block-delimiter", "a"),
    "tokenwise-rejection": ("--method", "mask"),
    "smc": ("--particles", "3", "--proposal", "mask"),
    "value-guided": ("--no-lazy",),
}


@pytest.mark.parametrize("walk", WALKS)
def test_every_walk_runs(walk: str, say: Say) -> None:
    budget = ("--max-queries", "300", "--max-new-tokens", "4", "--n", "2", "--top-k", "300")
    told = say(
        "--prompt",
        "a",
        "--verifier",
        "python:rules.py:no_cat",
        "--walk",
        walk,
        *budget,
        *WALK_FIELDS.get(walk, ()),
    )
    assert told.code == 0, told.err
    assert len(told.lines) == 2
    assert all(line["accepted"] for line in told.lines)


def test_walks_by_what_they_do_with_prefixes() -> None:
    assert set(run.JUDGING_WHOLE) | set(run.REJECTING) <= set(WALKS)


def test_reasons(say: Say) -> None:
    prompt = ("--prompt", "the cat")
    cut = say(*prompt, "--verifier", REGEX, "--max-new-tokens", "3").lines[0]
    assert (cut["accepted"], cut["ended"]) == (False, "max_new_tokens")
    assert cut["reason"] == "cut at max_new_tokens=3: rejected by the verifier"
    failed = say(
        *prompt,
        "--verifier",
        REGEX,
        "--walk",
        "tokenwise-rejection",
        "--method",
        "mask",
        "--temperature",
        "0",
    )
    assert (failed.lines[0]["reason"], failed.lines[0]["ended"]) == ("failed: no token allowed", None)
    assert failed.lines[0]["log_weight"] is None
    spent = say(
        *prompt, "--verifier", REGEX, "--walk", "rejection", "--max-queries", "20", "--max-new-tokens", "5"
    )
    assert spent.lines[0]["reason"] == "max_queries"
    stepped = say(
        *prompt, "--verifier", REGEX, "--walk", "rejection", "--max-steps", "7", "--max-new-tokens", "5"
    )
    assert stepped.lines[0]["reason"] == "max_steps"
    stopped = say(*prompt, "--stop", "e", "--stop", r"\n", "--n", "20", "--max-new-tokens", "60").lines
    assert {"stop"} <= {line["ended"] for line in stopped}
    assert not any(set("e\n") & set(line["text"]) for line in stopped)
    ended = say(*prompt, "--verifier", "regex:[a-z]?", "--walk", "weighted-rejection").lines[0]
    assert (ended["ended"], ended["reason"]) == ("eos", None)


def test_prompts_from_a_file_and_a_chat(say: Say, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a cat", "id": "x"}\n"東京"\n', encoding="utf-8")
    lines = say("--prompts", "p.jsonl", "--max-new-tokens", "2", "--n", "2").lines
    assert sorted((str(line["id"]), line["sample"], line["prompt"]) for line in lines) == [
        ("1", 0, "東京"),
        ("1", 1, "東京"),
        ("x", 0, "a cat"),
        ("x", 1, "a cat"),
    ]
    plain, chat = (
        say("--prompt", "hi", "--max-new-tokens", "9", *option).lines[0] for option in ((), ("--chat",))
    )
    assert plain["tokens"] != chat["tokens"]
    oracle = tiny_oracle()
    wanted = generate(oracle, [oracle.tokenization.chat("hi")], max_new_tokens=9).completions()
    assert [tuple(chat["tokens"])] == wanted


def test_several_verifiers_must_all_accept(say: Say, tmp_path: Path) -> None:
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
    told = say(
        "--prompt",
        "n",
        "--walk",
        "weighted-rejection",
        "--n",
        "8",
        "--verifier",
        *specs,
        "python:rules.py:lower",
    )
    assert told.code == 0, told.err
    accepted = [json.loads(line["text"])["n"] for line in told.lines if line["accepted"]]
    assert set(accepted) <= {12, 2}
    assert len(accepted) >= 4


def test_functions_get_what_was_asked_for(say: Say) -> None:
    common = ("--walk", "weighted-rejection", "--max-new-tokens", "12", "--n", "4")
    tokens = say(
        "--prompt", "aaaa", "--verifier", "python:rules.py:few_a", "--verifier-reads", "tokens", *common
    ).lines
    assert all(line["accepted"] and line["tokens"].count(68) < 2 for line in tokens)
    told = say(
        "--prompt", "the cat", "--verifier", "python:rules.py:no_cat", "--verifier-scope", "sequence", *common
    )
    assert told.code == 2
    assert "prompt='the cat': the verifier rejects it as it stands" in told.err
    whole = say(
        "--prompt", "the dog", "--verifier", "python:rules.py:no_cat", "--verifier-scope", "sequence", *common
    )
    assert all(line["accepted"] for line in whole.lines)


def test_resampling_draws_by_weight(say: Say, tmp_path: Path) -> None:
    options = (
        "--prompt",
        "the",
        "--verifier",
        REGEX,
        "--walk",
        "weighted-rejection",
        "--n",
        "300",
        "--resample",
    )
    told = say(*options)
    assert told.code == 0, told.err
    assert re.search(r"300 samples, 300 accepted, effective sample size [\d.]+, ", told.err)
    weighted = say(*options[:-1]).lines
    weights = torch.tensor(
        [line["log_weight"] for line in sorted(weighted, key=lambda line: line["sample"])]
    ).softmax(0)
    counts = torch.bincount(torch.tensor([line["source"] for line in told.lines]), minlength=300)
    # Independent draws: a multinomial count has variance n p (1 - p); the statistic is 299 +- 24 under the law.
    used = weights * 300 > 0.5
    expected = weights[used] * 300
    chi = ((counts[used] - expected) ** 2 / expected).sum()
    assert chi < used.sum() + 6 * math.sqrt(2 * used.sum())
    assert len({line["log_weight"] for line in told.lines}) == 1
    assert say(*options, "--out", "r.jsonl").code == 0
    assert (tmp_path / "r.jsonl").read_text(encoding="utf-8").count("\n") == 300
    assert (tmp_path / "r.weighted.jsonl").read_text(encoding="utf-8").count("\n") == 300
    kept = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in kept] == [line["text"] for line in told.lines]


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = ProbeTrainingConfig(layers=(1,), depths=(1,), threshold="youden", epochs=5)
    file = train_verifier(tiny_oracle(), marked_texts(120), config, name="marked.jsonl")
    path = tmp_path_factory.mktemp("probe") / "a@b.safetensors"
    save_probe(file, path)
    return str(path)


@pytest.mark.parametrize(
    ("walk", "threshold"), [("rejection", None), ("rejection", 0.3), ("best-of-n", None), ("best-of-n", 0.3)]
)
def test_a_probe_gives_verdicts_to_walks_that_reject_and_else_values(
    walk: str, threshold: float | None, say: Say, probe: str
) -> None:
    spec = f"probe:{probe}" + (f"@{threshold}" if threshold else "")
    told = say("--prompt", "the cat", "--verifier", spec, "--walk", walk, "--n", "6", "--max-new-tokens", "4")
    assert told.code == 0, told.err
    file = load_probe(probe)
    verdicts = threshold is not None or walk == "rejection"
    verifier = file.verifier(threshold) if verdicts else ProbeVerifier(file.probe, file.layer)
    samples = generate(
        tiny_oracle(), ["the cat"], walk=WALKS[walk](), verifier=verifier, num_samples=6, max_new_tokens=4
    )
    lines = sorted(told.lines, key=lambda line: line["sample"])
    assert [tuple(line["tokens"]) for line in lines] == samples.completions()


def test_a_probe_that_does_not_fit_is_refused(say: Say, probe: str, tmp_path: Path) -> None:
    tiny_model(hidden_size=32).save_pretrained(tmp_path / "wide")
    tiny_tokenizer().save_pretrained(tmp_path / "wide")
    told = say("--prompt", "a", "--verifier", f"probe:{probe}", "--model", "wide")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "does not fit this model" in told.err
    (tmp_path / "p.safetensors").write_bytes(b"no probe")
    told = say("--prompt", "a", "--verifier", "probe:p.safetensors")
    assert (told.code, told.err.count("\n")) == (2, 1)


COSTS = ("seconds", "forward_passes", "positions", "distinct_queries")


def content(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    # What a sample costs depends on what it shared a batch with.
    plain = [{key: value for key, value in line.items() if key not in COSTS} for line in lines]
    for line in plain:
        line["log_prob"] = round(line["log_prob"], 4)
    return sorted(plain, key=lambda line: (line["id"], line["sample"]))


SLOW = (
    *("--prompt", "the cat", "a list", "--n", "6", "--max-new-tokens", "5", "--batch-size", "2"),
    *("--verifier", "python:rules.py:slow", "--verifier-whole", "--out", "out.jsonl"),
)


def waited_for(path: Path, lines: int) -> Iterator[None]:
    until = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < until
        time.sleep(0.01)
    yield


def test_a_killed_run_goes_on_where_it_stopped(say: Say, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    process = start(tmp_path, "--model", model, *SLOW)
    next(waited_for(out, 3))
    process.kill()
    process.communicate(timeout=60)
    torn = out.read_bytes()
    kept = torn.count(b"\n")
    assert 3 <= kept < 12
    out.write_bytes(torn + torn[:25])
    resumed = say(*SLOW)
    assert resumed.code == 0, resumed.err
    assert resumed.err.startswith(f"12 samples, 12 accepted ({kept} of the samples were there already), ")
    assert out.read_bytes().startswith(torn)
    whole = tmp_path / "whole.jsonl"
    assert say(*SLOW[:-1], str(whole), "--batch-size", "12").code == 0
    assert content(out) == content(whole)
    # Nothing is left to do: not even the model is needed.
    assert say(*SLOW, "--n", "3", "--device", "nowhere").err.startswith(
        "6 samples, 6 accepted (6 of the samples"
    )
    told = say(*SLOW, "--temperature", "0.5")
    assert told.code == 2
    assert (
        "temperature=0.5: out.jsonl was begun with 1.0: choose another file, or begin anew with --force"
        in told.err
    )
    assert say(*SLOW, "--temperature", "0.5", "--force", "--n", "1").code == 0
    assert len(content(out)) == 2


def appended_to(say: Say, folder: Path) -> bool:
    """Whether a file of two samples a prompt becomes the file of four that is drawn at once."""
    options = ("--prompt", "the", "a", "--max-new-tokens", "5")
    for file, n in (("some.jsonl", "2"), ("some.jsonl", "4"), ("all.jsonl", "4")):
        assert say(*options, "--out", file, "--n", n).code == 0
    return content(folder / "some.jsonl") == content(folder / "all.jsonl")


def test_more_samples_are_appended(say: Say, tmp_path: Path) -> None:
    assert appended_to(say, tmp_path)


def test_a_mutant_that_keys_samples_by_place_is_found(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        run, "generate", lambda *args, **options: generate(*args, **options | {"sample_ids": None})
    )
    assert not appended_to(say, tmp_path)


def test_ctrl_c_keeps_what_is_there(model: str, tmp_path: Path) -> None:
    process = start(tmp_path, "--model", model, *SLOW)
    next(waited_for(tmp_path / "out.jsonl", 2))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    kept = (tmp_path / "out.jsonl").read_bytes().count(b"\n")
    assert err.strip() == (
        f"trialogue: interrupted: {kept} of 12 samples are kept in out.jsonl; the same command goes on"
    )
    assert out == ""


def test_a_reader_that_leaves_is_no_error(model: str, tmp_path: Path) -> None:
    process = start(tmp_path, "--model", model, *SLOW[:-2])
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["accepted"]
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert err == ""


def test_the_text_is_streamed(say: Say) -> None:
    told = say("--prompt", "the cat", "--stream", "--max-new-tokens", "6")
    assert told.code == 0
    # Neither stream is a terminal: the text is on standard error, once it is final.
    assert told.err.startswith(told.lines[0]["text"] + "\n1 samples, 1 accepted")


def test_help_lists_options_and_the_fields_of_the_walk(say: Say) -> None:
    told = say("--walk", "backtracking", "--help", own_model=False)
    assert told.code == 0
    for words in ("--verifier SPEC", "--quota", "--max-new-tokens", "erase the last `stride` tokens"):
        assert words in told.out


PROMPT = ("--prompt", "the cat")
MASK = ("--walk", "tokenwise-rejection", "--method", "mask")
BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no prompt": ((), "give either --prompt TEXT or --prompts FILE.jsonl"),
    "both prompts": ((*PROMPT, "--prompts", "p.jsonl"), "give either"),
    "a line that is not JSON": (("--prompts", "bad.jsonl"), "bad.jsonl:2': the line is not JSON"),
    "no file of prompts": (("--prompts", "none.jsonl"), "cannot be read: No such file"),
    "a long prompt": (("--prompt", "cat " * 300), "tokens, and the model's context 256: shorten it"),
    "no model": ((*PROMPT, "--model", "./nothing"), "no such model"),
    "a model without a tokenizer": ((*PROMPT, "--model", "bare"), "it has no tokenizer"),
    "an unknown device": ((*PROMPT, "--device", "nowhere"), "cannot be loaded"),
    "an unknown type": ((*PROMPT, "--dtype", "int8"), "dtype='int8'"),
    "an unknown walk": ((*PROMPT, "--walk", "bactracking"), "the walks are ancestral, rejection"),
    "no verifier": ((*PROMPT, "--walk", "backtracking"), "the walk backtracking needs one"),
    "an unknown field": ((*PROMPT, "--walk", "backtracking", "--quotta", "3"), "did you mean quota?"),
    "a field of no walk": ((*PROMPT, "--quota", "3"), "no such field"),
    "a field of the wrong type": ((*PROMPT, "--walk", "backtracking", "--quota", "x"), "--quota: invalid"),
    "a field out of range": ((*PROMPT, "--walk", "backtracking", "--quota", "-1"), "quota=-1: use 0 or more"),
    "candidates of another walk": ((*PROMPT, "--candidates", "3"), "the walk ancestral has no candidates"),
    "a delimiter of another walk": ((*PROMPT, "--block-delimiter", "a"), "only block-best-of-n"),
    "a delimiter in no token": (
        (*PROMPT, "--walk", "block-best-of-n", "--verifier", REGEX, "--block-delimiter", "@@@"),
        "no token of the model contains it",
    ),
    "temperature": ((*PROMPT, "--temperature", "-1"), "temperature=-1.0"),
    "top-p": ((*PROMPT, "--top-p", "2"), "top_p=2.0"),
    "n": ((*PROMPT, "--n", "0"), "n=0: use at least 1"),
    "threads": ((*PROMPT, "--threads", "0"), "threads=0: use at least 1"),
    "stream of many": ((*PROMPT, "--stream", "--n", "2"), "one sample of one prompt"),
    "resampling without weights": ((*PROMPT, "--resample"), "samples of the walk ancestral have no weights"),
    "resampling nothing": (
        (*PROMPT, "--verifier", REGEX, *MASK, "--temperature", "0", "--resample"),
        "every sample of prompt 0 has weight zero: draw more samples",
    ),
    "an unknown kind of verifier": ((*PROMPT, "--verifier", "regexp:a"), "write it as regex:PATTERN"),
    "a regex that does not compile": ((*PROMPT, "--verifier", "regex:(a", *MASK), "regex='(a'"),
    "a schema that is not JSON": (
        (*PROMPT, "--verifier", "json-schema:bad.jsonl", *MASK),
        "the schema is not JSON",
    ),
    "a schema that admits nothing": (
        (*PROMPT, "--verifier", 'json-schema:{"type": "integer", "minimum": 3, "maximum": 2}', *MASK),
        "json-schema",
    ),
    "no file of a schema": (
        (*PROMPT, "--verifier", "json-schema:none.json"),
        "the file none.json cannot be read",
    ),
    "a grammar that does not parse": ((*PROMPT, "--verifier", "lark:bad.jsonl", *MASK), "lark="),
    "no probe": (
        (*PROMPT, "--verifier", "probe:none.safetensors@0.5"),
        "the file none.safetensors cannot be read",
    ),
    "no function": ((*PROMPT, "--verifier", "python:rules.py"), "write it as python:FILE.py:FUNCTION"),
    "an unknown function": ((*PROMPT, "--verifier", "python:rules.py:uper"), "the file has no such function"),
    "a file that does not run": ((*PROMPT, "--verifier", "python:bad.jsonl:f"), "it cannot be run"),
    "a function that raises": (
        (*PROMPT, "--verifier", "python:rules.py:raising", *MASK),
        "it raised KeyError",
    ),
    "a function that hangs": (
        (*PROMPT, "--verifier", "python:rules.py:hanging", "--verifier-timeout", "0.2", *MASK),
        "it did not return within 0.2 s",
    ),
    "a function that returns nonsense": (
        (*PROMPT, "--verifier", "python:rules.py:nonsense", *MASK),
        "it returned 'yes': return one finite non-negative number",
    ),
    "a timeout": ((*PROMPT, "--verifier-timeout", "-1"), "verifier_timeout=-1.0"),
    "output in a file's place": (
        (*PROMPT, "--out", "rules.py/out.jsonl"),
        "a file is in the way of this folder",
    ),
    "output over another file": ((*PROMPT, "--out", "rules.py"), "it does not come with its settings"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(case: str, say: Say, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('"a"\n{"prompt"\n', encoding="utf-8")
    if "bare" in BAD[case][0]:
        save_tiny(tmp_path / "bare", tokenizer=False)
    tokens, words = BAD[case]
    told = say(*tokens)
    assert told.code == 2, told.err
    assert told.out == ""
    assert told.err.startswith("trialogue: error: ")
    assert told.err.count("\n") == 1
    assert words in told.err
    assert (tmp_path / "rules.py").read_text(encoding="utf-8") == RULES


def test_the_model_must_be_named(say: Say) -> None:
    told = say(*PROMPT, own_model=False)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "model=None: name one" in told.err


def test_what_was_generated_before_an_error_is_kept(say: Say, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('"a"\n"b"\n', encoding="utf-8")
    options = (
        "--prompts",
        "p.jsonl",
        "--batch-size",
        "1",
        "--max-new-tokens",
        "2",
        "--out",
        "out.jsonl",
        "--n",
        "3",
    )
    told = say(*options, "--verifier", "python:rules.py:late", "--max-new-tokens", "3")
    kept = (tmp_path / "out.jsonl").read_bytes().count(b"\n")
    assert told.code == 2
    assert 0 < kept < 6
    assert (
        f"it raised ValueError: too late ({kept} of 6 samples are kept in out.jsonl; the same command goes on)"
        in told.err
    )


def test_memory_that_does_not_suffice_is_named(say: Say) -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (size + 150_000_000, limit[1]))
        told = say(*PROMPT, "--n", "100000", "--batch-size", "100000", "--max-new-tokens", "240")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert told.code == 2, told.err
    assert told.err.count("\n") == 1
    assert "out of memory with 100000 rows of up to 24" in told.err
    assert "try --batch-size 50000, or a smaller --max-new-tokens" in told.err


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), RuntimeError("std::bad_alloc")],
    ids=repr,
)
def test_every_way_to_run_out_of_memory_is_named(
    error: Exception, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run, "generate", exhausted)
    assert "try --batch-size 4, or" in say(*PROMPT, "--n", "8").err


def test_no_network_is_one_line(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "trialogue.cli", "generate", "--model", "nobody/nothing", *PROMPT],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(trialogue.__file__).parents[1]),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "the hub cannot be reached and the model is not in its cache" in process.stderr
