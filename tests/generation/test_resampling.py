"""`--resample`: draws by weight in a file of their own, and prompts without weight among others."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

from generation.command import CAT, REGEX, Say, content
from trialogue.generation import outputs

WEIGHTED = f"--verifier {REGEX} --sampler weighted-rejection --n 4 --out out.jsonl"
HOPELESS = "--verifier python:rules.py:has_dog --verifier-scope sequence --verifier-whole"


def test_resampling_draws_by_weight(shell: Say, tmp_path: Path) -> None:
    told = shell(
        f"--prompt the --verifier {REGEX} --sampler weighted-rejection --n 60 --resample --out r.jsonl"
    )
    assert told.code == 0, told.err
    assert re.search(r"60 samples, 60 accepted, effective sample size [\d.]+, ", told.err)
    weighted, kept = content(tmp_path / "r.weighted.jsonl"), content(tmp_path / "r.jsonl")
    weights = torch.tensor([line["log_weight"] for line in weighted]).softmax(0)
    counts = torch.bincount(torch.tensor([line["source"] for line in kept]), minlength=60)
    # Draws are independent: the statistic has mean n - 1 and variance 2 (n - 1).
    used = weights * 60 > 0.5
    expected = weights[used] * 60
    chi = ((counts[used] - expected) ** 2 / expected).sum()
    assert chi < used.sum() + 6 * math.sqrt(2 * used.sum())
    assert [weighted[line["source"]]["text"] for line in kept] == [line["text"] for line in kept]
    assert len({line["log_weight"] for line in kept}) == 1


def test_a_file_of_another_run_is_not_written_over(shell: Say, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED}").code == 0
    weighted = out.read_bytes()
    told = shell(f"--prompt the {WEIGHTED} --resample")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert (
        "resample=True: out.jsonl was begun with None: choose another file, or begin anew with --force"
        in told.err
    )
    out.with_name("out.jsonl.settings.json").unlink()
    assert "it does not come with its settings" in shell(f"--prompt the {WEIGHTED} --resample").err
    assert out.read_bytes() == weighted
    assert not (tmp_path / "out.weighted.jsonl").exists()
    assert shell(f"--prompt the {WEIGHTED} --resample --force").code == 0
    assert out.read_bytes() != weighted


def test_force_does_not_write_over_a_file_that_nobody_named(shell: Say, tmp_path: Path) -> None:
    own = tmp_path / "out.weighted.jsonl"
    own.write_text("mine\n", encoding="utf-8")
    told = shell(f"--prompt the {WEIGHTED} --resample --force")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "it is no file of samples: move it away, or choose another file" in told.err
    assert own.read_text(encoding="utf-8") == "mine\n"
    assert not (tmp_path / "out.jsonl").exists()
    own.unlink()
    for _ in range(2):
        assert shell(f"--prompt the {WEIGHTED} --resample --force").code == 0


def test_draws_are_not_gone_on_with_as_if_they_were_weighted(shell: Say, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED} --resample").code == 0
    drawn = out.read_bytes()
    told = shell(f"--prompt the {WEIGHTED}")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "resample=None: out.jsonl was begun with True" in told.err
    weighted = tmp_path / "out.weighted.jsonl"
    assert {line["run"] for line in content(out)}.isdisjoint(line["run"] for line in content(weighted))
    # Under the settings of the weighted samples too the lines themselves are told apart.
    weighted.write_bytes(drawn)
    assert "line 1 belongs to another run" in shell(f"--prompt the {WEIGHTED} --resample").err
    assert out.read_bytes() == drawn


def test_the_same_command_draws_the_same_again_and_more_with_more_samples(shell: Say, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED} --resample").code == 0
    drawn = out.read_bytes()
    assert shell(f"--prompt the {WEIGHTED} --resample --device nowhere").code == 0
    assert out.read_bytes() == drawn
    assert shell(f"--prompt the {WEIGHTED} --resample --n 9").code == 0
    assert (len(content(out)), len(content(tmp_path / "out.weighted.jsonl"))) == (9, 9)


@pytest.mark.parametrize("to_file", [True, False])
def test_a_prompt_without_weight_keeps_the_others(to_file: bool, shell: Say, tmp_path: Path) -> None:
    prompts = [
        {"prompt": "the dog", "id": "d"},
        {"prompt": "the cat", "id": "c"},
        {"prompt": "a dog", "id": "e"},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    options = "--prompts p.jsonl --n 3 --max-new-tokens 3 --sampler smc --particles 2"
    told = shell(f"{options} {HOPELESS} --resample", "--out out.jsonl" if to_file else "")
    assert told.code == 2
    assert told.err == (
        "trialogue: error: resample=True: every sample has weight zero of the prompt with id 'c': draw more samples, "
        "or raise the budget (2 of 3 prompts are resampled)\n"
    )
    lines = content(tmp_path / "out.jsonl") if to_file else told.lines
    assert [line["id"] for line in lines if line["accepted"]] == ["d"] * 3 + ["e"] * 3
    (refused,) = (line for line in lines if not line["accepted"])
    assert (refused["id"], refused["prompt"], refused["text"]) == ("c", "the cat", "")
    assert refused["reason"] == "every sample has weight zero"
    assert refused["log_weight"] is refused["source"] is None
    if to_file:
        spent = [line["queries"] for line in content(tmp_path / "out.weighted.jsonl") if line["id"] == "c"]
        assert (len(spent), sum(spent)) == (3, refused["queries"])


def test_many_prompts_without_weight_are_counted(shell: Say) -> None:
    told = shell(f"{CAT} " * 8, f"{HOPELESS} --sampler smc --max-new-tokens 2 --resample")
    assert (told.code, len(told.lines)) == (2, 8)
    assert "of the prompts with id 0, 1, 2, 3, 4 and 3 more: draw more samples" in told.err


def test_a_mutant_that_gives_draws_the_name_of_the_weighted_run_is_found(
    shell: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "_resampling", lambda settings: settings.identity())
    with pytest.raises(AssertionError):
        test_draws_are_not_gone_on_with_as_if_they_were_weighted(shell, tmp_path)
