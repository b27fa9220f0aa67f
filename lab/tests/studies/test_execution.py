"""A run resumes, ends whole or not at all, and is never measured twice."""

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

from trialogue.errors import InputError
from trialogue_lab.ledger import Figure, Part, Rows, Study, judged, note_model
from trialogue_lab.ledger.runs.drafts import Draft, Row
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.runs.provenance import session
from trialogue_lab.ledger.runs.results import DONE, FILES, open_result

CONFIG = Config(flips=50, seeds=(0, 1, 2))


@pytest.fixture(autouse=True)
def runs() -> Iterator[list[str]]:
    biased_coin.RUNS.clear()
    yield biased_coin.RUNS
    biased_coin.RUNS.clear()


def failing(at: str, error: BaseException) -> Study[Config]:
    """The study, but its part `at` fails after its first row."""

    def failing_at(part: Part, artifacts: Path) -> Iterator[Row]:
        rows = iter(part.measure(artifacts))
        yield next(rows)
        if part.name == at:
            raise error
        yield from rows

    return measured_by(failing_at)


def measured_by(measure: Callable[[Part, Path], Iterable[Row]]) -> Study[Config]:
    """The study, but each of its parts is measured by `measure(part, artifacts)`."""

    def parts(config: Config) -> list[Part]:
        return [replace(part, measure=partial(measure, part)) for part in STUDY.parts(config)]

    return replace(STUDY, parts=parts)


