"""Memory that is freed inside of the block stays with the process, and goes back behind it."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from trialogue.training.running import allocation
from trialogue.training.running.allocation import kept_memory

OWN_PROCESS = """
import os
from pathlib import Path
import torch
from trialogue.training.running.allocation import kept_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

torch.ones(2**24)
before = resident()
with kept_memory() as told:
    torch.ones(2**24)
    inside = resident() - before
behind = resident() - before
torch.ones(2**24)
print(told, inside > 2**25, behind < 2**25, resident() - before < 2**25)
"""
"""64 MiB are allocated and freed, in a process whose heap has nothing else that is free."""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not Path("/proc/self/statm").exists(),
    reason="the C library or the kernel is another one",
)
def test_what_is_freed_stays_inside_of_the_block() -> None:
    told = subprocess.run([sys.executable, "-c", OWN_PROCESS], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"] * 4


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    with kept_memory() as told:
        assert not told
