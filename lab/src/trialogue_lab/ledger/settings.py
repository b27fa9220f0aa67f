"""Base class of config dataclasses, whose fields are validated against their types.

    @dataclass(frozen=True, kw_only=True)
    class Config(Settings):
        seeds: Seeds = (0, 1, 2)
        temperature: Positive = 1.0

        def check(self) -> None:
            ...                                  # Raise InputError if fields contradict each other.

Pydantic checks the types strictly. It accepts neither text nor 2.0 as an integer.
"""

from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import ConfigDict, InstanceOf, TypeAdapter

from trialogue.validation import Different, Natural, checked_value

Seeds = Different[Natural]
"""One or more distinct seeds."""

_LONG = 4
"""Largest number of parts of a list that are shown one by one."""


class Settings:
    """Base class of config dataclasses that validates the type of every field.

    Raises:
        InputError: A field does not have its annotated type.
    """

    def __post_init__(self) -> None:
        settings: Any = type(self)
        for name, adapter in _make_adapters(settings).items():
            checked_value(name, getattr(self, name), adapter)
        self.check()

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other. Subclasses override this method."""

    def shared(self, kind: type[Any]) -> dict[str, Any]:
        """Return the values of the fields that this config has in common with another dataclass.

        Args:
            kind: The other dataclass.

        Returns:
            Values of this config, by field name.
        """
        names = {field.name for field in fields(kind)}
        return {name: value for name, value in vars(self).items() if name in names}


@cache
def _make_adapters(settings: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(settings, include_extras=True)
    return {field.name: _make_adapter(hints[field.name]) for field in fields(settings) if field.init}


def _make_adapter(hint: Any) -> TypeAdapter[Any]:
    """Return the Pydantic adapter of a type. Nested settings are not validated again."""
    if isinstance(hint, type) and issubclass(hint, Settings):
        return TypeAdapter(InstanceOf[hint])
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def collect_seeds(config: Any) -> set[int]:
    """Return all seeds of a config: the values of its fields named `seeds` or `*_seeds`."""
    names = [field.name for field in fields(config) if field.name == "seeds" or field.name.endswith("_seeds")]
    return {seed for name in names for seed in getattr(config, name)}


def format_value(value: Any) -> str:
    """Return the value of a field as text. Long lists are shortened, for example to "0 to 23, 30" or "12 values"."""
    if not isinstance(value, list | tuple) or len(value) <= _LONG:
        return str(value)
    runs: list[list[Any]] = []
    are_numbers = all(isinstance(item, int) for item in value)
    for item in value:
        if runs and are_numbers and item == runs[-1][-1] + 1:
            runs[-1].append(item)
        else:
            runs.append([item])
    if len(runs) > _LONG:
        return f"{len(value)} values"
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
