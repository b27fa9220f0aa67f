import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from test_loop import RECIPE, batches, killed_before, network, noisy_loss, results_differ, run
from torch import Tensor

from refusals import expect_error
from training.plain_loop import Plain
from trialogue.models import Transformer
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.randomness import generator
from trialogue.training import (
    Checkpoints,
    Displacement,
    Observer,
    Scheduled,
    StoppingRule,
    TrainingConfig,
    TrainingResult,
    Update,
    log_steps,
    next_token_loss,
    train,
)


class Following(Observer):
    """Observer that uses gradients and random numbers, and records the updates."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float, float, list[Tensor]]] = []

    def updated(self, update: Update) -> None:
        assert not update.model.training
        assert not torch.is_grad_enabled()
        torch.rand(3)
        with torch.enable_grad():
            noisy_loss(update.model, batches(100)).backward()  # type: ignore[arg-type]
        update.model.train()
        weights = [parameter.detach().clone() for parameter in update.model.parameters()]
        self.seen.append((update.step, float(update.loss), update.learning_rate, weights))


@pytest.mark.parametrize("ema", ["none", "power"])
def test_observer_is_called_every_step_and_changes_nothing(ema):
    config = TrainingConfig(**vars(RECIPE) | {"ema": ema, "bf16": False})  # type: ignore[arg-type]
    following, others = Following(), list[int]()
    observers = [following, Scheduled((0, 3, 20), lambda update: others.append(update.step))]
    result = train(network(), batches, config, loss=noisy_loss, progress=False, observer=observers)
    plain = Plain(network(), batches, config, noisy_loss)
    assert plain.equals(result.losses, result.model, averaged=ema != "none")
    assert others == [0, 3, 20]
    assert [step for step, *_ in following.seen] == list(range(21))
    returned = plain.weights if ema == "none" else plain.averages
    for (step, loss, rate, weights), expected in zip(following.seen, returned, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))
        if step:
            assert loss == float(plain.losses[step - 1])
            assert rate == config.learning_rate_at(step - 1)
        else:
            assert math.isnan(loss)
            assert rate == 0


def test_interrupted_observer_restores_the_trained_weights(tmp_path):
    """Interrupt the training while the averaged weights are in use. The step is then repeated."""

    def interrupt(update: Update) -> None:
        raise KeyboardInterrupt

    def train_with(observer: Observer) -> TrainingResult:
        settings = {"loss": noisy_loss, "progress": False, "checkpoint_dir": tmp_path}
        return train(network(), batches, RECIPE, observer=observer, **settings)  # type: ignore[arg-type]

    with pytest.raises(KeyboardInterrupt):
        train_with(Scheduled((10,), interrupt))
    seen: list[int] = []
    resumed = train_with(Scheduled(range(21), lambda update: seen.append(update.step)))
    assert seen == list(range(10, 21))
    assert not results_differ(run(), resumed)


@dataclass(frozen=True)
class LossBelow(StoppingRule):
    """Rule that ends the training when the averaged weights reach a loss, checked every other step."""

    loss: float

    def is_due(self, step: int) -> bool:
        return step % 2 == 0

    def reached(self, update: Update) -> bool:
        assert not update.model.training
        assert update.step > 0
        torch.rand(3)
        return float(next_token_loss(update.model, batches(100))) < self.loss  # type: ignore[arg-type]


def test_stopping_rule_ends_training_at_the_weights_that_reach_it(tmp_path):
    plain = Plain(network(), batches, RECIPE, noisy_loss)
    evaluated, losses = network(), list[float]()
    for weights in plain.averages:
        with torch.no_grad():
            for parameter, weight in zip(evaluated.parameters(), weights, strict=True):
                parameter.copy_(weight)
            losses.append(float(next_token_loss(evaluated, batches(100))))
    rule = LossBelow((losses[10] + losses[12]) / 2)
    end = next(step for step in range(2, 21, 2) if losses[step] < rule.loss)
    assert 2 < end < 20

    def train_until(
        folder: Path | None = None, batches: Any = batches, until: StoppingRule = rule
    ) -> TrainingResult:
        seen: list[int] = []
        result = train(
            network(),
            batches,
            RECIPE,
            loss=noisy_loss,
            progress=False,
            checkpoint_dir=folder,
            until=until,
            observer=(Scheduled(range(21), lambda update: seen.append(update.step)), Following()),
        )
        assert seen == list(range(result.first_step + (result.first_step > 0), len(result.losses) + 1))
        return result

    result = train_until()
    assert torch.equal(result.losses, torch.stack(plain.losses[:end]))
    pairs = zip(result.model.parameters(), plain.averages[end], strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert len(train_until(until=LossBelow(0.0)).losses) == 20
    # A killed run ends at the same step, and a completed run takes no further step.
    with pytest.raises(SystemExit):
        train_until(tmp_path, killed_before(end - 1))
    assert not results_differ(result, train_until(tmp_path))
    again = train_until(tmp_path, killed_before(end))
    assert again.first_step == end
    assert not results_differ(result, again)


def test_log_steps_are_spaced_logarithmically():
    assert log_steps(1000, 4) == (1, 10, 100, 1000)
    assert log_steps(16, 5) == (1, 2, 4, 8, 16)
    assert log_steps(8, 100) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert log_steps(77, 1) == (77,)
    for last in (1, 2, 997, 10**6):
        for count in (1, 2, 7, 40):
            steps = log_steps(last, count)
            assert len(steps) <= count
            assert (steps[0] >= 1, steps[-1]) == (True, last)


def test_checkpoints_match_the_networks_that_training_returns(tmp_path):
    kept = Checkpoints(tmp_path / "kept", (0, 1, 7, 20))
    result = train(network(), batches, RECIPE, loss=noisy_loss, progress=False, observer=kept)
    plain = Plain(network(), batches, RECIPE, noisy_loss)
    assert Checkpoints(tmp_path / "kept").steps() == (0, 1, 7, 20)
    for step in kept.steps():
        back = kept.load(step, Transformer)
        pairs = zip(back.parameters(), plain.averages[step], strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
        assert not back.training
    assert torch.equal(kept.load(20, Transformer).head.weight, result.model.get_parameter("head.weight"))
    expect_error(r"step=3: .*0, 1, 7, 20", kept.load, 3, Transformer)
    expect_error("none", Checkpoints(tmp_path).load, 0, Transformer)


def factored() -> FactoredAttention:
    return FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2, rank=2), seed=1)


def test_displacements_match_equation_6():
    net = factored()
    watching = Displacement(net, (0, 2), FactoredAttention.matrices)
    start = [[matrix.detach().clone() for matrix in layer] for layer in net.matrices()]
    watching.updated(Update(0, net, torch.tensor(math.nan), 0.0))
    worst = float(watching.displacements[0].abs().max())
    with torch.no_grad():
        for place, parameter in enumerate(net.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator(0, place)))
    watching.updated(Update(2, net, torch.tensor(1.0), 0.1))
    assert watching.is_due(2)
    assert not watching.is_due(1)
    for layer, matrices in enumerate(net.matrices()):
        (attention, values), (first, second) = (matrix.detach() for matrix in matrices), start[layer]
        expected = (attention - first).square().sum() / 4**2 + (values - second).square().sum() / 3**2
        worst = max(worst, abs(float(watching.displacements[2][layer]) - float(expected)))
    assert worst < 1e-5
