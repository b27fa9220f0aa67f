"""Invalid input of `trialogue generate`: one line, exit code 2, and no loss of earlier samples."""

import importlib
import json
import logging.handlers
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
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

from generation.command import CAT, REGEX, RULES, environment
from models.tiny_pretrained import save_tiny, tiny_tokenizer
from refusals import commands_without_expected_error
from trialogue.generation import drawing
from trialogue.models.hub.checkpoint_loading import load_checkpoint

MASK = "--sampler masked-decoding"
BAD: list[tuple[str, str]] = [
    ("", "use --prompt TEXT or --prompts FILE.jsonl"),
    (f"{CAT} --prompts p.jsonl", "leave out either --prompt or --prompts p.jsonl"),
    ("--prompts bad.jsonl", "bad.jsonl:2': the line is not JSON"),
    (f"--prompt '{'cat ' * 300}'", "of at most 255 tokens"),
    ("--prompts long.jsonl", "shorten the prompt with id 'b': it has "),
    (f"{CAT} --model ./nothing", "no such model"),
    (f"{CAT} --model adapter-of-nothing", "does not name its base model"),
    (f"{CAT} --device nowhere", "nowhere"),
    (f"{CAT} --sampler exakt", "did you mean exact?"),
    (f"{CAT} --sampler backtracking", "the sampler backtracking needs a verifier"),
    (f"{CAT} --sampler backtracking --quotta 3", "did you mean --quota?"),
    (
        f"{CAT} --quota 3",
        "'--quota': neither the command nor the sampler ancestral has it: it belongs to the sampler backtracking",
    ),
    (f"{CAT} --quotta=3", "did you mean --quota, which belongs to the sampler backtracking?"),
    (f"{CAT} --temprature 1", "'--temprature': neither the command nor the sampler ancestral"),
    ("--prompt Name a city", "word='a': quote texts of several words, and write an option before each"),
    (
        f"{CAT} --sampler backtracking --verifier {REGEX} --erase-prompt",
        "erase_prompt=True: leave it out, or use trialogue.samplers.generate",
    ),
    (
        f"{CAT} --sampler exact --verifier {REGEX} --share 8 --workers 2",
        "share=8: leave it out, or leave out --executor and --workers",
    ),
    (
        f"{CAT} --sampler rejection --verifier {REGEX} --temperature 0",
        "temperature=0.0: use a larger value: the sampler rejection would repeat the same token",
    ),
    (
        f"{CAT} --sampler exact --verifier {REGEX} --temperature 0",
        "temperature=0.0: use a larger value: the sampler exact would fail at the first rejection",
    ),
    (
        f"{CAT} --sampler exact --verifier {REGEX} --then mask",
        "max_attempts=None: give the number of attempts",
    ),
    (
        f"{CAT} --sampler block-best-of-n --verifier {REGEX} --block-delimiter @@@",
        "no token of the model contains this text",
    ),
    (f"{CAT} --top-k 0", "top_k=0: use at least 1"),
    (f"{CAT} --within-limit", "within_limit=True: use it with a constraint that has a mask"),
    (f"{CAT} --n 0", "n=0: use at least 1"),
    (f"{CAT} --until 2 --n 3", "n=3: leave out either --n or --until 2"),
    (f"{CAT} --stream --until 1", "use one prompt, without --n and --until"),
    (
        f"{CAT} --max-new-tokens 256",
        "max_new_tokens=256: use at most 255: the model's context has 256 tokens",
    ),
    (f"{CAT} --threads 0", "threads=0: use at least 1"),
    (f"{CAT} --stream --n 2", "use one prompt, without --n and --until"),
    (f"{CAT} --resample", "leave it out: samples of the sampler ancestral have no weights"),
    (f"{CAT} --verifier regexp:a", "write it as regex:PATTERN"),
    (
        f"{CAT} --verifier 'regex:[a-c]+' --verifier 'regex:[x-z]+' {MASK}",
        "change the verifiers: they have no common first token after the prompt 'the cat'",
    ),
    (f"{CAT} --verifier lark:", "write it as lark:FILE: the content after the colon is missing"),
    (f"{CAT} --verifier lark:.", "the file . cannot be read: Is a directory"),
    (
        f"{CAT} --verifier lark:bad.jsonl {MASK}",
        "verifier='lark:bad.jsonl': line 1, column 1: expecting rule, token or statement",
    ),
    (f"{CAT} --verifier probe:none.safetensors@0.5", "the file none.safetensors cannot be read"),
    (f"{CAT} --verifier probe:none.safetensors@9", "threshold=9.0: use a probability above 0"),
    (f"{CAT} --verifier python:rules.py", "write it as python:FILE.py:FUNCTION"),
    (
        f"{CAT} --verifier python:rules.py:hanging --verifier-timeout 0.2 {MASK}",
        "it did not return within 0.2 s",
    ),
    (
        f"{CAT} --verifier {REGEX} --verifier-whole",
        "verifier_whole=True: leave it out: it applies only to functions",
    ),
    (f"{CAT} --verifier {REGEX} --verifier-scope sequence", "verifier_scope='sequence': leave it out"),
    (f"{CAT} --verifier-whole", "verifier_whole=True: leave it out"),
    (f"{CAT} --force", "force=True: leave it out or add --out"),
    (f"{CAT} --verifier-timeout inf", "verifier_timeout=inf: use a finite number"),
    (f"{CAT} --out /proc/x.jsonl", "/proc/x.jsonl': cannot be written: No"),
    (
        f"{CAT} --out none/deep/out.jsonl",
        "out='none/deep/out.jsonl': there is no folder none/deep; create it, or choose another",
    ),
    (f"{CAT} --out rules.py/out.jsonl", "a file is in the way of this folder"),
    (f"{CAT} --out rules.py", "its settings file rules.py.settings.json is missing"),
]

