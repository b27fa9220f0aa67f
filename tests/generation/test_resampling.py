"""The option `--resample`: samples drawn by weight and written to a separate file."""

import json
import math
import re
from types import SimpleNamespace

import pytest
import torch

from generation.command import CAT, REGEX, read_samples
from trialogue.generation import outputs

WEIGHTED = f"--verifier {REGEX} --sampler weighted-rejection --n 4 --out out.jsonl"
HOPELESS = "--verifier python:rules.py:has_dog --verifier-scope sequence --verifier-whole"


def test_samples_are_resampled_by_weight(shell, tmp_path):
    result = shell(
        f"--prompt the --verifier {REGEX} --sampler weighted-rejection --n 60 --resample --out r.jsonl"
    ).checked()
    assert re.search(
        r"60 samples, 60 accepted, .*\neffective samples per 100 model calls: [\d.]+ \(effective sample size [\d.]+\)",
        result.err,
    )
    weighted, resampled = read_samples(tmp_path / "r.weighted.jsonl"), read_samples(tmp_path / "r.jsonl")
    weights = torch.tensor([line["log_weight"] for line in weighted]).softmax(0)
    counts = torch.bincount(torch.tensor([line["source"] for line in resampled]), minlength=60)
    # Draws are independent, so that the statistic has mean n - 1 and variance 2 (n - 1).
    used = weights * 60 > 0.5
    expected = weights[used] * 60
    chi = ((counts[used] - expected) ** 2 / expected).sum()
    assert chi < used.sum() + 6 * math.sqrt(2 * used.sum())
    assert [weighted[line["source"]]["text"] for line in resampled] == [line["text"] for line in resampled]
    assert len({line["log_weight"] for line in resampled}) == 1


@pytest.mark.parametrize(
    ("options", "basis"),
    [
        ("exact", "12 exact samples"),
        ("exact --max-attempts 1000 --then mask", "12 exact samples"),
        ("exact --max-attempts 1000 --then mask --resample", "effective sample size [0-9.]+"),
        ("exact --max-attempts 1 --then mask", "effective sample size [0-9.]+"),
        ("exact --max-queries 3", None),
        ("tokenwise-rejection", None),
    ],
)
def test_the_summary_counts_exact_samples_without_their_weights(options, basis, shell):
    result = shell(f"{CAT} --n 12 --max-new-tokens 4 --verifier {REGEX} --seed 1 --sampler {options}")
    calls = int(re.search(r"(\d+) model calls", result.err)[1])
    found = re.search(r"effective samples per 100 model calls: (\S+) \((.*)\)", result.err)
    assert (found is None) if basis is None else re.fullmatch(basis, found[2])
    if basis == "12 exact samples":
        assert float(found[1]) == pytest.approx(1200 / calls, rel=0.01)


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ("--n 4", None),
        ("--n 4 --resample", r"the 4 weighted samples"),
        ("--n 40", r"the 40 weighted samples"),
        ("--n 12 --prompt a", r"the 12 weighted samples of one prompt \(the worst of [12]\)"),
        ("--n 40 --temperature 0.01 --verifier 'regex:.*'", None),
    ],
)
def test_a_low_effective_sample_size_is_reported(options, warning, shell):
    rule = "" if "--verifier" in options else "--verifier 'regex:[a-c]{1,6}'"
    result = shell(f"{CAT} {rule} --sampler masked-decoding --max-new-tokens 8 {options}").checked()
    found = re.search(r"trialogue: (.*?) are only worth [\d.]+ samples without weights", result.err)
    assert (found is None) if warning is None else re.fullmatch(warning, found[1])


@pytest.mark.parametrize(
    ("equal", "samples", "resample", "is_low"),
    [
        (1, 4, True, True),
        (3, 4, True, False),  # at least half of the samples
        (1, 9, False, False),
        (1, 10, False, True),
        (9, 40, False, True),
        (11, 40, False, False),
        (0, 40, False, False),
    ],
)
def test_the_effective_sample_size_is_low_below_ten_and_below_half_of_the_samples(
    equal, samples, resample, is_low
):
    settings = SimpleNamespace(
        prompts=[SimpleNamespace(id=0)],
        sampling=SimpleNamespace(resample=resample, max_queries=None, max_steps=None),
        sampler=SimpleNamespace(is_exact=False, weighted=True),
    )
    records = [{"id": 0, "log_weight": -3.0 if sample < equal else None} for sample in range(samples)]
    remarks = [f"the {samples} weighted samples are only worth {equal:.1f} samples without weights "] * is_low
    found = [*outputs._weight_remarks(records, settings)]
    assert [remark.partition("(")[0] for remark in found] == remarks


