"""Tests of the execution of studies: interrupted runs resume, and finished runs are not measured again."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import biased_coin
import numpy as np
import pytest
from biased_coin import STUDY, Config

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab.ledger import Figure, Part, Rows, Study, judged, record_model
from trialogue_lab.ledger.runs.drafts import Draft, Row
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.runs.provenance import describe_session
from trialogue_lab.ledger.runs.results import DONE, FILES, open_result

CONFIG = Config(flips=50, seeds=(0, 1, 2))


@pytest.fixture(autouse=True)
def runs() -> Iterator[list[str]]:
    """Return the names of the parts that this process measures."""
    biased_coin.RUNS.clear()
    yield biased_coin.RUNS
    biased_coin.RUNS.clear()


def measured_by(measure: Callable[[Part, Path], Iterable[Row]]) -> Study[Config]:
    """Return the study with `measure(part, artifacts)` as the measurement of every part."""

    def parts(config: Config) -> list[Part]:
        return [replace(part, measure=partial(measure, part)) for part in STUDY.parts(config)]

    return replace(STUDY, parts=parts)


def interrupt(folder: Path, at: str = "seed-1", error: BaseException | None = None, **options: bool) -> None:
    """Run the study, but raise an error after the first row of a part (default: KeyboardInterrupt)."""
    raised = error or KeyboardInterrupt()

    def failing(part: Part, artifacts: Path) -> Iterator[Row]:
        rows = iter(part.measure(artifacts))
        yield next(rows)
        if part.name == at:
            raise raised
        yield from rows

    with pytest.raises(type(raised)):
        execute(measured_by(failing), CONFIG, folder, **options)


@pytest.mark.parametrize(
    "option", [["--results", "/home/me/results"], ["--results=/home/me/results"]], ids=["word", "equals"]
)
def test_the_recorded_command_omits_the_folder_of_results(
    option: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/trialogue", "run", "biased-coin", *option, "--seeds", "1"])
    assert describe_session()["command"] == "trialogue run biased-coin --seeds 1"


def test_rows_begin_with_the_columns_of_their_part() -> None:
    measured = [{"kind": "flips", "heads": 3}, {"kind": "law", "place": "a row's own"}]
    part = Part("seed-1", lambda _: measured, columns={"seed": 1, "place": "the part's"})
    assert [list(row.items()) for row in part.rows(Path())] == [
        [("seed", 1), ("place", "the part's"), ("kind", "flips"), ("heads", 3)],
        [("seed", 1), ("place", "a row's own"), ("kind", "law")],
    ]


def test_finished_run_has_all_files(tmp_path: Path, runs: list[str]) -> None:
    lines: list[str] = []
    result = execute(STUDY, CONFIG, tmp_path, progress=lines.append)
    assert result.folder == STUDY.result_folder(CONFIG, tmp_path)
    assert sorted(path.name for path in result.folder.iterdir()) == sorted([*FILES, DONE, "figures", "work"])
    assert (result.folder / "figures" / "heads.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (result.folder / "work" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert list(result.rows.part) == ["seed-0", "seed-0", "seed-1", "seed-1", "seed-2", "seed-2"]
    assert list(result.rows.columns) == ["part", "seed", "kind", "heads", "flips", "bias"]
    assert (result.config["flips"], result.config["seeds"], result.preset) == (50, [0, 1, 2], None)
    assert runs == ["seed-0", "seed-1", "seed-2"]
    assert len(lines) == 3
    provenance = result.provenance
    [recorded] = provenance["sessions"]
    assert set(provenance["parts"]) == set(runs)
    assert {"command", "version", "python", "device", "libraries"} <= set(recorded)
    assert recorded["libraries"]["numpy"] == np.__version__
    assert provenance["seconds"] >= 0
    registered = json.loads((result.folder / "claims.json").read_text(encoding="utf-8"))
    assert registered["commit"] == recorded.get("commit")
    assert registered["claims"] == {claim.id: claim.registration(result.config) for claim in STUDY.claims}
    assert result.estimates["more-heads"] == {1: [0.7, 0.74, 0.6]}


def test_models_are_recorded_for_their_parts(tmp_path: Path) -> None:
    models = {"seed-0": {"model": "a", "weights": "int8"}, "seed-2": {"model": "b", "weights": "float32"}}

    def measure(stop: bool, part: Part, artifacts: Path) -> Iterator[Row]:
        if stop and part.name == "seed-2":
            raise KeyboardInterrupt
        for _ in range(2):
            record_model(models.get(part.name, models["seed-0"]))
        yield from part.measure(artifacts)

    record_model({"model": "outside of a part"})
    with pytest.raises(KeyboardInterrupt):
        execute(measured_by(partial(measure, True)), CONFIG, tmp_path)
    provenance = execute(measured_by(partial(measure, False)), CONFIG, tmp_path).provenance
    assert provenance["models"] == list(models.values())
    assert [part["models"] for part in provenance["parts"].values()] == [[0], [0], [1]]
    provenance = execute(STUDY, CONFIG, tmp_path / "none").provenance
    assert provenance["models"] == []
    assert all(part["models"] == [] for part in provenance["parts"].values())


def test_a_finished_run_is_not_measured_again(tmp_path: Path, runs: list[str]) -> None:
    first = execute(STUDY, CONFIG, tmp_path).rows
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    runs.clear()
    assert execute(STUDY, CONFIG, tmp_path).rows.equals(first)
    assert runs == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_failing_figure_keeps_the_measurements(tmp_path: Path, runs: list[str]) -> None:
    def fail(rows: Rows) -> NoReturn:
        raise ValueError(f"cannot draw {len(rows.records)} rows")

    broken = replace(STUDY, figures=(*STUDY.figures, Figure(name="broken", caption="", draw=fail)))
    with pytest.raises(ValueError, match="cannot draw 6 rows"):
        execute(broken, CONFIG, tmp_path)
    result = open_result(STUDY.result_folder(CONFIG, tmp_path))
    assert len(result.rows) == 6
    runs.clear()
    figure = result.folder / "figures" / "heads.svg"
    figure.unlink()
    execute(STUDY, CONFIG, tmp_path)
    assert (runs, figure.exists()) == ([], True)


def test_first_estimates_of_later_claims_are_kept(tmp_path: Path) -> None:
    first = STUDY.claims[:2]
    added = replace(STUDY.claims[0], id="added", criterion=biased_coin.heads() > 0.4)
    result = execute(replace(STUDY, claims=first), CONFIG, tmp_path)
    assert list(result.estimates) == ["more-heads", "fewer-heads"]
    before = (result.folder / "estimates.json").read_bytes()
    later = execute(replace(STUDY, claims=[*first, added]), CONFIG, tmp_path)
    assert (result.folder / "estimates.json").read_bytes() == before
    assert later.estimates["added"] == later.estimates["more-heads"]
    negated = replace(added, criterion=(biased_coin.heads() * -1.0) > -0.6)
    again = execute(replace(STUDY, claims=[*first, negated]), CONFIG, tmp_path)
    assert again.estimates["added"] == later.estimates["added"]
    [verdict] = judged(replace(STUDY, claims=[negated]), again).verdicts
    assert verdict.answer == "altered since the run"
    execute(STUDY, CONFIG, tmp_path, force=True)
    assert "added" not in open_result(result.folder).estimates


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("x", 1, "hint")])
def test_an_interrupted_run_resumes(error: BaseException, tmp_path: Path, runs: list[str]) -> None:
    interrupt(tmp_path, error=error)
    expect_error("not a finished result", open_result, STUDY.result_folder(CONFIG, tmp_path))
    assert runs == ["seed-0", "seed-1"]
    lines: list[str] = []
    result = execute(STUDY, CONFIG, tmp_path, progress=lines.append)
    assert runs == ["seed-0", "seed-1", "seed-1", "seed-2"]
    assert "finished in an earlier run" in lines[0]
    assert result.rows.equals(execute(STUDY, CONFIG, tmp_path / "at once").rows)


def test_claims_are_registered_when_the_run_begins(tmp_path: Path) -> None:
    interrupt(tmp_path)
    moved = replace(STUDY.claims[0], criterion=biased_coin.heads() > 0.1)
    registration = execute(replace(STUDY, claims=[moved]), CONFIG, tmp_path).registration
    assert registration.holds(STUDY.claims[0])
    assert not registration.holds(moved)
    assert len(registration.claims or ()) == len(STUDY.claims)


def test_a_forced_run_measures_again_and_keeps_the_registered_claims(tmp_path: Path, runs: list[str]) -> None:
    execute(STUDY, CONFIG, tmp_path)
    folder = execute(replace(STUDY, claims=STUDY.claims[:1]), CONFIG, tmp_path, force=True).folder
    assert len(runs) == 6
    assert len(open_result(folder).registration.claims or ()) == len(STUDY.claims)
    interrupt(tmp_path, at="seed-0", force=True)
    assert not (folder / DONE).exists()


def test_artifacts_are_shared_by_parts_and_sessions(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def measure(part: Part, artifacts: Path) -> Iterable[Row]:
        seen.append(sorted(path.name for path in artifacts.iterdir()))
        return part.measure(artifacts)

    interrupt(tmp_path)
    execute(measured_by(measure), CONFIG, tmp_path)
    assert seen == [["seed-0", "seed-1"], ["seed-0", "seed-1"]]


def test_error_names_a_corrupted_part(tmp_path: Path) -> None:
    interrupt(tmp_path)
    part = STUDY.result_folder(CONFIG, tmp_path) / "work" / "parts" / "seed-0.json"
    part.write_text(part.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    expect_error(r"seed-0\.json cannot be read", execute, STUDY, CONFIG, tmp_path)


def test_two_processes_cannot_run_the_same_config(tmp_path: Path) -> None:
    with (
        Draft(STUDY.result_folder(CONFIG, tmp_path)).locked(),
        pytest.raises(InputError, match="another process is running this config"),
    ):
        execute(STUDY, CONFIG, tmp_path)


def study_of_rows(*rows: dict[str, object]) -> Study[Config]:
    return replace(measured_by(lambda part, artifacts: rows), claims=(), figures=())


def test_values_of_rows_are_stored_as_python_scalars(tmp_path: Path) -> None:
    plain = {"kind": "k", "n": None, "s": "≤", "x": -np.inf}
    scalars = {"f": np.float32(0.5), "i": np.int64(3), "b": np.bool_(True)}
    result = execute(study_of_rows(plain | scalars), CONFIG, tmp_path)
    line = (result.folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(line) == plain | {"part": "seed-0", "f": 0.5, "i": 3, "b": True}


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "k", "x": [1, 2]},
        {"kind": "k", "x": np.zeros(1)},
        {"kind": "k", "part": "mine"},
        {"kind": "k", "x": object()},
        {"x": 1.0},
    ],
)
def test_invalid_rows_are_rejected(row: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        execute(study_of_rows(row), CONFIG, tmp_path)


@pytest.mark.parametrize("names", [[], ["a", "a"], ["../a"], ["a/b"], [""]])
def test_invalid_names_of_parts_are_rejected(names: list[str], tmp_path: Path) -> None:
    study = replace(STUDY, parts=lambda config: [Part(name, lambda _: ()) for name in names])
    expect_error("part", execute, study, CONFIG, tmp_path)


def test_workers_measure_the_same_rows_as_one_process(tmp_path: Path, runs: list[str]) -> None:
    workers = execute(STUDY, CONFIG, tmp_path / "workers", workers=2)
    assert runs == []
    alone = execute(STUDY, CONFIG, tmp_path / "alone")
    assert (workers.folder / "rows.jsonl").read_text() == (alone.folder / "rows.jsonl").read_text()


def test_an_error_in_a_worker_keeps_its_message(tmp_path: Path) -> None:
    refused = replace(CONFIG, refuse=1)
    with pytest.raises(InputError, match=r"^coin='seed-1': use another") as error:
        execute(STUDY, refused, tmp_path, workers=2)
    assert (error.value.field, error.value.value) == ("coin", "seed-1")
    assert not Draft(STUDY.result_folder(refused, tmp_path)).contains("seed-1")