BAD += [
    (f"{CAT} --out {special}{more}", f"out='{special}': use a regular file, or leave it out")
    for special in ("-", "/dev/null", "pipe")
    for more in ("", f" --sampler weighted-rejection --verifier {REGEX} --resample")
]


def test_invalid_input_is_reported_in_one_line(run, tmp_path):
    (tmp_path / "bad.jsonl").write_text('"a"\n{"prompt"\n', encoding="utf-8")
    lines = [{"prompt": "cat", "id": "a"}, {"prompt": "cat " * 300, "id": "b"}]
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "adapter-of-nothing").mkdir()
    (tmp_path / "adapter-of-nothing" / "adapter_config.json").write_text("{}", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    assert not commands_without_expected_error(BAD, run)
    assert (tmp_path / "rules.py").read_text(encoding="utf-8") == RULES
    assert not Path("/dev/null.settings.json").exists()
    assert not (tmp_path / "-").exists()
    assert not (tmp_path / "none").exists()


def test_the_tokenizer_does_not_warn_about_a_long_prompt(shell, tmp_path):
    settings = save_tiny(tmp_path / "short") / "tokenizer_config.json"
    changed = json.loads(settings.read_text(encoding="utf-8")) | {"model_max_length": 256}
    settings.write_text(json.dumps(changed), encoding="utf-8")
    result: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = result.append
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    try:
        assert shell(f"--prompt '{'cat ' * 300}' --model short").code == 2
    finally:
        logger.removeHandler(handler)
    assert result == []


def test_a_model_is_required(shell):
    shell(CAT, own_model=False).require_error("model=None: --model is missing: use a Hugging Face id")


def test_samples_before_an_error_are_kept(shell, tmp_path):
    (tmp_path / "p.jsonl").write_text('"a"\n"b"\n', encoding="utf-8")
    options = "--prompts p.jsonl --batch-size 1 --max-new-tokens 2 --out out.jsonl --n 3"
    result = shell(f"{options} --verifier python:rules.py:late --max-new-tokens 3")
    kept = (tmp_path / "out.jsonl").read_bytes().count(b"\n")
    assert result.code == 2
    assert 0 < kept < 6
    assert (
        f"it raised ValueError: too late (rules.py:32) ({kept} of 6 samples are saved in out.jsonl; "
        "run the same command to continue)" in result.err
    )


def test_errors_of_standard_output_are_reported_in_one_line(shell, monkeypatch):
    expected = "trialogue: error: standard output cannot be written: No space left on device\n"
    for buffering in (1, 4096):
        with Path("/dev/full").open("w", buffering=buffering) as full:
            monkeypatch.setattr(sys, "stdout", full)
            result = shell(f"{CAT} --max-new-tokens 2")
            result.require_error("it cannot be written: No space left on device")
            assert result.err.endswith("write to a file with --out FILE\n")
    monkeypatch.setattr(sys, "stdout", None)
    assert "stdout=None: it is closed: write to a file" in shell(f"{CAT} --max-new-tokens 2").err
    # Nothing is written when the process ends.
    command = f"{sys.executable} -m trialogue.cli models list > /dev/full"
    done = subprocess.run(command, shell=True, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, expected)


def allocation_error():
    """Return the error of torch for an allocation that no machine can satisfy."""
    with pytest.raises(RuntimeError, match="can't allocate memory") as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("std::bad_alloc"),
        allocation_error(),
    ],
    ids=repr,
)
def test_every_out_of_memory_error_suggests_smaller_batches(error, shell, monkeypatch):
    def raise_out_of_memory(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(drawing, "generate", raise_out_of_memory)
    assert "with 8 rows of up to 259 tokens" in shell(f"{CAT} --n 8").err
    assert "try --batch-size 4, or a smaller" in shell(f"{CAT} --n 8 --batch-size 100").err
    assert "1 rows of" in (result := shell(CAT).err)
    assert "try a smaller --max-new-tokens" in result
    sampler = f"--sampler best-of-n --verifier {REGEX} --candidates 6"
    assert "with 12 rows" in (result := shell(f"{CAT} --n 5 {sampler}").err)
    assert "try --batch-size 6, or" in result
    assert "try fewer candidates, or" in shell(f"{CAT} {sampler}").err


# The HTTP client of the hub's library depends on its version.
HTTP: Any = importlib.import_module(HfHubHTTPError.__mro__[1].__module__.partition(".")[0])


def _response(code: int) -> Any:
    return HTTP.Response(code, request=HTTP.Request("HEAD", "https://huggingface.co/someone/something"))


HUB: dict[str, tuple[Callable[[], Exception], str]] = {
    "gated": (
        lambda: GatedRepoError(
            "403 Client Error.\n\nCannot access gated repo\nfor url", response=_response(403)
        ),
        "it is private, gated or does not exist. Request access and log in with `hf auth login`",
    ),
    "private or unknown": (
        lambda: RepositoryNotFoundError("401 Client Error.\n\nRepository Not Found", response=_response(401)),
        "it is private, gated or does not exist. Request access and log in with `hf auth login`",
    ),
    "unknown to a logged-in user": (
        lambda: RepositoryNotFoundError("404 Client Error.\n\nRepository Not Found", response=_response(404)),
        "there is no such model on the hub, and no such folder",
    ),
    "no network": (
        lambda: HTTP.ConnectError("[Errno -3] Temporary failure in name resolution"),
        "there is no such folder, the hub cannot be reached, and the model is not in its cache. Give a folder, or "
        "connect to the internet",
    ),
    "offline mode": (
        lambda: OfflineModeIsEnabled("Cannot reach the hub: offline mode is enabled"),
        "there is no such folder, the hub cannot be reached, and the model is not in its cache. Give a folder, or "
        "connect to the internet",
    ),
}


@pytest.mark.parametrize("case", HUB)
def test_errors_of_the_hub_are_reported_in_one_line(case, shell, tmp_path, monkeypatch):
    error, words = HUB[case]
    requests = []

    def refused(url: str, **_: object) -> None:
        requests.append(url)
        hub_logging.get_logger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
        raise error()

    log = logging.handlers.MemoryHandler(100, flushLevel=logging.CRITICAL)
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "handlers", [log])
    # The hub's library requests all files through this function.
    monkeypatch.setattr(file_download, "get_hf_file_metadata", refused)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", case == "offline mode")
    result = shell(f"--model someone/something {CAT} --out out.jsonl", own_model=False)
    assert result == (2, "", f"trialogue: error: model='someone/something': {words}\n")
    assert log.buffer == []
    # The hub's library repeats a failed request five times, which takes 25 seconds.
    assert len(requests) <= 1
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_errors_in_the_code_are_not_reported_as_network_errors(monkeypatch, tmp_path):
    def broken(url: str, **_: object) -> None:
        raise TypeError(url)

    monkeypatch.setattr(file_download, "get_hf_file_metadata", broken)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(TypeError, match="someone/something"):
        load_checkpoint("CausalLM", "someone/something")


