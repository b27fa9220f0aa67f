"""Memory that is freed inside of the block stays with the process, and goes back behind it."""

import os
from pathlib import Path

import pytest
import torch

from trialogue.training import allocation
from trialogue.training.allocation import kept_memory

LARGE = 2**24
RESIDENT = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not RESIDENT.exists(), reason="the kernel is another one")
def test_what_is_freed_stays_inside_of_the_block() -> None:
    torch.ones(LARGE)
    before = resident()
    with kept_memory() as told:
        if not told:
            pytest.skip("the C library is another one")
        torch.ones(LARGE)
        assert resident() - before > 2 * LARGE
    assert resident() - before < 2 * LARGE
    torch.ones(LARGE)
    assert resident() - before < 2 * LARGE


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    with kept_memory() as told:
        assert not told
