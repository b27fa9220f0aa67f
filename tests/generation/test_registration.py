"""A walk or a kind of verifier is known to `trialogue generate` by its registration alone."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from generation.command import Say
from trialogue.generation.verifier_specs import KINDS, Kind, Wanted
from trialogue.inference import WALKS, FunctionVerifier, Walk
from trialogue.inference.walks.moves import Moves
from trialogue.oracles import Verifier


class Halved(NamedTuple):
    log_weight: torch.Tensor


@dataclass(frozen=True)
class Halving(Walk[Halved]):
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
        # An init that reads the sequences: nobody may ask it without any.
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
def halving(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setitem(WALKS, "halving", Halving)
    return ("--prompt", "the cat", "--walk", "halving", "--n", "6", "--max-new-tokens", "3")


def test_a_registered_walk_runs(halving: tuple[str, ...], say: Say, tmp_path: Path) -> None:
    told = say(*halving, "--verifier", "regex:(?s:.*)", "--reached", r"\n", "--out", "out.jsonl")
    assert told.code == 0, told.err
    assert "effective sample size" in told.err
    again = say(*halving, "--verifier", "regex:(?s:.*)", "--reached", r"\n", "--resample")
    assert again.code == 0, again.err
    assert len({line["log_weight"] for line in again.lines}) == 1
    assert "the walk halving needs one" in say(*halving).err
    assert "did you mean --reached?" in say(*halving, "--verifier", "regex:a", "--reachd", "b").err
    assert (
        "the verifier rejects the empty completion"
        in say(*halving, "--verifier", "python:rules.py:never").err
    )


def test_help_names_what_is_registered(halving: tuple[str, ...], say: Say) -> None:
    told = say("--walk", "halving", "--help", own_model=False)
    for words in (*WALKS, *(f"{name}:{kind.form}" for name, kind in KINDS.items())):
        assert words in told.out
    words = " ".join(told.out.split())
    assert "50% of whose weight is lost at a token out of reach." in words
    assert "--reached" in told.out


class Reading(Verifier):
    """Accepts everything, by what it reads off the hidden states."""

    def __init__(self, layers: tuple[int, ...]) -> None:
        self.layers = layers

    def values(self, decoding: Any, rows: torch.Tensor) -> torch.Tensor:
        return (decoding.hidden((*self.layers, -1)[0], rows).abs().sum(-1) > 0).double()


@pytest.mark.parametrize("layers", [(), (0,)])
def test_a_kind_that_reads_the_model_judges_prompts_once_that_is_there(
    layers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    kind = Kind("NAME", "everything", lambda wanted: Reading(layers), path=lambda _: None)
    monkeypatch.setitem(KINDS, "reading", kind)
    common = (
        "--prompt",
        "the cat",
        "--max-new-tokens",
        "3",
        "--walk",
        "backtracking",
        "--verifier",
        "reading:x",
    )
    for others in ((), ("--verifier", "regex:(?s:.*)")):
        told = say(*common, *others)
        assert told.code == 0, told.err
        assert told.lines[0]["accepted"]


def test_a_registered_kind_of_verifier_is_built(monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    built: list[Wanted] = []

    def at_most(wanted: Wanted) -> FunctionVerifier:
        built.append(wanted)
        return FunctionVerifier(lambda prefix: len(prefix) <= int(wanted.content), scope="completion")

    kind = Kind("NUMBER", "at most so many tokens", at_most, path=lambda _: None, judges_prompts=False)
    monkeypatch.setitem(KINDS, "at-most", kind)
    common = ("--prompt", "the cat", "--max-new-tokens", "3")
    told = say(*common, "--verifier", "at-most:2", "--walk", "rejection", "--max-queries", "60")
    assert told.code == 0, told.err
    assert [len(line["tokens"]) <= 2 for line in told.lines] == [line["accepted"] for line in told.lines]
    assert (built[0].content, built[0].verdicts) == ("2", True)
    assert "probe:FILE[@THRESHOLD] or at-most:NUMBER" in say(*common, "--verifier", "at-least:2").err
    assert "at-most:NUMBER" in (told := say("--help", own_model=False).out)
    assert "at most so many tokens" in told
    # Asked about prompts, it would refuse them all.
    hopeless = say(*common, "--verifier", "at-most:-1", "--walk", "value-guided", "--max-steps", "5")
    assert (hopeless.code, hopeless.lines[0]["accepted"]) == (0, False)
    assert hopeless.lines[0]["reason"] == "failed: no first token has a value above 0"
