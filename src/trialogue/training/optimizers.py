"""Optimizers: those that a config names, and one of the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.training.config import TrainingConfig

OptimizerFactory = Callable[[list[Tensor]], torch.optim.Optimizer]
"""Makes an optimizer of the parameters that are to be trained, such as `partial(torch.optim.NAdam, lr=1e-3)`."""


class MuonWithAdamW(torch.optim.Optimizer):
    """Muon (Jordan et al. 2024) for the matrices `hidden`, AdamW for the `others`, as one optimizer.

    Muon orthogonalises the momentum of a matrix by torch's Newton-Schulz steps, in bfloat16, and its updates are scaled
    to be as large as AdamW's are (Liu et al. 2025), so that both take the same learning rate and weight decay.
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
        """One update of all."""
        del closure  # the loop has no use for it
        first = len(self._muon.param_groups)
        for part, groups in (
            (self._muon, self.param_groups[:first]),
            (self._adamw, self.param_groups[first:]),
        ):
            # Loading a state makes other groups and another state than the parts were made with.
            part.param_groups, part.state = groups, self.state
            part.step()


def optimizer_of(
    model: nn.Module,
    parameters: list[Tensor],
    config: TrainingConfig,
    factory: OptimizerFactory | None = None,
) -> torch.optim.Optimizer:
    """The optimizer that `config` names, or what `factory` makes of `parameters`, those of `model` to be trained.

    Raises `InputError` where that is no optimizer, moves other parameters, or has no learning rates.
    """
    if factory is None:
        return _named(model, parameters, config)
    optimizer = factory(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError("optimizer", optimizer, "it must make a torch.optim.Optimizer of parameters")
    name, known = type(optimizer).__name__, {id(parameter) for parameter in parameters}
    if not {id(parameter) for parameter in optimized(optimizer)} <= known:
        raise InputError("optimizer", name, "it moves tensors other than the parameters that it is given")
    if any(group.get("lr") is None for group in optimizer.param_groups):
        raise InputError("optimizer", name, "give it a learning rate: that of a step is a share of it")
    return optimizer


def _named(model: nn.Module, parameters: list[Tensor], config: TrainingConfig) -> torch.optim.Optimizer:
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
    hidden = _hidden(model, parameters) if config.optimizer == "muon" else []
    if not hidden:  # which torch's Muon refuses
        return torch.optim.AdamW(groups, rate, betas, fused=True)
    taken = {id(parameter) for parameter in hidden}
    for group in groups:
        group["params"] = [parameter for parameter in group["params"] if id(parameter) not in taken]
    return MuonWithAdamW(hidden, groups, rate, betas, config.weight_decay)


def _hidden(model: nn.Module, parameters: list[Tensor]) -> list[Tensor]:
    """Those of `parameters` that are matrices between hidden states: no embeddings and no heads."""
    outer = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    outer |= {id(each) for name, each in model.named_parameters() if name.endswith("head.weight")}
    return [each for each in parameters if each.ndim == 2 and id(each) not in outer]


def optimized(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The parameters of `optimizer`, in the order in which it numbers them."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def described(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The class of `optimizer` and the settings of its groups, as JSON holds them."""
    groups = [group | {"params": len(group["params"])} for group in optimizer.param_groups]
    description = {"class": type(optimizer).__name__, "groups": groups}
    plain: dict[str, Any] = json.loads(json.dumps(description, default=repr))
    return plain
