"""Descriptions of values and functions as JSON, from which the hash of a training recipe is computed."""

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
    """Describe a value as JSON, such that equal values have equal descriptions.

    A tensor is described by a hash of its content, a function by its name, and a dataclass by its fields.

    Args:
        field: Name of the value in error messages.
        value: A number, string, tensor, dataclass, class, function of a module, `functools.partial` or method
            of these, or a sequence or mapping of these.

    Raises:
        InputError: If `value` or a part of it has no description, for example a lambda.
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
            **{name: describe(f"{field}.{name}", item) for name, item in described_fields(value).items()},
        }
    if isinstance(value, MethodType):
        return {"method": value.__name__, "of": describe(field, value.__self__)}
    if isinstance(value, partial):
        return {
            "function": describe(field, value.func),
            "arguments": describe(field, value.args),
            "keywords": describe(field, value.keywords),
        }
    hint = "it has no unique description: use a module-level function, a functools.partial, or a dataclass"
    raise InputError(field, value, hint)


def described_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that belong to its description, by name.

    Fields with `added` in their metadata are left out if they have their default value, so that adding a
    field does not change existing descriptions.
    """
    return {
        each.name: getattr(value, each.name)
        for each in dataclasses.fields(value)
        if not each.metadata.get("added") or getattr(value, each.name) != each.default
    }


def _digest(tensor: Tensor) -> str:
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(content.numpy().data).hexdigest()
