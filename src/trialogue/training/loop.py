"""The training loop: schedules, averaged weights, observers, several devices, and runs that survive being killed."""

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
from trialogue.randomness import seed_of
from trialogue.training.config import TrainingConfig
from trialogue.training.description import told_fields
from trialogue.training.objectives import next_token_loss
from trialogue.training.observers import Observer, StoppingRule, Update
from trialogue.training.optimizers import OptimizerFactory, described, optimizer_of
from trialogue.training.running.allocation import kept_memory
from trialogue.training.running.interrupts import deferred_interrupt
from trialogue.training.running.processes import processes
from trialogue.training.running.progress import Progress
from trialogue.training.running.training_state import TrainingState, restore_training, save_training
from trialogue.validation import InstanceOf, validated

Batch = Tensor | tuple[Tensor, ...]


class TrainingResult(NamedTuple):
    """What `train` returns. Speed is that of this call, whose first step is `first_step`; 0 if nothing was left."""

    model: nn.Module  # in eval mode, with the averaged weights where there are any
    losses: Tensor  # (steps,) float32, of those steps that were done
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
    """Train `model` in place on `loss(model, *batch)`, resuming from `checkpoint_dir` where a run was cut short.

    `batches(step)` gives tokens (batch_size, L), or a tuple of tensors with that many rows; it must be a function of
    the step alone, so that a resumed run follows the same trajectory. Ctrl-C finishes the step, saves a checkpoint and
    raises `KeyboardInterrupt`.

    Under `accelerate launch` or torchrun each process takes every so many-th row of each batch, and gradients and
    losses are means over processes: those of the whole batch, up to rounding, where `loss` is a mean over as many terms
    in each share. What a loss draws at random, such as dropout, is drawn in each process from a stream of its own. Only
    the main process writes files.

    `optimizer` makes one of the parameters, in place of the one that `config` names; each of its groups keeps its own
    learning rate as the largest of the schedule. `observer`, one or several, is told of the updates that it wants,
    in the main process. `until` ends the training at the first update at which it says so, and `config.steps` at the
    latest; every process asks it.

    Raises `InputError` for a checkpoint that is damaged or of another run, a wrong batch, an optimizer that cannot be
    used, or a loss that is not finite.
    """
    processes()
    accelerator = Accelerator()
    if config.batch_size % accelerator.num_processes:
        hint = f"must be a multiple of the {accelerator.num_processes} processes"
        raise InputError("batch_size", config.batch_size, hint)
    device, main = accelerator.device, accelerator.is_main_process
    several = accelerator.num_processes > 1
    objective = accelerator.prepare(_Objective(model, loss)).train()
    parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
    averages = [parameter.detach().clone() for parameter in parameters] if config.ema != "none" else []
    losses = torch.zeros(config.steps, device=device)
    torch_optimizer = optimizer_of(model, parameters, config, optimizer)
    peaks = [float(group["lr"]) for group in torch_optimizer.param_groups]
    state = TrainingState(model, averages, torch_optimizer, losses)
    path = Path(checkpoint_dir) / "training.safetensors" if checkpoint_dir is not None else None
    run = _identity(model, config) | ({} if optimizer is None else {"optimizer": described(torch_optimizer)})
    first = done = restore_training(state, run, path) if path is not None and path.exists() else 0
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported() if config.bf16 is None else config.bf16
    observers = [observer] if isinstance(observer, Observer) else list(observer)

    def save() -> None:
        if path is not None and main:
            save_training(state, done, run, path)

    def observe(told: Sequence[Observer]) -> bool:
        """Tell the observers; whether `until` ends the training here."""
        told = [each for each in told if main and each.wants(done)]
        asked = until if until is not None and done and until.wants(done) else None
        if not told and asked is None:
            return False
        last = losses[done - 1].clone() if done else losses.new_tensor(math.nan)
        rate = float(torch_optimizer.param_groups[0]["lr"]) if done else 0.0
        with _as_returned(model, parameters, averages):
            update = Update(done, model, last, rate)
            ended = asked is not None and asked.reached(update)
            for each in told:
                each.updated(update)
        objective.train()
        torch_optimizer.zero_grad(set_to_none=True)
        return ended

    generators = [device] if device.type == "cuda" else []  # the caller's are left as they were
    shown = Progress(first, config.steps, progress and main, tensorboard_dir if main else None)
    memory: AbstractContextManager[object] = kept_memory() if device.type == "cpu" else nullcontext()
    with shown, memory, torch.random.fork_rng(generators), deferred_interrupt() as interrupted:
        whole = True  # whether the state is one between two steps, which may be saved
        try:
            # A resumed run tells of no step before it; it may have been cut short right after its last one.
            ended = observe([] if done else observers)
            while done < config.steps and not ended:
                batch = _share(batches(done), config.batch_size, accelerator)
                _seed(config.seed, done, accelerator)
                with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                    value = objective(*batch)
                accelerator.backward(value)
                norm = torch.zeros(())
                if config.gradient_clip is not None:
                    norm = accelerator.clip_grad_norm_(parameters, config.gradient_clip)
                whole = False
                for group, peak in zip(torch_optimizer.param_groups, peaks, strict=True):
                    group["lr"] = config.learning_rate_at(done, peak)
                torch_optimizer.step()
                torch_optimizer.zero_grad(set_to_none=True)
                if averages:
                    torch._foreach_lerp_(averages, parameters, 1 - config.ema_decay_at(done))
                value = value.detach()
                stopped = False
                if several:
                    # A Ctrl-C reaches processes in different steps: all end with that in which the first is asked.
                    told = torch.stack([value.float(), value.new_tensor(interrupted(), dtype=torch.float32)])
                    value, asked = accelerator.reduce(told, "mean")
                    stopped = bool(asked)
                losses[done] = value
                done += 1
                # A step counts as done when it has been told of.
                ended = observe(observers)
                whole = True
                shown.stepped(batch[0].numel() * accelerator.num_processes)
                if done % config.log_every == 0 or done == config.steps or ended:
                    last = _finite(losses[done - 1].item(), done, config)
                    shown.show(done, last, float(torch_optimizer.param_groups[0]["lr"]), norm)
                if stopped or (not several and interrupted()):
                    raise KeyboardInterrupt
                if done % config.checkpoint_every == 0 and done < config.steps:
                    save()
        except KeyboardInterrupt:
            if whole:
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
def _as_returned(
    model: nn.Module, parameters: Sequence[Tensor], averages: Sequence[Tensor]
) -> Iterator[None]:
    """`model` as training would return it: in eval mode, with the averaged weights where there are any."""
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
    """The loss as a module: what several devices must wrap for gradients to be exchanged."""

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch: Tensor) -> Tensor:
        return self.loss(self.model, *batch)


