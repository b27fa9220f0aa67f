"""Construction of built-in and user-defined optimizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.training.config import TrainingConfig

OptimizerFactory = Callable[[list[Tensor]], torch.optim.Optimizer]
"""Function that builds an optimizer from a list of parameters, for example `partial(torch.optim.NAdam, lr=1e-3)`."""


class MuonWithAdamW(torch.optim.Optimizer):
    """Optimizer that combines Muon (Jordan et al. 2024) for hidden matrices with AdamW for other parameters.

    Muon orthogonalises the momentum of a matrix with the Newton-Schulz iteration of torch, in bfloat16. Its updates are
    scaled to the size of AdamW updates (Liu et al. 2025), so that both use the same learning rate and weight decay.

    Args:
        hidden: Matrices for Muon.
        others: Parameter groups for AdamW.
        lr: Learning rate.
        betas: Decays of the first and second moment in AdamW.
        weight_decay: Weight decay of the hidden matrices.
    """

    def __init__(
        self,
        hidden: list[Tensor],
        others: list[dict[str, Any]],
        lr: float,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        self._muon: torch.optim.Optimizer = torch.optim.Muon(
            hidden, lr, weight_decay, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw: torch.optim.Optimizer = torch.optim.AdamW(others, lr, betas, fused=True)
        super().__init__([*self._muon.param_groups, *self._adamw.param_groups], {})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Update all parameters. The closure is ignored."""
        del closure
        first = len(self._muon.param_groups)
        for part, groups in (
            (self._muon, self.param_groups[:first]),
            (self._adamw, self.param_groups[first:]),
        ):
            # `load_state_dict` replaces the groups and the state, so they are passed to both optimizers again.
            part.param_groups, part.state = groups, self.state
            part.step()


def make_optimizer(
    model: nn.Module,
    parameters: list[Tensor],
    config: TrainingConfig,
    factory: OptimizerFactory | None = None,
) -> torch.optim.Optimizer:
    """Build the optimizer of a training.

    Args:
        model: Network to train.
        parameters: Trainable parameters of `model`.
        config: Hyperparameters, which select the optimizer if there is no factory.
        factory: Function that builds an optimizer from the parameters.

    Raises:
        InputError: If the factory does not return an optimizer, if the optimizer contains other parameters, or if a
            parameter group has no learning rate.
    """
    if factory is None:
        return _build_optimizer(model, parameters, config)
    optimizer = factory(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError("optimizer", optimizer, "the factory must return a torch.optim.Optimizer")
    name, known = type(optimizer).__name__, {id(parameter) for parameter in parameters}
    if not {id(parameter) for parameter in optimizer_parameters(optimizer)} <= known:
        raise InputError("optimizer", name, "it contains other tensors; use only the given parameters")
    if any(group.get("lr") is None for group in optimizer.param_groups):
        raise InputError("optimizer", name, "set a learning rate, which is the peak of the schedule")
    return optimizer


def _build_optimizer(
    model: nn.Module, parameters: list[Tensor], config: TrainingConfig
) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    rate = config.learning_rate
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, rate, config.momentum)
    if config.optimizer == "adafactor":
        return torch.optim.Adafactor(groups, rate)
    betas = (config.beta_1, config.beta_2)
    hidden = _hidden_matrices(model, parameters) if config.optimizer == "muon" else []
    # The Muon optimizer of torch does not accept an empty list.
    if not hidden:
        return torch.optim.AdamW(groups, rate, betas, fused=True)
    taken = {id(parameter) for parameter in hidden}
    for group in groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in taken]
    return MuonWithAdamW(hidden, groups, rate, betas, config.weight_decay)


def _hidden_matrices(model: nn.Module, parameters: list[Tensor]) -> list[Tensor]:
    """Return the matrices among `parameters` except embeddings and output heads."""
    outer = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    outer |= {id(each) for name, each in model.named_parameters() if name.endswith("head.weight")}
    return [each for each in parameters if each.ndim == 2 and id(each) not in outer]


def optimizer_parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the parameters of `optimizer`, in the order of its state dict."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def describe_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the class of `optimizer` and the settings of its parameter groups as JSON data."""
    groups = [group | {"params": len(group["params"])} for group in optimizer.param_groups]
    description = {"class": type(optimizer).__name__, "groups": groups}
    plain: dict[str, Any] = json.loads(json.dumps(description, default=repr))
    return plain
