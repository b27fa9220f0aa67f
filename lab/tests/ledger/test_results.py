"""Results are read whole or not at all, and found by any of their names."""

import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import biased_coin
import pandas
import pytest
from biased_coin import STUDY, Config

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
    """A copy that a test may change."""
    return open_result(Path(shutil.copytree(measured, tmp_path / measured.parent.name / measured.name)))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["appended", "gone"])
def test_any_damage_is_found_and_named(name: str, damage: str, result: Result) -> None:
    path = result.folder / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content + b"\n")
    with pytest.raises(InputError, match="corrupted") as caught:
        open_result(result.folder)
    assert name in str(caught.value)
    assert str(result.folder) in str(caught.value)
    assert "delete the folder" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"rows.jsonl": "x"}'])
def test_a_damaged_done_is_found(content: str, result: Result) -> None:
    (result.folder / DONE).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="corrupted"):
        open_result(result.folder)


def test_a_renamed_folder_is_found(result: Result) -> None:
    other = result.folder.with_name("0" * 12)
    shutil.copytree(result.folder, other)
    with pytest.raises(InputError, match="not the hash of its config"):
        open_result(other)


def test_rows_load_in_one_call(result: Result, tmp_path: Path) -> None:
    for reference in (
        result.folder,
        str(result.folder),
        result.hash,
        result.hash[:6],
        f"biased-coin@{result.hash}",
        "biased-coin",
    ):
        rows = load_rows(reference, tmp_path)
        assert isinstance(rows, pandas.DataFrame)
        assert len(rows) == 6
        assert set(rows.kind) == {"flips", "law"}


