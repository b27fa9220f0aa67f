"""Public functions of a package whose types state limits of their arguments."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest

from trialogue.errors import InputError


class Limited(NamedTuple):
    """A function and the names of its parameters whose types state a limit."""

    name: str
    function: Callable[..., Any]
    parameters: list[str]


def has_limit(hint: Any) -> bool:
    """Return whether a type, or a part of it, is annotated with a limit or a validator."""
    return get_origin(hint) is Annotated or any(map(has_limit, get_args(hint)))


def limited_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters whose types state a limit."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (
        NameError
    ):  # The name is imported for type checkers only, and `validated` cannot resolve it either.
        return []
    return [key for key, hint in hints.items() if key != "return" and has_limit(hint)]


def limited_functions(package: ModuleType) -> Iterator[Limited]:
    """Yield the public functions, constructors and methods of a package that have limited parameters."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, found in vars(import_module(info.name)).items():
            if name.startswith("_") or getattr(found, "__module__", None) != info.name:
                continue
            functions = {name: found}
            if inspect.isclass(found):
                functions = {f"{name}.{key}": each for key, each in vars(found).items() if key[:2] != "__"}
                functions[f"{name}.__init__"] = found.__init__
            for full_name, function in functions.items():
                if inspect.isfunction(function):
                    limited = limited_parameters(function)
                    if limited:
                        yield Limited(f"{info.name}.{full_name}", function, limited)


def check_refusal(limited: Limited) -> None:
    """Assert that the function rejects values of a wrong type with a one-line error that contains the argument."""
    assert hasattr(limited.function, "__wrapped__"), f"{limited.name} needs the decorator `validated`"
    parameters = inspect.signature(limited.function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [each.name for each in parameters if each.default is each.empty and each.kind not in variadic]
    given = {name: object() for name in (*required, *limited.parameters)}
    with pytest.raises(InputError) as error:
        limited.function(**given)
    assert error.value.field in given
    assert "\n" not in str(error.value)
