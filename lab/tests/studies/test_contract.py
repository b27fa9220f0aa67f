"""What holds of every study that is discovered, and of its committed result."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger import Entry, Result, judged, ledger
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.runs.results import config_values, open_result
from trialogue_lab.ledger.settings import collect_seeds

RESULTS = Path(__file__).parents[2] / "results"
BUILT_IN = sorted(name for name, module in studies.modules().items() if module.startswith("trialogue_lab."))
REPORTED = [name for name in BUILT_IN if (RESULTS / name).is_dir()]


@pytest.fixture(scope="module")
def entries() -> dict[str, Entry]:
    found = ledger([studies.find(name) for name in REPORTED], RESULTS)
    return {entry.study.name: entry for entry in found}


def test_every_committed_result_belongs_to_a_study() -> None:
    folders = sorted(path.parent for path in RESULTS.glob("*/*/DONE"))
    assert len(folders) >= len(REPORTED)
    for folder in folders:
        assert open_result(folder).study in REPORTED


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_is_whole(name: str) -> None:
    study = studies.find(name)
    assert study.question.endswith("?")
    assert study.question == studies.questions()[name]
    assert study.claims
    pilots = set(study.pilot.seeds) | collect_seeds(study.preset("pilot"))
    for preset, config in study.presets.items():
        assert study.parts(config)
        json.dumps(config_values(config))
        assert preset == "pilot" or not collect_seeds(config) & pilots
    for claim in study.claims:
        assert claim.statement.endswith("."), claim.id
        assert claim.source, claim.id
        if claim.unit != "exact":
            needed = claim.statistic.replication.required(config_values(study.preset("default")))
            largest = next(study.presets[name] for name in ("night", "default") if name in study.presets)
            # What a quick preset leaves out is not tested there, and is in the one that counts.
            assert needed >= 2 or not needed, claim.id
            assert claim.statistic.replication.required(config_values(largest)) >= 2, claim.id
        if claim.grade:
            assert claim.criterion.threshold or claim.criterion.margin, claim.id


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_is_a_package_of_files_that_say_what_they_are(name: str) -> None:
    folder = Path(str(studies.__file__)).parent / name.replace("-", "_")
    files = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert {"__init__.py", "config.py", "claims.py", "pilot.json"} <= files
    assert not [path.name for path in folder.glob("*.py") if path.read_text("utf-8").count("\n") > 300]


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_claim_has_a_short_title_of_its_own(name: str) -> None:
    titles = [claim.title for claim in studies.find(name).claims]
    if not any(titles):
        pytest.skip("the claims of this study have no titles yet")
    assert [title for title in titles if not 1 <= len(title.split()) <= 12] == []
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_statement_is_made_twice(name: str) -> None:
    claims = studies.find(name).claims
    assert len({claim.statement for claim in claims}) == len(claims)
    criteria = [(claim.statistic.name, *claim.criterion.region) for claim in claims]
    assert len(set(criteria)) == len(criteria)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_pilot_is_about_quantities_that_are_claimed(name: str) -> None:
    study = studies.find(name)
    assert set(study.pilot.estimates) <= {claim.statistic.name for claim in study.claims}
    for estimates in study.pilot.estimates.values():
        assert len(estimates) >= 2


@pytest.mark.parametrize("name", REPORTED)
def test_the_committed_rows_give_what_was_stored_with_them(name: str, entries: dict[str, Entry]) -> None:
    entry = entries[name]
    assert entry.result is not None
    for verdict in entry.verdicts:
        identity, quantity = verdict.claim.id, verdict.claim.statistic
        assert verdict.answer != "altered since the run", identity
        if not verdict.replications:
            continue
        stored = entry.result.estimates.get(identity, {}).get(quantity.version)
        assert stored is not None, f"{identity}: `trialogue run {name}` stores what it lacks"
        # What machines round otherwise is far below.
        assert quantity(entry.rows).tolist() == pytest.approx(stored, rel=1e-12, abs=0, nan_ok=True), identity


@pytest.mark.parametrize("name", REPORTED)
def test_every_page_is_filled(name: str, entries: dict[str, Entry]) -> None:
    entry = entries[name]
    for table in entry.study.tables:
        assert sheet(table, entry.rows).lines, table.title
    for quantity in entry.study.numbers.values():
        assert quantity(entry.rows).notna().all(), quantity.name


@pytest.mark.parametrize("name", REPORTED)
def test_the_committed_figures_are_those_of_the_rows(name: str, entries: dict[str, Entry]) -> None:
    entry = entries[name]
    assert entry.result is not None
    for figure in entry.study.figures:
        assert figure.caption
        drawn = svg(figure, entry.rows)
        committed = (entry.result.folder / "figures" / f"{figure.name}.svg").read_text("utf-8")
        assert drawn.count("<path") == committed.count("<path"), figure.name
    files = {path.stem for path in (entry.result.folder / "figures").iterdir()}
    assert files == {figure.name for figure in entry.study.figures}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_smoke_run_measures_everything_and_decides_nothing(
    name: str, smoke_run: Callable[[str], Result]
) -> None:
    study = studies.find(name)
    config, result = study.preset("smoke"), smoke_run(name)
    entry = judged(study, result)
    assert {record["part"] for record in result.records} == {part.name for part in study.parts(config)}
    for verdict in entry.verdicts:
        assert verdict.answer == "not tested", verdict.claim.id
        # What only a grid of another preset holds has no estimate here.
        assert verdict.replications in (0, verdict.needed), verdict.claim.id
    assert sum(verdict.replications > 0 for verdict in entry.verdicts) > len(entry.verdicts) / 2
    for table in study.tables:
        assert sheet(table, entry.rows).lines, table.title
    assert {path.stem for path in (result.folder / "figures").iterdir()} == {f.name for f in study.figures}
