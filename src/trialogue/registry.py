"""Registries of objects by name, which installed packages can extend by entry points.

A package registers an object by an entry point in its `pyproject.toml`, in the group of the registry:

    [project.entry-points."trialogue.samplers"]
    halving = "my_package.samplers:Halving"

Objects are imported when they are first used.
"""

import difflib
import json
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import lru_cache
from importlib import metadata
from typing import Any, Generic, TypeVar

from trialogue.errors import InputError

T = TypeVar("T")


class Registry(MutableMapping[str, T], Generic[T]):
    """Objects of one kind by name, both built-in ones and those of installed packages.

    The objects of installed packages are the entry points of a group. A built-in name takes precedence over an entry
    point of the same name. Assigning to a name replaces its object.

    Args:
        group: Group of the entry points.
        noun: Name of the kind of object in errors.
        built_in: Built-in objects by name, as objects or as text "module:attribute" or "module".
        of: Required type of imported objects (default: any).
        base: Required base class of imported classes (default: any).
    """

    def __init__(
        self,
        group: str,
        noun: str,
        built_in: Mapping[str, T | str],
        *,
        of: type[Any] | None = None,
        base: type[Any] | None = None,
    ) -> None:
        self.group, self.noun, self._of, self._base = group, noun, of, base
        self._known: dict[str, T | str] = dict(built_in)

    def __iter__(self) -> Iterator[str]:
        yield from self._known
        yield from (name for name in _entry_points(self.group, tuple(sys.path)) if name not in self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self)

    def __getitem__(self, name: str) -> T:
        """Return the object with this name.

        Raises:
            KeyError: If there is none.
            InputError: If it cannot be imported, or has the wrong type.
        """
        if name in self._known:
            known = self._known[name]
            if not isinstance(known, str):
                return known
            entry = metadata.EntryPoint(name, known, self.group)
        else:
            entry = _entry_points(self.group, tuple(sys.path))[name]
        try:
            loaded: T = entry.load()
        except Exception as error:  # importing a user's module may raise any exception
            hint = f"it is registered as {entry.value}, which cannot be imported: {type(error).__name__}: {error}"
            raise InputError(self.noun, name, hint) from error
        wanted = self._of or self._base
        if wanted is not None and not (
            isinstance(loaded, wanted)
            if self._of
            else isinstance(loaded, type) and issubclass(loaded, wanted)
        ):
            kind = "an instance of" if self._of else "a class derived from"
            hint = f"it is registered as {entry.value}, which is not {kind} {wanted.__module__}.{wanted.__qualname__}"
            raise InputError(self.noun, name, hint)
        return loaded

    def __setitem__(self, name: str, thing: T) -> None:
        self._known[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def loadable(self) -> Iterator[tuple[str, T]]:
        """Yield names and objects, without those that cannot be imported."""
        for name in self:
            try:
                yield name, self[name]
            except InputError:
                continue

    def place(self, name: str) -> str | None:
        """Return the import path "module:attribute" of an object without importing it, or None if there is none."""
        if name in self._known:
            known = self._known[name]
            return known if isinstance(known, str) else import_path(known)
        entry = _entry_points(self.group, tuple(sys.path)).get(name)
        return None if entry is None else entry.value

    def find(self, name: str) -> T:
        """Return the object with this name. Raises `InputError` with similar names if there is none."""
        if name in self:
            return self[name]
        close = difflib.get_close_matches(name, self, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(self) or '(none)'}"
        raise InputError(self.noun, name, f"no such {self.noun}: {hint}")

    def build(self, spec: str) -> Any:
        """Create an object from a specification NAME or NAME:JSON.

        Args:
            spec: Name of a registered class or function, optionally followed by a colon and a JSON object of its
                arguments.

        Raises:
            InputError: If the name is unknown, the text after the colon is not a JSON object, or the arguments are
                invalid.

        Example:
            >>> from trialogue.samplers.registered import CHAINS
            >>> CHAINS.build('block-gibbs:{"block_size": 2}')
            BlockGibbs(block_size=2)
        """
        name, colon, written = spec.partition(":")
        make: Any = self.find(name)
        try:
            arguments = json.loads(written) if colon else {}
        except ValueError as error:
            raise InputError(self.noun, spec, f"give a JSON object after the colon: {error}") from None
        if not isinstance(arguments, dict):
            raise InputError(self.noun, spec, f'give its arguments as a JSON object: {name}:{{"...": ...}}')
        try:
            return make(**arguments)
        except TypeError as error:
            raise InputError(self.noun, spec, f"use other arguments: {error}") from None
        except InputError as error:
            raise InputError(self.noun, spec, f"{error.field}={error.value!r}: {error.hint}") from None


def import_path(thing: Any) -> str:
    """Return the import path "module:attribute" of a class or function."""
    return f"{thing.__module__}:{thing.__qualname__}"


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by name, sorted. `path` is `sys.path`, the key of the cache."""
    del path
    entries = sorted(metadata.entry_points(group=group), key=lambda entry: entry.name)
    return {entry.name: entry for entry in entries}
