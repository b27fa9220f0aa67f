"""Fixtures with smoke runs."""

import os
from collections.abc import Callable

import pytest
from filelock import FileLock

from trialogue_lab import studies
from trialogue_lab.ledger import Figure, Result, Rows
from trialogue_lab.ledger.runs import execution
from trialogue_lab.studies.dyck_backtracking import speed


def draw_only(figure: Figure, rows: Rows) -> str:
    """Draw a figure without rendering it, which takes longer than most smoke runs."""
    figure.draw(rows)
    return ""


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """Return the finished smoke run of a study by name. All test processes share one measurement."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def run(name: str) -> Result:
        study = studies.find(name)
        with FileLock(folder / f"smoke-{name}.lock"), pytest.MonkeyPatch.context() as patch:
            patch.setattr(execution, "svg", draw_only)
            # Measured times are not tested: half of the processor time of the smoke run would go into them.
            patch.setattr(speed, "_ROUNDS", 1)
            patch.setattr(speed, "BATCHES", dict.fromkeys(speed.BATCHES, 32))
            return execution.execute(study, study.preset("smoke"), folder / "smoke")

    return run
