"""Samples until enough are accepted: reproducible sets of samples, and exit codes for too few."""

from typing import Any

import pytest

from generation.command import read_samples
from refusals import commands_without_expected_error
from trialogue.generation import scheduler
from trialogue.generation.scheduler import Schedule
from trialogue.generation.settings import Sampling
from trialogue.randomness import numpy_generator

RULE = r"--prompt 'the cat' --max-new-tokens 3 --sampler ancestral --verifier 'regex:[\x00-\x7f]*'"
"""A verifier that accepts about one in four samples of the tiny model."""


def run_schedule(
    sampling: Sampling, accepted: list[list[bool]], order: int
) -> dict[tuple[int, int], dict[str, Any]]:
    """Return the written records if samples finish in a random order and are accepted as in `accepted`."""
    written: dict[tuple[int, int], dict[str, Any]] = {}
    drawing, stream = Schedule(sampling, len(accepted), {}), numpy_generator(order, "order")
    while pending := drawing.pending():
        assert len(set(pending)) == len(pending)
        for at in stream.permutation(len(pending)):
            place, sample = pending[at]
            for key, record in drawing.finish(
                (place, sample), {"accepted": accepted[place][sample], "of": pending[at]}
            ):
                assert key not in written
                assert record["of"] == key
                written[key] = record
    assert drawing.keys() == sorted(written)
    return written


def test_sorted_output_includes_samples_that_waited_for_the_last():
    """The last sample of a prompt may finish before an earlier one."""
    schedule = Schedule(Sampling(until=1, max_tries=4), 2, {}, ordered=True)
    order = [((0, 0), False), ((0, 2), True), ((1, 0), True), ((0, 1), False)]
    written = [own for key, accepted in order for own, _ in schedule.finish(key, {"accepted": accepted})]
    assert schedule.keys() == written == [(0, 0), (0, 1), (0, 2), (1, 0)]


def first_until(accepted: list[bool], until: int, max_tries: int) -> int:
    count = 0
    for sample, good in enumerate(accepted[:max_tries]):
        count += good
        if count == until:
            return sample + 1
    return max_tries


@pytest.fixture
def outcomes():
    stream = numpy_generator(3, "outcomes")
    return [(stream.random(60) < share).tolist() for share in (0.0, 0.1, 0.5, 0.9, 1.0)]


def test_the_samples_are_the_first_up_to_the_last_accepted_one(outcomes):
    for until in (1, 2, 5):
        for max_tries in (until, 40):
            expected = [
                (place, sample)
                for place, accepted in enumerate(outcomes)
                for sample in range(first_until(accepted, until, max_tries))
            ]
            for order in range(4):
                sampling = Sampling(until=until, max_tries=max_tries)
                assert sorted(run_schedule(sampling, outcomes, order)) == expected


def test_more_samples_are_drawn_at_once_if_few_are_accepted(outcomes):
    def rounds(schedule: Schedule, accepted: list[bool]) -> list[int]:
        sizes = []
        while pending := schedule.pending():
            sizes.append(len(pending))
            for key in pending:
                schedule.finish(key, {"accepted": accepted[key[1] % 60]})
        return sizes

    half = Schedule(Sampling(until=20), 1, {})
    assert len(rounds(half, outcomes[2])) <= 6
    assert half.left_out <= 10
    assert half.accepted == [20]
    never = rounds(Schedule(Sampling(until=2, max_tries=100), 1, {}), [False] * 60)
    assert (never[:2], sum(never), len(never) < 10) == ([2, 8], 100, True)


def test_a_fixed_number_of_samples_is_written_in_order_of_completion():
    drawing = Schedule(Sampling(n=3), 2, {(0, 1): {"accepted": True}})
    assert drawing.pending() == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]
    for key in [(1, 2), (0, 2), (0, 0), (1, 1), (1, 0)]:
        assert [own for own, _ in drawing.finish(key, {"accepted": False})] == [key]
    assert (drawing.pending(), drawing.left_out) == ([], 0)
    assert drawing.keys() == [(place, sample) for place in range(2) for sample in range(3)]


