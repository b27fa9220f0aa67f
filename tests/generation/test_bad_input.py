"""`trialogue generate`: every bad input is one line and exit code 2, and what was generated before is kept."""

import importlib
import json
import logging.handlers
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants, file_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import logging as hub_logging

import trialogue
from generation.command import PROMPT, REGEX, RULES, Say, start
from models.tiny_pretrained import save_tiny, tiny_tokenizer
from trialogue.generation import drawing
from trialogue.models.checkpoint_loading import load_checkpoint

MASK = ("--sampler", "masked-decoding")
BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "no prompt": ((), "give --prompt TEXT or --prompts FILE.jsonl"),
    "both prompts": (
        (*PROMPT, "--prompts", "p.jsonl"),
        "--prompts p.jsonl is given too: leave out one of them",
    ),
    "a line that is not JSON": (("--prompts", "bad.jsonl"), "bad.jsonl:2': the line is not JSON"),
    "no file of prompts": (("--prompts", "none.jsonl"), "cannot be read: No such file"),
    "a long prompt": (("--prompt", "cat " * 300), "tokens, and the model's context 256: shorten it"),
    "a long prompt of a file": (("--prompts", "long.jsonl"), "with id 'b' has "),
    "no model": ((*PROMPT, "--model", "./nothing"), "no such model"),
    "a model without a tokenizer": ((*PROMPT, "--model", "bare"), "it has no tokenizer"),
    "an adapter of nothing": ((*PROMPT, "--model", "adapter-of-nothing"), "does not name its base model"),
    "an unknown device": ((*PROMPT, "--device", "nowhere"), "nowhere"),
    "an unknown type": ((*PROMPT, "--dtype", "int8"), "dtype='int8'"),
    "an unknown format of weights": ((*PROMPT, "--weights", "int3"), "weights='int3'"),
    "an unknown sampler": ((*PROMPT, "--sampler", "bactracking"), "the samplers are ancestral, rejection"),
    "no verifier": ((*PROMPT, "--sampler", "backtracking"), "the sampler backtracking needs one"),
    "an unknown field": ((*PROMPT, "--sampler", "backtracking", "--quotta", "3"), "did you mean --quota?"),
    "a field of another sampler": (
        (*PROMPT, "--quota", "3"),
        "'--quota': neither the command nor the sampler ancestral has it: it belongs to the sampler backtracking",
    ),
    "a switch of another sampler": ((*PROMPT, "--no-argmax-redo"), "it belongs to the sampler backtracking"),
    "a misspelt field of another sampler": (
        (*PROMPT, "--quotta=3"),
        "did you mean --quota, which belongs to the sampler backtracking?",
    ),
    "a field of several samplers": (
        (*PROMPT, "--candidates", "3"),
        "it belongs to the samplers best-of-n and block-best",
    ),
    "a misspelt option": (
        (*PROMPT, "--temprature", "1"),
        "'--temprature': neither the command nor the sampler ancestral",
    ),
    "a misspelt option's hint": ((*PROMPT, "--temprature=1"), "did you mean --temperature?"),
    "a misspelt option of another sampler": (
        (*PROMPT, "--sampler", "smc", "--verifier", REGEX, "--max_tokens", "1"),
        "did you mean --max-new-tokens",
    ),
    "words without quotation marks": (
        ("--prompt", "Name", "a", "city"),
        "word='a': no option takes it: put a text of several words into quotation marks, and an option before each",
    ),
    "two verifiers behind one option": (
        (*PROMPT, "--verifier", REGEX, "lark:g"),
        "word='lark:g': no option takes",
    ),
    "two stops behind one option": ((*PROMPT, "--stop", "a", "b"), "word='b': no option takes it"),
    "a stray word": (("stray", *PROMPT), "word='stray': no option takes it"),
    "a field of the wrong type": ((*PROMPT, "--sampler", "backtracking", "--quota", "x"), "--quota: invalid"),
    "a field out of range": (
        (*PROMPT, "--sampler", "backtracking", "--quota", "-1"),
        "quota=-1: use at least 0",
    ),
    "a prompt that is erased": (
        (*PROMPT, "--sampler", "backtracking", "--verifier", REGEX, "--erase-prompt"),
        "erase_prompt=True: leave it out: a record cannot say what became of the prompt",
    ),
    "greedy rejection": (
        (*PROMPT, "--sampler", "rejection", "--verifier", REGEX, "--temperature", "0"),
        "temperature=0.0: the sampler rejection would draw the same token again after every rejection",
    ),
    "one token to redraw": (
        (*PROMPT, "--sampler", "tokenwise-rejection", "--verifier", REGEX, "--top-k", "1"),
        "top_k=1: the sampler tokenwise-rejection would draw the same token again",
    ),
    "a delimiter of another sampler": (
        (*PROMPT, "--block-delimiter", "a"),
        "the sampler ancestral has it",
    ),
    "a delimiter of counted blocks": (
        (
            *PROMPT,
            "--sampler",
            "block-best-of-n",
            "--verifier",
            REGEX,
            "--block-tokens",
            "2",
            "--block-delimiter",
            "a",
        ),
        "block_delimiter='a': leave it out",
    ),
    "a delimiter in no token": (
        (*PROMPT, "--sampler", "block-best-of-n", "--verifier", REGEX, "--block-delimiter", "@@@"),
        "no token of the model contains it",
    ),
    "temperature": ((*PROMPT, "--temperature", "-1"), "temperature=-1.0"),
    "top-p": ((*PROMPT, "--top-p", "2"), "top_p=2.0"),
    "top-k": ((*PROMPT, "--top-k", "0"), "top_k=0: keep at least 1 token, or leave it out for all"),
    "n": ((*PROMPT, "--n", "0"), "n=0: use at least 1"),
    "until": ((*PROMPT, "--until", "0"), "until=0: use at least 1"),
    "until besides n": ((*PROMPT, "--until", "2", "--n", "3"), "n=3: --until 2 is given too: leave out one"),
    "tries without until": ((*PROMPT, "--max-tries", "2"), "max_tries=2: leave it out: it bounds --until"),
    "too few tries": ((*PROMPT, "--until", "3", "--max-tries", "2"), "max_tries=2: use at least 3"),
    "a stream of tries": ((*PROMPT, "--stream", "--until", "1"), "one sample of one prompt"),
    "a completion longer than the context": (
        (*PROMPT, "--max-new-tokens", "256"),
        "max_new_tokens=256: the model's context holds 256 tokens, the prompt among them: use at most 255",
    ),
    "an unknown key of a prompt line": (
        ("--prompts", "keys.jsonl"),
        """keys.jsonl:2': the key "promt" is unknown: did you mean "prompt"?""",
    ),
    "threads": ((*PROMPT, "--threads", "0"), "threads=0: use at least 1"),
    "stream of many": ((*PROMPT, "--stream", "--n", "2"), "one sample of one prompt"),
    "resampling without weights": (
        (*PROMPT, "--resample"),
        "samples of the sampler ancestral have no weights",
    ),
    "an unknown kind of verifier": ((*PROMPT, "--verifier", "regexp:a"), "write it as regex:PATTERN"),
    "a regex that does not compile": ((*PROMPT, "--verifier", "regex:(a", *MASK), "regex='(a'"),
    "a schema that is not JSON": (
        (*PROMPT, "--verifier", "json-schema:bad.jsonl", *MASK),
        "it is not JSON",
    ),
    "a schema that admits nothing": (
        (*PROMPT, "--verifier", 'json-schema:{"type": "integer", "minimum": 3, "maximum": 2}', *MASK),
        "json-schema",
    ),
    "rules that contradict each other": (
        (*PROMPT, "--verifier", "regex:[a-c]+", "--verifier", "regex:[x-z]+", *MASK),
        "they contradict each other: by all of them together no token may begin a completion of 'the cat'",
    ),
    "rules that contradict each other in a sampler that judges outputs": (
        (*PROMPT, "--verifier", "regex:[a-c]+", "--verifier", "regex:[x-z]+", "--sampler", "rejection"),
        "verifier=['regex:[a-c]+', 'regex:[x-z]+']: they contradict each other",
    ),
    "an empty regex": (
        (*PROMPT, "--verifier", "regex:"),
        "nothing stands behind the colon: write it as regex:PAT",
    ),
    "an empty rule": (
        (*PROMPT, "--verifier", "lark:"),
        "nothing stands behind the colon: write it as lark:FILE",
    ),
    "a folder as a rule": ((*PROMPT, "--verifier", "lark:."), "the file . cannot be read: Is a directory"),
    "no file of a schema": (
        (*PROMPT, "--verifier", "json-schema:none.json"),
        "the file none.json cannot be read",
    ),
    "a grammar that does not parse": (
        (*PROMPT, "--verifier", "lark:bad.jsonl", *MASK),
        "verifier='lark:bad.jsonl': line 1, column 1: expecting rule, token or statement",
    ),
    "no probe": (
        (*PROMPT, "--verifier", "probe:none.safetensors@0.5"),
        "the file none.safetensors cannot be read",
    ),
    "a threshold that nothing reaches": (
        (*PROMPT, "--verifier", "probe:none.safetensors@9"),
        "threshold=9.0: the threshold of a probe is a probability above 0",
    ),
    "a threshold that everything reaches": (
        (*PROMPT, "--verifier", "probe:none.safetensors@0"),
        "threshold=0.0",
    ),
    "a threshold that is no number": ((*PROMPT, "--verifier", "probe:none.safetensors@nan"), "threshold=nan"),
    "no function": ((*PROMPT, "--verifier", "python:rules.py"), "write it as python:FILE.py:FUNCTION"),
    "an unknown function": ((*PROMPT, "--verifier", "python:rules.py:uper"), "the file has no such function"),
    "a file that does not run": ((*PROMPT, "--verifier", "python:bad.jsonl:f"), "it cannot be run"),
    "a function that raises": (
        (*PROMPT, "--verifier", "python:rules.py:raising", *MASK),
        "it raised KeyError",
    ),
    "a function that leaves the process": (
        (*PROMPT, "--verifier", "python:rules.py:leaving", *MASK),
        "it raised SystemExit: os._exit(0)",
    ),
    "a function that hangs": (
        (*PROMPT, "--verifier", "python:rules.py:hanging", "--verifier-timeout", "0.2", *MASK),
        "it did not return within 0.2 s",
    ),
    "a function that returns nonsense": (
        (*PROMPT, "--verifier", "python:rules.py:nonsense", *MASK),
        "it returned 'yes': return one finite non-negative number",
    ),
    "whole texts of a regex": (
        (*PROMPT, "--verifier", REGEX, "--verifier-whole"),
        "verifier_whole=True: leave it out: it is for functions",
    ),
    "the scope of a regex": (
        (*PROMPT, "--verifier", REGEX, "--verifier-scope", "sequence"),
        "verifier_scope='sequence': leave it out",
    ),
    "whole texts without a verifier": ((*PROMPT, "--verifier-whole"), "verifier_whole=True: leave it out"),
    "force without a file": ((*PROMPT, "--force"), "force=True: leave it out: without --out"),
    "an endless timeout": (
        (*PROMPT, "--verifier-timeout", "inf"),
        "verifier_timeout=inf: use a positive number",
    ),
    "a timeout": ((*PROMPT, "--verifier-timeout", "-1"), "verifier_timeout=-1.0"),
    "output where there are no files": (
        (*PROMPT, "--out", "/proc/x.jsonl"),
        "/proc/x.jsonl': cannot be written: No",
    ),
    "output in a folder that is not there": (
        (*PROMPT, "--out", "none/deep/out.jsonl"),
        "out='none/deep/out.jsonl': there is no folder none/deep: make it, or choose another",
    ),
    "output in a file's place": (
        (*PROMPT, "--out", "rules.py/out.jsonl"),
        "a file is in the way of this folder",
    ),
    "output over another file": ((*PROMPT, "--out", "rules.py"), "it does not come with its settings"),
}

