"""Python files of a user's own: run as a script is, with what lies beside them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from trialogue.errors import InputError, reason
from trialogue.verifiers.users_code import CRASHES, output_to_stderr


def function_of(path: Path, shown: str, name: str) -> Callable[[Any], Any]:
    """Return the function `name` of the Python file at `path`, which is run.

    Raises:
        InputError: If there is no such file or function, or the file cannot be run. The error names the file as
            `shown`.
    """
    module = module_of("python", path, shown)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(own_names(module, callable)) or "none"
        raise InputError(
            "python", f"{shown}:{name}", f"the file has no such function; its functions: {known}"
        )
    return function


def own_names(module: ModuleType, wanted: Callable[[Any], bool]) -> list[str]:
    """The names of what `module` defines itself and is `wanted`."""
    own = {
        key: value
        for key, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    }
    return [key for key, value in own.items() if wanted(value)]


def module_of(field: str, path: Path, shown: str) -> ModuleType:
    """The module that running the file at `path` gives; raises `InputError`, which names it as `shown`."""
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
        with output_to_stderr(), importable(path.parent):
            loader.exec_module(module)
    except CRASHES as error:
        del sys.modules[module_name]
        raise InputError(field, shown, f"it cannot be run: {reason(error)}") from error
    return module


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Context in which modules of `folder` can be imported, as in a script there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(str(folder))
