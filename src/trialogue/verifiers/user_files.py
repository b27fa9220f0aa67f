"""Python files of a user's own: run as a script is, with what lies beside them."""

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
from trialogue.verifiers.users_code import CRASHES, contained


def function_of(path: Path, shown: str, name: str) -> Callable[[Any], Any]:
    """The function `name` of the Python file at `path`, which is run, as it is called where the file lies.

    Raises `InputError`, which names the file as `shown`, where there is no such file or function, or it cannot be run.
    """
    module = module_of("python", path, shown)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(own_names(module, callable)) or "none"
        raise InputError(
            "python", f"{shown}:{name}", f"the file has no such function; its functions: {known}"
        )

    @wraps(function)
    def called(given: Any) -> Any:
        with importable(path.parent):
            return function(given)

    called.__name__ = name
    return called


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
        with contained(), importable(path.parent):
            loader.exec_module(module)
    except CRASHES as error:
        del sys.modules[module_name]
        raise InputError(field, shown, f"it cannot be run: {reason(error)}") from error
    return module


_neighbours: defaultdict[Path, dict[str, ModuleType]] = defaultdict(dict)
"""By folder, the modules that were imported from it; they are among all modules only while it is importable."""


@contextmanager
def importable(folder: Path) -> Iterator[None]:
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
