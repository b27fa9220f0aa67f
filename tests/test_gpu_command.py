"""The command behind `make gpu`: order, time, resumption and size of its steps, and its benchmarks on the CPU."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu, gpu_speed = load("gpu"), load("gpu_speed")
STEPS = [*gpu.SHARES, f"paper {gpu.SMALL_STUDY}"]


@pytest.fixture
def options(tmp_path):
    def make(*words):
        folders = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
        return gpu.parse([*folders, "--device", "cpu", "--small", *map(str, words)])

    return make


@pytest.fixture
def replace_commands(monkeypatch):
    """Replace the commands of steps by short Python programs, and list the steps that run."""

    def replace(programs):
        ran = []

        def command(step, given, seconds):
            share = gpu.SHARES.get(step, 1.0)
            assert 1 <= seconds <= share * given.minutes * 60
            ran.append(step)
            return [sys.executable, "-S", "-c", programs.get(step, "")]

        monkeypatch.setattr(gpu, "make_command", command)
        return ran

    return replace


def summary(given):
    return json.loads((given.out / gpu.SUMMARY).read_text())


def test_finished_steps_are_not_repeated_and_failed_ones_are(options, replace_commands, capsys):
    given = options()
    ran = replace_commands({"training": "import sys; print('a reason'); sys.exit(3)"})
    states = gpu.take_steps(given)
    assert ran == STEPS == list(states)
    assert states["training"].startswith("failed")
    assert "exit code 3" in states["training"]
    assert (given.out / "training.log").read_text() == "a reason\n"
    assert len(capsys.readouterr().out.splitlines()) == len(STEPS) + 1
    again = replace_commands({})
    states = gpu.take_steps(given)
    assert again == ["training"]
    assert states["training"].startswith("finished after")
    assert states["tests"] == summary(given)["steps"]["tests"] == "finished before"


def test_work_continues_on_another_machine(options, replace_commands, tmp_path):
    given = options()
    replace_commands({})
    (given.work / "runs" / "coin" / "0a1b").mkdir(parents=True)
    (given.work / "runs" / "coin" / "0a1b" / "rows.jsonl").write_text("{}\n")
    gpu.take_steps(given)
    given.work = tmp_path / "elsewhere"
    given.work.mkdir()
    gpu.restore(given.work, given.out)
    assert (given.work / "runs" / "coin" / "0a1b" / "rows.jsonl").read_text() == "{}\n"
    assert not (given.work / gpu.SUMMARY).exists()
    ran = replace_commands({})
    assert set(gpu.take_steps(given).values()) == {"finished before"}
    assert not ran


def test_a_step_that_takes_too_long_is_interrupted(options, replace_commands, monkeypatch):
    monkeypatch.setattr(gpu, "GRACE", 0.2)
    sleep = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    ran = replace_commands({"tests": sleep})
    states = gpu.take_steps(options("--minutes", 0.1))
    assert states["tests"].startswith("interrupted after")
    assert ran[0] == "tests"
    assert not (options().work / "tests.json").exists()


def test_no_step_starts_without_time(options, replace_commands):
    ran = replace_commands({})
    assert set(gpu.take_steps(options("--minutes", 0.01)).values()) == {
        "not started, because no time is left"
    }
    assert not ran


def test_the_folder_never_exceeds_its_size(options, replace_commands):
    given = options("--mebibytes", 1)
    for name, size in (("large", 2**20), ("small", 2**18), ("other", 2**19)):
        (given.work / "runs" / "coin" / name).mkdir(parents=True)
        (given.work / "runs" / "coin" / name / "rows.jsonl").write_bytes(b"0" * size)
    replace_commands({})
    gpu.take_steps(given)
    assert summary(given)["left out"] == ["runs/coin/large"]
    assert {path.name for path in (given.out / "runs" / "coin").iterdir()} == {"small", "other"}
    (given.work / "runs" / "coin" / "small" / "rows.jsonl").write_bytes(b"0" * 2**19)
    gpu.take_steps(given)  # a run that has grown takes the place of another
    assert len(summary(given)["left out"]) == 2
    assert gpu.total_size(gpu.list_files(given.out)) <= 2**20


def test_studies_are_in_order_of_their_cost():
    names = gpu.order_studies()
    assert len(names) > 10
    assert names.index("query-complexity" if "query-complexity" in names else names[0]) < names.index(
        "clones"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", "0"], "--minutes: must be at least 0.01, got 0"),
        (["--mebibytes", "0.5"], "--mebibytes: must be at least 1, got 0.5"),
        (["--device", "cuda"], "--device cuda: PyTorch finds no GPU. Use --device cpu"),
    ],
)
def test_invalid_options_have_one_message(words, message, options, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        options(*words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", gpu_speed.BENCHMARKS)
def test_benchmarks_have_positive_speeds(name):
    speeds = gpu_speed.measure(name, torch.device("cpu"), 0.0, small=True)
    assert speeds
    assert min(speeds.values()) > 0


def test_commands_contain_the_device_and_the_folders(options):
    given = options()
    for step in STEPS:
        command = gpu.make_command(step, given, 30.0)
        assert command[0] == sys.executable
        assert step == "tests" or str(given.work) in " ".join(command)
    assert "paper" in gpu.make_command(
        "paper clones", gpu.argparse.Namespace(**vars(given) | {"small": False}), 1.0
    )


@pytest.mark.slow
def test_all_steps_run_on_the_cpu(options):
    states = gpu.take_steps(options("--minutes", 20))
    assert all(state.startswith("finished") for state in states.values()), states
