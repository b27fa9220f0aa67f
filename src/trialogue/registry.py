"""What is registered by name: what comes with the package, and what installed packages add by entry points.

A package of a user's own registers by an entry point of a group of the registry, in its `pyproject.toml`:

    [project.entry-points."trialogue.samplers"]
    halving = "my_package.samplers:Halving"

Nothing is imported before it is asked for by its name.
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
    """The objects of one kind, `noun`, by name: the built-in ones first, then those of the entry points of `group`.

    A built-in one is the object, or says where it lies as an entry point does: "module:attribute", or "module". Its
    name belongs to it: an entry point of the same name counts for nothing. What is put in while a program runs takes
    the place of what had its name. What is imported must be of the type `of`, where that is given, or a class derived
    from `base`.
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
        """The object of that name; raises `KeyError` where there is none, `InputError` where it cannot be had."""
        if name in self._known:
            known = self._known[name]
            if not isinstance(known, str):
                return known
            entry = metadata.EntryPoint(name, known, self.group)
        else:
            entry = _entry_points(self.group, tuple(sys.path))[name]
        try:
            loaded: T = entry.load()
        except Exception as error:  # whatever a module of a user's own does when it is imported
            told = f"{type(error).__name__}: {error}"
            hint = f"it is registered as {entry.value}, which cannot be imported: {told}"
            raise InputError(self.noun, name, hint) from error
        wanted = self._of or self._base
        if wanted is not None and not (
            isinstance(loaded, wanted)
            if self._of
            else isinstance(loaded, type) and issubclass(loaded, wanted)
        ):
            what = f"{'' if self._of else 'class derived from '}{wanted.__module__}.{wanted.__qualname__}"
            raise InputError(self.noun, name, f"it is registered as {entry.value}, which is no {what}")
        return loaded

    def __setitem__(self, name: str, thing: T) -> None:
        self._known[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def loadable(self) -> Iterator[tuple[str, T]]:
        """Names and objects of all that can be imported; what cannot is no reason to do without the others."""
        for name in self:
            try:
                yield name, self[name]
            except InputError:
                continue

    def place(self, name: str) -> str | None:
        """Where the object of that name lies, "module:attribute", without importing it; None where there is none."""
        if name in self._known:
            known = self._known[name]
            return known if isinstance(known, str) else place_of(known)
        entry = _entry_points(self.group, tuple(sys.path)).get(name)
        return None if entry is None else entry.value

    def find(self, name: str) -> T:
        """The object of that name; raises `InputError` that suggests the closest names where there is none."""
        if name in self:
            return self[name]
        close = difflib.get_close_matches(name, self, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(self) or 'none'}"
        raise InputError(self.noun, name, f"no such {self.noun}: {hint}")

    def build(self, spec: str) -> Any:
        """Build what `spec` names: NAME or NAME:JSON, where JSON is an object with the arguments.

        Raises:
            InputError: If the name is unknown, if what follows it is not a JSON object, or if it refuses the arguments.

        Example:
            CHAINS.build('block-gibbs:{"block_size": 2}')
        """
        name, colon, written = spec.partition(":")
        make: Any = self.find(name)
        try:
            arguments = json.loads(written) if colon else {}
        except ValueError as error:
            raise InputError(self.noun, spec, f"what follows the colon is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise InputError(self.noun, spec, f'give its arguments as a JSON object: {name}:{{"...": ...}}')
        try:
            return make(**arguments)
        except TypeError as error:
            raise InputError(self.noun, spec, f"it has no such arguments: {error}") from None
        except InputError as error:
            raise InputError(self.noun, spec, f"{error.field}={error.value!r}: {error.hint}") from None


def place_of(thing: Any) -> str:
    """Where a class or a function lies, "module:attribute", as an entry point says it."""
    return f"{thing.__module__}:{thing.__qualname__}"


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, metadata.EntryPoint]:
    """The entry points of a group in order of their names, of what is installed along `path`, which is `sys.path`."""
    del path
    entries = sorted(metadata.entry_points(group=group), key=lambda entry: entry.name)
    return {entry.name: entry for entry in entries}
