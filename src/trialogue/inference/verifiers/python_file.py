"""A function or a pydantic model in a Python file of the user's own as a verifier."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from trialogue.errors import InputError, reason
from trialogue.inference.verifiers.function import (
    FunctionVerifier,
    Scope,
    TextVerifier,
)
from trialogue.inference.verifiers.grammar import GrammarVerifier
from trialogue.inference.verifiers.schemas.languages import Whitespace
from trialogue.inference.verifiers.schemas.models import model_language
from trialogue.inference.verifiers.users_code import CRASHES, contained
from trialogue.models.tokenization import Tokenization


def python_verifier(
    path: str | Path,
    name: str,
    tokenization: Tokenization | None = None,
    scope: Scope = "completion",
    *,
    whole: bool = False,
    timeout: float | None = None,
) -> TextVerifier | FunctionVerifier:
    """The function `name` of the Python file at `path`, which is run, as a verifier.

    It is a `TextVerifier` where there is a `tokenization`, else a `FunctionVerifier`; the other arguments are theirs.
    As in a script, modules in the file's folder can be imported, also by the function when it is called; those that
    another file imported from its own folder are not seen. What the file prints goes to standard error.
    Raises `InputError` where there is no such file or function, or the file cannot be run.
    """
    function = _function(Path(path).resolve(), str(path), name)
    if tokenization is None:
        return FunctionVerifier(function, scope, whole=whole, timeout=timeout)
    return TextVerifier(function, tokenization, scope, whole=whole, timeout=timeout)


def pydantic_verifier(
    path: str | Path,
    name: str,
    tokenization: Tokenization,
    *,
    whitespace: Whitespace = "compact",
    timeout: float | None = None,
    memory: int = 4096,
) -> GrammarVerifier:
    """The verifier that `GrammarVerifier.pydantic` makes of the model `name` of the Python file at `path`.

    The file and the model's validators are run as `python_verifier` says of a file and its function.
    Raises `InputError` where there is no such file or model, or the file cannot be run.
    """
    file = Path(path).resolve()
    module = _module("pydantic", file, str(path))
    if not hasattr(module, name):
        known = ", ".join(_own(module, lambda value: isinstance(value, type))) or "none"
        raise InputError("pydantic", f"{path}:{name}", f"the file has no such class; its classes: {known}")
    language = model_language(
        getattr(module, name), whitespace, timeout, around=lambda: _importable(file.parent), name=name
    )
    return GrammarVerifier(language, tokenization, memory, "pydantic")


def _function(path: Path, shown: str, name: str) -> Callable[[Any], Any]:
    module = _module("python", path, shown)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(_own(module, callable)) or "none"
        raise InputError(
            "python", f"{shown}:{name}", f"the file has no such function; its functions: {known}"
        )

    @wraps(function)
    def called(given: Any) -> Any:
        with _importable(path.parent):
            return function(given)

    called.__name__ = name
    return called


def _own(module: ModuleType, wanted: Callable[[Any], bool]) -> list[str]:
    """The names of what `module` defines itself and is `wanted`."""
    own = {
        key: value
        for key, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    }
    return [key for key, value in own.items() if wanted(value)]


def _module(field: str, path: Path, shown: str) -> ModuleType:
    if not path.is_file():
        raise InputError(field, shown, "there is no such file")
    module_name = f"{__name__}.{path.stem}"
    loader = SourceFileLoader(module_name, str(path))
    spec = spec_from_loader(module_name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    # Dataclasses look their module up by its name.
    sys.modules[module_name] = module
    try:
        with contained(), _importable(path.parent):
            loader.exec_module(module)
    except CRASHES as error:
        del sys.modules[module_name]
        raise InputError(field, shown, f"it cannot be run: {reason(error)}") from error
    return module


_neighbours: defaultdict[Path, dict[str, ModuleType]] = defaultdict(dict)
"""By folder, the modules that were imported from it; they are among all modules only while it is importable."""


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules of `folder` come first, as in a script that lies there, and are out of the way afterwards."""
    own = _neighbours[folder]
    hidden = {name: sys.modules[name] for name in own if sys.modules.get(name, own[name]) is not own[name]}
    sys.path.insert(0, str(folder))
    sys.modules.update(own)
    known = len(sys.modules)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(str(folder))
        # Modules are listed as they were imported: to look at every one in each call would take long.
        for name in list(sys.modules)[known:] if len(sys.modules) > known else ():
            if _lies_in(folder, sys.modules.get(name.partition(".")[0])):
                own[name] = sys.modules[name]
        for name in own:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _lies_in(folder: Path, module: ModuleType | None) -> bool:
    """Whether `module` was found in `folder` itself: a virtual environment further down has modules of its own."""
    places = getattr(module, "__path__", None) or [getattr(module, "__file__", None) or ""]
    return any(Path(place).parent == folder for place in places)
