"""Networks by name: what a file of weights says it holds, and the class that reads it.

A network is a module that one config describes, a dataclass of numbers, strings and tuples of these, which it keeps as
`config`; a seed, by default 0, names its initial weights. It is registered where it is defined:

    @register_network("transformer", TransformerConfig)
    class Transformer(nn.Module):
        def __init__(self, config: TransformerConfig, seed: int = 0) -> None: ...
"""

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from torch import nn

from trialogue.errors import InputError

NetworkT = TypeVar("NetworkT", bound=nn.Module)


class Registration(NamedTuple):
    """A network's name, its class, and the dataclass of its configs."""

    name: str
    network: type[nn.Module]
    config: type[Any]


BUILT_IN: Mapping[str, str] = MappingProxyType({"transformer": "trialogue.models.transformer"})
"""Modules that register a network, by its name; each is imported when its network is asked for."""

_REGISTERED: dict[str, Registration] = {}


def register_network(name: str, config: type[Any]) -> Callable[[type[NetworkT]], type[NetworkT]]:
    """Register the decorated class under `name`; its configs are of the dataclass `config`.

    Raises `InputError` where another class has the name.
    """

    def register(network: type[NetworkT]) -> type[NetworkT]:
        taken = _REGISTERED.get(name)
        if taken is not None and _place(taken.network) != _place(network):
            raise InputError("name", name, f"{_place(taken.network)} is registered under it: choose another")
        _REGISTERED[name] = Registration(name, network, config)
        return network

    return register


def registered(name: str) -> Registration:
    """The network of this name; raises `InputError` where there is none."""
    if name not in _REGISTERED and name in BUILT_IN:
        importlib.import_module(BUILT_IN[name])
    if name not in _REGISTERED:
        known = ", ".join(sorted({*_REGISTERED, *BUILT_IN}))
        mend = f"no such network is registered (there are {known}): import the module that defines it"
        raise InputError("network", name, mend)
    return _REGISTERED[name]


def registration_of(network: type[nn.Module]) -> Registration:
    """How the class `network` itself is registered; raises `InputError` where it is not."""
    for registration in _REGISTERED.values():
        if registration.network is network:
            return registration
    raise InputError(
        "network", network.__qualname__, "decorate the class with @register_network(name, config)"
    )


def _place(network: type[nn.Module]) -> str:
    return f"{network.__module__}.{network.__qualname__}"