BEFORE_WEIGHTS: list[tuple[str, str]] = [
    ("--prompt a --verifier 'regex:(a'", "regex='(a': unclosed group"),
    ("--prompt a --verifier lark:bad.lark", "line 1, column 8: unknown name"),
    (
        """--prompt a --verifier 'json-schema:{"type": "text"}'""",
        "type: 'text' is not one of ['array', 'boolean',",
    ),
    ("--prompt a --verifier python:rules.py:odd", "the file has no such function"),
    (
        f"--prompt a --verifier python:rules.py:never {MASK}",
        "change the verifier, which rejects the empty completion",
    ),
    (f"--prompt '{'cat ' * 300}'", "of at most 255 tokens"),
    ("--prompt a --max-new-tokens 256", "the model's context has 256 tokens"),
    ("--prompt a", "its weights are truncated or damaged"),
]


def test_prompts_and_verifiers_are_checked_before_weights_are_read(run, tmp_path):
    (tmp_path / "bad.lark").write_text("start: foo", encoding="utf-8")
    (save_tiny(tmp_path / "broken") / "model.safetensors").write_bytes(b"no weights")
    assert not commands_without_expected_error(BEFORE_WEIGHTS, partial(run, "--model", "broken"))


def test_a_completion_cut_by_the_context_is_reported(shell, tmp_path):
    lines = [{"prompt": "cat " * 100, "id": "long"}, {"prompt": "cat"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert shell("--prompts p.jsonl --top-k 1").err.count("\n") == 1
    result = shell("--prompts p.jsonl --top-k 1 --max-new-tokens 200")
    left = 256 - len(tiny_tokenizer()("cat " * 100)["input_ids"])
    words = f"the model's context of 256 tokens leaves {left} after the prompt with id 'long'\n"
    assert result.err.startswith(f"trialogue: max_new_tokens=200: {words}")
    assert {line["ended"] for line in result.lines if line["id"] == "long"} == {"context"}


def test_remarks_of_a_verifier_are_printed_once(shell):
    schema = 'json-schema:{"type": "array", "uniqueItems": true}'
    result = shell(f"{CAT} --verifier '{schema}' --verifier '{schema}' --max-new-tokens 2 --n 3").checked()
    assert result.err.count("uniqueItems") == 1
