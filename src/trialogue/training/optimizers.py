"""Optimizers: those that a config names, and one of the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.training.config import TrainingConfig

OptimizerFactory = Callable[[list[Tensor]], torch.optim.Optimizer]
"""Makes an optimizer of the parameters that are to be trained, such as `partial(torch.optim.NAdam, lr=1e-3)`."""


def optimizer_of(
    parameters: list[Tensor], config: TrainingConfig, factory: OptimizerFactory | None = None
) -> torch.optim.Optimizer:
    """The optimizer that `config` names, or what `factory` makes of `parameters`.

    Raises `InputError` where that is no optimizer, moves other parameters, or has no learning rates.
    """
    if factory is None:
        return _named(parameters, config)
    optimizer = factory(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError("optimizer", optimizer, "it must make a torch.optim.Optimizer of parameters")
    name, known = type(optimizer).__name__, {id(parameter) for parameter in parameters}
    if not {id(parameter) for parameter in optimized(optimizer)} <= known:
        raise InputError("optimizer", name, "it moves tensors other than the parameters that it is given")
    if any(group.get("lr") is None for group in optimizer.param_groups):
        raise InputError("optimizer", name, "give it a learning rate: that of a step is a share of it")
    return optimizer


def _named(parameters: list[Tensor], config: TrainingConfig) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    rate = config.learning_rate
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, rate, config.momentum)
    if config.optimizer == "adafactor":
        return torch.optim.Adafactor(groups, rate)
    return torch.optim.AdamW(groups, rate, (config.beta_1, config.beta_2), fused=True)


def optimized(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The parameters of `optimizer`, in the order in which it numbers them."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def described(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The class of `optimizer` and the settings of its groups, as JSON holds them."""
    groups = [group | {"params": len(group["params"])} for group in optimizer.param_groups]
    description = {"class": type(optimizer).__name__, "groups": groups}
    plain: dict[str, Any] = json.loads(json.dumps(description, default=repr))
    return plain
