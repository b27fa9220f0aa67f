"""Settings of a run: dataclasses whose field types say what a field may be.

    @dataclass(frozen=True, kw_only=True)
    class Config(Settings):
        seeds: Seeds = (0, 1, 2)
        temperature: Positive = 1.0

        def check(self) -> None:
            ...                                  # relations between fields

Types are checked by pydantic, strictly: no text is taken for a number, and no 2.0 for 2.
"""

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

from annotated_types import Ge, Gt, Interval, MinLen
from pydantic import AfterValidator, AllowInfNan, ConfigDict, InstanceOf, TypeAdapter, ValidationError

from trialogue.errors import InputError

Item = TypeVar("Item")


def _different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("give different ones")
    return values


def _increasing(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if list(values) != sorted(set(values)):
        raise ValueError("give increasing ones")
    return values


Count = Annotated[int, Ge(1)]
"""A whole number of at least 1."""
Natural = Annotated[int, Ge(0)]
"""A whole number of at least 0."""
Finite = Annotated[float, AllowInfNan(False)]
"""Any finite number."""
Positive = Annotated[float, Gt(0), AllowInfNan(False)]
"""A finite number above 0."""
Share = Annotated[float, Interval(ge=0, le=1)]
"""A number from 0 to 1."""
Probability = Annotated[float, Interval(gt=0, lt=1)]
"""A number strictly between 0 and 1."""
Some = Annotated[tuple[Item, ...], MinLen(1)]
"""One or more: `Some[Count]`."""
Different = Annotated[tuple[Item, ...], MinLen(1), AfterValidator(_different)]
"""One or more different ones: `Different[Finite]`."""
Increasing = Annotated[tuple[Item, ...], MinLen(1), AfterValidator(_increasing)]
"""One or more, each larger than the one before."""
Seeds = Annotated[tuple[Natural, ...], MinLen(1), AfterValidator(_different)]
"""One or more different seeds."""


class Settings:
    """Base class of config dataclasses: raises `InputError` for the first field that is not of its type."""

    def __post_init__(self) -> None:
        settings: Any = type(self)
        for name, adapter in _adapters(settings).items():
            value = getattr(self, name)
            try:
                adapter.validate_python(value, strict=True)
            except ValidationError as error:
                raise InputError(name, value, _mend(error)) from None
        self.check()

    def check(self) -> None:
        """Raise `InputError` where fields do not go together; here, they always do."""


@cache
def _adapters(settings: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(settings, include_extras=True)
    names = [field.name for field in fields(settings) if field.init]
    return {name: _adapter(hints[name]) for name in names}


def _adapter(hint: Any) -> TypeAdapter[Any]:
    """What checks values of a type; settings within settings have checked themselves."""
    if isinstance(hint, type) and issubclass(hint, Settings):
        return TypeAdapter(InstanceOf[hint])
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def seeds_of(config: Any) -> set[int]:
    """Every seed that a config names, in fields called `seeds` or ending so."""
    named = [field.name for field in fields(config) if field.name == "seeds" or field.name.endswith("_seeds")]
    return {seed for name in named for seed in getattr(config, name)}


def _mend(error: ValidationError) -> str:
    """What pydantic says of the first fault, and of which item it says so."""
    fault = error.errors(include_url=False)[0]
    said = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ").replace("valid ", "")
    place = ", ".join(f"item {step + 1}" for step in fault["loc"] if isinstance(step, int))
    return f"{place} {said}" if place else said
