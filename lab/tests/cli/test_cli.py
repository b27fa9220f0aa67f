"""Tests of the command line: output, and one-line errors for invalid input."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import biased_coin
import pytest
from biased_coin import STUDY, Config
from rich.console import Console

import trialogue
import trialogue_lab
from refusals import commands_without_expected_error
from trialogue import cli
from trialogue_lab.ledger import find_result
from trialogue_lab.ledger.pages.comparison import ROUNDING, ComparedClaim, Comparison
from trialogue_lab.ledger.pages.comparison_screen import print_comparison


class Output(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Output]
RUN = ("run", "biased-coin")
SMOKE = (*RUN, "--preset", "smoke")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_command: Run) -> Run:
    """Run a command in this process and an empty folder. The coin is the only study."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trialogue_lab.studies.modules", lambda: {"biased-coin": "biased_coin"})
    return lambda *words: Output(*run_command(*words))


def environment_with(*modules: ModuleType) -> dict[str, str]:
    """Return an environment in which another process can import these modules."""
    folders = [
        place.parent if place.name != "__init__.py" else place.parents[1]
        for place in (Path(str(module.__file__)) for module in modules)
    ]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}


def start(*tokens: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "trialogue.cli", *tokens],
        cwd=folder,
        env=environment_with(trialogue, trialogue_lab, biased_coin),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_invalid_input_prints_one_line_and_exits_with_code_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "results").mkdir()
    smoke = "run biased-coin --preset smoke"
    cases = [
        ("run biased-con", "No study is called 'biased-con'. Did you mean biased-coin?"),
        ("run", "trialogue list"),
        ("run biased-coin --preset big", "smoke, pilot, default, night, paper"),
        (f"{smoke} --flps 3", "did you mean flips?"),
        (f"{smoke} word", "no such field"),
        (f"{smoke} --flips many", "--flips: invalid literal for int()"),
        (f"{smoke} --bias 1.5", "bias=1.5: use a number below 1"),
        ("rnu", "invalid choice: 'rnu'"),
        ("", "COMMAND"),
        ("ledger --jsn", "unrecognized arguments: --jsn"),
        ("ledger --width 9", "--width"),
        (
            "ledger --verdict unsure",
            "use holds, refuted, undecided, not tested, altered, withdrawn, or other",
        ),
        (
            "ledger --statement nonsense",
            "No claim has the id 'nonsense', or all of these words in its study, place",
        ),
        ("ledger --runs nowhere", "runs='nowhere': the folder does not exist"),
        (f"{smoke} --seeds one", "--seeds: wrong type of value: 'one'"),
        ("ledger --source novel", "No publication has the key 'novel', or these words in its title"),
        ("ledger biased-coin --statement nonsense", "No claim of biased-coin has the id 'nonsense'"),
        ("compare nothing b", "no finished result"),
        (f"{smoke} --results file/below", "a parent of this path is a file"),
        ("report --out none/page.html", "there is no folder none"),
        ("report --out file/page.html", "choose another folder"),
        ("report --results nowhere", "results='nowhere': the folder does not exist"),
    ]
    assert commands_without_expected_error(cases, run) == []


def test_every_command_prints_one_line_for_a_corrupted_result(run: Run) -> None:
    assert run(*RUN).code == 0
    folder = STUDY.result_folder(STUDY.presets["default"], "runs")
    (folder / "rows.jsonl").write_text("", encoding="utf-8")
    for tokens in (RUN, ("ledger",), ("report",), ("compare", "biased-coin", str(folder))):
        output = run(*tokens)
        assert output.code == 2
        assert output.err.count("\n") == 1
        assert "corrupted" in output.err
    assert run(*RUN, "--force").code == 0
    assert run("ledger").code == 0


def test_a_run_prints_verdicts_and_writes_a_report_with_tables(run: Run) -> None:
    output = run("run", "biased-coin")
    assert output.code == 0
    assert "All claims: " in output.out
    assert "Share of heads" not in output.out
    for words in ("0.700", "more-heads", "refuted", "> 0.5*"):
        assert words in output.out
    report = Path(output.out.splitlines()[-1].removeprefix("report: "))
    page = report.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    for words in ("Table 1. Share of heads", "published", "0.3 or so"):
        assert words in page
    before = report.read_bytes()
    again = run("run", "biased-coin")
    assert (again.out, again.err) == (output.out, "")
    assert report.read_bytes() == before


def test_overrides_have_the_types_of_the_config(run: Run) -> None:
    output = run(*SMOKE, "--seeds", "4", "5", "--bias", "0.25")
    assert output.code == 0
    folder = STUDY.result_folder(Config(flips=10, seeds=(4, 5), bias=0.25), "runs")
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["config"]["seeds"] == [4, 5]


