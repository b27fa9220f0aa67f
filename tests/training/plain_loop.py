"""Minimal training loop on one device, which `train` must match bit for bit."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trialogue.randomness import derive_seed
from trialogue.training import TrainingConfig, next_token_loss


def adamw(parameters: Sequence[Tensor], config: TrainingConfig) -> torch.optim.Optimizer:
    decayed = [parameter for parameter in parameters if parameter.ndim >= 2]
    others = [parameter for parameter in parameters if parameter.ndim < 2]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.beta_1, config.beta_2),
        fused=True,
    )


class Plain:
    """Weights, averaged weights and losses after every training step of a copy of `model`."""

    def __init__(
        self,
        model: nn.Module,
        batches: Callable[[int], Tensor],
        config: TrainingConfig,
        loss: Callable[..., Tensor] = next_token_loss,
        optimizer: Callable[..., Any] = adamw,
    ) -> None:
        model = copy.deepcopy(model).train()
        parameters = list(model.parameters())
        moved = optimizer(parameters, config)
        self.weights = [[parameter.detach().clone() for parameter in parameters]]
        self.averages = [self.weights[0]]
        self.losses: list[Tensor] = []
        with torch.random.fork_rng([]):
            for step in range(config.steps):
                batch = batches(step)
                torch.default_generator.manual_seed(derive_seed(config.seed, "training", step, 0))
                value = loss(model, batch)
                value.backward()
                if config.gradient_clip is not None:
                    nn.utils.clip_grad_norm_(parameters, config.gradient_clip)
                for group in moved.param_groups:
                    group["lr"] = config.learning_rate_at(step)
                moved.step()
                moved.zero_grad(set_to_none=True)
                self.losses.append(value.detach())
                self.weights.append([parameter.detach().clone() for parameter in parameters])
                share = 1 - config.ema_decay_at(step)
                pairs = zip(self.averages[-1], self.weights[-1], strict=True)
                self.averages.append([average.lerp(weight, share) for average, weight in pairs])

    def equals(self, losses: Tensor, model: nn.Module, averaged: bool = False) -> bool:
        """Return whether a training has exactly these losses and final weights."""
        last = (self.averages if averaged else self.weights)[-1]
        same = all(torch.equal(a, b) for a, b in zip(last, model.parameters(), strict=True))
        return same and torch.equal(torch.stack(self.losses), losses)
