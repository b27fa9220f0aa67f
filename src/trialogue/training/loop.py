"""Training loop with schedules, weight averaging, observers, several devices and resumable runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue.training.config import TrainingConfig
from trialogue.training.description import described_fields
from trialogue.training.objectives import next_token_loss
from trialogue.training.observers import Observer, StoppingRule, Update
from trialogue.training.optimizers import OptimizerFactory, describe_optimizer, make_optimizer
from trialogue.training.running.allocation import retain_freed_memory
from trialogue.training.running.interrupts import defer_interrupt
from trialogue.training.running.processes import get_processes
from trialogue.training.running.progress import Progress
from trialogue.training.running.training_state import TrainingState, restore_training, save_training
from trialogue.validation import InstanceOf, validated

Batch = Tensor | tuple[Tensor, ...]


class TrainingResult(NamedTuple):
    """Result of `train`.

    Attributes:
        model: The trained network in eval mode, with averaged weights if averaging is enabled.
        losses: Loss of each completed step, (steps,) float32.
        first_step: First step of this call, greater than 0 if the run was resumed.
        tokens_per_second: Speed of this call, or 0 if no step was left.
    """

    model: nn.Module
    losses: Tensor
    first_step: int
    tokens_per_second: float


@validated
def train(
    model: InstanceOf[nn.Module],
    batches: Callable[[int], Batch],
    config: InstanceOf[TrainingConfig],
    *,
    checkpoint_dir: str | PathLike[str] | None = None,
    tensorboard_dir: str | PathLike[str] | None = None,
    progress: bool = True,
    loss: Callable[..., Tensor] = next_token_loss,
    optimizer: OptimizerFactory | None = None,
    observer: Observer | Sequence[Observer] = (),
    until: StoppingRule | None = None,
) -> TrainingResult:
    """Train `model` in place to minimise `loss(model, *batch)`.

    Ctrl-C finishes the current step, saves a checkpoint and raises `KeyboardInterrupt`.

    Under `accelerate launch` or torchrun, the rows of each batch are split across processes, and losses and
    gradients are averaged. Each process has its own random stream for dropout and other noise. Only the main
    process calls observers and writes files.

    Args:
        model: Network to train.
        batches: Function of the step that returns tokens (batch_size, L), or a tuple of tensors with
            batch_size rows. It must depend on the step alone, so that a resumed run follows the same
            trajectory.
        config: Hyperparameters.
        checkpoint_dir: Folder for checkpoints. An interrupted run is resumed from this folder. None saves
            nothing.
        tensorboard_dir: Folder for TensorBoard logs. None writes no logs.
        progress: Whether to show a progress bar.
        loss: Function of the model and the tensors of a batch that returns a scalar.
        optimizer: Function that builds an optimizer from the parameters, which replaces the optimizer of
            `config`. The learning rate of each parameter group is the peak of its schedule.
        observer: One or several observers, called after updates.
        until: Rule that can end the training before `config.steps` updates. Every process evaluates it.

    Raises:
        InputError: If a checkpoint is damaged or belongs to another run, or a batch has the wrong shape. Also
            if the optimizer cannot be used, or the loss is not finite.
    """
    get_processes()
    accelerator = Accelerator()
    if config.batch_size % accelerator.num_processes:
        hint = f"use a multiple of {accelerator.num_processes}, the number of processes"
        raise InputError("batch_size", config.batch_size, hint)
    device, main = accelerator.device, accelerator.is_main_process
    several = accelerator.num_processes > 1
    objective = accelerator.prepare(_Objective(model, loss)).train()
    parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
    averages = [parameter.detach().clone() for parameter in parameters] if config.ema != "none" else []
    losses = torch.zeros(config.steps, device=device)
    torch_optimizer = make_optimizer(model, parameters, config, optimizer)
    peaks = [float(group["lr"]) for group in torch_optimizer.param_groups]
    state = TrainingState(model, averages, torch_optimizer, losses)
    path = Path(checkpoint_dir) / "training.safetensors" if checkpoint_dir is not None else None
    run = _identity(model, config) | (
        {} if optimizer is None else {"optimizer": describe_optimizer(torch_optimizer)}
    )
    first = done = restore_training(state, run, path) if path is not None and path.exists() else 0
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported() if config.bf16 is None else config.bf16
    observers = [observer] if isinstance(observer, Observer) else list(observer)

    def save() -> None:
        if path is not None and main:
            save_training(state, done, run, path)

    def observe(candidates: Sequence[Observer]) -> bool:
        """Call the observers, and return whether `until` ends the training."""
        called = [each for each in candidates if main and each.is_due(done)]
        rule = until if until is not None and done and until.is_due(done) else None
        if not called and rule is None:
            return False
        last = losses[done - 1].clone() if done else losses.new_tensor(math.nan)
        rate = float(torch_optimizer.param_groups[0]["lr"]) if done else 0.0
        with _evaluation_weights(model, parameters, averages):
            update = Update(done, model, last, rate)
            ended = rule is not None and rule.reached(update)
            for each in called:
                each.updated(update)
        objective.train()
        torch_optimizer.zero_grad(set_to_none=True)
        return ended

    # The random state of the caller is restored after the training.
    generators = [device] if device.type == "cuda" else []
    shown = Progress(first, config.steps, progress and main, tensorboard_dir if main else None)
    memory: AbstractContextManager[object] = retain_freed_memory() if device.type == "cpu" else nullcontext()
    with shown, memory, torch.random.fork_rng(generators), defer_interrupt() as interrupted:
        between_steps = True  # A state can be saved only between two steps.
        try:
            # A resumed run does not repeat the initial observation. It may have stopped right after its last step.
            ended = observe([] if done else observers)
            while done < config.steps and not ended:
                batch = _select_own_rows(batches(done), config.batch_size, accelerator)
                _seed(config.seed, done, accelerator)
                with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                    value = objective(*batch)
                accelerator.backward(value)
                norm = torch.zeros(())
                if config.gradient_clip is not None:
                    norm = accelerator.clip_grad_norm_(parameters, config.gradient_clip)
                between_steps = False
                for group, peak in zip(torch_optimizer.param_groups, peaks, strict=True):
                    group["lr"] = config.learning_rate_at(done, peak)
                torch_optimizer.step()
                torch_optimizer.zero_grad(set_to_none=True)
                if averages:
                    torch._foreach_lerp_(averages, parameters, 1 - config.ema_decay_at(done))
                value = value.detach()
                stopped = False
                if several:
                    # A Ctrl-C reaches processes in different steps, so they agree on the step at which all stop.
                    local = torch.stack([value.float(), value.new_tensor(interrupted(), dtype=torch.float32)])
                    value, any_interrupted = accelerator.reduce(local, "mean")
                    stopped = bool(any_interrupted)
                losses[done] = value
                done += 1
                # A step is complete only after the observers were called.
                ended = observe(observers)
                between_steps = True
                shown.stepped(batch[0].numel() * accelerator.num_processes)
                if done % config.log_every == 0 or done == config.steps or ended:
                    last = _require_finite(losses[done - 1].item(), done, config)
                    shown.show(done, last, float(torch_optimizer.param_groups[0]["lr"]), norm)
                if stopped or (not several and interrupted()):
                    raise KeyboardInterrupt
                if done % config.checkpoint_every == 0 and done < config.steps:
                    save()
        except KeyboardInterrupt:
            if between_steps:
                save()
            raise
    speed = shown.tokens_per_second
    if done > first:
        save()
    with torch.no_grad():
        for parameter, average in zip(parameters, averages, strict=bool(averages)):
            parameter.copy_(average)
    return TrainingResult(model.eval(), losses[:done].cpu(), first, speed)


@contextmanager
def _evaluation_weights(
    model: nn.Module, parameters: Sequence[Tensor], averages: Sequence[Tensor]
) -> Iterator[None]:
    """Context manager that switches `model` to eval mode, with the averaged weights if averaging is enabled."""
    trained = [parameter.detach().clone() for parameter in parameters] if averages else []
    model.eval()
    with torch.no_grad():
        try:
            for parameter, average in zip(parameters, averages, strict=bool(averages)):
                parameter.copy_(average)
            yield
        finally:
            for parameter, weights in zip(parameters, trained, strict=bool(trained)):
                parameter.copy_(weights)


class _Objective(nn.Module):
    """Wrapper of a loss as a module, which distributed training needs to synchronise gradients."""

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch: Tensor) -> Tensor:
        return self.loss(self.model, *batch)


def _identity(model: nn.Module, config: TrainingConfig) -> dict[str, Any]:
    """Return the properties that must be equal to resume a run: the network and the settings, but not the batches."""
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    network_config = getattr(model, "config", None)
    of_network = {}
    if dataclasses.is_dataclass(network_config) and not isinstance(network_config, type):
        names = described_fields(network_config)
        fields = dataclasses.asdict(network_config)
        of_network = {f"network.{name}": value for name, value in fields.items() if name in names}
    return {"network": type(model).__name__, **of_network, **config.trajectory(), "shapes": shapes}


def _select_own_rows(batch: Batch, batch_size: int, accelerator: Accelerator) -> tuple[Tensor, ...]:
    """Return the rows of a batch that this process evaluates, on its device."""
    tensors = batch if isinstance(batch, tuple) else (batch,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or not tensor.ndim:
            raise InputError("batches", tensor, "return a tensor or a tuple of tensors for each step")
        if len(tensor) != batch_size:
            raise InputError(
                "batches", tuple(tensor.shape), f"return batch_size={batch_size} rows for each step"
            )
    rows = slice(accelerator.process_index, None, accelerator.num_processes)
    return tuple(tensor[rows].to(accelerator.device, non_blocking=True) for tensor in tensors)


def _require_finite(loss: float, step: int, config: TrainingConfig) -> float:
    if not math.isfinite(loss):
        raise InputError(
            "learning_rate",
            config.learning_rate,
            f"the loss is {loss} at step {step}; lower the learning rate",
        )
    return loss


def _seed(seed: int, step: int, accelerator: Accelerator) -> None:
    of_step = derive_seed(seed, "training", step, accelerator.process_index)
    torch.default_generator.manual_seed(of_step)
    if accelerator.device.type == "cuda":
        torch.cuda.manual_seed(of_step)