def test_the_file_of_another_run_is_not_overwritten(shell, tmp_path):
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED}").code == 0
    weighted = out.read_bytes()
    shell(f"--prompt the {WEIGHTED} --resample").require_error(
        "resample=True: out.jsonl was created with None: use another file or overwrite it with --force"
    )
    out.with_name("out.jsonl.settings.json").unlink()
    assert (
        "its settings file out.jsonl.settings.json is missing"
        in shell(f"--prompt the {WEIGHTED} --resample").err
    )
    assert out.read_bytes() == weighted
    assert not (tmp_path / "out.weighted.jsonl").exists()
    assert shell(f"--prompt the {WEIGHTED} --resample --force").code == 0
    assert out.read_bytes() != weighted


def test_force_does_not_overwrite_an_unrelated_file(shell, tmp_path):
    unrelated = tmp_path / "out.weighted.jsonl"
    unrelated.write_text("mine\n", encoding="utf-8")
    shell(f"--prompt the {WEIGHTED} --resample --force").require_error(
        "use another output file or move this one"
    )
    assert unrelated.read_text(encoding="utf-8") == "mine\n"
    assert not (tmp_path / "out.jsonl").exists()
    unrelated.unlink()
    for _ in range(2):
        assert shell(f"--prompt the {WEIGHTED} --resample --force").code == 0


def test_resampled_files_are_not_extended_as_weighted_ones(shell, tmp_path):
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED} --resample").code == 0
    drawn = out.read_bytes()
    shell(f"--prompt the {WEIGHTED}").require_error("resample=None: out.jsonl was created with True")
    weighted = tmp_path / "out.weighted.jsonl"
    assert {line["run"] for line in read_samples(out)}.isdisjoint(
        line["run"] for line in read_samples(weighted)
    )
    # Even with the settings of the weighted samples, the lines belong to another run.
    weighted.write_bytes(drawn)
    assert "line 1 belongs to a run with other settings" in shell(f"--prompt the {WEIGHTED} --resample").err
    assert out.read_bytes() == drawn


def test_the_same_command_resamples_the_same_and_can_be_extended(shell, tmp_path):
    out = tmp_path / "out.jsonl"
    assert shell(f"--prompt the {WEIGHTED} --resample").code == 0
    drawn = out.read_bytes()
    assert shell(f"--prompt the {WEIGHTED} --resample --device nowhere").code == 0
    assert out.read_bytes() == drawn
    assert shell(f"--prompt the {WEIGHTED} --resample --n 9").code == 0
    assert (len(read_samples(out)), len(read_samples(tmp_path / "out.weighted.jsonl"))) == (9, 9)


@pytest.mark.parametrize("to_file", [True, False])
def test_a_prompt_without_weight_keeps_the_other_prompts(to_file, shell, tmp_path):
    prompts = [
        {"prompt": "the dog", "id": "d"},
        {"prompt": "the cat", "id": "c"},
        {"prompt": "a dog", "id": "e"},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, prompts)), encoding="utf-8")
    options = "--prompts p.jsonl --n 3 --max-new-tokens 3 --sampler smc --particles 2"
    result = shell(f"{options} {HOPELESS} --resample", "--out out.jsonl" if to_file else "")
    assert result.code == 2
    assert result.err == (
        "trialogue: error: resample=True: every sample has weight zero for the prompt with id 'c': draw more samples "
        "or increase the budget (2 of 3 prompts are resampled)\n"
    )
    lines = read_samples(tmp_path / "out.jsonl") if to_file else result.lines
    assert [line["id"] for line in lines if line["accepted"]] == ["d"] * 3 + ["e"] * 3
    (refused,) = (line for line in lines if not line["accepted"])
    assert (refused["id"], refused["prompt"], refused["text"]) == ("c", "the cat", "")
    assert refused["reason"] == "every sample has weight zero"
    assert refused["log_weight"] is refused["source"] is None
    if to_file:
        spent = [
            line["queries"] for line in read_samples(tmp_path / "out.weighted.jsonl") if line["id"] == "c"
        ]
        assert (len(spent), sum(spent)) == (3, refused["queries"])


def test_many_prompts_without_weight_are_counted(shell):
    result = shell(f"{CAT} " * 8, f"{HOPELESS} --sampler smc --max-new-tokens 2 --resample")
    assert (result.code, len(result.lines)) == (2, 8)
    assert "for the prompts with id 0, 1, 2, 3, 4 and 3 more: draw more samples" in result.err
