"""Test that freed memory is retained during a training and released afterwards."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from trialogue.training.running import allocation
from trialogue.training.running.allocation import kept_memory

SCRIPT = """
import os
from pathlib import Path
import torch
from trialogue.training.running.allocation import kept_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

torch.ones(2**24)
before = resident()
with kept_memory() as is_supported:
    torch.ones(2**24)
    inside = resident() - before
after = resident() - before
torch.ones(2**24)
print(is_supported, inside > 2**25, after < 2**25, resident() - before < 2**25)
"""
"""Script that allocates and frees 64 MiB and prints whether the resident memory changes as expected."""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not Path("/proc/self/statm").exists(),
    reason="requires glibc and Linux",
)
def test_freed_memory_is_retained_inside_the_context():
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["True"] * 4


def test_other_c_libraries_are_not_changed(monkeypatch):
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    with kept_memory() as is_supported:
        assert not is_supported
