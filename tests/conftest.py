"""Fixture for tests of threads."""

import pytest


@pytest.fixture
def restored_threads():
    """Restore the number of threads of torch after a test that changes it."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
