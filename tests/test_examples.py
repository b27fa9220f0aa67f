"""The examples are whole packages, and run."""

import sys
import tomllib
from pathlib import Path

import pytest

from trialogue.ledger import judged
from trialogue.ledger.runs.execution import execute
from trialogue.ledger.study import study_of

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_study_in_a_package_of_its_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EXAMPLES / "nucleus_depth"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [(name, module)] = project["entry-points"]["trialogue.studies"].items()
    monkeypatch.syspath_prepend(folder)
    study = study_of(module)
    assert study.name == name
    entry = judged(study, execute(study, study.preset("smoke"), tmp_path))
    assert [verdict.replications for verdict in entry.verdicts] == [2]
    assert entry.verdicts[0].estimate < 0
    assert study.tables[0].filled(entry.rows)["top-p 1.0", "depth"].deviation > 0
    del sys.modules[module]
