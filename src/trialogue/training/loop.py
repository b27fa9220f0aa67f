"""The training loop: AdamW, schedules, averaged weights, several devices, and runs that survive being killed."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from tqdm import tqdm

from trialogue.errors import InputError
from trialogue.randomness import seed_of
from trialogue.training.config import TrainingConfig
from trialogue.training.objectives import next_token_loss
from trialogue.training.training_state import TrainingState, restore_training, save_training

Batch = Tensor | tuple[Tensor, ...]


class TrainingResult(NamedTuple):
    """What `train` returns. Speed is that of this call, whose first step is `first_step`; 0 if nothing was left."""

    model: nn.Module  # in eval mode, with the averaged weights where there are any
    losses: Tensor  # (steps,) float32
    first_step: int
    tokens_per_second: float


def train(
    model: nn.Module,
    batches: Callable[[int], Batch],
    config: TrainingConfig,
    *,
    checkpoint_dir: str | PathLike[str] | None = None,
    tensorboard_dir: str | PathLike[str] | None = None,
    progress: bool = True,
    loss: Callable[..., Tensor] = next_token_loss,
) -> TrainingResult:
    """Train `model` in place on `loss(model, *batch)`, resuming from `checkpoint_dir` where a run was cut short.

    `batches(step)` gives tokens (batch_size, L), or a tuple of tensors with that many rows; it must be a function of
    the step alone, so that a resumed run follows the same trajectory. Under `accelerate launch` each process takes
    its share of every batch. Ctrl-C finishes the step, saves a checkpoint and raises `KeyboardInterrupt`. Raises
    `InputError` for a checkpoint that is damaged or of another run, a wrong batch, or a loss that is not finite.
    """
    accelerator = Accelerator()
    if config.batch_size % accelerator.num_processes:
        mend = f"must be a multiple of the {accelerator.num_processes} processes"
        raise InputError("batch_size", config.batch_size, mend)
    device, writer = accelerator.device, _writer(tensorboard_dir if accelerator.is_main_process else None)
    objective = accelerator.prepare(_Objective(model, loss)).train()
    parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
    averages = [parameter.detach().clone() for parameter in parameters] if config.ema != "none" else []
    losses = torch.zeros(config.steps, device=device)
    optimizer = _optimizer(parameters, config)
    state = TrainingState(model, averages, optimizer, losses)
    path = Path(checkpoint_dir) / "training.safetensors" if checkpoint_dir is not None else None
    run = _identity(model, config)
    first = done = restore_training(state, run, path) if path is not None and path.exists() else 0
    bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported() if config.bf16 is None else config.bf16

    def save() -> None:
        if path is not None and accelerator.is_main_process:
            save_training(state, done, run, path)

    generators = [device] if device.type == "cuda" else []  # the caller's are left as they were
    tokens, began, updating = 0, time.perf_counter(), False
    hidden = not (progress and accelerator.is_main_process)
    bar = tqdm(total=config.steps, initial=first, unit="step", disable=hidden or None)
    with bar, torch.random.fork_rng(generators), _deferred_interrupt() as interrupted:
        try:
            while done < config.steps:
                batch = _share(batches(done), config.batch_size, accelerator)
                _seed(config.seed, done, accelerator)
                with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                    value = objective(*batch)
                accelerator.backward(value)
                norm = torch.zeros(())
                if config.gradient_clip is not None:
                    norm = accelerator.clip_grad_norm_(parameters, config.gradient_clip)
                updating = True
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate_at(done)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                if averages:
                    torch._foreach_lerp_(averages, parameters, 1 - config.ema_decay_at(done))
                value = value.detach()
                losses[done] = accelerator.reduce(value, "mean") if accelerator.num_processes > 1 else value
                done, updating = done + 1, False
                tokens += batch[0].numel() * accelerator.num_processes
                bar.update()
                if done % config.log_every == 0 or done == config.steps:
                    speed = tokens / (time.perf_counter() - began)
                    last = _finite(losses[done - 1].item(), done, config)
                    bar.set_postfix({"loss": f"{last:.4f}", "tokens/s": f"{speed:,.0f}"}, refresh=False)
                    if writer is not None:
                        rate = config.learning_rate_at(done - 1)
                        scalars = {"loss": last, "learning_rate": rate, "gradient_norm": norm.item()}
                        for name, scalar in (scalars | {"tokens_per_second": speed}).items():
                            writer.add_scalar(name, scalar, done)
                if interrupted():
                    raise KeyboardInterrupt
                if done % config.checkpoint_every == 0 and done < config.steps:
                    save()
        except KeyboardInterrupt:
            if not updating:
                save()
            raise
        finally:
            if writer is not None:
                writer.close()
    speed = tokens / (time.perf_counter() - began)
    if done > first:
        save()
    with torch.no_grad():
        for parameter, average in zip(parameters, averages, strict=bool(averages)):
            parameter.copy_(average)
    return TrainingResult(model.eval(), losses.cpu(), first, speed)


class _Objective(nn.Module):
    """The loss as a module: what several devices must wrap for gradients to be exchanged."""

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch: Tensor) -> Tensor:
        return self.loss(self.model, *batch)


def _optimizer(parameters: list[Tensor], config: TrainingConfig) -> torch.optim.AdamW:
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, config.learning_rate, (config.beta_1, config.beta_2), fused=True)


def _identity(model: nn.Module, config: TrainingConfig) -> dict[str, Any]:
    """What makes two runs the same trajectory, as far as it can be told without their batches."""
    training = dataclasses.asdict(config)
    del training["checkpoint_every"], training["log_every"]
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    shape = getattr(model, "config", None)
    fields = dataclasses.asdict(shape) if dataclasses.is_dataclass(shape) else {}  # type: ignore[arg-type]
    return {"network": type(model).__name__, **fields, **training, "shapes": shapes}


def _share(batch: Batch, batch_size: int, accelerator: Accelerator) -> tuple[Tensor, ...]:
    """The rows of this process, on its device."""
    tensors = batch if isinstance(batch, tuple) else (batch,)
    for tensor in tensors:
        if len(tensor) != batch_size:
            raise InputError(
                "batches", tuple(tensor.shape), f"every batch needs batch_size={batch_size} rows"
            )
    own = slice(accelerator.process_index, None, accelerator.num_processes)
    return tuple(tensor[own].to(accelerator.device, non_blocking=True) for tensor in tensors)


def _finite(loss: float, step: int, config: TrainingConfig) -> float:
    if not math.isfinite(loss):
        raise InputError(
            "learning_rate", config.learning_rate, f"the loss is {loss} at step {step}; lower it"
        )
    return loss


def _writer(folder: str | PathLike[str] | None) -> Any:
    if folder is None:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        mend = "TensorBoard is not installed: pip install 'trialogue[tensorboard]'"
        raise InputError("tensorboard_dir", str(folder), mend) from error
    return SummaryWriter(str(folder))


def _seed(seed: int, step: int, accelerator: Accelerator) -> None:
    own = seed_of(seed, "training", step, accelerator.process_index)
    torch.default_generator.manual_seed(own)
    if accelerator.device.type == "cuda":
        torch.cuda.manual_seed(own)


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C back until it is asked for, so that no update is cut in two; the second is immediate."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def hold(number: int, frame: object) -> None:
        del number, frame
        requested.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, hold)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