def test_a_name_that_fits_nothing_or_too_much(result: Result, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finished result"):
        find_result("other@" + result.hash, tmp_path)
    with pytest.raises(InputError, match="no finished result"):
        find_result(result.hash, tmp_path / "elsewhere")
    with pytest.raises(InputError, match="no finished result"):
        find_result("/nowhere", tmp_path)
    execute(STUDY, replace(SMALL, flips=51), tmp_path)
    with pytest.raises(InputError, match="ambiguous: use one of biased-coin@"):
        find_result("biased-coin", tmp_path)


def test_a_corrupted_result_hides_no_other(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "another_coin", biased_coin)
    other = execute(replace(STUDY, module="another_coin"), SMALL, tmp_path)
    with (other.folder / "rows.jsonl").open("a") as file:
        file.write("{}")
    for reference in ("biased-coin", result.hash[:6], "biased-coin@" + result.hash):
        assert find_result(reference, tmp_path).folder == result.folder
    with pytest.raises(InputError, match=r"rows\.jsonl does not have the hash in DONE"):
        find_result("another-coin", tmp_path)


def test_a_study_s_name_means_its_largest_preset(result: Result, tmp_path: Path) -> None:
    for preset, shown in (("pilot", "pilot"), ("smoke", "pilot"), ("default", "default")):
        execute(STUDY, STUDY.presets[preset], tmp_path)
        assert find_result("biased-coin", tmp_path).preset == shown


def test_committed_results_come_before_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert search_folders() == [COMMITTED]
    for folder in ("results", "runs"):
        (tmp_path / folder).mkdir()
    assert search_folders() == [COMMITTED, Path("results"), Path("runs")]
    monkeypatch.chdir(COMMITTED.parent)
    assert search_folders()[0] == COMMITTED
    assert Path("results") not in search_folders()
    assert search_folders("elsewhere") == [Path("elsewhere")]


def test_a_run_never_takes_the_place_of_a_committed_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trialogue_lab.ledger.runs.results.COMMITTED", tmp_path / "committed")
    execute(STUDY, STUDY.presets["paper"])
    own = counting_result(STUDY)
    assert own is not None
    assert own.folder.parents[1].name == "runs"
    execute(STUDY, STUDY.presets["default"], "committed")
    execute(STUDY, STUDY.presets["smoke"])
    counting = counting_result(STUDY)
    assert counting is not None
    assert (counting.preset, counting.folder.parents[1].name) == ("default", "committed")
    (entry,) = ledger([STUDY])
    assert [each.result.preset for each in own_entries(entry) if each.result] == ["paper", "smoke"]


def test_a_corrupted_run_is_left_out_with_a_warning(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = execute(STUDY, STUDY.presets["smoke"], tmp_path)
    (result.folder / "rows.jsonl").write_text("")
    warnings: list[str] = []
    own = own_entries(judged(STUDY, None), tmp_path, warnings.append)
    assert [each.result.folder for each in own if each.result] == [other.folder]
    assert len(warnings) == 1
    assert result.hash in warnings[0]


def test_the_largest_finished_preset_counts(tmp_path: Path) -> None:
    assert counting_result(STUDY, tmp_path) is None
    execute(STUDY, SMALL, tmp_path)
    assert counting_result(STUDY, tmp_path) is None
    for preset in ("smoke", "pilot"):
        execute(STUDY, STUDY.presets[preset], tmp_path)
        assert counting_result(STUDY, tmp_path) is None
    for preset, shown in (("default", "default"), ("paper", "paper"), ("night", "paper")):
        execute(STUDY, STUDY.presets[preset], tmp_path)
        found = counting_result(STUDY, tmp_path)
        assert found is not None
        assert found.preset == shown
    (found.folder / DONE).unlink()
    unfinished = counting_result(STUDY, tmp_path)
    assert unfinished is not None
    assert unfinished.preset == "night"
    smaller = counting_result(STUDY, tmp_path, ("default",))
    assert smaller is not None
    assert smaller.preset == "default"
    assert counting_result(replace(STUDY, version=2), tmp_path) is None


def test_the_ledger_has_one_record_per_claim(tmp_path: Path) -> None:
    empty = ledger_records(ledger([STUDY], tmp_path))
    assert {record["verdict"] for record in empty} == {"not tested"}
    execute(STUDY, STUDY.presets["default"], tmp_path)
    frame = ledger_frame(ledger([STUDY], tmp_path)).set_index("claim")
    assert dict(frame.verdict) == {
        "more-heads": "holds",
        "fewer-heads": "refuted",
        "near-the-bias": "holds",
        "odds": "holds",
        "law": "holds",
    }
    assert (frame.origin["law"], frame.origin["odds"]) == ("published", "ours")
    assert frame.registered.all()
    assert set(frame.preset) == {"default"}
    assert frame.low["more-heads"] < frame.estimate["more-heads"] < frame.high["more-heads"]


@dataclass(frozen=True, kw_only=True)
class Values:
    number: float = 1.0
    whole: int = 1
    names: tuple[str, ...] = ("a",)


def test_the_hash_depends_on_every_value_and_on_nothing_else() -> None:
    def name(study: str = "s", version: int = 1, **fields: object) -> str:
        return config_hash(study, version, config_values(Values(**fields)))  # type: ignore[arg-type]

    assert name() == name(number=1) == name(names=["a"])
    assert (
        len({name(), name("t"), name(version=2), name(number=1.5), name(whole=2), name(names=("a", "b"))})
        == 6
    )
    assert name() == "323a67fec774"


def test_a_config_that_json_cannot_hold_is_refused() -> None:
    for value in (float("nan"), object()):
        with pytest.raises(InputError, match="JSON"):
            config_values(Values(number=value))  # type: ignore[arg-type]


def test_a_field_added_later_leaves_hashes_as_they_were_while_it_has_its_default() -> None:
    @dataclass(frozen=True)
    class Before:
        seeds: tuple[int, ...] = (0, 1)

    @dataclass(frozen=True)
    class After:
        seeds: tuple[int, ...] = (0, 1)
        rate: float = field(default=0.5, metadata=ADDED)

    assert config_values(After()) == config_values(Before())
    assert config_values(After(rate=0.25)) == {"seeds": [0, 1], "rate": 0.25}