@pytest.mark.parametrize("told", [["--results", "/home/me/results"], ["--results=/home/me/results"]])
def test_a_result_does_not_say_in_which_folder_it_was_made(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/trialogue", "run", "biased-coin", *told, "--seeds", "1"])
    assert session()["command"] == "trialogue run biased-coin --seeds 1"


def test_every_row_of_a_part_begins_with_the_part_s_columns() -> None:
    def measured(artifacts: Path) -> list[Row]:
        return [{"kind": "flips", "heads": 3}, {"kind": "law", "place": "a row's own"}]

    part = Part("seed-1", measured, columns={"seed": 1, "place": "the part's"})
    assert [list(row.items()) for row in part.rows(Path())] == [
        [("seed", 1), ("place", "the part's"), ("kind", "flips"), ("heads", 3)],
        [("seed", 1), ("place", "a row's own"), ("kind", "law")],
    ]


def test_a_run_writes_everything_and_done(tmp_path: Path, runs: list[str]) -> None:
    told: list[str] = []
    result = execute(STUDY, CONFIG, tmp_path, progress=told.append)
    assert result.folder == STUDY.result_folder(CONFIG, tmp_path)
    assert sorted(path.name for path in result.folder.iterdir()) == sorted([*FILES, DONE, "figures", "work"])
    assert (result.folder / "figures" / "heads.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert (result.folder / "work" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert list(result.rows.part) == ["seed-0", "seed-0", "seed-1", "seed-1", "seed-2", "seed-2"]
    assert list(result.rows.columns) == ["part", "seed", "kind", "heads", "flips", "bias"]
    assert (result.config["flips"], result.config["seeds"], result.preset) == (50, [0, 1, 2], None)
    assert runs == ["seed-0", "seed-1", "seed-2"]
    assert len(told) == 3
    provenance = result.provenance
    assert set(provenance["parts"]) == set(runs)
    assert {"command", "version", "python", "device", "libraries"} <= set(provenance["sessions"][0])
    assert provenance["sessions"][0]["libraries"]["numpy"] == np.__version__
    assert provenance["seconds"] >= 0
    registered = json.loads((result.folder / "claims.json").read_text(encoding="utf-8"))
    assert registered["commit"] == provenance["sessions"][0].get("commit")
    assert registered["claims"] == {claim.id: claim.registration(result.config) for claim in STUDY.claims}
    assert result.estimates["more-heads"] == {1: [0.7, 0.74, 0.6]}


def test_a_result_says_which_models_answered(tmp_path: Path) -> None:
    first, second = {"model": "a", "weights": "int8"}, {"model": "b", "weights": "float32"}

    def answered(stop: bool, part: Part, artifacts: Path) -> Iterator[Row]:
        if stop and part.name == "seed-2":
            raise KeyboardInterrupt
        for _ in range(2):
            note_model(second if part.name == "seed-2" else first)
        yield from part.measure(artifacts)

    note_model({"model": "of nobody"})
    with pytest.raises(KeyboardInterrupt):
        execute(measured_by(partial(answered, True)), CONFIG, tmp_path)
    provenance = execute(measured_by(partial(answered, False)), CONFIG, tmp_path).provenance
    assert provenance["models"] == [first, second]
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


def test_a_figure_that_fails_costs_no_measurement(tmp_path: Path, runs: list[str]) -> None:
    def fail(rows: Rows) -> NoReturn:
        raise ValueError(f"cannot draw {len(rows.records)} rows")

    broken = replace(STUDY, figures=(*STUDY.figures, Figure(name="broken", caption="", draw=fail)))
    with pytest.raises(ValueError, match="cannot draw 6 rows"):
        execute(broken, CONFIG, tmp_path)
    result = open_result(STUDY.result_folder(CONFIG, tmp_path))
    assert len(result.rows) == 6
    runs.clear()
    (result.folder / "figures" / "heads.svg").unlink()
    execute(STUDY, CONFIG, tmp_path)
    assert (runs, (result.folder / "figures" / "heads.svg").exists()) == ([], True)


def test_claims_added_later_have_their_first_estimates_kept(tmp_path: Path) -> None:
    added = replace(STUDY.claims[0], id="added", criterion=biased_coin.heads() > 0.4)
    result = execute(replace(STUDY, claims=STUDY.claims[:2]), CONFIG, tmp_path)
    assert list(result.estimates) == ["more-heads", "fewer-heads"]
    before = (result.folder / "estimates.json").read_bytes()
    later = execute(replace(STUDY, claims=[*STUDY.claims[:2], added]), CONFIG, tmp_path)
    assert (result.folder / "estimates.json").read_bytes() == before
    assert later.estimates["added"] == later.estimates["more-heads"]
    negated = replace(added, criterion=(biased_coin.heads() * -1.0) > -0.6)
    again = execute(replace(STUDY, claims=[*STUDY.claims[:2], negated]), CONFIG, tmp_path)
    assert again.estimates["added"] == later.estimates["added"]
    [verdict] = judged(replace(STUDY, claims=[negated]), again).verdicts
    assert verdict.answer == "altered since the run"
    execute(STUDY, CONFIG, tmp_path, force=True)
    assert "added" not in open_result(result.folder).estimates


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("x", 1, "hint")])
def test_a_killed_run_resumes(error: BaseException, tmp_path: Path, runs: list[str]) -> None:
    with pytest.raises(type(error)):
        execute(failing("seed-1", error), CONFIG, tmp_path)
    folder = STUDY.result_folder(CONFIG, tmp_path)
    with pytest.raises(InputError, match="not a finished result"):
        open_result(folder)
    assert runs == ["seed-0", "seed-1"]
    told: list[str] = []
    result = execute(STUDY, CONFIG, tmp_path, progress=told.append)
    assert runs == ["seed-0", "seed-1", "seed-1", "seed-2"]
    assert "finished in an earlier run" in told[0]
    assert result.rows.equals(execute(STUDY, CONFIG, tmp_path / "at once").rows)


