"""A function in a Python file of the user's own as a verifier."""

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.inference.verifiers.function import (
    CRASHES,
    FunctionVerifier,
    Scope,
    TextVerifier,
    printing_aside,
    reason,
)
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
    Raises `InputError` where there is no such file or function, or the file cannot be run.
    """
    function = _function(Path(path), name)
    if tokenization is None:
        return FunctionVerifier(function, scope, whole=whole, timeout=timeout)
    return TextVerifier(function, tokenization, scope, whole=whole, timeout=timeout)


def _function(path: Path, name: str) -> Callable[..., Any]:
    if not path.is_file():
        raise InputError("python", str(path), "there is no such file")
    module_name = f"{__name__}.{path.stem}"
    loader = SourceFileLoader(module_name, str(path.resolve()))
    spec = spec_from_loader(module_name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    # Dataclasses look their module up by its name.
    sys.modules[module_name] = module
    try:
        with printing_aside():
            loader.exec_module(module)
    except CRASHES as error:
        del sys.modules[module_name]
        raise InputError("python", str(path), f"it cannot be run: {reason(error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module_name]
        known = ", ".join(key for key in own if callable(getattr(module, key))) or "none"
        raise InputError("python", f"{path}:{name}", f"the file has no such function; its functions: {known}")
    return function
