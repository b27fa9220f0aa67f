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
from typing import Annotated, Any, get_type_hints

from annotated_types import MinLen
from pydantic import AfterValidator, ConfigDict, InstanceOf, TypeAdapter

from trialogue.validation import (
    Count,
    Different,
    Finite,
    Increasing,
    Natural,
    Positive,
    Probability,
    Share,
    Some,
    checked_value,
    different,
)

Seeds = Annotated[tuple[Natural, ...], MinLen(1), AfterValidator(different)]
"""One or more different seeds."""


class Settings:
    """Base class of config dataclasses, whose fields are checked against their types as `validated` checks arguments.

    Raises:
        InputError: For the first field that is not of its type.
    """

    def __post_init__(self) -> None:
        settings: Any = type(self)
        for name, adapter in _adapters(settings).items():
            checked_value(name, getattr(self, name), adapter)
        self.check()

    def check(self) -> None:
        """Check relations between fields. Override it to raise `InputError`."""

    def shared(self, kind: type[Any]) -> dict[str, Any]:
        """Return the values of the fields that the dataclass `kind` has too, by name."""
        names = {field.name for field in fields(kind)}
        return {name: value for name, value in vars(self).items() if name in names}


@cache
def _adapters(settings: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(settings, include_extras=True)
    return {field.name: _adapter(hints[field.name]) for field in fields(settings) if field.init}


def _adapter(hint: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type. Settings within settings have checked their own fields."""
    if isinstance(hint, type) and issubclass(hint, Settings):
        return TypeAdapter(InstanceOf[hint])
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def seeds_of(config: Any) -> set[int]:
    """Every seed that a config names, in fields called `seeds` or ending so."""
    named = [field.name for field in fields(config) if field.name == "seeds" or field.name.endswith("_seeds")]
    return {seed for name in named for seed in getattr(config, name)}


__all__ = [
    "Count",
    "Different",
    "Finite",
    "Increasing",
    "Natural",
    "Positive",
    "Probability",
    "Seeds",
    "Settings",
    "Share",
    "Some",
    "seeds_of",
]
