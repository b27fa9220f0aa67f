"""One thread per test process, so that two processes share two cores, and the same defaults on every machine."""

import os
import signal
import uuid

import pytest

# Processes that a test starts inherit these.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "agg", "COLUMNS": "100"}
# With these set, pytest compares long lists line by line to explain why they differ, which takes hours; tests
# that a broken mutant fails produce such explanations only to drop them.
for name in ("CI", "BUILD_NUMBER"):
    os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found out about models in one test is not known in another, nor kept among those of the user."""
    monkeypatch.setenv("TRIALOGUE_HOME", str(tmp_path_factory.getbasetemp() / f"home-{uuid.uuid4().hex}"))


def pytest_configure(config: pytest.Config) -> None:
    import torch
    from hypothesis import settings

    torch.set_num_threads(1)
    # A shell's background jobs ignore Ctrl-C, and so would the processes whose Ctrl-C is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
    settings.load_profile("fixed")
