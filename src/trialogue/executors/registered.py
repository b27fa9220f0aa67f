"""Executors by name: those of the package, and those that installed packages register."""

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
"""Every executor by its name on the command line; a package adds one by an entry point of `trialogue.executors`."""


@validated
def executor_of(text: str, workers: Count | None = None, threads: Count = 1) -> Executor:
    """The executor that `text` names: NAME, NAME:ADDRESS, or NAME://ADDRESS, which is an address as a whole.

    Each of its `workers` has so many `threads`.

    Raises `InputError` for an unknown one, one that is not installed, or an address that it cannot have.
    """
    name, colon, rest = text.partition(":")
    if colon and not rest.strip("/"):
        raise InputError("executor", text, f"no address follows: name one, or write {name} alone")
    address = text if rest.startswith("//") else rest or None
    executor = EXECUTORS.find(name)(address, workers)
    executor.threads = threads
    return executor
