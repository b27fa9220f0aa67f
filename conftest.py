"""Configure tests with one thread per process and with the same settings on all machines."""

import gc
import os
import signal
import sys
import uuid
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from trialogue.start_up import pause_collector

# Child processes of tests inherit these variables.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "agg", "COLUMNS": "100"}
# If these variables are set, pytest explains failed comparisons of long lists line by line, which may take hours. Tests
# that run with a mutant fail on purpose and discard the explanation.
for name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(name, None)
# Workers, child processes and later runs reuse compiled modules and rewritten assertions, which take a third of the
# time of the collection.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a separate cache folder for each test, so that tests do not depend on each other or on the user's cache."""
    monkeypatch.setenv("TRIALOGUE_HOME", str(tmp_path_factory.getbasetemp() / f"home-{uuid.uuid4().hex}"))


@pytest.fixture
def run_command(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process, and return its exit code, output and errors."""
    from trialogue import cli

    def ran(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = cli.main([*map(str, words)])
        except SystemExit as error:
            code = int(error.code or 0)
        return code, *capfd.readouterr()

    return ran


@pytest.fixture(scope="session")
def ledger_entries() -> list[Any]:
    """Return the ledger of the built-in studies with their committed results, computed once per process."""
    from trialogue_lab import studies
    from trialogue_lab.ledger import ledger

    names = [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]
    return ledger([studies.find(name) for name in names], Path(__file__).parent / "lab" / "results")


def pytest_configure(config: pytest.Config) -> None:
    # A process that only distributes the tests does not need torch.
    runs_tests = not config.getoption("tx", None) or hasattr(config, "workerinput")
    with pause_collector():
        from hypothesis import settings

        if runs_tests:
            import torch

            torch.set_num_threads(1)
    # Background jobs of a shell ignore SIGINT, and child processes that are tested with SIGINT would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
    settings.load_profile("fixed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the million objects of imported modules and collected tests from garbage collection."""
    with pause_collector():
        result = yield
        gc.collect()
        gc.freeze()
    return result
