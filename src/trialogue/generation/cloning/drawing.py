"""Sequences drawn from a network by a chain: followed sweep by sweep, and resumed where the drawing was cut short."""

import math
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.generation.cloning.samplers import SCORE
from trialogue.oracles import Chain, Masked
from trialogue.samplers import Convergence, convergence
from trialogue.samplers.chains.resumable import RunningChains
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.validation import Count, validated

_KIND = "trialogue drawing 1"
_SECONDS = 15.0
"""So much work may be lost to a kill."""
_HINT = "delete it to draw anew"


class Drawn(NamedTuple):
    """Sequences after each number of sweeps that was asked for, and how the chains came to the greatest of them."""

    samples: dict[int, Tensor]
    """by sweeps, (rows, N) int64"""
    energies: Tensor
    """(sweeps + 1, rows) float64, the first before the first sweep"""
    acceptance: float
    """share of the updates that changed their token; a proposal of the present token changes none"""

    def convergence(self, sweeps: int) -> Convergence | None:
        """What the energies up to so many sweeps say; None of fewer than eight sweeps, which say nothing."""
        energies = self.energies[1 : sweeps + 1]
        return convergence(energies) if len(energies) >= 8 else None


@validated
def draw(
    chain: Chain[Any],
    model: Masked,
    start: Tensor,
    sweeps: Count | tuple[Count, ...],
    *,
    seed: int = 0,
    path: str | PathLike[str] | None = None,
    report: Callable[[int, float], object] = lambda *_: None,
) -> Drawn:
    """Run `chain` on `model` from each row of `start` (rows, N), N steps a sweep, and keep where it stood.

    `sweeps` is the number of sweeps to keep, or several numbers. The state is stored in the file `path`, from which a
    run that was interrupted, or one of more sweeps, continues. `report` is called after every sweep with the mean
    energy: that of the chain, or the published score if the chain has none. Raises `InputError` for a file that is
    damaged or of other chains.
    """
    wanted = (sweeps,) if isinstance(sweeps, int) else sweeps
    running = RunningChains(chain, model, start, seed)
    drawing = _Drawing(running, model, None if path is None else Path(path))
    behind = drawing.sweeps < max(wanted)
    while drawing.sweeps < max(wanted):
        drawing.sweep(set(wanted))
        report(drawing.sweeps, float(drawing.energies[-1].mean()))
    if behind:
        drawing.save()
    lacking = [number for number in wanted if number not in drawing.samples]
    if lacking:
        hint = f"{path} has gone on to {drawing.sweeps} sweeps and kept those of {sorted(drawing.samples)}: {_HINT}"
        raise InputError("sweeps", lacking[0], hint)
    most = max(wanted)
    return Drawn(
        {number: drawing.samples[number] for number in wanted},
        torch.stack(drawing.energies[: most + 1]).cpu(),
        drawing.changed[most] / (most * start.numel()),
    )


class _Drawing:
    """Chains under way, with what has been kept of them, in memory and on disk."""

    def __init__(self, running: RunningChains, model: Masked, path: Path | None) -> None:
        self._running, self._model, self._path = running, model, path
        self._sites = running.tokens.shape[1]
        self.samples: dict[int, Tensor] = {}
        self.energies: list[Tensor] = []
        self.changes = 0
        self.changed: dict[int, int] = {}
        if path is not None and path.exists():
            self._restore(path)
        else:
            self.energies.append(self._energy())
        self._saved = time.monotonic()

    @property
    def sweeps(self) -> int:
        """How many are done."""
        return self._running.steps // self._sites

    def sweep(self, kept: set[int]) -> None:
        """Do what is left of the present sweep; keep where the chains stand if its number is in `kept`."""
        while True:
            before = self._running.tokens
            self._running.advance(1)
            self.changes += int((before != self._running.tokens).sum())
            whole = self._running.steps % self._sites == 0
            if whole:
                self.energies.append(self._energy())
                self.changed[self.sweeps] = self.changes
                if self.sweeps in kept:
                    self.samples[self.sweeps] = self._running.tokens.cpu().clone()
            if time.monotonic() - self._saved > _SECONDS:
                self.save()
            if whole:
                return

    def save(self) -> None:
        """Write everything to the file, where there is one."""
        if self._path is not None:
            tensors = {f"chains/{name}": tensor for name, tensor in self._running.saved().items()}
            tensors |= {f"sample/{number}": tokens for number, tokens in self.samples.items()}
            changed = {str(number): count for number, count in self.changed.items()}
            tensors["energies"] = torch.stack(self.energies)
            write_tensors(self._path, _KIND, tensors, {"changes": self.changes, "changed": changed})
        self._saved = time.monotonic()

    def _restore(self, path: Path) -> None:
        tensors, metadata = read_tensors(path, _KIND, _HINT)
        parts: dict[str, dict[str, Tensor]] = {"chains": {}, "sample": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            if rest:
                parts[part][rest] = tensor
        self._running.resume(parts["chains"])
        self.samples = {int(number): tokens for number, tokens in parts["sample"].items()}
        self.energies = list(tensors["energies"].to(self._running.tokens.device))
        self.changes = metadata["changes"]
        self.changed = {int(number): count for number, count in metadata["changed"].items()}

    def _energy(self) -> Tensor:
        known = self._running.energies
        return SCORE.energy(self._model, self._running.tokens) if known is None else known.clone()


def standing(found: Convergence | None) -> str:
    """Whether chains have mixed, in words."""
    if found is None:
        return "too few sweeps to say"
    if found.mixed:
        return "mixed"
    if math.isnan(found.r_hat):
        return "not mixed: no sequence moves"
    return "not mixed: raise --sweeps"