def test_ledger_is_printed_as_text_and_as_json(run: Run) -> None:
    run("run", "biased-coin")
    records = json.loads(run("ledger", "--json").out)
    mine = {record["claim"]: record for record in records if record["study"] == "biased-coin"}
    assert {name: record["verdict"] for name, record in mine.items()}["fewer-heads"] == "refuted"
    assert mine["more-heads"]["power"] is None
    assert (mine["odds"]["origin"], mine["odds"]["registered"]) == ("ours", True)
    fewer = "A coin shows heads less often"
    for words, is_shown in (
        ("biased-coin", True),
        ("--verdict refuted", True),
        ("--verdict REF --source ours", True),
        ("--verdict other", False),
        ("--source potts", False),
        ("biased-coin --source potts", False),
        ("--statement more-heads", False),
        ("biased-coin --statement more-heads", False),
        ("--verbose", True),
    ):
        assert (fewer in run("ledger", *words.split()).out) == is_shown, words
    assert re.search(
        r"\d claims, none of them altered since the run", run("ledger", "--verdict", "altered").out
    )
    assert "5 claims, none of them withdrawn" in run("ledger", "biased-coin", "--verdict", "withdrawn").out
    assert ", none of" not in run("ledger", "biased-coin", "--verdict", "refuted").out
    for options in ((), ("--verbose",)):
        shown = run("ledger", "biased-coin", *options).out
        assert ("claim: more-heads (5 × draw)" in shown) == bool(options)
        assert "heads more often than <not> (Textbook, chapter 1)" in " ".join(shown.split())
    assert max(map(len, run("ledger", "biased-coin", "--width", "80").out.splitlines())) <= 80


def test_the_ledger_of_a_study_includes_the_user_s_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", tmp_path / "committed")
    run("run", "biased-coin", "--results", "committed")
    assert "verdicts differ" not in run(*SMOKE).out
    news = run("run", "biased-coin", "--bias", "0.9").out
    assert "2 verdicts differ from the committed result (shown first)." in news
    assert re.findall(r"^ {12}([\w-]+|committed result): ", news, re.MULTILINE)[:6] == [
        *("published", "claim", "committed result"),
        *("published", "claim", "committed result"),
    ]
    assert "trialogue compare biased-coin biased-coin@" in news
    committed = [
        record for record in json.loads(run("ledger", "--json").out) if record["study"] == "biased-coin"
    ]
    assert {record["preset"] for record in committed} == {"default"}
    output = run("ledger", "biased-coin").out
    committed_part, own_part = output.split("Your runs in runs:")
    assert "refuted" in committed_part
    assert "bias = 0.9 (not 0.7)" in " ".join(own_part.split())
    records = json.loads(run("ledger", "biased-coin", "--json").out)
    changed = [record for record in records if record["changed"] == {"bias": [0.9, 0.7]}]
    assert len(records) == 3 * len(committed)
    assert len(changed) == len(committed)
    assert "refuted" in {record["verdict"] for record in changed}


def test_runs_without_a_selected_claim_are_explained(run: Run) -> None:
    run(*SMOKE)
    run("run", "biased-coin", "--bias", "0.6")
    own_part = run("ledger", "biased-coin", "--verdict", "undecided").out.split("Your runs in runs:")[1]
    assert "no claim is selected. All of its claims are not tested: the preset smoke" in " ".join(
        own_part.split()
    )
    assert "To test the claims: trialogue run biased-coin" in own_part.splitlines()
    assert own_part.count("no claim is selected") == 2
    assert "All: 1 holds, 4 refuted" in own_part
    # Own runs are mentioned after a search only if it finds claims of their study.
    remark = "own runs in the folder runs"
    assert remark not in run("ledger", "--verdict", "refuted").out
    words = ("--verdict", "not tested", "--statement", "heads")
    *_, remark_line, command = run("ledger", *words).out.splitlines()
    assert remark in remark_line
    assert shlex.split(command) == ["trialogue", "ledger", "biased-coin", *words]


