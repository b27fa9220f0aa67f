"""Where a result comes from: code, command, libraries and machine of a session of a run, models of its parts."""

import hashlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import trialogue

_models: ContextVar[list[dict[str, str]] | None] = ContextVar("models", default=None)


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


def session() -> dict[str, object]:
    """What distinguishes this process from another that could have measured the same rows, as JSON holds it."""
    return {
        "command": _command(sys.argv),
        "version": trialogue.__version__,
        **_code(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_device(),
        "libraries": _libraries(),
    }


def _command(words: Sequence[str]) -> str:
    """The command, but for where its results were to go: whoever reads this has found them elsewhere, perhaps."""
    kept = [Path(words[0]).name]
    for before, word in pairwise(words):
        if "--results" not in (word.partition("=")[0], before):
            kept.append(word)
    return shlex.join(kept)


def _code() -> dict[str, str]:
    """Commit of the checkout the package runs from, and a hash of what differs from it; empty outside of one."""
    package = Path(trialogue.__file__).parent

    def git(*arguments: str) -> bytes:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout

    try:
        # A package installed inside somebody else's checkout is not that checkout's code.
        git("ls-files", "--error-unmatch", "__init__.py")
        commit = git("rev-parse", "HEAD").decode().strip()
        changes = git("diff", "HEAD", "--binary", "--", ".")
        untracked = git("ls-files", "--others", "--exclude-standard", "-z", "--", ".").decode()
    except (OSError, subprocess.CalledProcessError):
        return {}
    digest = hashlib.sha256(changes)
    for name in filter(None, untracked.split("\0")):
        digest.update(name.encode() + b"\0" + (package / name).read_bytes())
    if not changes and not untracked:
        return {"commit": commit}
    return {"commit": commit, "changes_sha256": digest.hexdigest()}


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
    distributions = metadata.packages_distributions()
    names = {name for module in loaded for name in distributions.get(module, [])}
    return {name: metadata.version(name) for name in sorted(names)}
