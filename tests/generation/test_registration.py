"""Registered samplers, verifiers and models are available to `trialogue generate`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.generation.verifiers.kinds import KINDS, VerifierKind, VerifierRequest
from trialogue.models.hub.opening import Pretrained, TextModel, open_pretrained
from trialogue.models.networks.registry import MODELS
from trialogue.oracles import Verifier
from trialogue.samplers import SAMPLERS, Sampler
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.verifiers import FunctionVerifier


class Halved(NamedTuple):
    log_weight: torch.Tensor


@dataclass(frozen=True)
class Halving(Sampler[Halved]):
    """Ancestral sampling, 50% of whose weight is lost at a token out of reach.

    The tokens are those that contain `reached`.
    """

    reached: str = "a"
    ids: tuple[int, ...] = ()
    uses = "verdicts"
    weighted = True

    def in_tokens(self, tokenization: Any) -> "Halving":
        return Halving(self.reached, tuple(tokenization.tokens_containing(self.reached).tolist()))

    def init(self, decoding: Any) -> Halved:
        # This init reads the sequences, so that it needs a decoding.
        return Halved(torch.zeros(decoding.tokens.shape[0], dtype=torch.float64))

    def step(self, decoding: Any, state: Halved, verifier: Any, choose: Any) -> tuple[Moves, Halved]:
        moves, growing = Moves.stay(decoding), decoding.growing
        log_weight = state.log_weight.clone()
        if len(growing):
            moves.token[growing] = choose(decoding.log_probs(growing), growing)
            lost = ~torch.isin(moves.token[growing], torch.tensor(self.ids))
            log_weight[growing] += lost * math.log(0.5)
        return moves._replace(done=decoding.complete), Halved(log_weight)


@pytest.fixture
def halving(monkeypatch):
    monkeypatch.setitem(SAMPLERS, "halving", Halving)
    return ("--prompt", "the cat", "--sampler", "halving", "--n", "6", "--max-new-tokens", "3")


def test_a_registered_sampler_runs(halving, run, tmp_path):
    result = run(*halving, "--verifier", "regex:(?s:.*)", "--reached", r"\n", "--out", "out.jsonl").checked()
    assert "effective sample size" in result.err
    again = run(*halving, "--verifier", "regex:(?s:.*)", "--reached", r"\n", "--resample").checked()
    assert len({line["log_weight"] for line in again.lines}) == 1
    assert "the sampler halving needs a verifier" in run(*halving).err
    assert "did you mean --reached?" in run(*halving, "--verifier", "regex:a", "--reachd", "b").err
    never = run(*halving, "--verifier", "python:rules.py:never")
    never.require_error("change the verifier, which rejects the empty completion")


def test_help_lists_the_registered_classes(halving, run):
    result = run("--sampler", "halving", "--help-all", own_model=False)
    for words in (*SAMPLERS, *(kind.spec_form(name) for name, kind in KINDS.items())):
        assert words in result.out
    words = " ".join(result.out.split())
    assert "50% of whose weight is lost at a token out of reach." in words
    assert "--reached" in result.out


def test_the_short_help_shows_the_common_options_and_the_named_sampler(run):
    short, whole = (run(option, own_model=False).out for option in ("--help", "--help-all"))
    for option in (
        "--model",
        "--json-schema",
        "--grammar",
        "--pydantic",
        "--within-limit",
        "--sampler",
        "--out",
    ):
        assert option in short
    for option in ("--memory", "--workers", "--min-p"):
        assert option not in short
        assert option in whole
    assert "trialogue generate --help-all" in short
    assert len(short.splitlines()) < 75 < len(whole.splitlines())
    assert "--max-attempts" in run("--sampler", "exact", "--help", own_model=False).out
    assert "--share" not in short
    assert "(ancestral)" not in short, "the help of --sampler states its default"


class Reading(Verifier):
    """A verifier that accepts everything, but reads the hidden states."""

    def __init__(self, layers: tuple[int, ...]) -> None:
        self.layers = layers

    def values(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor:
        return (decoding.hidden((*self.layers, -1)[0], rows).abs().sum(-1) > 0).double()


@pytest.mark.parametrize("layers", [(), (0,)])
def test_a_verifier_of_hidden_states_judges_prompts_after_the_model_is_loaded(layers, monkeypatch, run):
    kind = VerifierKind("NAME", "everything", lambda request: Reading(layers), path=lambda _: None)
    monkeypatch.setitem(KINDS, "reading", kind)
    common = ("--prompt", "the cat", "--max-new-tokens", "3", "--sampler", "backtracking")
    common = (*common, "--verifier", "reading:x")
    for others in ((), ("--verifier", "regex:(?s:.*)")):
        result = run(*common, *others).checked()
        assert result.lines[0]["accepted"]


def test_a_registered_verifier_is_built(monkeypatch, run):
    built: list[VerifierRequest] = []

    def at_most(request: VerifierRequest) -> FunctionVerifier:
        built.append(request)
        most = int(request.content)
        return FunctionVerifier(lambda prefix: len(prefix) <= most, scope="completion")

    kind = VerifierKind(
        "NUMBER", "at most so many tokens", at_most, path=lambda _: None, judges_prompts=False
    )
    monkeypatch.setitem(KINDS, "at-most", kind)
    common = ("--prompt", "the cat", "--max-new-tokens", "3")
    result = run(
        *common, "--verifier", "at-most:2", "--sampler", "rejection", "--max-queries", "60"
    ).checked()
    assert [len(line["tokens"]) <= 2 for line in result.lines] == [line["accepted"] for line in result.lines]
    assert (built[0].content, built[0].verdicts) == ("2", True)
    assert "probe:FILE[@THRESHOLD] or at-most:NUMBER" in run(*common, "--verifier", "at-least:2").err
    assert "at-most:NUMBER" in (result := run("--help-all", own_model=False).out)
    assert "at most so many tokens" in result
    run(*common, "--verifier", "at-most:abc").require_error(
        "verifier='at-most:abc': write it as at-most:NUMBER: invalid literal for int()"
    )
    # Judged on the prompt, this verifier would reject everything.
    hopeless = run(*common, "--verifier", "at-most:-1", "--sampler", "value-guided", "--max-steps", "5")
    assert (hopeless.code, hopeless.lines[0]["accepted"]) == (0, False)
    assert hopeless.lines[0]["reason"] == "failed: no first token has a value above 0"


def test_a_registered_verifier_may_have_no_content(monkeypatch, run):
    def no_repeat(request: VerifierRequest) -> FunctionVerifier:
        return FunctionVerifier(lambda prefix: len(set(prefix)) == len(prefix), scope="completion")

    monkeypatch.setitem(KINDS, "no-repeat", VerifierKind("", "no token twice", no_repeat))
    common = ("--prompt", "the cat", "--max-new-tokens", "3", "--n", "4", "--sampler", "rejection")
    result = run(*common, "--verifier", "no-repeat").checked()
    assert all(len(set(line["tokens"])) == len(line["tokens"]) for line in result.lines)
    for spec in ("no-repeat:", "no-repeat:3"):
        words = f"verifier='{spec}': write it as no-repeat: this kind has no content"
        run(*common, "--verifier", spec).require_error(words)
    Path("prompts.jsonl").write_text('{"prompt": "the cat", "rule": "no-repeat"}', encoding="utf-8")
    assert run("--prompts", "prompts.jsonl", *common[2:]).code == 0


class Shelf(Pretrained):
    """The tiny model under any name."""

    def __init__(self, name: str | Path, **settings: Any) -> None:
        self.name, self.settings = str(name), settings
        self.oracle = tiny_oracle()
        self.tokenization, self.max_length = self.oracle.tokenization, self.oracle.max_length

    def load(self, **settings: Any) -> TextModel:
        if settings["weights"] != "float32":
            raise InputError("weights", settings["weights"], "leave it out")
        return self.oracle


def test_a_registered_kind_of_model_is_opened_by_its_name(monkeypatch, run, tmp_path):
    monkeypatch.setitem(MODELS, "shelf", Shelf)
    common = ("--prompt", "the cat", "--verifier", "regex:[a-c]+")
    more = ("--max-new-tokens", "3", "--n", "4")
    result = run("--model", "shelf:any:thing", *common, *more, own_model=False).checked()
    own = run(*common, *more)
    assert [line["tokens"] for line in result.lines] == [line["tokens"] for line in own.lines] != []
    for words, expected in (
        (("--model", "shelf:x", "--weights", "int8"), "weights='int8': leave it out"),
        (("--model", "shelv:x"), "kind of model='shelv': no such kind of model: did you mean shelf?"),
        (("--model", "transformer:x"), "model='transformer:x': transformer is a network"),
        (("--model", "hugging-face:nowhere/at all"), "there is no such model on the hub"),
    ):
        run(*words, *common, *more, own_model=False).require_error(expected)
    opened = open_pretrained("shelf:any:thing", device="cpu")
    assert isinstance(opened, Shelf)
    assert (opened.name, opened.settings) == ("any:thing", {"device": "cpu"})
    (tmp_path / "shelf:x").mkdir()
    monkeypatch.chdir(tmp_path)
    expect_error("its files cannot be loaded", open_pretrained, "shelf:x")