for special in ("-", "/dev/null", "pipe"):
    for resample in ((), ("--sampler", "weighted-rejection", "--verifier", REGEX, "--resample")):
        BAD[f"{special} as output{' that is resampled' * bool(resample)}"] = (
            (*PROMPT, "--out", special, *resample),
            f"out='{special}': it is no file that a run could go on with: leave it out for standard output",
        )


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(case: str, say: Say, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('"a"\n{"prompt"\n', encoding="utf-8")
    if "bare" in BAD[case][0]:
        save_tiny(tmp_path / "bare", tokenizer=False)
    lines = [{"prompt": "cat", "id": "a"}, {"prompt": "cat " * 300, "id": "b"}]
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "keys.jsonl").write_text('"a"\n{"promt": "b"}\n', encoding="utf-8")
    for name, described in (("adapter-of-nothing", {}),):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_config.json").write_text(json.dumps(described), encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    tokens, words = BAD[case]
    told = say(*tokens)
    assert told.code == 2, told.err
    assert told.out == ""
    assert told.err.startswith("trialogue: error: ")
    assert told.err.count("\n") == 1
    assert words in told.err
    assert (tmp_path / "rules.py").read_text(encoding="utf-8") == RULES
    assert not Path("/dev/null.settings.json").exists()
    assert not (tmp_path / "-").exists()
    assert not (tmp_path / "none").exists()


