"""Values, and functions with their arguments, as JSON that is equal where they are."""

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError


def describe(field: str, value: Any) -> Any:
    """`value` as JSON: a number, text, tensor, dataclass, a sequence or mapping of these, or a function of a module.

    A function is its name; `functools.partial` adds arguments, and a method of a dataclass what that holds; of a
    dataclass it is `told_fields`. Raises `InputError` that names `field`, and where in it, for anything else.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(f"{field}[{place}]", item) for place, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: describe(f"{field}[{key!r}]", item) for key, item in value.items()}
    if isinstance(value, Tensor):
        return {"tensor": _digest(value), "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, type | FunctionType) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "class": describe(field, type(value)),
            **{name: describe(f"{field}.{name}", item) for name, item in told_fields(value).items()},
        }
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": describe(field, value.__self__)}
    if isinstance(value, partial):
        return {
            "function": describe(field, value.func),
            "arguments": describe(field, value.args),
            "keywords": describe(field, value.keywords),
        }
    hint = "it cannot be told from another one: use a function of a module, a partial of one, or a dataclass"
    raise InputError(field, value, hint)


def told_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, without those of metadata `added` that have their default.

    Such a field came after others had been described, which keep their descriptions.
    """
    return {
        each.name: getattr(value, each.name)
        for each in dataclasses.fields(value)
        if not each.metadata.get("added") or getattr(value, each.name) != each.default
    }


def _digest(tensor: Tensor) -> str:
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(content.numpy().data).hexdigest()
