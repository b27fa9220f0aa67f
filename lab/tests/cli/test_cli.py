"""The command line: what it prints, and one clear line for every bad input."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import biased_coin
import pytest
from biased_coin import STUDY, Config

import trialogue
import trialogue_lab
from trialogue import cli


class Told(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


Say = Callable[..., Told]
RUN = ("run", "biased-coin")
SMOKE = (*RUN, "--preset", "smoke")


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    """Run a command in an empty folder, in this process, where the coin is the only study."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trialogue_lab.studies.modules", lambda: {"biased-coin": "biased_coin"})

    def said(*tokens: str) -> Told:
        try:
            code = cli.main(tokens)
        except SystemExit as error:
            code = int(error.code or 0)
        return Told(code, *capfd.readouterr())

    return said


def places(*modules: ModuleType) -> dict[str, str]:
    """The environment in which a process of its own finds these modules."""
    folders = [
        place.parent if place.name != "__init__.py" else place.parents[1]
        for place in (Path(str(module.__file__)) for module in modules)
    ]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}


def start(*tokens: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "trialogue.cli", *tokens],
        cwd=folder,
        env=places(trialogue, trialogue_lab, biased_coin),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


BAD = {
    "unknown study": (("run", "biased-con"), "did you mean biased-coin?"),
    "no study": (("run",), "trialogue list"),
    "unknown preset": (("run", "biased-coin", "--preset", "big"), "smoke, pilot, default, night, paper"),
    "unknown field": ((*SMOKE, "--flps", "3"), "did you mean flips?"),
    "stray word": ((*SMOKE, "word"), "no such field"),
    "wrong type": ((*SMOKE, "--flips", "many"), "--flips: invalid literal for int()"),
    "out of range": ((*SMOKE, "--bias", "1.5"), "bias=1.5: use a number below 1"),
    "unknown command": (("rnu",), "invalid choice: 'rnu'"),
    "no command": ((), "COMMAND"),
    "unknown option": (("ledger", "--jsn"), "unrecognized arguments: --jsn"),
    "unknown result": (("compare", "nothing", "b"), "no finished result"),
    "a file in the way": ((*SMOKE, "--results", "file/below"), "a parent of this path is a file"),
    "a page in no folder": (
        ("report", "--out", "none/page.html"),
        "there is no folder none: make it, or choose another",
    ),
    "a page that cannot be written": (("report", "--out", "file/page.html"), "choose another folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(case: str, say: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "results").mkdir()
    tokens, words = BAD[case]
    told = say(*tokens)
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith("trialogue: error: ")
    assert told.err.count("\n") == 1
    assert words in told.err


def test_a_corrupted_folder_is_one_line_for_every_command(say: Say) -> None:
    assert say(*RUN).code == 0
    folder = STUDY.result_folder(STUDY.presets["default"], "runs")
    (folder / "rows.jsonl").write_text("", encoding="utf-8")
    for tokens in (RUN, ("ledger",), ("report",), ("compare", "biased-coin", str(folder))):
        told = say(*tokens)
        assert told.code == 2
        assert told.err.count("\n") == 1
        assert "corrupted" in told.err
    assert say(*RUN, "--force").code == 0
    assert say("ledger").code == 0


def test_a_run_prints_tables_verdicts_and_the_report(say: Say) -> None:
    told = say("run", "biased-coin")
    assert told.code == 0
    for words in ("published", "0.700", "0.3 or so", "more-heads", "refuted", "> 0.5 (grade)"):
        assert words in told.out
    report = Path(told.out.splitlines()[-1].removeprefix("report: "))
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    before = report.read_bytes()
    again = say("run", "biased-coin")
    assert (again.out, again.err) == (told.out, "")
    assert report.read_bytes() == before


def test_overrides_have_the_types_of_the_config(say: Say) -> None:
    told = say(*SMOKE, "--seeds", "4", "5", "--bias", "0.25")
    assert told.code == 0
    folder = STUDY.result_folder(Config(flips=10, seeds=(4, 5), bias=0.25), "runs")
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["config"]["seeds"] == [4, 5]


def test_the_ledger_as_text_and_as_json(say: Say) -> None:
    say("run", "biased-coin")
    records = json.loads(say("ledger", "--json").out)
    mine = {record["claim"]: record for record in records if record["study"] == "biased-coin"}
    assert {name: record["verdict"] for name, record in mine.items()}["fewer-heads"] == "refuted"
    assert mine["more-heads"]["power"] is None
    assert (mine["odds"]["origin"], mine["odds"]["registered"]) == ("ours", True)
    assert "fewer-heads" in say("ledger").out


def test_the_ledger_of_a_study_shows_committed_verdicts_and_then_one_s_own(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", tmp_path / "committed")
    say("run", "biased-coin", "--results", "committed")
    say(*SMOKE)
    say("run", "biased-coin", "--bias", "0.9")
    committed = [
        record for record in json.loads(say("ledger", "--json").out) if record["study"] == "biased-coin"
    ]
    assert {record["preset"] for record in committed} == {"default"}
    told = say("ledger", "biased-coin").out
    committed_part, own_part = told.split("Your runs in runs:")
    assert "refuted" in committed_part
    assert "bias = 0.9 (not 0.7)" in " ".join(own_part.split())
    records = json.loads(say("ledger", "biased-coin", "--json").out)
    changed = [record for record in records if record["changed"] == {"bias": [0.9, 0.7]}]
    assert len(records) == 3 * len(committed)
    assert len(changed) == len(committed)
    assert "refuted" in {record["verdict"] for record in changed}


def test_a_report_is_put_beside_results_that_are_named_and_never_beside_the_package_s(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = tmp_path / "brought"
    say(*SMOKE, "--results", "brought")
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", brought)
    assert say("report").out == "report.html\n"
    assert say("report", "--results", str(brought)).out == f"{brought}/report.html\n"


def test_a_missing_folder_of_results_is_told(say: Say) -> None:
    told = say("ledger", "--results", "nowhere")
    assert (told.code, "results='nowhere': the folder does not exist" in told.err) == (0, True)
    told = say("report", "--results", "nowhere")
    assert (told.code, "results='nowhere': the folder does not exist" in told.err) == (2, True)
    assert not Path("nowhere").exists()


def test_a_study_that_cannot_be_imported_hides_no_other(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"biased-coin": "biased_coin", "broken": "nowhere_to_be_found"}
    monkeypatch.setattr("trialogue_lab.studies.modules", lambda: modules)
    say(*SMOKE)
    told = say("ledger")
    assert told.code == 0
    assert "not tested (no finished run of a preset): all 5 claims" in told.out
    assert "study='broken'" in told.err


def test_compare_prints_differences(say: Say) -> None:
    say(*SMOKE)
    say(*SMOKE, "--bias", "0.4")
    first, second = (
        STUDY.result_folder(Config(flips=10, seeds=(0, 1), bias=bias), "runs").name for bias in (0.7, 0.4)
    )
    told = say("compare", first, f"biased-coin@{second}")
    assert told.code == 0
    assert "-0.300" in told.out


def test_help_shows_the_fields(say: Say) -> None:
    for tokens, words in (
        (("--help",), "compare"),
        (("run", "--help"), "STUDY"),
        (("run", "biased-coin", "--help"), "Probability of heads"),
        (("--version",), trialogue.__version__),
    ):
        told = say(*tokens)
        assert told.code == 0
        assert words in told.out


def test_ctrl_c_is_one_line_and_code_130_and_keeps_finished_parts(tmp_path: Path) -> None:
    tokens = ("run", "biased-coin", "--seeds", "1", "2", "3", "--gate", "go")
    process = start(*tokens, folder=tmp_path)
    assert process.stderr is not None
    assert "seed-1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.strip().count("\n") == 0
    assert "1 of 3 parts are kept" in err


def test_listing_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from trialogue import cli; cli.main(['list']); "
        "assert not {'torch', 'pandas', 'numpy', 'scipy', 'matplotlib', 'rich'} & set(sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=places(trialogue, trialogue_lab),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr


def test_ctrl_c_while_nothing_can_be_said_about_it(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parser", interrupted)
    told = say("list")
    assert (told.code, told.err) == (130, "\ntrialogue: interrupted\n")