def _identity(model: nn.Module, config: TrainingConfig) -> dict[str, Any]:
    """What makes two runs the same trajectory, as far as it can be told without their batches."""
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    shape = getattr(model, "config", None)  # of a module of any class, registered or not
    of_network = {}
    if dataclasses.is_dataclass(shape) and not isinstance(shape, type):
        told = told_fields(shape)
        of_network = {
            f"network.{name}": value for name, value in dataclasses.asdict(shape).items() if name in told
        }
    return {"network": type(model).__name__, **of_network, **config.trajectory(), "shapes": shapes}


def _share(batch: Batch, batch_size: int, accelerator: Accelerator) -> tuple[Tensor, ...]:
    """The rows of this process, on its device."""
    tensors = batch if isinstance(batch, tuple) else (batch,)
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or not tensor.ndim:
            raise InputError("batches", tensor, "return a tensor, or a tuple of tensors, for every step")
        if len(tensor) != batch_size:
            raise InputError(
                "batches", tuple(tensor.shape), f"every batch needs batch_size={batch_size} rows"
            )
    rows = slice(accelerator.process_index, None, accelerator.num_processes)
    return tuple(tensor[rows].to(accelerator.device, non_blocking=True) for tensor in tensors)


def _finite(loss: float, step: int, config: TrainingConfig) -> float:
    if not math.isfinite(loss):
        raise InputError(
            "learning_rate", config.learning_rate, f"the loss is {loss} at step {step}; lower it"
        )
    return loss


def _seed(seed: int, step: int, accelerator: Accelerator) -> None:
    of_step = seed_of(seed, "training", step, accelerator.process_index)
    torch.default_generator.manual_seed(of_step)
    if accelerator.device.type == "cuda":
        torch.cuda.manual_seed(of_step)
