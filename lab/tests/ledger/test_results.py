"""Tests that results are verified when they are opened, and found by any of their names."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import biased_coin
import pandas
import pytest
from biased_coin import STUDY, Config

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab.ledger import (
    find_result,
    judged,
    ledger,
    ledger_frame,
    ledger_records,
    load_rows,
    own_entries,
)
from trialogue_lab.ledger.entries import counting_result
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.runs.results import (
    ADDED,
    COMMITTED,
    DONE,
    FILES,
    Result,
    config_hash,
    config_values,
    open_result,
    search_folders,
)

SMALL = Config(flips=50, seeds=(0, 1, 2))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(STUDY, SMALL, tmp_path_factory.mktemp("measured")).folder


@pytest.fixture
def result(measured: Path, tmp_path: Path) -> Result:
    """Return a copy that a test may change."""
    return open_result(Path(shutil.copytree(measured, tmp_path / measured.parent.name / measured.name)))


@pytest.fixture
def run_preset(tmp_path: Path) -> Callable[[str], Result]:
    return lambda preset: execute(STUDY, STUDY.presets[preset], tmp_path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_missing", [False, True])
def test_error_names_a_changed_or_missing_file(name: str, is_missing: bool, result: Result) -> None:
    path = result.folder / name
    content = path.read_bytes()
    path.unlink()
    if not is_missing:
        path.write_bytes(content + b"\n")
    with pytest.raises(InputError, match=r"corrupted, .*: delete the folder") as caught:
        open_result(result.folder)
    assert name in str(caught.value)
    assert str(result.folder) in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"rows.jsonl": "x"}'])
def test_damaged_done_file_is_detected(content: str, result: Result) -> None:
    (result.folder / DONE).write_text(content, encoding="utf-8")
    expect_error("corrupted", open_result, result.folder)


def test_renamed_folder_is_detected(result: Result) -> None:
    other = shutil.copytree(result.folder, result.folder.with_name("0" * 12))
    expect_error("not the hash of its config", open_result, other)


def test_rows_are_loaded_by_any_name_of_a_result(result: Result, tmp_path: Path) -> None:
    names = (str(result.folder), result.hash, result.hash[:6], f"biased-coin@{result.hash}", "biased-coin")
    for reference in (result.folder, *names):
        rows = load_rows(reference, tmp_path)
        assert isinstance(rows, pandas.DataFrame)
        assert len(rows) == 6
        assert set(rows.kind) == {"flips", "law"}


def test_unknown_and_ambiguous_names_are_rejected(result: Result, tmp_path: Path) -> None:
    elsewhere = (result.hash, tmp_path / "elsewhere")
    for name, folder in (("other@" + result.hash, tmp_path), elsewhere, ("/nowhere", tmp_path)):
        expect_error("no finished result", find_result, name, folder)
    execute(STUDY, replace(SMALL, flips=51), tmp_path)
    expect_error("ambiguous: use one of biased-coin@", find_result, "biased-coin", tmp_path)


def test_other_results_are_found_next_to_a_corrupted_one(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "another_coin", biased_coin)
    other = execute(replace(STUDY, module="another_coin"), SMALL, tmp_path)
    with (other.folder / "rows.jsonl").open("a") as file:
        file.write("{}")
    for reference in ("biased-coin", result.hash[:6], "biased-coin@" + result.hash):
        assert find_result(reference, tmp_path).folder == result.folder
    expect_error(r"rows\.jsonl does not have the hash in DONE", find_result, "another-coin", tmp_path)


def test_the_name_of_a_study_stands_for_its_largest_preset(
    result: Result, tmp_path: Path, run_preset: Callable[[str], Result]
) -> None:
    for preset, found in (("pilot", "pilot"), ("smoke", "pilot"), ("default", "default")):
        run_preset(preset)
        assert find_result("biased-coin", tmp_path).preset == found


def test_committed_results_are_searched_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert search_folders() == [COMMITTED]
    for folder in ("results", "runs"):
        (tmp_path / folder).mkdir()
    assert search_folders() == [COMMITTED, Path("results"), Path("runs")]
    monkeypatch.chdir(COMMITTED.parent)
    assert search_folders()[0] == COMMITTED
    assert Path("results") not in search_folders()
    assert search_folders("elsewhere") == [Path("elsewhere")]


def test_a_run_does_not_replace_a_committed_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", tmp_path / "committed")

    def counting() -> tuple[str | None, str]:
        found = counting_result(STUDY)
        assert found is not None
        return found.preset, found.folder.parents[1].name

    execute(STUDY, STUDY.presets["paper"])
    assert counting() == ("paper", "runs")
    execute(STUDY, STUDY.presets["default"], "committed")
    execute(STUDY, STUDY.presets["smoke"])
    assert counting() == ("default", "committed")
    (entry,) = ledger([STUDY])
    assert [each.result.preset for each in own_entries(entry) if each.result] == ["paper", "smoke"]


def test_corrupted_run_is_omitted_with_a_warning(
    result: Result, tmp_path: Path, run_preset: Callable[[str], Result]
) -> None:
    other = run_preset("smoke")
    (result.folder / "rows.jsonl").write_text("")
    warnings: list[str] = []
    own_results = own_entries(judged(STUDY, None), tmp_path, warnings.append)
    assert [each.result.folder for each in own_results if each.result] == [other.folder]
    [warning] = warnings
    assert result.hash in warning


def test_runs_of_other_versions_are_reported_in_one_line(
    tmp_path: Path, run_preset: Callable[[str], Result]
) -> None:
    runs = [run_preset("smoke"), run_preset("default")]
    warnings: list[str] = []
    assert (
        own_entries(judged(replace(STUDY, version=STUDY.version + 1), None), tmp_path, warnings.append) == []
    )
    [warning] = warnings
    assert all(f"{run.study}@{run.hash}" in warning for run in runs)
    assert warning.endswith("use `trialogue run biased-coin` to measure again")


def test_the_largest_finished_preset_counts(tmp_path: Path, run_preset: Callable[[str], Result]) -> None:
    def counting(*presets: str) -> str | None:
        found = counting_result(STUDY, tmp_path, *([presets] if presets else []))
        return found.preset if found else None

    execute(STUDY, SMALL, tmp_path)
    later = {"smoke": None, "pilot": None, "default": "default", "paper": "paper", "night": "paper"}
    for preset, found in later.items():
        assert counting() != preset
        run_preset(preset)
        assert counting() == found
    (find_result("biased-coin", tmp_path).folder / DONE).unlink()
    assert counting() == "night"
    assert counting("default") == "default"
    assert counting_result(replace(STUDY, version=2), tmp_path) is None


def test_the_ledger_has_one_record_per_claim(tmp_path: Path, run_preset: Callable[[str], Result]) -> None:
    empty = ledger_records(ledger([STUDY], tmp_path))
    assert {record["verdict"] for record in empty} == {"not tested"}
    run_preset("default")
    frame = ledger_frame(ledger([STUDY], tmp_path)).set_index("claim")
    assert dict(frame.verdict) == {claim.id: "holds" for claim in STUDY.claims} | {"fewer-heads": "refuted"}
    assert (frame.origin["law"], frame.origin["odds"]) == ("published", "ours")
    assert frame.registered.all()
    assert set(frame.preset) == {"default"}
    assert frame.low["more-heads"] < frame.estimate["more-heads"] < frame.high["more-heads"]


@dataclass(frozen=True, kw_only=True)
class Values:
    number: float = 1.0
    whole: int = 1
    names: tuple[str, ...] = ("a",)


def test_hash_depends_on_exactly_the_values_of_the_config() -> None:
    def hash_of(study: str = "s", version: int = 1, **fields: object) -> str:
        return config_hash(study, version, config_values(Values(**fields)))  # type: ignore[arg-type]

    assert hash_of() == hash_of(number=1) == hash_of(names=["a"]) == "323a67fec774"
    others = ({"study": "t"}, {"version": 2}, {"number": 1.5}, {"whole": 2}, {"names": ("a", "b")})
    assert len({hash_of(), *(hash_of(**changes) for changes in others)}) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_values_without_a_json_representation_are_rejected(value: object) -> None:
    with pytest.raises(InputError, match="JSON"):
        config_values(Values(number=value))  # type: ignore[arg-type]


def test_a_field_added_later_does_not_change_hashes_while_it_has_its_default() -> None:
    @dataclass(frozen=True)
    class After:
        seeds: tuple[int, ...] = (0, 1)
        rate: float = field(default=0.5, metadata=ADDED)

    assert config_values(After()) == {"seeds": [0, 1]}
    assert config_values(After(rate=0.25)) == {"seeds": [0, 1], "rate": 0.25}
