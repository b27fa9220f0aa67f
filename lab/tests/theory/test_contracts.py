"""Every public function and class of theory, data and analysis checks the arguments whose types state a limit."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

import trialogue_lab.analysis
import trialogue_lab.data
import trialogue_lab.theory
from trialogue.errors import InputError


def has_limit(hint: Any) -> bool:
    """Return whether a type, or a part of it, is annotated with a limit or a validator."""
    return get_origin(hint) is Annotated or any(map(has_limit, get_args(hint)))


def limited_functions(package: ModuleType) -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    """Yield name, function and names of limited parameters of public functions, constructors and methods."""
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
                    hints = get_type_hints(function, include_extras=True)
                    limited = [key for key, hint in hints.items() if key != "return" and has_limit(hint)]
                    if limited:
                        yield f"{info.name}.{full_name}", function, limited


PACKAGES = (trialogue_lab.theory, trialogue_lab.data, trialogue_lab.analysis)
LIMITED = [limited for package in PACKAGES for limited in limited_functions(package)]


def test_functions_with_limits_are_found() -> None:
    assert len(LIMITED) > 150


@pytest.mark.parametrize(("name", "function", "limited"), LIMITED, ids=[name for name, *_ in LIMITED])
def test_a_bad_value_is_refused_with_the_name_of_the_argument(
    name: str, function: Callable[..., Any], limited: list[str]
) -> None:
    assert hasattr(function, "__wrapped__"), f"{name} needs the decorator `validated`"
    parameters = inspect.signature(function).parameters.values()
    required = [each for each in parameters if each.default is each.empty and each.kind < each.VAR_POSITIONAL]
    given = {each.name: object() for each in required} | {key: object() for key in limited}
    with pytest.raises(InputError) as error:
        function(**given)
    assert error.value.field in given
    assert "\n" not in str(error.value)
