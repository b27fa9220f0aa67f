"""Types for the valid values of arguments and config fields, and a decorator that checks them.

    @validated
    def repeat(text: str, times: Count, share: Probability = 0.5) -> list[str]: ...

    repeat("a", 0)     # InputError: times=0: use at least 1

    @validated
    @dataclass(frozen=True)
    class Walk:
        steps: Count = 1

Types of arrays are in `trialogue.arrays`. Pydantic checks the values strictly: no text is accepted as a number, and no
2.0 as an integer.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, wraps
from inspect import Parameter, signature
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from annotated_types import Ge, Gt, Interval, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    InstanceOf,
    TypeAdapter,
    ValidationError,
)

from trialogue.errors import InputError

Item = TypeVar("Item")
Args = ParamSpec("Args")
Class = TypeVar("Class")
Result = TypeVar("Result")


def require_distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `values`. Raises `ValueError` if a value occurs more than once."""
    if len(set(values)) < len(values):
        raise ValueError("values must be unique")
    return values


def _increasing(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if list(values) != sorted(set(values)):
        raise ValueError("values must be strictly increasing")
    return values


def as_tuple(values: Any) -> Any:
    """Convert a list, set, range or array to a tuple, and NumPy scalars in it to Python numbers."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(listed, Iterable) and not isinstance(listed, str | bytes | Mapping):
        return tuple(_plain(value) for value in listed)
    raise ValueError("give a list")


Count = Annotated[int, Ge(1)]
"""An integer of at least 1."""
Natural = Annotated[int, Ge(0)]
"""An integer of at least 0."""
Finite = Annotated[float, AllowInfNan(False)]
"""Any finite number."""
NonNegative = Annotated[float, Ge(0), AllowInfNan(False)]
"""A finite number of at least 0."""
Positive = Annotated[float, Gt(0), AllowInfNan(False)]
"""A finite number above 0."""
Share = Annotated[float, Interval(ge=0, le=1)]
"""A number from 0 to 1."""
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
"""A number above 0 and at most 1."""
Probability = Annotated[float, Interval(gt=0, lt=1)]
"""A number strictly between 0 and 1."""
Some = Annotated[tuple[Item, ...], MinLen(1)]
"""One or more: `Some[Count]`."""
if TYPE_CHECKING:
    Several = Sequence
else:
    Several = Annotated[tuple[Item, ...], BeforeValidator(as_tuple)]
"""Any number of them, from any sequence, set or array, as a tuple: `Several[Natural]`."""
Different = Annotated[tuple[Item, ...], MinLen(1), AfterValidator(require_distinct)]
"""One or more different ones: `Different[Finite]`."""
Increasing = Annotated[tuple[Item, ...], MinLen(1), AfterValidator(_increasing)]
"""One or more, each larger than the one before."""


@overload
def validated(target: type[Class]) -> type[Class]: ...


@overload
def validated(target: Callable[Args, Result]) -> Callable[Args, Result]: ...


def validated(target: Any) -> Any:
    """Decorator that checks the arguments of a function or class against their annotated types.

    Parameters of other types than numbers, strings, `Annotated`, `Literal`, `Callable`, and unions or tuples
    of these are passed on unchecked. The function receives the converted values, such as a tensor for a list
    of numbers.

    For a class, the arguments of the constructor are checked. Put `@validated` above `@dataclass`, and check
    relations between fields in `__post_init__`, which runs after the checks. A derived class needs its own
    decorator.

    Raises:
        InputError: At a call, if an argument is invalid. The error names the parameter, the value and a valid
            alternative.
    """
    if isinstance(target, type):
        constructor: Any = target
        constructor.__init__ = _validated(constructor.__init__)
        return target
    return _validated(target)


def _validated(function: Callable[Args, Result]) -> Callable[Args, Result]:
    parameters = signature(function)
    names = list(parameters.parameters)

    @cache
    def adapters() -> dict[str, TypeAdapter[Any]]:
        # Resolved at the first call: an annotation may name a class that is defined later.
        hints = get_type_hints(function, include_extras=True)
        checked = {name: hints[name] for name in names if name in hints and _is_checked(hints[name])}
        variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        return {
            name: TypeAdapter(hint)
            for name, hint in checked.items()
            if parameters.parameters[name].kind not in variadic
        }

    @wraps(function)
    def checked(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        given = parameters.bind(*args, **kwargs)
        arguments = given.arguments
        for name, adapter in adapters().items():
            if name in arguments:
                arguments[name] = checked_value(name, arguments[name], adapter)
        return function(*given.args, **given.kwargs)

    return checked


def integer_range(low: int, high: int | None = None) -> Any:
    """Return the type of integers from `low` to `high`, both included, for bounds that depend on other values."""
    return Annotated[int, Interval(ge=low, le=high)]


def check(field: str, value: Any, kind: Any, hint: str = "") -> Any:
    """Convert a value to a type, and raise `InputError` if it is not valid.

    Args:
        field: Name of the value in the error.
        value: The value.
        kind: Any type that `validated` checks, such as `Count` or `integer_range(2, sites)`.
        hint: Hint of the error. By default it follows from the type.

    Raises:
        InputError: If the value is not of this type.
    """
    try:
        return checked_value(field, value, _adapter(kind))
    except InputError as error:
        raise InputError(field, error.value, hint) if hint else error from None


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked_value(field: str, value: Any, adapter: TypeAdapter[Any]) -> Any:
    """Validate a value with a pydantic adapter, and return the converted value.

    Raises:
        InputError: If the value is invalid. The error names `field`.
    """
    try:
        return adapter.validate_python(_plain(value), strict=True)
    except ValidationError as error:
        raise input_error(field, value, error) from None


def input_error(field: str, value: Any, error: ValidationError) -> InputError:
    """Convert a pydantic error to an `InputError`.

    The message shows the invalid item of a sequence or array.
    """
    faults = error.errors(include_url=False)
    # Faults of the alternatives of a union begin their place with the name of the alternative.
    alternatives = {fault["loc"][0]: fault for fault in reversed(faults) if fault["loc"]}
    if len(alternatives) > 1 and all(isinstance(name, str) for name in alternatives):
        return InputError(
            field, value, " or ".join(reversed([_hint(fault) for fault in alternatives.values()]))
        )
    fault = faults[0]
    place = ", ".join(f"item {step + 1}" for step in fault["loc"] if isinstance(step, int))
    cause = fault.get("ctx", {}).get("error")
    shown = cause.value if isinstance(cause, InputError) else fault["input"] if place else value
    return InputError(field, shown, f"{place}: {_hint(fault)}" if place else _hint(fault))


_HINTS = {
    "int_type": "use an integer",
    "int_from_float": "use an integer",
    "float_type": "use a number",
    "finite_number": "use a finite number",
    "bool_type": "use True or False",
    "string_type": "give a text",
    "callable_type": "give a function",
    "tuple_type": "give a tuple",
    "greater_than_equal": "use at least {ge}",
    "greater_than": "use a number above {gt}",
    "multiple_of": "use a multiple of {multiple_of}",
    "less_than_equal": "use at most {le}",
    "less_than": "use a number below {lt}",
    "is_instance_of": "give an instance of {class}",
    "string_too_short": "give a text of at least {min_length} character{plural}",
    "too_short": "must have at least {min_length} item{plural}",
    "too_long": "must have at most {max_length} item{plural}",
    "missing": "give one more",
}
"""Hints by pydantic error type."""

_CHOICE = re.compile(r"""((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?!,\ |\ or\ ).)+)(?:,\ |\ or\ |$)""")
"""One of the choices that pydantic lists as Python literals, such as `'a', 1 or "it's"`."""


def _hint(fault: Any) -> str:
    """Return the hint for a pydantic error."""
    # Pydantic converts the bounds of floats to floats.
    context: dict[str, Any] = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in fault.get("ctx", {}).items()
    }
    if isinstance(context.get("error"), InputError):
        return str(context["error"].hint)
    if fault["type"] == "literal_error":
        choices = _CHOICE.findall(context["expected"])
        texts = [literal_eval(choice) if choice[0] in "'\"" else choice for choice in choices]
        return f"use one of {', '.join(texts)}"
    if fault["type"] in _HINTS:
        length = context.get("min_length", context.get("max_length"))
        return _HINTS[fault["type"]].format(**context, plural="" if length == 1 else "s")
    return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ")


def _is_checked(hint: Any) -> bool:
    """Whether `validated` checks a parameter of the type `hint`."""
    origin = get_origin(hint)
    if origin in (Annotated, Literal, Callable):
        return True
    if origin in (Union, UnionType, tuple):
        return all(part in (type(None), Ellipsis) or _is_checked(part) for part in get_args(hint))
    return hint in (int, float, bool, str)


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar, or an array or tensor of one number without axes, to a Python number."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


__all__ = [
    "Count",
    "Different",
    "Finite",
    "Increasing",
    "InstanceOf",
    "Natural",
    "NonNegative",
    "Positive",
    "PositiveShare",
    "Probability",
    "Several",
    "Share",
    "Some",
    "as_tuple",
    "check",
    "checked_value",
    "input_error",
    "integer_range",
    "require_distinct",
    "validated",
]
