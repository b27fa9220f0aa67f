"""Training: bit-for-bit resumption, schedules, logs, and memory that is kept during a run."""

import dataclasses
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from training.plain_loop import Plain
from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.training import TrainingConfig, TrainingResult, loop, next_token_loss, train
from trialogue.training.running import allocation
from trialogue.training.running.allocation import retain_freed_memory

RECIPE = TrainingConfig(
    steps=20, batch_size=8, warmup_steps=5, ema="power", learning_rate=1e-2, checkpoint_every=3, log_every=2
)


def network(**fields: int) -> Transformer:
    shape = {"vocab_size": 3, "layers": 1, "heads": 2, "width": 16, "mlp_width": 32, "max_length": 6}
    return Transformer(TransformerConfig(**(shape | fields)))


def batches(step: int) -> Tensor:
    """Return sequences in which most tokens equal the previous token."""
    repeats = torch.rand(8, 6, generator=generator(step, "repeat")) < 0.8
    tokens = torch.randint(0, 3, (8, 6), generator=generator(step, "tokens"))
    for position in range(1, 6):
        tokens[:, position] = torch.where(repeats[:, position], tokens[:, position - 1], tokens[:, position])
    return tokens


def noisy_loss(model: Transformer, tokens: Tensor) -> Tensor:
    """Return a loss that uses random numbers, as masking does."""
    return next_token_loss(model, torch.where(torch.rand(tokens.shape) < 0.1, 0, tokens))


def run(
    folder: Path | None = None, batches: Callable[[int], Tensor] = batches, **fields: object
) -> TrainingResult:
    config = RECIPE if not fields else TrainingConfig(**(vars(RECIPE) | fields))  # type: ignore[arg-type]
    return train(network(), batches, config, checkpoint_dir=folder, progress=False, loss=noisy_loss)


def stop_before(step: int, with_signal: bool) -> Callable[[int], Tensor]:
    def interrupted(at: int) -> Tensor:
        if at == step:
            if not with_signal:
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGINT)
        return batches(at)

    return interrupted


def killed_before(step: int) -> Callable[[int], Tensor]:
    def killed(at: int) -> Tensor:
        if at == step:
            raise SystemExit(9)
        return batches(at)

    return killed


def results_differ(one: TrainingResult, other: TrainingResult) -> bool:
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return not torch.equal(one.losses, other.losses) or any(not torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("ema", "kill"),
    [("none", killed_before(10)), ("constant", stop_before(10, False)), ("power", stop_before(10, True))],
)
def test_interrupted_run_resumes_bit_for_bit(ema, kill, tmp_path):
    whole = run(ema=ema)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        run(tmp_path, kill, ema=ema)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = run(tmp_path, ema=ema)
    assert resumed.first_step in (9, 10, 11)
    assert not results_differ(whole, resumed)


def test_check_rejects_incomplete_restores(tmp_path, monkeypatch):
    whole = run()
    with pytest.raises(SystemExit):
        run(tmp_path, killed_before(10))
    restore = loop.restore_training

    def forgetful(state: loop.TrainingState, *arguments: object) -> int:
        step = restore(state, *arguments)  # type: ignore[arg-type]
        state.optimizer.state.clear()
        return step

    monkeypatch.setattr(loop, "restore_training", forgetful)
    assert results_differ(whole, run(tmp_path))


GOLDEN = [
    1.3983, 1.3498, 1.3080, 1.2076, 1.1548, 1.0815, 1.0770, 1.0221, 0.9652, 0.9032,
    0.8668, 0.8183, 0.8236, 0.6500, 0.7494, 0.6768, 0.6669, 0.5775, 0.5999, 0.7765,
]  # fmt: skip


def test_first_steps_match_stored_losses():
    losses = train(network(), batches, RECIPE, progress=False).losses
    golden = torch.tensor(GOLDEN)
    torch.testing.assert_close(losses, golden, atol=2e-3, rtol=0)


