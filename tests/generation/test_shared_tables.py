"""Runs of `trialogue generate --sampler exact --share R`, which store their tables next to the output file."""

import json
import shutil

import pytest

from generation import command
from trialogue.generation import drawing
from trialogue.generation.output import round_files
from trialogue.samplers import PromptRounds

OPTIONS = "--sampler exact --verifier 'regex:[a-c]{1,3}' --max-new-tokens 6 --batch-size 3 --share 4"
TWO = f"{OPTIONS} --prompt 'the cat' --prompt 'a list'"
ONE = f"{OPTIONS} --prompt 'the cat'"


def read_samples(path):
    samples = command.read_samples(path)
    # A verifier call that is made once per run is counted for its first sample.
    for sample in samples:
        del sample["verifier_calls"]
    return samples


@pytest.fixture
def interrupt(monkeypatch):
    """Return a function that makes runs end with an error while they write the sample of a given number."""
    state = {"left": 0}
    write = drawing.RecordObserver.on_finished

    def filed(observer, places, samples):
        take = observer._take

        def take_some(key, record):
            state["left"] -= 1
            if not state["left"]:
                raise KeyboardInterrupt
            take(key, record)

        observer._take = take_some
        try:
            write(observer, places, samples)
        finally:
            observer._take = take

    monkeypatch.setattr(drawing.RecordObserver, "on_finished", filed)
    return lambda number: state.update(left=number)


def interrupted_runs(shell, folder, interrupt, numbers, options):
    """Return the samples of an uninterrupted run, and of one that is interrupted after several numbers of samples."""
    shell(f"{options} --n 12 --out whole.jsonl").checked()
    for number in numbers:
        interrupt(number)
        assert shell(f"{options} --n 12 --out out.jsonl").code == 130
    interrupt(0)
    last = shell(f"{options} --n 12 --out out.jsonl").checked()
    assert f"({sum(numbers) - len(numbers)} of them from an earlier run)" in last.err
    return [read_samples(folder / name) for name in ("whole.jsonl", "out.jsonl")]


def test_a_resumed_run_repeats_the_samples(shell, tmp_path, interrupt):
    whole, resumed = interrupted_runs(shell, tmp_path, interrupt, (3, 8, 7), f"{TWO} --ordered")
    assert resumed == whole
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["sample"] for line in lines] == [*range(12), *range(12)]
    assert len(list((tmp_path / "out.jsonl.tables").iterdir())) == 2
    # Later samples need fewer calls.
    calls = [[line["queries"] for line in whole if line["sample"] // 4 == number] for number in range(3)]
    assert sum(calls[0]) > 2 * sum(calls[1])


def test_a_round_that_resumes_from_an_empty_table_is_detected(shell, tmp_path, interrupt, monkeypatch):
    monkeypatch.setattr(
        round_files, "PromptRounds", lambda sampler, finished=0, tensors=None: PromptRounds(sampler, finished)
    )
    whole, resumed = interrupted_runs(shell, tmp_path, interrupt, (7,), ONE)
    assert resumed != whole


def test_missing_tables_are_computed_again(shell, tmp_path):
    for number, hint in ((1, "more than 4 samples"), (4, "more than 4 samples, or use --share 1")):
        assert f"share nothing: generate {hint}\n" in shell(f"{ONE} --n {number}").checked().err
    assert "share nothing" not in shell(f"{ONE} --n 10 --out whole.jsonl").checked().err
    shell(f"{ONE} --n 6 --out out.jsonl").checked()
    shutil.rmtree(tmp_path / "out.jsonl.tables")
    result = shell(f"{ONE} --n 10 --out out.jsonl").checked()
    assert "6 samples of the output file are drawn again, because their tables are missing" in result.err
    assert read_samples(tmp_path / "out.jsonl") == read_samples(tmp_path / "whole.jsonl")
    # A table that is ahead of the samples is not used.
    (tmp_path / "out.jsonl").unlink()
    shell(f"{ONE} --n 10 --out out.jsonl").checked()
    assert read_samples(tmp_path / "out.jsonl") == read_samples(tmp_path / "whole.jsonl")


def test_samples_until_some_are_accepted_are_the_same(shell, tmp_path):
    options = f"{ONE} --max-attempts 3"
    shell(f"{options} --until 6 --max-tries 40 --out until.jsonl").checked()
    samples = read_samples(tmp_path / "until.jsonl")
    assert len(samples) > 6
    shell(f"{options} --n {len(samples)} --out fixed.jsonl").checked()
    assert read_samples(tmp_path / "fixed.jsonl") == samples


def test_tables_of_other_runs_and_damaged_tables_are_refused(shell, tmp_path, model):
    shell(f"{ONE} --n 4 --out out.jsonl").checked()
    [table] = (tmp_path / "out.jsonl.tables").iterdir()
    shutil.copytree(model, tmp_path / "other")
    (tmp_path / "out.jsonl").write_bytes(b"")
    for options, words in (
        (f"{ONE} --temperature 0.5", "temperature=0.5: out.jsonl.tables/"),
        (ONE.replace("share 4", "share 5"), "exact share=5: "),
        (ONE.replace("[a-c]", "[a-d]"), "verifier=['regex:[a-d]{1,3}']: "),
        (ONE.replace("the cat", "a list"), "prompt='a list': "),
        (f"{ONE} --model other", "model='other': "),
    ):
        shell(f"{options} --out out.jsonl").require_error(words)
    content = table.read_bytes()
    for damaged in (content[:-1] + bytes([content[-1] ^ 1]), content[:100], b""):
        table.write_bytes(damaged)
        shell(f"{ONE} --n 4 --out out.jsonl").require_error(f"path='{table}': ")
    shell(f"{ONE} --temperature 0.5 --n 4 --out out.jsonl --force").checked()
    assert table.read_bytes() not in (content, b"")
