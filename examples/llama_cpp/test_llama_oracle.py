"""Tests of the llama.cpp oracle against the oracle contract and against transformers on the same file.

PYTHONPATH=src python -m pytest examples/llama_cpp     # in an environment with llama-cpp-python
"""

import gc
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from llama_oracle import GGUF, LlamaContext, LlamaOracle
from tiny_gguf import CONTEXT, MARKS, write_tiny

from trialogue.cli import main
from trialogue.errors import InputError
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.networks.registry import MODELS
from trialogue.oracles import next_log_probs
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    MaskedDecoding,
    SequentialMonteCarlo,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
    generate,
)
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.testing import check_oracle
from trialogue.verifiers import GrammarVerifier, RandomVerifier, Threshold

EXACT = 1e-3
"""Tolerance of log-probabilities in single precision, for a model whose distributions are far from uniform."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def oracle(file: Path) -> LlamaOracle:
    return GGUF(file).load()


@pytest.fixture(scope="module")
def reference(file: Path) -> PretrainedOracle:
    return load_pretrained(file, device="cpu", packed=False)


def sequences(oracle: LlamaOracle, rows: int, length: int) -> torch.Tensor:
    steps = torch.arange(rows * length).view(rows, length)
    return len(MARKS) + (steps * 7919 + 3) % (oracle.vocab_size - len(MARKS))


def test_distributions_equal_those_of_transformers(oracle: LlamaOracle, reference: PretrainedOracle) -> None:
    tokens, lengths = sequences(oracle, 12, 30), torch.arange(1, 25, 2)
    distributions = next_log_probs(oracle, tokens, lengths).exp()
    expected = next_log_probs(reference, tokens, lengths).exp()
    # Two tokens end a text here, but transformers uses only one of them.
    assert oracle.other_ends == [3]
    expected[:, 2] += expected[:, 3]
    expected[:, 3] = 0
    assert float((distributions - expected).abs().max()) < 1e-5
    assert float(expected.max()) > 0.05


def test_oracle_contract(oracle: LlamaOracle) -> None:
    check_oracle(oracle, capacity=16, tolerance=EXACT, steps=20, seeds=(0,))


class Uncut(LlamaContext):
    """Broken context that does not truncate a row, so that new tokens are appended to old ones."""

    def _cut(self, row: int, length: int) -> None:
        if length == 0:
            super()._cut(row, length)


class Uncopied(LlamaContext):
    """Broken context that marks tokens as copied without copying them."""

    def copy(self, source: torch.Tensor, rows: torch.Tensor, start: int, stop: int) -> None:
        for row in rows.tolist():
            self._held[row] = max(self._held[row], stop)


class SelfCopied(LlamaContext):
    """Broken context that copies rows sequentially, from rows that may already be overwritten."""

    def copy(self, source: torch.Tensor, rows: torch.Tensor, start: int, stop: int) -> None:
        for one in range(len(rows)):
            super().copy(source[one : one + 1], rows[one : one + 1], start, stop)


class Unforked(LlamaContext):
    """Broken context that marks tokens of a fork as evaluated without copying them."""

    def fork(self, rows: torch.Tensor, stop: int) -> LlamaContext:
        child = Unforked(self._oracle, len(rows), max(stop, *self._held))
        child._held = [self._held[row] for row in rows.tolist()]
        return child


@pytest.mark.parametrize("broken", [Uncut, Uncopied, Unforked])
def test_oracle_contract_detects_broken_contexts(
    broken: type, oracle: LlamaOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llama_oracle.LlamaContext", broken)
    with pytest.raises((AssertionError, InputError)):
        check_oracle(oracle, capacity=16, tolerance=EXACT, steps=25, seeds=(0,))


@pytest.mark.parametrize("context", [LlamaContext, SelfCopied])
def test_permutation_of_rows(oracle: LlamaOracle, context: type) -> None:
    tokens, rows = sequences(oracle, 3, 8), torch.arange(3)
    opened, lengths = context(oracle, 3, 8), torch.tensor([5, 7, 6])
    opened.features(tokens, torch.zeros(3, dtype=torch.int64), lengths, rows)
    opened.copy(torch.tensor([1, 2, 0]), rows, 0, 7)
    permuted = tokens[[1, 2, 0]]
    log_probs = opened.log_probs(opened.features(permuted, torch.full((3,), 5), torch.full((3,), 5), rows))
    expected = next_log_probs(oracle, permuted, torch.full((3,), 5))
    is_correct = torch.allclose(log_probs, expected, atol=EXACT)
    assert is_correct is (context is LlamaContext)


def test_tokens_after_a_rewind_are_evaluated_again(oracle: LlamaOracle) -> None:
    tokens, row = sequences(oracle, 2, 8), torch.tensor([0])
    context = oracle.open(1, 8)
    for stop in (8, 3):
        context.features(tokens[:1], torch.tensor([0]), torch.tensor([stop]), row)
    log_probs = context.log_probs(context.features(tokens[:1], torch.tensor([8]), torch.tensor([8]), row))
    expected = next_log_probs(oracle, tokens[:1])
    assert torch.allclose(log_probs, expected, atol=EXACT)
    assert context.passes == 3


def digits(oracle: LlamaOracle) -> GrammarVerifier:
    return GrammarVerifier.regex("[12]{1,4}", oracle.tokenization)


@pytest.mark.parametrize(
    "sampler",
    [
        MaskedDecoding(),
        TokenwiseRejection(),
        WeightedRejection(),
        SequentialMonteCarlo(particles=4, proposal="mask"),
        ValueGuided(),
    ],
    ids=repr,
)
def test_samplers_obey_a_grammar(oracle: LlamaOracle, sampler: Sampler) -> None:
    samples = generate(
        oracle,
        ["the cat"] * 3,
        sampler=sampler,
        verifier=digits(oracle),
        max_new_tokens=5,
        seed=1,
        max_steps=400,
    )
    assert samples.accepted.any()
    for text, accepted in zip(samples.texts(), samples.accepted.tolist(), strict=True):
        assert not accepted or (text and not set(text) - set("12"))


def test_samples_equal_those_of_transformers(
    oracle: LlamaOracle, reference: PretrainedOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "other_ends", [])
    samples = [
        generate(
            model,
            [[5, 6, 7], [8], [9, 10]],
            sampler=sampler,
            verifier=verifier,
            max_new_tokens=12,
            seed=3,
        ).completions()
        for sampler, verifier in (
            (Ancestral(), None),
            (Backtracking(2, 3), Threshold(RandomVerifier(1), 0.3)),
        )
        for model in (oracle, reference)
    ]
    assert samples[0] == samples[1]
    assert samples[2] == samples[3]
    assert samples[0] != samples[2]


def test_tokenization_equals_that_of_transformers(oracle: LlamaOracle, reference: PretrainedOracle) -> None:
    own, theirs = oracle.tokenization, reference.tokenization
    for text in ("the cat sat 12", "café 東京 😀\n\n", "<s>user</s>", " "):
        assert own.encode(text) == theirs.encode(text)
        assert own.bytes(own.encode(text)) == text.replace("<s>", "").replace("</s>", "").encode()
    spellings = {token: own.bytes([token]) for token in range(own.vocab_size)}
    assert {token for token, spelling in spellings.items() if spelling != theirs.bytes([token])} == {
        # The other vocabulary comes from llguidance, which marks special tokens by a byte that is invalid in UTF-8.
        token
        for token, spelling in spellings.items()
        if spelling == b"\xff"
    }
    assert len(set(spellings.values())) == own.vocab_size - len(MARKS) + 1
    assert own.text(own.chat("hi")) == "user: hiassistant: "
    assert own.tokens_containing("cat").tolist() == theirs.tokens_containing("cat").tolist()
    assert own.special == set(range(len(MARKS)))


def test_command_with_the_entry_point(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
    [(name, place)] = project["entry-points"]["trialogue.models"].items()
    monkeypatch.setitem(MODELS, name, place)
    words = [
        "generate",
        "--model",
        f"{name}:{file}",
        "--prompt",
        "the cat",
        "--n",
        "3",
        "--max-new-tokens",
        "4",
    ]
    assert main([*words, "--sampler", "masked-decoding", "--verifier", "regex:[12]+"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [set(line["text"]) - set("12") for line in lines] == [set()] * 3
    for more, message in (
        (("--weights", "int8"), "weights='int8': leave this setting out"),
        (("--device", "cpu"), "device='cpu': leave this setting out"),
        (("--recompute",), "recompute='True': leave this setting out"),
        (("--max-new-tokens", str(CONTEXT)), "max_new_tokens=64: the model's context holds 64 tokens"),
        (("--model", f"{name}:nowhere.gguf"), "model='nowhere.gguf': the file does not exist"),
        (("--model", f"{name}s:{file}"), "did you mean llama-cpp?"),
        (("--model", f"transformer:{file}"), "transformer is a network"),
    ):
        assert main([*words, *more]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_invalid_files_are_reported_in_one_line(tmp_path: Path) -> None:
    for name, content in (
        ("text.gguf", b"not a model"),
        ("cut.gguf", write_tiny(tmp_path / "a").read_bytes()[:900]),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            InputError, match=r"model='GGUF': llama.cpp cannot read a model from .*: .+"
        ) as caught:
            GGUF(tmp_path / name)
        assert "\n" not in str(caught.value)
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "short.gguf").write_bytes(content[:-2000])
    with pytest.raises(InputError, match="cannot"):
        GGUF(tmp_path / "short.gguf").load()


def test_limits_are_reported(oracle: LlamaOracle) -> None:
    for rows, capacity, layers, message in (
        (200, 8, (), "rows=200: use at most 128"),
        (1, CONTEXT + 1, (), f"capacity={CONTEXT + 1}: use at most {CONTEXT}"),
        (1, 8, (0,), "layers=(0,): leave them out"),
    ):
        with pytest.raises(InputError) as caught:
            oracle.open(rows, capacity, layers)
        assert str(caught.value).startswith(message)
    context, tokens = oracle.open(1, 4), torch.full((1, 8), 5)
    for stop in (0, 5):
        with pytest.raises(InputError, match="add a BOS token, or open a larger context"):
            context.features(tokens, torch.tensor([0]), torch.tensor([stop]), torch.tensor([0]))


def test_contexts_keep_their_model_alive(file: Path) -> None:
    context = GGUF(file).load().open(1, 4)
    gc.collect()
    features = context.features(
        torch.tensor([[5, 6]]), torch.tensor([0]), torch.tensor([2]), torch.tensor([0])
    )
    assert float(context.log_probs(features).exp().sum()) == pytest.approx(1, abs=1e-4)


def test_interpreter_exits_without_output(file: Path) -> None:
    code = f"from llama_oracle import GGUF; oracle = GGUF({str(file)!r}).load(); context = oracle.open(1, 4)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", code], cwd=file.parent, env=environment, capture_output=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