def test_until_gives_the_first_samples_of_a_longer_run(shell, tmp_path):
    shell(f"{RULE} --n 60 --out whole.jsonl").checked()
    drawn = read_samples(tmp_path / "whole.jsonl")
    count = first_until([line["accepted"] for line in drawn], 4, 60)
    assert 4 < count < 40
    for batch in ("1", "7"):
        result = shell(
            f"{RULE} --until 4 --batch-size {batch} --out {batch}.jsonl --require-accepted"
        ).checked()
        assert f"{count} samples, 4 accepted" in result.err
        assert read_samples(tmp_path / f"{batch}.jsonl") == drawn[:count]
    # The run is extended and then read again for fewer samples.
    assert shell(f"{RULE} --until 6 --max-tries 60 --out 7.jsonl").code == 0
    assert (
        read_samples(tmp_path / "7.jsonl")
        == drawn[: first_until([line["accepted"] for line in drawn], 6, 60)]
    )
    fewer = shell(f"{RULE} --until 2 --out 7.jsonl --device nowhere").checked()
    assert "2 accepted" in fewer.err


NEVER = "--prompt 'the cat' --max-new-tokens 3 --sampler ancestral --verifier regex:zz"
CUT = "cut at max_new_tokens=3: rejected by the verifier"
TOO_FEW = [
    (f"{NEVER} --n 3", f"none of 3 samples was accepted: {CUT}\n"),
    (f"{NEVER} --until 1 --max-tries 4", "none of 4 samples was accepted: cut at max_new_tokens=3"),
    (f"{NEVER} --n 1", f"1 sample, not accepted ({CUT}), "),
    (f"{RULE} --n 9", "9 samples, "),
    (
        f"{RULE} --prompt a --until 12 --max-tries 15",
        "fewer than 12 of 15 samples were accepted for the prompts with id 0 (",
    ),
]


@pytest.mark.parametrize(("command", "words"), TOO_FEW)
def test_too_few_accepted_samples_have_a_separate_exit_code(command, words, shell):
    result = shell(command)
    assert (result.code, "error" in result.err) == (0, False)
    assert words in result.err
    again = shell(f"{command} --require-accepted")
    assert again.code == 3
    assert words in again.err
    assert [line["tokens"] for line in again.lines] == [line["tokens"] for line in result.lines]


BOUND = "a run can have at most 10000000 samples over all prompts; generate fewer"
REFUSED = [
    (f"{RULE} --sampler weighted-rejection --resample --until 4", "resample=True: "),
    (
        f"{RULE} --sampler masked-decoding --temperature 0 --until 4",
        "temperature=0.0: use a larger value, or --n",
    ),
    (f"{RULE} --top-k 1 --until 4", "top_k=1: use a larger value, or --n"),
    ("--prompt a --prompt b --n 6000000", f"n=6000000: {BOUND}"),
    ("--prompt a --prompt b --until 100000000000 --verifier 'regex:a*'", f"until=100000000000: {BOUND}"),
    ("--prompt a --until 1 --max-tries 20000000 --verifier 'regex:a*'", f"max_tries=20000000: {BOUND}"),
]


def test_invalid_numbers_of_samples_are_rejected(run):
    assert not commands_without_expected_error(REFUSED, run)


def test_samples_are_drawn_in_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(scheduler, "AT_ONCE", 4)
    accepted = [[True] * 7, [False] * 7]
    tries, sizes = Schedule(Sampling(n=7), 2, {(0, 2): {"accepted": True}}), []
    while pending := tries.pending():
        sizes.append(len(pending))
        for place, sample in pending:
            tries.finish((place, sample), {"accepted": accepted[place][sample]})
    assert sizes == [4, 4, 4, 1]
    assert tries.keys() == [(place, sample) for place in range(2) for sample in range(7)]
    assert tries.accepted == [7, 0]