def test_a_report_is_written_into_the_named_folder_but_not_into_the_committed_results(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought = tmp_path / "brought"
    run(*SMOKE, "--results", "brought")
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", brought)
    assert run("report").out == "report.html\n"
    assert run("report", "--results", str(brought)).out == f"{brought}/report.html\n"


def test_a_missing_folder_of_results_is_reported(run: Run) -> None:
    output = run("ledger", "--results", "nowhere")
    assert (output.code, "results='nowhere': the folder does not exist" in output.err) == (2, True)
    assert not Path("nowhere").exists()


def test_other_studies_are_shown_next_to_one_that_cannot_be_imported(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = {"biased-coin": "biased_coin", "broken": "nowhere_to_be_found"}
    monkeypatch.setattr("trialogue_lab.studies.modules", lambda: modules)
    run(*SMOKE)
    output = run("ledger")
    assert output.code == 0
    assert "biased-coin" in output.out
    assert re.search(r"^ +biased-coin@\w{12} \(preset smoke\)$", output.out, re.MULTILINE)
    assert "not tested (no finished run of a preset): all 5 claims" in run("ledger", "biased-coin").out
    assert "study='broken'" in output.err


def test_compare_prints_differences(run: Run) -> None:
    smoke = run(*SMOKE).out
    assert (
        "trialogue run biased-coin"
        in smoke.split("A smoke run is too small to test a claim.")[1].splitlines()
    )
    assert all(words not in smoke for words in ("trialogue compare", "Table 1", "holds if"))
    again = run(*SMOKE, "--bias", "0.4").out
    assert "next to your run with the most similar settings: trialogue compare" in again
    first, second = (
        STUDY.result_folder(Config(flips=10, seeds=(0, 1), bias=bias), "runs").name for bias in (0.7, 0.4)
    )
    output = run("compare", first, f"biased-coin@{second}")
    assert output.code == 0
    assert "-0.300" in output.out
    verdict = " ".join(output.out.split("\n\n")[0].split())
    assert verdict.startswith("The settings differ in bias, 5 of 5 claims differ")
    assert verdict.endswith("no claim was tested in both results.")


@pytest.mark.parametrize("every", [False, True])
def test_equal_cells_are_not_compared(every: bool, run: Run) -> None:
    run(*SMOKE)
    result = find_result(STUDY.result_folder(Config(flips=10, seeds=(0, 1)), "runs").name)
    cells = [("same", "1", "1", "0"), ("other", "1", "2", "+1"), ("lonely", "1", "–", "–")]
    claims = [
        ComparedClaim("steady", "holds: 1 [0.9, 1.1]", "holds: 2 [1.9, 2.1]", "+1", "> 0.5*", "a share"),
        ComparedClaim("judged", "holds: 1", "refuted: 2", "+1", "< 1.5"),
        ComparedClaim("untested", "not tested: –", "not tested: –", "–"),
        ComparedClaim("rounded", "holds: 1e-8", "holds: 3e-8", ROUNDING),
    ]
    compared = Comparison([], claims, [("table", cells)])
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured:
        print_comparison(console, compared, result, result, every=every)
    out = captured.get()
    assert ("judged" in out, "other" in out) == (True, True)
    assert ("rounded" in out) == every
    assert (
        "same" in out,
        "untested" in out,
        "Not shown: 2 claims and 1 table cells that are equal" in " ".join(out.split()),
    ) == (
        every,
        every,
        not every,
    )
    assert ("lonely" in out, "in only one result: 1." in out) == (every, not every)
    assert "1 of 2 table cells differ" in out
    result_name = f"biased-coin@{result.hash}"
    lines = [
        "changed     judged",
        "            holds if < 1.5",
        f"            {result_name}: holds, 1",
        f"            {result_name}: refuted, 2",
        f"            {'difference:':{len(result_name) + 1}} +1",
        "holds       steady",
        "            holds if > 0.5*",
        "            measured: a share",
        f"            {result_name}: 1 [0.9, 1.1]",
        f"            {result_name}: 2 [1.9, 2.1]",
    ]
    assert "\n".join(lines) in out
    assert "*: this project chose the threshold" in " ".join(out.split())


def test_help_shows_the_fields(run: Run) -> None:
    for tokens, words in (
        (("--help",), "compare"),
        (("run", "--help"), "STUDY"),
        (("run", "biased-coin", "--help"), "Probability of heads"),
        (("--version",), trialogue.__version__),
    ):
        output = run(*tokens)
        assert output.code == 0
        assert words in output.out


def test_help_has_the_general_options_first_and_short_lists(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    presets = STUDY.presets | {"default": Config(seeds=tuple(range(240)))}
    monkeypatch.setattr(biased_coin, "STUDY", replace(STUDY, presets=presets))
    help_text = run("run", "biased-coin", "--help").out
    assert max(map(len, help_text.splitlines())) <= 80
    places = [help_text.index(words) for words in ("--executor WHERE", "Presets of biased-coin", "--seeds")]
    assert places == sorted(places)
    assert "default: 0 1 ... 239, which are 240 values" in " ".join(help_text.replace("│", " ").split())


def test_ctrl_c_keeps_finished_parts_and_exits_with_code_130(tmp_path: Path) -> None:
    tokens = ("run", "biased-coin", "--seeds", "1", "2", "3", "--gate", "go")
    process = start(*tokens, folder=tmp_path)
    assert process.stderr is not None
    assert "seed-1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.strip().count("\n") == 0
    assert "1 of 3 parts are kept" in err


def test_summaries_import_no_large_package_and_take_less_than_two_seconds(tmp_path: Path) -> None:
    code = (
        "import sys, time; from trialogue import cli; cli.main(['list']); cli.main(['ledger']); "
        "assert not {'torch', 'pandas', 'numpy', 'rich'} & set(sys.modules); "
        "print(time.process_time(), file=sys.stderr)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code],
        env=environment_with(trialogue, trialogue_lab),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert output.returncode == 0, output.stderr
    assert float(output.stderr) < 2


def test_ctrl_c_before_a_command_exits_with_code_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parser", interrupted)
    output = run("list")
    assert (output.code, output.err) == (130, "\ntrialogue: interrupted\n")
