"""Execution of a user's Python file, with imports from the folder of the file as in a script."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from trialogue.errors import InputError, describe_error
from trialogue.verifiers.functions.users_code import CRASHES, output_to_stderr


def load_function(path: Path, shown: str, name: str) -> Callable[[Any], Any]:
    """Execute a Python file, and return one of the functions that it defines.

    Args:
        path: Path of the file.
        shown: Path of the file for error messages.
        name: Name of the function.

    Raises:
        InputError: If the file or the function does not exist, or the file cannot be executed.
    """
    module = load_module("python", path, shown)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(defined_names(module, callable)) or "none"
        raise InputError(
            "python", f"{shown}:{name}", f"the file has no such function; its functions: {known}"
        )
    return function


def defined_names(module: ModuleType, wanted: Callable[[Any], bool]) -> list[str]:
    """Return the names of objects that a module defines itself, without imported objects.

    Args:
        module: Module to search.
        wanted: Predicate that the objects must satisfy.
    """
    own = {
        key: value
        for key, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    }
    return [key for key, value in own.items() if wanted(value)]


def load_module(field: str, path: Path, shown: str) -> ModuleType:
    """Execute a Python file, and return its module.

    Args:
        field: Name of the option for error messages.
        path: Path of the file.
        shown: Path of the file for error messages.

    Raises:
        InputError: If the file does not exist or cannot be executed.
    """
    if not path.is_file():
        raise InputError(field, shown, "there is no such file")
    module_name = f"{__name__}.{path.stem}"
    loader = SourceFileLoader(module_name, str(path))
    spec = spec_from_loader(module_name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    # Dataclasses look up their module in `sys.modules`.
    sys.modules[module_name] = module
    try:
        with output_to_stderr(), importing_from(path.parent):
            loader.exec_module(module)
    except CRASHES as error:
        del sys.modules[module_name]
        raise InputError(field, shown, f"it cannot be run: {describe_error(error)}") from error
    return module


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Return a context manager inside which modules of a folder can be imported.

    Args:
        folder: Folder that contains the modules.
    """
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(str(folder))
