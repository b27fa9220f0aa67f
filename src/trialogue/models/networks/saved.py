"""Networks on disk: safetensors with the network's name and config as JSON, written whole or not at all.

A folder with such a file and a tokenizer holds a network of texts: see `trialogue.models.networks.text_network`.
"""

import dataclasses
import json
from os import PathLike
from pathlib import Path
from typing import Any, overload

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.networks.registry import NetworkT, registered, registration_of
from trialogue.tensor_files import read_tensors, write_tensors

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
_KIND = "trialogue network 1"
_DISAGREE = "weights and config do not agree; write it with save_model"


def save_model(model: nn.Module, path: str | PathLike[str]) -> Path:
    """Write weights, name and config of `model` to the safetensors file `path`.

    Raises `InputError` where its class is not registered (`register_network`), its config does not come back from
    JSON as it was, or the file cannot be written.
    """
    registration = registration_of(type(model))
    config: Any = model.config
    fields = dataclasses.asdict(config)
    if registration.config(**_tuples(json.loads(json.dumps(fields, default=repr)))) != config:
        raise InputError("config", config, "it must hold numbers, strings and tuples of these alone")
    metadata = {"network": registration.name, "config": fields}
    return write_tensors(path, _KIND, _held_tensors(model), metadata)


@overload
def load_model(path: str | PathLike[str], *, device: torch.device | str = "cpu") -> nn.Module: ...


@overload
def load_model(
    path: str | PathLike[str], network: type[NetworkT], *, device: torch.device | str = "cpu"
) -> NetworkT: ...


def load_model(
    path: str | PathLike[str], network: type[nn.Module] = nn.Module, *, device: torch.device | str = "cpu"
) -> nn.Module:
    """Read the network that `save_model` wrote, in eval mode; the file says which one it is.

    Raises `InputError` where the file is missing or damaged, or holds one that is not registered, or no `network`.
    """
    tensors, metadata = read_tensors(path, _KIND, "write it again with save_model")
    registration = registered(metadata["network"])
    if not issubclass(registration.network, network):
        hint = f"it holds the network {registration.name!r}, not a {network.__name__}: give another file"
        raise InputError("path", str(path), hint)
    try:
        model = registration.network(registration.config(**_tuples(metadata["config"])))
    except (KeyError, TypeError) as error:
        raise InputError("path", str(path), _DISAGREE) from error
    held = _held_tensors(model)
    if {name: tensor.shape for name, tensor in held.items()} != {
        name: tensor.shape for name, tensor in tensors.items()
    }:
        raise InputError("path", str(path), _DISAGREE)
    for name, tensor in held.items():
        tensor.data = tensors[name].to(device)
    return model.to(device).eval()


def holds_network(name: str | PathLike[str]) -> bool:
    """Whether the folder `name` is one of a network and its tokenizer: one of Hugging Face has a config beside them."""
    folder = Path(name)
    has = (folder / WEIGHTS).is_file() and (folder / TOKENIZER).is_file()
    return has and not (folder / "config.json").exists()


def _held_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers; one that two names share comes once."""
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: tensor for name, tensor in tensors.items() if name in model.state_dict()}


def _tuples(value: Any) -> Any:
    """`value` with the lists that JSON makes of tuples turned back."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value
