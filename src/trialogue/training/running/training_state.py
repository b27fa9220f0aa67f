"""The state of a training on disk: what a run that was cut short goes on from."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.optimizers import optimizer_parameters

_KIND = "trialogue training 2"
_PLAIN = (bool, int, float, str, type(None))


class TrainingState(NamedTuple):
    """All that a step of training changes, by reference: saving reads it, restoring writes into it."""

    model: nn.Module
    averages: Sequence[Tensor]  # one per parameter, or none
    optimizer: torch.optim.Optimizer
    losses: Tensor  # (steps,) float32


def save_training(state: TrainingState, step: int, run: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write the state after `step` steps; `run` is what must be equal for another run to continue it."""
    tensors = {"losses": state.losses[:step]}
    for name, tensor in _named_tensors(state.model).items():
        tensors[f"model/{name}"] = tensor
    for index, average in enumerate(state.averages):
        tensors[f"average/{index}"] = average
    slots: dict[int, dict[str, Any]] = {}
    for slot, parameter in enumerate(optimizer_parameters(state.optimizer)):
        for key, value in state.optimizer.state[parameter].items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{slot}/{key}"] = value
            elif isinstance(value, _PLAIN):
                slots.setdefault(slot, {})[key] = value
            else:
                name = type(state.optimizer).__name__
                hint = f"its {key!r} is a {type(value).__name__}: only tensors and numbers can be saved"
                raise InputError("optimizer", name, hint)
    groups = [
        {key: value for key, value in group.items() if isinstance(value, _PLAIN)}
        for group in state.optimizer.param_groups
    ]
    return write_tensors(path, _KIND, tensors, {"step": step, "run": run, "slots": slots, "groups": groups})


def restore_training(state: TrainingState, run: Mapping[str, Any], path: str | PathLike[str]) -> int:
    """Restore what `save_training` wrote into `state`, exactly; return the number of steps it had done.

    Raises `InputError` where the file is damaged or belongs to another run.
    """
    hint = "delete it to start again, or give another checkpoint_dir"
    tensors, metadata = read_tensors(path, _KIND, hint)
    saved, wanted = metadata["run"], json.loads(json.dumps(run))
    for field in wanted | saved:
        if saved.get(field) != wanted.get(field):
            text = f"it has {field}={saved.get(field)!r}, this run has {wanted.get(field)!r}: {hint}"
            raise InputError("checkpoint", str(path), text)
    try:
        with torch.no_grad():
            for name, tensor in _named_tensors(state.model).items():
                tensor.copy_(tensors[f"model/{name}"])
            for index, average in enumerate(state.averages):
                average.copy_(tensors[f"average/{index}"])
            step = int(metadata["step"])
            state.losses[:step] = tensors["losses"]
    except (KeyError, RuntimeError) as error:
        raise InputError("checkpoint", str(path), f"it lacks a part of the state: {hint}") from error
    slots: dict[int, dict[str, Any]] = {int(slot): values for slot, values in metadata["slots"].items()}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, slot, key = name.split("/")
            slots.setdefault(int(slot), {})[key] = tensor
    groups = state.optimizer.state_dict()["param_groups"]
    for group, values in zip(groups, metadata["groups"], strict=True):
        group.update(values)
    state.optimizer.load_state_dict({"state": slots, "param_groups": groups})
    return step


def _named_tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters()) | dict(model.named_buffers())