@pytest.mark.parametrize("ema", ["none", "constant", "power"])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_training_matches_a_plain_loop_bit_for_bit(ema, clip):
    fields = vars(RECIPE) | {"ema": ema, "gradient_clip": clip, "bf16": False}
    config = TrainingConfig(**fields)  # type: ignore[arg-type]
    result = train(network(), batches, config, loss=noisy_loss, progress=False)
    plain = Plain(network(), batches, config, noisy_loss)
    assert plain.equals(result.losses, result.model, averaged=ema != "none")
    other = train(network(), batches, dataclasses.replace(config, seed=1), loss=noisy_loss, progress=False)
    assert not plain.equals(other.losses, other.model, averaged=ema != "none")


def test_global_generator_is_unchanged_and_seed_matters():
    before = torch.get_rng_state()
    first = run()
    assert torch.equal(torch.get_rng_state(), before)
    assert not results_differ(first, run())
    assert results_differ(first, run(seed=1))


def test_cpu_training_retains_memory(monkeypatch):
    events: list[str] = []

    @contextmanager
    def kept() -> Iterator[None]:
        events.append("kept")
        yield
        events.append("given back")

    def observed(step: int) -> Tensor:
        assert events == ["kept"]
        return batches(step)

    monkeypatch.setattr(loop, "retain_freed_memory", kept)
    run(batches=observed)
    assert events == ["kept", "given back"]


def test_learning_rate_schedules():
    def rates(schedule: str) -> list[float]:
        fields = {"steps": 6, "batch_size": 1, "warmup_steps": 2, "learning_rate": 1.0, "schedule": schedule}
        config = TrainingConfig(**fields)  # type: ignore[arg-type]
        return [config.learning_rate_at(step) for step in range(7)]

    assert rates("linear") == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25, 0])
    assert rates("constant") == pytest.approx([0.5, 1, 1, 1, 1, 1, 1])
    assert rates("cosine") == pytest.approx([0.5, 1, 1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0])
    config = TrainingConfig(steps=10**6, batch_size=1, ema="power", warmup_steps=10)
    assert config.ema_decay_at(9) == 0.999
    assert config.ema_decay_at(99) == pytest.approx(1 - 100**-0.67)
    assert config.ema_decay_at(10**5) == pytest.approx(0.999)


def test_bf16_training_has_float32_weights():
    result = train(network(), batches, TrainingConfig(**vars(RECIPE) | {"bf16": True}), progress=False)
    exact = train(network(), batches, RECIPE, progress=False)
    assert next(result.model.parameters()).dtype == torch.float32
    assert 0 < (result.losses - exact.losses).abs().max() < 0.02


def test_tensorboard_logs_are_optional(tmp_path, monkeypatch):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    losses = train(network(), batches, RECIPE, tensorboard_dir=tmp_path, progress=False).losses
    events = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert {"loss", "learning_rate", "gradient_norm", "tokens_per_second"} == set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("loss")] == list(range(2, 21, 2))
    assert events.Scalars("loss")[-1].value == pytest.approx(losses[-1].item())
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"trialogue\[tensorboard\]"):
        train(network(), batches, RECIPE, tensorboard_dir=tmp_path, progress=False)


def test_wrong_batch_and_diverging_loss_are_rejected():
    expect_error("batch_size=8 rows", run, batches=lambda step: batches(step)[:5])
    with pytest.raises(InputError, match="lower the learning rate"):
        train(
            network(), batches, RECIPE, progress=False, loss=lambda m, x: next_token_loss(m, x) * float("nan")
        )


SCRIPT = """
import os
from pathlib import Path
import torch
from trialogue.training.running.allocation import retain_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

torch.ones(2**24)
before = resident()
with retain_freed_memory() as is_supported:
    torch.ones(2**24)
    inside = resident() - before
after = resident() - before
torch.ones(2**24)
print(is_supported, inside > 2**25, after < 2**25, resident() - before < 2**25)
"""
"""Script that allocates and frees 64 MiB and prints whether the resident memory changes as expected."""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not Path("/proc/self/statm").exists(),
    reason="requires glibc and Linux",
)
def test_freed_memory_is_retained_inside_the_context():
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["True"] * 4


def test_other_c_libraries_are_not_changed(monkeypatch):
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    with retain_freed_memory() as is_supported:
        assert not is_supported
