"""Registry of executors by name."""

from trialogue.errors import InputError
from trialogue.executors.executor import Executor
from trialogue.registry import Registry
from trialogue.validation import Count, validated

EXECUTORS: Registry[type[Executor]] = Registry(
    "trialogue.executors",
    "executor",
    {
        "local": "trialogue.executors.local:Local",
        "ray": "trialogue.executors.ray_cluster:RayCluster",
    },
    base=Executor,
)
"""Executors by name. A package adds one by an entry point in the group `trialogue.executors`."""


@validated
def make_executor(text: str, workers: Count | None = None, threads: Count = 1) -> Executor:
    """Create an executor from its description on the command line.

    Args:
        text: NAME, NAME:ADDRESS, or an address NAME://HOST:PORT. Examples are "local", "ray" and
            "ray://head:10001".
        workers: Maximum number of workers. None for the default of the executor.
        threads: Number of PyTorch threads per worker.

    Raises:
        InputError: If the executor is unknown or not installed, or if the address is invalid.
    """
    name, colon, rest = text.partition(":")
    if colon and not rest.strip("/"):
        raise InputError("executor", text, f"use {name}:ADDRESS, or {name} without a colon")
    address = text if rest.startswith("//") else rest or None
    executor = EXECUTORS.find(name)(address, workers)
    executor.threads = threads
    return executor
