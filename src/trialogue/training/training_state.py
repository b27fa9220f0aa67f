"""The state of a training on disk: what a run that was cut short goes on from."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.training.tensor_files import read_tensors, write_tensors

_KIND = "trialogue training 1"


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
    for slot, parameter in enumerate(_optimized(state.optimizer)):
        for key, tensor in state.optimizer.state[parameter].items():
            tensors[f"optimizer/{slot}/{key}"] = tensor
    return write_tensors(path, _KIND, tensors, {"step": step, "run": run})


def restore_training(state: TrainingState, run: Mapping[str, Any], path: str | PathLike[str]) -> int:
    """Restore what `save_training` wrote into `state`, exactly; return the number of steps it had done.

    Raises `InputError` where the file is damaged or belongs to another run.
    """
    mend = "delete it to start again, or give another checkpoint_dir"
    tensors, metadata = read_tensors(path, _KIND, mend)
    saved, wanted = metadata["run"], json.loads(json.dumps(run))
    for field in wanted | saved:
        if saved.get(field) != wanted.get(field):
            text = f"it has {field}={saved.get(field)!r}, this run has {wanted.get(field)!r}: {mend}"
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
        raise InputError("checkpoint", str(path), f"it lacks a part of the state: {mend}") from error
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, slot, key = name.split("/")
            slots.setdefault(int(slot), {})[key] = tensor
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": slots, "param_groups": groups})
    return step


def _named_tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _optimized(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
