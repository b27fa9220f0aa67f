"""Tests of properties of every study and of its committed results."""

import ast
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger import Result, Study, judged
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.runs.results import config_values, open_result
from trialogue_lab.ledger.settings import collect_seeds

RESULTS = Path(__file__).parents[2] / "results"
SEEDS = ("seeds", "scratch_seeds")
BUILT_IN = sorted(name for name, module in studies.modules().items() if module.startswith("trialogue_lab."))
EXPENSIVE = (
    "code-values",
    "decoding-laws",
    "dyck-attention",
    "dyck-balance",
    "interaction-order",
    "test-cases",
    "topic-training",
    "translation",
    "type-signature",
    "value-guided",
)
"""Studies with long smoke runs, whose own tests measure small parts."""


def test_every_committed_result_belongs_to_a_study() -> None:
    folders = sorted(path.parent for path in RESULTS.glob("*/*/DONE"))
    assert len(folders) >= len(BUILT_IN)
    for folder in folders:
        assert open_result(folder).study in BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_is_complete(name: str) -> None:
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
            # The default preset may omit a claim that a larger preset tests.
            assert needed >= 2 or not needed, claim.id
            assert claim.statistic.replication.required(config_values(largest)) >= 2, claim.id
        if claim.grade:
            assert claim.criterion.threshold or claim.criterion.margin, claim.id


def lines_without_docstrings(path: Path) -> int:
    text = path.read_text("utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    docstrings = [ast.get_docstring(node, clean=False) or "" for node in nodes]
    return text.count("\n") - sum(docstring.count("\n") for docstring in docstrings)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_study_is_a_package_of_short_files(name: str) -> None:
    folder = Path(str(studies.__file__)).parent / name.replace("-", "_")
    files = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert {"__init__.py", "config.py", "claims.py", "pilot.json"} <= files
    assert not [path.name for path in folder.glob("*.py") if lines_without_docstrings(path) > 270]


@pytest.mark.parametrize("name", BUILT_IN)
def test_claims_have_titles_statements_and_criteria_of_their_own(name: str) -> None:
    study = studies.find(name)
    claims, titles = study.claims, [claim.title for claim in study.claims]
    assert [title for title in titles if not 1 <= len(title.split()) <= 12] == []
    criteria = [(claim.statistic.name, *claim.criterion.region) for claim in claims]
    for values in (titles, [claim.statement for claim in claims], criteria):
        assert len(set(values)) == len(claims)
    for claim in (*claims, *study.withdrawn):
        assert bool(claim.statement_id) == (claim.origin == "published"), claim.id


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_pilot_has_estimates_of_claimed_statistics_only(name: str) -> None:
    study = studies.find(name)
    assert set(study.pilot.estimates) <= {claim.statistic.name for claim in study.claims}
    for estimates in study.pilot.estimates.values():
        assert len(estimates) >= 2


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in EXPENSIVE)) for name in BUILT_IN]
)
def test_a_smoke_run_measures_everything_and_tests_nothing(
    name: str, smoke_run: Callable[[str], Result]
) -> None:
    study = studies.find(name)
    config, result = study.preset("smoke"), smoke_run(name)
    entry = judged(study, result)
    assert {record["part"] for record in result.records} == {part.name for part in study.parts(config)}
    for verdict in entry.verdicts:
        assert verdict.answer == "not tested", verdict.claim.id
        # Some settings are measured by larger presets only.
        assert verdict.replications in (0, verdict.required), verdict.claim.id
    assert sum(verdict.replications > 0 for verdict in entry.verdicts) > len(entry.verdicts) / 2
    for table in study.tables:
        assert sheet(table, entry.rows).lines, table.title
    assert {path.stem for path in (result.folder / "figures").iterdir()} == {f.name for f in study.figures}


@pytest.mark.parametrize("name", EXPENSIVE)
def test_the_last_part_of_an_expensive_smoke_run_can_be_measured(name: str, tmp_path: Path) -> None:
    study = studies.find(name)
    assert next(iter(study.parts(study.preset("smoke"))[-1].rows(tmp_path)))


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("dyck-attention", "weekend"),
        ("dyck-backtracking", "weekend"),
        ("test-cases", "weekend"),
        ("test-cases", "week"),
    ],
)
def test_larger_presets_use_seeds_that_no_other_result_has(name: str, preset: str) -> None:
    stored = [json.loads(path.read_text("utf-8")) for path in (RESULTS / name).glob("*/config.json")]
    configs = [record["config"] for record in stored if record["preset"] != preset]
    used = {seed for config in configs for field in SEEDS for seed in config.get(field, ())}
    assert used
    assert not collect_seeds(studies.find(name).preset(preset)) & used


def registered_origins(study: Study[Any]) -> set[tuple[str, str | None]]:
    """Return the ids and origins of all claims that were registered with a committed result (None if unknown)."""
    found = set()
    for done in RESULTS.glob(f"{study.name}/*/DONE"):
        registration = open_result(done.parent).registration
        for identity, entry in (registration.claims or {}).items():
            found.add((identity, entry.get("origin", registration.origins.get(identity))))
    return found


@pytest.mark.parametrize("name", BUILT_IN)
def test_registered_claims_are_still_made_or_withdrawn(name: str) -> None:
    study = studies.find(name)
    origins = {claim.id: claim.origin for claim in study.claims}
    withdrawn = {(claim.id, claim.origin) for claim in study.withdrawn}
    for identity, origin in registered_origins(study):
        assert origins.get(identity) == (origin or origins.get(identity)) or (identity, origin) in withdrawn


@pytest.mark.parametrize("name", BUILT_IN)
def test_withdrawn_claims_have_a_verdict_a_date_and_a_reason(name: str) -> None:
    for claim in studies.find(name).withdrawn:
        assert claim.reason.endswith("."), claim.id
        assert date.fromisoformat(claim.withdrawn_on).isoformat() == claim.withdrawn_on, claim.id
        if claim.last_verdict in ("holds", "refuted"):
            assert claim.low <= claim.estimate <= claim.high, claim.id
