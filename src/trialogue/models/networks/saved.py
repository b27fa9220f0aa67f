"""Save and load networks as safetensors files, with the name and config of the network as JSON metadata.

`trialogue.models.networks.text_network` reads folders with such a file and a tokenizer.
"""

import dataclasses
import json
from os import PathLike
from pathlib import Path
from typing import Any, overload

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.networks.registry import NetworkT, get_class_registration, get_registration
from trialogue.tensor_files import read_tensors, write_tensors

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
_KIND = "trialogue network 1"
_MISMATCH = "weights and config do not agree; write the file with save_model"


def save_model(model: nn.Module, path: str | PathLike[str]) -> Path:
    """Write the weights, name and config of a network to a safetensors file, atomically.

    Args:
        model: Network of a class that was registered with `register_network`.
        path: Path of the file.

    Returns:
        Path of the file.

    Raises:
        InputError: If the class is not registered, if JSON cannot represent the config, or if the file cannot be
            written.
    """
    registration = get_class_registration(type(model))
    config: Any = model.config
    fields = dataclasses.asdict(config)
    if registration.config(**_lists_to_tuples(json.loads(json.dumps(fields, default=repr)))) != config:
        raise InputError("config", config, "use only numbers, strings and tuples of these")
    metadata = {"network": registration.name, "config": fields}
    return write_tensors(path, _KIND, _stored_tensors(model), metadata)


@overload
def load_model(path: str | PathLike[str], *, device: torch.device | str = "cpu") -> nn.Module: ...


@overload
def load_model(
    path: str | PathLike[str], network: type[NetworkT], *, device: torch.device | str = "cpu"
) -> NetworkT: ...


def load_model(
    path: str | PathLike[str], network: type[nn.Module] = nn.Module, *, device: torch.device | str = "cpu"
) -> nn.Module:
    """Load a network written by `save_model`, in eval mode.

    Args:
        path: Path of the file.
        network: Expected class of the network. Any registered class by default.
        device: Device of the network.

    Raises:
        InputError: If the file does not exist or is damaged, or if the network is not registered or of another class.
    """
    tensors, metadata = read_tensors(path, _KIND, "write it again with save_model")
    registration = get_registration(metadata["network"])
    if not issubclass(registration.network, network):
        hint = f"it contains the network {registration.name!r}, not a {network.__name__}; use another file"
        raise InputError("path", str(path), hint)
    try:
        model = registration.network(registration.config(**_lists_to_tuples(metadata["config"])))
    except (KeyError, TypeError) as error:
        raise InputError("path", str(path), _MISMATCH) from error
    expected = _stored_tensors(model)
    if {name: tensor.shape for name, tensor in expected.items()} != {
        name: tensor.shape for name, tensor in tensors.items()
    }:
        raise InputError("path", str(path), _MISMATCH)
    for name, tensor in expected.items():
        tensor.data = tensors[name].to(device)
    return model.to(device).eval()


def contains_network(name: str | PathLike[str]) -> bool:
    """Return whether a folder contains a network and its tokenizer, but no config of Hugging Face."""
    folder = Path(name)
    has = (folder / WEIGHTS).is_file() and (folder / TOKENIZER).is_file()
    return has and not (folder / "config.json").exists()


def _stored_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers. A tensor with two names is included once."""
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name: tensor for name, tensor in tensors.items() if name in model.state_dict()}


def _lists_to_tuples(value: Any) -> Any:
    """Convert lists in JSON data back to tuples."""
    if isinstance(value, list):
        return tuple(map(_lists_to_tuples, value))
    if isinstance(value, dict):
        return {key: _lists_to_tuples(item) for key, item in value.items()}
    return value