def test_the_claims_are_registered_when_the_run_begins(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        execute(failing("seed-1", KeyboardInterrupt()), CONFIG, tmp_path)
    moved = replace(STUDY.claims[0], criterion=biased_coin.heads() > 0.1)
    registration = execute(replace(STUDY, claims=[moved]), CONFIG, tmp_path).registration
    assert registration.holds(STUDY.claims[0])
    assert not registration.holds(moved)
    assert len(registration.claims or ()) == len(STUDY.claims)


def test_force_measures_anew(tmp_path: Path, runs: list[str]) -> None:
    execute(STUDY, CONFIG, tmp_path)
    folder = execute(replace(STUDY, claims=STUDY.claims[:1]), CONFIG, tmp_path, force=True).folder
    assert len(runs) == 6
    # No later claim becomes an earlier one so.
    assert len(open_result(folder).registration.claims or ()) == len(STUDY.claims)


def test_a_forced_run_that_is_killed_leaves_no_result(tmp_path: Path) -> None:
    folder = execute(STUDY, CONFIG, tmp_path).folder
    with pytest.raises(KeyboardInterrupt):
        execute(failing("seed-0", KeyboardInterrupt()), CONFIG, tmp_path, force=True)
    assert not (folder / DONE).exists()


def test_artifacts_are_shared_by_parts_and_sessions(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def seeing(part: Part, artifacts: Path) -> Iterable[Row]:
        seen.append(sorted(path.name for path in artifacts.iterdir()))
        return part.measure(artifacts)

    with pytest.raises(KeyboardInterrupt):
        execute(failing("seed-1", KeyboardInterrupt()), CONFIG, tmp_path)
    execute(measured_by(seeing), CONFIG, tmp_path)
    assert seen == [["seed-0", "seed-1"], ["seed-0", "seed-1"]]


def test_a_corrupted_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        execute(failing("seed-1", KeyboardInterrupt()), CONFIG, tmp_path)
    part = STUDY.result_folder(CONFIG, tmp_path) / "work" / "parts" / "seed-0.json"
    part.write_text(part.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(InputError, match=r"seed-0\.json cannot be read"):
        execute(STUDY, CONFIG, tmp_path)


def test_two_processes_do_not_run_the_same_config(tmp_path: Path) -> None:
    with (
        Draft(STUDY.result_folder(CONFIG, tmp_path)).locked(),
        pytest.raises(InputError, match="another process is running this config"),
    ):
        execute(STUDY, CONFIG, tmp_path)


def rows_of(*rows: dict[str, object]) -> Study[Config]:
    return replace(measured_by(lambda part, artifacts: rows), claims=(), figures=())


def test_rows_keep_their_values(tmp_path: Path) -> None:
    row = {
        "kind": "k",
        "f": np.float32(0.5),
        "i": np.int64(3),
        "b": np.bool_(True),
        "n": None,
        "s": "≤",
        "x": -np.inf,
    }
    result = execute(rows_of(row), CONFIG, tmp_path)
    line = (result.folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert json.loads(line) == {
        "part": "seed-0", "kind": "k", "f": 0.5, "i": 3, "b": True, "n": None, "s": "≤", "x": -np.inf
    }  # fmt: skip


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
def test_rows_hold_plain_values_only(row: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        execute(rows_of(row), CONFIG, tmp_path)


@pytest.mark.parametrize("parts", [[], ["a", "a"], ["../a"], ["a/b"], [""]])
def test_parts_must_be_names_of_files(parts: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="part"):
        execute(
            replace(STUDY, parts=lambda config: [Part(name, lambda _: ()) for name in parts]),
            CONFIG,
            tmp_path,
        )


def test_lanes_in_processes_measure_what_one_process_does(tmp_path: Path, runs: list[str]) -> None:
    told: list[str] = []
    apart = execute(STUDY, CONFIG, tmp_path / "apart", workers=2)
    assert runs == []
    alone = execute(STUDY, CONFIG, tmp_path / "alone", progress=told.append)
    assert (apart.folder / "rows.jsonl").read_text() == (alone.folder / "rows.jsonl").read_text()
    assert len(told) == len(CONFIG.seeds)


def test_an_error_in_a_process_keeps_its_words_and_what_the_others_finished(tmp_path: Path) -> None:
    refused = replace(CONFIG, refuse=1)
    with pytest.raises(InputError, match=r"^coin='seed-1': use another") as error:
        execute(STUDY, refused, tmp_path, workers=2)
    assert (error.value.field, error.value.value) == ("coin", "seed-1")
    draft = Draft(STUDY.result_folder(refused, tmp_path))
    assert not draft.has("seed-1")
