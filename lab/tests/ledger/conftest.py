"""Fixtures with a finished run."""

import pytest
from biased_coin import STUDY

from trialogue_lab.ledger import Entry, judged
from trialogue_lab.ledger.runs.execution import execute


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Entry:
    """Return the entry of the coin for a run of its preset `default`."""
    return judged(STUDY, execute(STUDY, STUDY.presets["default"], tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="session")
def entry(plain: Entry) -> Entry:
    """Return the entry that the tests of a file show. A file may override it."""
    return plain
