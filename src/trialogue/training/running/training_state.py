"""Files with the state of a training run, from which an interrupted run is resumed."""

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
    """References to everything that a training step changes, such as weights and optimizer state.

    Attributes:
        model: Network that is trained.
        averages: Averaged value of each parameter, or empty without averaging.
        optimizer: Optimizer.
        losses: Loss of each step, (steps,) float32.
    """

    model: nn.Module
    averages: Sequence[Tensor]
    optimizer: torch.optim.Optimizer
    losses: Tensor


def save_training(state: TrainingState, step: int, run: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write the state of a training to a file.

    Args:
        state: State to save.
        step: Number of completed steps.
        run: Properties that another run must share to resume from the file.
        path: Path of the file.

    Raises:
        InputError: If the state of the optimizer has values other than tensors and numbers.
    """
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
                hint = f"{key!r} is a {type(value).__name__}; use an optimizer whose state has only tensors and numbers"
                raise InputError("optimizer", name, hint)
    groups = [
        {key: value for key, value in group.items() if isinstance(value, _PLAIN)}
        for group in state.optimizer.param_groups
    ]
    return write_tensors(path, _KIND, tensors, {"step": step, "run": run, "slots": slots, "groups": groups})


def restore_training(state: TrainingState, run: Mapping[str, Any], path: str | PathLike[str]) -> int:
    """Restore the state of a training from a file written by `save_training`.

    Args:
        state: State whose tensors are overwritten.
        run: Properties of this run, which must equal the stored ones.
        path: Path of the file.

    Returns:
        Number of completed steps.

    Raises:
        InputError: If the file is damaged or belongs to another run.
    """
    hint = "delete it to start again, or use another checkpoint_dir"
    tensors, metadata = read_tensors(path, _KIND, hint)
    saved, wanted = metadata["run"], json.loads(json.dumps(run))
    for field in wanted | saved:
        if saved.get(field) != wanted.get(field):
            text = f"it has {field}={saved.get(field)!r}, this run has {wanted.get(field)!r}; {hint}"
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
        raise InputError("checkpoint", str(path), f"a part of the state is missing; {hint}") from error
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
