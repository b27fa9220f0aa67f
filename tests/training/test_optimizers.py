import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from test_loop import RECIPE, batches, killed_before, network, noisy_loss, results_differ
from torch import Tensor

from refusals import expect_error
from training.plain_loop import Plain, adamw
from trialogue.errors import InputError
from trialogue.training import OptimizerFactory, TrainingConfig, TrainingResult, train

CONFIG = dataclasses.replace(RECIPE, bf16=False, learning_rate=5e-2)


def grouped(
    optimizer: Callable[..., torch.optim.Optimizer], parameters: Sequence[Tensor], config: TrainingConfig
) -> torch.optim.Optimizer:
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2]},
    ]
    return optimizer(groups, lr=config.learning_rate, weight_decay=0.0)


class Both:
    """Reference that runs Muon for the matrices of blocks and AdamW for all other parameters."""

    def __init__(self, parameters: Sequence[Tensor], config: TrainingConfig) -> None:
        named = list(zip(dict(network().named_parameters()), parameters, strict=True))
        hidden = [p for name, p in named if name.startswith("blocks.") and p.ndim == 2]
        others = [p for name, p in named if not (name.startswith("blocks.") and p.ndim == 2)]
        rate, decay = config.learning_rate, config.weight_decay
        muon = torch.optim.Muon(hidden, rate, decay, adjust_lr_fn="match_rms_adamw")
        self._parts = (muon, adamw(others, config))
        self.param_groups = [group for part in self._parts for group in part.param_groups]

    def step(self) -> None:
        for part in self._parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self._parts:
            part.zero_grad(set_to_none)


NAMED: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "adamw": ({}, adamw),
    "sgd": ({}, partial(grouped, torch.optim.SGD)),
    "momentum": (
        {"optimizer": "sgd", "momentum": 0.9},
        partial(grouped, partial(torch.optim.SGD, momentum=0.9)),
    ),
    "adafactor": ({}, partial(grouped, torch.optim.Adafactor)),
    "muon": ({}, Both),
}


class Counting(torch.optim.Optimizer):
    """Optimizer whose state has numbers instead of tensors: a count per parameter and a factor per group."""

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__(parameters, {"lr": 1e-2, "factor": 1.0})

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["factor"] *= 1.1
            for parameter in group["params"]:
                state = self.state[parameter]
                state["count"] = state.get("count", 0) + 1
                if parameter.grad is not None:
                    parameter -= group["lr"] * group["factor"] / state["count"] * parameter.grad


class Secretive(Counting):
    def step(self, closure: object = None) -> None:
        super().step()
        for state in self.state.values():
            state["secret"] = []


def run(
    config: TrainingConfig = CONFIG,
    folder: Path | None = None,
    optimizer: OptimizerFactory | None = None,
    batches: Callable[[int], Tensor] = batches,
) -> TrainingResult:
    return train(
        network(),
        batches,
        config,
        loss=noisy_loss,
        progress=False,
        checkpoint_dir=folder,
        optimizer=optimizer,
    )


@pytest.mark.parametrize("name", NAMED)
def test_named_optimizer_matches_torch(name):
    fields, optimizer = NAMED[name]
    config = dataclasses.replace(CONFIG, **(fields or {"optimizer": name}))
    result = run(config)
    assert Plain(network(), batches, config, noisy_loss, optimizer).equals(
        result.losses, result.model, averaged=True
    )
    others = [other for key, (_, other) in NAMED.items() if key != name]
    for other in others:
        assert not Plain(network(), batches, config, noisy_loss, other).equals(
            result.losses, result.model, averaged=True
        )


OWN: dict[str, OptimizerFactory] = {
    "nadam": partial(torch.optim.NAdam, lr=1e-2),
    "groups": lambda parameters: torch.optim.SGD(
        [{"params": parameters[:2], "lr": 0.3}, {"params": parameters[2:]}], lr=0.02, momentum=0.5
    ),
    "counting": Counting,
}


@pytest.mark.parametrize("name", [*NAMED, *OWN])
def test_every_optimizer_resumes_bit_for_bit(name, tmp_path):
    fields = NAMED[name][0] or {"optimizer": name} if name in NAMED else {}
    config = dataclasses.replace(CONFIG, **fields)
    whole = run(config, None, OWN.get(name))
    with pytest.raises(SystemExit):
        run(config, tmp_path, OWN.get(name), killed_before(10))
    resumed = run(config, tmp_path, OWN.get(name))
    assert resumed.first_step == 9
    assert not results_differ(whole, resumed)


def test_parameter_groups_have_separate_peak_rates():
    seen: list[list[float]] = []

    class Seen(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            seen.append([group["lr"] for group in self.param_groups])
            super().step()

    def factory(parameters: list[Tensor]) -> torch.optim.Optimizer:
        return Seen([{"params": parameters[:1], "lr": 0.3}, {"params": parameters[1:]}], lr=0.02)

    run(optimizer=factory)
    for step, (first, second) in enumerate(seen):
        share = CONFIG.learning_rate_at(step, 1.0)
        assert first == pytest.approx(0.3 * share)
        assert second == pytest.approx(0.02 * share)


def test_checkpoint_of_another_optimizer_is_rejected(tmp_path):
    run(CONFIG, tmp_path)
    with pytest.raises(InputError, match="optimizer='adamw', this run has 'sgd'"):
        run(dataclasses.replace(CONFIG, optimizer="sgd"), tmp_path)
    expect_error("optimizer=", run, CONFIG, tmp_path, partial(torch.optim.AdamW, lr=CONFIG.learning_rate))
    run(CONFIG, tmp_path / "own", partial(torch.optim.SGD, lr=0.1, momentum=0.5))
    expect_error("optimizer=", run, CONFIG, tmp_path / "own", partial(torch.optim.SGD, lr=0.1, momentum=0.6))


def test_unusable_optimizer_is_rejected(tmp_path):
    factories: list[tuple[Any, str]] = [
        (lambda parameters: None, "torch.optim.Optimizer"),
        (lambda _: torch.optim.SGD([torch.zeros(2, requires_grad=True)]), "contains other tensors"),
        (lambda parameters: torch.optim.SGD([{"params": parameters, "lr": None}]), "learning rate"),
        (Secretive, "'secret' is a list"),
    ]
    for number, (factory, words) in enumerate(factories):
        expect_error(words, run, CONFIG, tmp_path / str(number), factory)