def test_a_tokenizer_does_not_warn_of_a_long_prompt_besides(say: Say, tmp_path: Path) -> None:
    settings = save_tiny(tmp_path / "short") / "tokenizer_config.json"
    changed = json.loads(settings.read_text(encoding="utf-8")) | {"model_max_length": 256}
    settings.write_text(json.dumps(changed), encoding="utf-8")
    told: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = told.append  # type: ignore[method-assign]
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        assert say("--prompt", "cat " * 300, "--model", "short").code == 2
    finally:
        logger.removeHandler(handler)
    assert told == []


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
        f"it raised ValueError: too late (rules.py:32) ({kept} of 6 samples are kept in out.jsonl; "
        "the same command goes on)" in told.err
    )


@pytest.mark.parametrize(
    ("shell", "words"),
    [("> /dev/full", "it cannot be written: No space left on device"), (">&-", "stdout=None: it is closed")],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_takes_nothing_is_one_line(
    shell: str, words: str, unbuffered: str, model: str, tmp_path: Path
) -> None:
    (tmp_path / "say.py").write_text(
        "import sys\nfrom trialogue import cli\nsys.exit(cli.main(sys.argv[1:]))\n"
    )

    def told(command: str) -> tuple[int, str]:
        environment = os.environ | {
            "PYTHONPATH": str(Path(trialogue.__file__).parents[1]),
            "PYTHONUNBUFFERED": unbuffered,
        }
        line = f"{sys.executable} say.py {command} {shell}"
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.returncode, done.stderr

    code, err = told(f"generate --model {model} --prompt a --max-new-tokens 2")
    assert (code, err.count("\n")) == (2, 1), err
    assert words in err
    assert err.endswith("write to a file with --out FILE\n")
    code, err = told("list")
    wanted = "trialogue: error: standard output cannot be written: No space left on device\n"
    assert (code, err) == ((2, wanted) if "full" in shell else (0, ""))


LITTLE_MEMORY = """
import contextlib, io, resource, sys
from pathlib import Path
from trialogue import cli

# What loading takes is not what is short.
with contextlib.redirect_stderr(io.StringIO()):
    cli.main([*sys.argv[1:], "--n", "1", "--max-new-tokens", "1", "--out", "small.jsonl"])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 150_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(cli.main([*sys.argv[1:], "--n", "100000", "--batch-size", "100000", "--max-new-tokens", "240"]))
"""


def test_memory_that_does_not_suffice_is_named(model: str, tmp_path: Path) -> None:
    process = start(tmp_path, "--model", model, *PROMPT, program=["-c", LITTLE_MEMORY])
    _, err = process.communicate()
    assert process.returncode == 2, err
    assert err.count("\n") == 1
    assert "out of memory with 16384 rows of up to 24" in err
    assert "try --batch-size 8192, or a smaller --max-new-tokens" in err


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

    monkeypatch.setattr(drawing, "generate", exhausted)
    assert "with 8 rows of up to 259 tokens" in say(*PROMPT, "--n", "8").err
    assert "with 16 rows" in say(*PROMPT, "--n", "100").err
    assert "try --batch-size 4, or a smaller" in say(*PROMPT, "--n", "8", "--batch-size", "100").err
    assert "1 rows of" in (told := say(*PROMPT).err)
    assert "try a smaller --max-new-tokens" in told
    sampler = ("--sampler", "best-of-n", "--verifier", REGEX, "--candidates", "6")
    assert "with 12 rows" in (told := say(*PROMPT, "--n", "5", *sampler).err)
    assert "try --batch-size 6, or" in told
    assert "try fewer candidates, or" in say(*PROMPT, *sampler).err


# The client that the hub's library is built on, which changes with its version.
HTTP: Any = importlib.import_module(HfHubHTTPError.__mro__[1].__module__.partition(".")[0])


def _response(code: int) -> Any:
    return HTTP.Response(code, request=HTTP.Request("HEAD", "https://huggingface.co/someone/something"))


HUB: dict[str, tuple[Callable[[], Exception], str]] = {
    "gated": (
        lambda: GatedRepoError(
            "403 Client Error.\n\nCannot access gated repo\nfor url", response=_response(403)
        ),
        "it is private, gated or does not exist: ask for access and log in with `hf auth login`",
    ),
    "private or unknown": (
        lambda: RepositoryNotFoundError("401 Client Error.\n\nRepository Not Found", response=_response(401)),
        "it is private, gated or does not exist: ask for access and log in with `hf auth login`",
    ),
    "unknown to one who is logged in": (
        lambda: RepositoryNotFoundError("404 Client Error.\n\nRepository Not Found", response=_response(404)),
        "there is no such model on the hub, and no such folder",
    ),
    "no network": (
        lambda: HTTP.ConnectError("[Errno -3] Temporary failure in name resolution"),
        "the hub cannot be reached and the model is not in its cache; give a folder, or go online once",
    ),
    "told to be offline": (
        lambda: OfflineModeIsEnabled("Cannot reach the hub: offline mode is enabled"),
        "the hub cannot be reached and the model is not in its cache; give a folder, or go online once",
    ),
}


@pytest.mark.parametrize("case", HUB)
def test_a_model_that_the_hub_does_not_give_is_one_line(
    case: str, say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, words = HUB[case]
    requests = []

    def refused(url: str, **_: object) -> None:
        requests.append(url)
        hub_logging.get_logger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
        raise error()

    told_of = logging.handlers.MemoryHandler(100, flushLevel=logging.CRITICAL)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "handlers", [told_of])
    # The one place where the hub is asked about a file.
    monkeypatch.setattr(file_download, "get_hf_file_metadata", refused)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", case == "told to be offline")
    told = say("--model", "someone/something", *PROMPT, "--out", "out.jsonl", own_model=False)
    assert (told.code, told.out) == (2, "")
    assert told.err == f"trialogue: error: model='someone/something': {words}\n"
    assert told_of.buffer == []
    # The library of the hub repeats a request that fails, five times, which takes 25 seconds.
    assert len(requests) <= 1
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_errors_of_the_code_are_not_taken_for_errors_of_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(url: str, **_: object) -> None:
        raise TypeError(url)

    monkeypatch.setattr(file_download, "get_hf_file_metadata", broken)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(TypeError, match="someone/something"):
        load_checkpoint("CausalLM", "someone/something")


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (("--prompt", "a", "--verifier", "regex:(a"), "regex='(a': unclosed group"),
        (("--prompt", "a", "--verifier", "lark:bad.lark"), "line 1, column 8: unknown name"),
        (("--prompt", "a", "--verifier", 'json-schema:{"type": "strin"}'), "type: 'strin' is not valid"),
        (("--prompt", "a", "--verifier", "python:rules.py:uper"), "the file has no such function"),
        (
            ("--prompt", "a", "--verifier", "python:rules.py:never", *MASK),
            "the verifier rejects the empty completion",
        ),
        (("--prompt", "cat " * 300), "tokens, and the model's context 256: shorten it"),
        (("--prompt", "a", "--max-new-tokens", "256"), "the model's context holds 256 tokens"),
        (("--prompt", "a"), "its weights are cut short or damaged"),
    ],
    ids=lambda case: case[-1][:20] if isinstance(case, tuple) else None,
)
def test_prompts_and_rules_are_checked_before_weights_are_read(
    mistake: tuple[str, ...], words: str, say: Say, tmp_path: Path
) -> None:
    (tmp_path / "bad.lark").write_text("start: foo", encoding="utf-8")
    (save_tiny(tmp_path / "broken") / "model.safetensors").write_bytes(b"no weights")
    told = say("--model", "broken", *mistake)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert words in told.err


def test_a_completion_that_the_context_cuts_is_said(say: Say, tmp_path: Path) -> None:
    lines = [{"prompt": "cat " * 100, "id": "long"}, {"prompt": "cat"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert say("--prompts", "p.jsonl", "--top-k", "1").err.count("\n") == 1
    told = say("--prompts", "p.jsonl", "--top-k", "1", "--max-new-tokens", "200")
    left = 256 - len(tiny_tokenizer()("cat " * 100)["input_ids"])
    words = f"the model's context of 256 tokens leaves {left} behind the prompt with id 'long'\n"
    assert told.err.startswith(f"trialogue: max_new_tokens=200: {words}")
    assert {line["ended"] for line in told.lines if line["id"] == "long"} == {"context"}


def test_remarks_of_a_verifier_are_said_once(say: Say) -> None:
    schema = 'json-schema:{"type": "array", "uniqueItems": true}'
    told = say(*PROMPT, "--verifier", schema, "--verifier", schema, "--max-new-tokens", "2", "--n", "3")
    assert told.code == 0
    assert told.err.count("uniqueItems") == 1
