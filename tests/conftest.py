"""Fixtures for tests of commands and of threads."""

import pytest
import torch

from trialogue import cli


@pytest.fixture
def run_command(capfd):
    """Run a command in this process, and return its exit code, output and errors."""

    def ran(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = cli.main([*map(str, words)])
        except SystemExit as error:
            code = int(error.code or 0)
        return code, *capfd.readouterr()

    return ran


@pytest.fixture
def restored_threads():
    """Restore the number of threads of torch after a test that changes it."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
