"""Where a result comes from: code, command, libraries and machine of a session of a run, models of its parts."""

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
_distributions = cache(metadata.packages_distributions)  # reads the file list of every installed distribution


@contextmanager
def models_noted() -> Iterator[list[dict[str, str]]]:
    """Around the measuring of a part: a list of the models that `note_model` is told of, each once."""
    models: list[dict[str, str]] = []
    before = _models.set(models)
    try:
        yield models
    finally:
        _models.reset(before)


def note_model(described: Mapping[str, str]) -> None:
    """Have the provenance of the part that is being measured say which model answers in it, as `described`."""
    models = _models.get()
    if models is not None and described not in models:
        models.append(dict(described))


def session(command: str | None = None) -> dict[str, object]:
    """What distinguishes this process from another that could have measured the same rows, as JSON holds it.

    `command` is that of the process that has hired this one, where one has.
    """
    return {
        "command": own_command() if command is None else command,
        "version": trialogue.__version__,
        **source_code(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_device(),
        "libraries": _libraries(),
    }


def own_command() -> str:
    """This process' command, but for where its results were to go: whoever reads it has found them."""
    kept = [Path(sys.argv[0]).name]
    for before, word in pairwise(sys.argv):
        if "--results" not in (word.partition("=")[0], before):
            kept.append(word)
    return shlex.join(kept)


def _device() -> dict[str, object]:
    # A study that never touched torch must not pay for its import here.
    torch = sys.modules.get("torch")
    if torch is None:
        return {"device": "cpu"}
    cuda = torch.cuda.is_available()
    return {"device": torch.cuda.get_device_name() if cuda else "cpu", "threads": torch.get_num_threads()}


def _libraries() -> dict[str, str]:
    """Version of every distribution of which a module is loaded."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    names = {name for module in loaded for name in _distributions().get(module, [])}
    return {name: metadata.version(name) for name in sorted(names)}
