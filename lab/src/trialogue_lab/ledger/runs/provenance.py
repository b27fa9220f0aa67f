"""Provenance of results: code, command, library versions, machine and models."""

import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import trialogue
from trialogue.source_code import source_code

_models: ContextVar[list[dict[str, str]] | None] = ContextVar("models", default=None)
# The result is cached because the call reads the file list of every installed distribution.
_distributions = cache(metadata.packages_distributions)


@contextmanager
def record_models() -> Iterator[list[dict[str, str]]]:
    """Context manager that collects the models passed to `record_model`, without duplicates.

    Yields:
        A list that receives the properties of each model.
    """
    models: list[dict[str, str]] = []
    before = _models.set(models)
    try:
        yield models
    finally:
        _models.reset(before)


def record_model(described: Mapping[str, str]) -> None:
    """Add a model to the list of the enclosing `record_models`.

    Args:
        described: Properties of the model, for example its name and data type.
    """
    models = _models.get()
    if models is not None and described not in models:
        models.append(dict(described))


def describe_session(command: str | None = None) -> dict[str, object]:
    """Return code version, command, library versions and machine of this process, as JSON values.

    Args:
        command: Command of the process that started this worker. By default, the command of this process.
    """
    return {
        "command": format_own_command() if command is None else command,
        "version": trialogue.__version__,
        **source_code(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_describe_device(),
        "libraries": _list_library_versions(),
    }


def format_own_command() -> str:
    """Return the command line of this process without the option `--results`."""
    kept = [Path(sys.argv[0]).name]
    for before, word in pairwise(sys.argv):
        if "--results" not in (word.partition("=")[0], before):
            kept.append(word)
    return shlex.join(kept)


def _describe_device() -> dict[str, object]:
    # Importing torch here would be slow for a study that does not use it.
    torch = sys.modules.get("torch")
    if torch is None:
        return {"device": "cpu"}
    cuda = torch.cuda.is_available()
    return {"device": torch.cuda.get_device_name() if cuda else "cpu", "threads": torch.get_num_threads()}


def _list_library_versions() -> dict[str, str]:
    """Return the version of each installed distribution from which a module is imported."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    names = {name for module in loaded for name in _distributions().get(module, [])}
    return {name: metadata.version(name) for name in sorted(names)}
