"""Sampling of sequences from a network by a Markov chain that can be interrupted and resumed."""

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
_CHECKPOINT_SECONDS = 15.0
"""Time between checkpoints in seconds."""
_RESTART_HINT = "delete the file to start again"


class ChainStates(NamedTuple):
    """States of Markov chains after given numbers of sweeps, with their energies.

    A sweep consists of N steps for sequences of N tokens.

    Attributes:
        samples: For each requested number of sweeps, the states of all chains, int64 of shape (rows, N).
        energies: Energy of each chain before the first sweep and after each sweep, float64 of shape (sweeps + 1, rows).
        acceptance: Fraction of all single-token updates that changed the token.
    """

    samples: dict[int, Tensor]
    energies: Tensor
    acceptance: float

    def convergence(self, sweeps: int) -> Convergence | None:
        """Compute convergence diagnostics of the chains from their energies.

        Args:
            sweeps: Number of sweeps to include, starting with the first.

        Returns:
            The diagnostics, or None for fewer than eight sweeps.
        """
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
) -> ChainStates:
    """Run a Markov chain from each row of `start`, and return its states after given numbers of sweeps.

    A sweep consists of N steps for sequences of N tokens.

    Args:
        chain: Markov chain on sequences.
        model: Model whose conditional distributions the chain uses.
        start: Initial states, int64 of shape (rows, N).
        sweeps: Number of sweeps, or several numbers of sweeps after which the states are stored.
        seed: Random seed.
        path: File in which the state of the chains is saved. An interrupted or shorter run continues from it. None for
            no file.
        report: Function called after each sweep with the number of sweeps and the mean energy of the chains. If the
            chain defines no energy, the energy of `MaskedMetropolis` is used.

    Returns:
        The stored states, and energies for diagnostics.

    Raises:
        InputError: If the file is damaged or belongs to other chains. Also if the file has passed a requested number of
            sweeps without storing the states.
    """
    wanted = (sweeps,) if isinstance(sweeps, int) else sweeps
    running = RunningChains(chain, model, start, seed)
    drawing = _ResumableChains(running, model, None if path is None else Path(path))
    is_incomplete = drawing.sweeps < max(wanted)
    while drawing.sweeps < max(wanted):
        drawing.sweep(set(wanted))
        report(drawing.sweeps, float(drawing.energies[-1].mean()))
    if is_incomplete:
        drawing.save()
    missing = [number for number in wanted if number not in drawing.samples]
    if missing:
        hint = (
            f"{_RESTART_HINT}: {path} has {drawing.sweeps} sweeps and stores only {sorted(drawing.samples)}"
        )
        raise InputError("sweeps", missing[0], hint)
    most = max(wanted)
    return ChainStates(
        {number: drawing.samples[number] for number in wanted},
        torch.stack(drawing.energies[: most + 1]).cpu(),
        drawing.changed[most] / (most * start.numel()),
    )


class _ResumableChains:
    """Running Markov chains that store their states in memory and in a checkpoint file."""

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
        """Number of completed sweeps."""
        return self._running.steps // self._sites

    def sweep(self, kept: set[int]) -> None:
        """Complete the current sweep, and store the states if its number is in `kept`."""
        while True:
            before = self._running.tokens
            self._running.advance(1)
            self.changes += int((before != self._running.tokens).sum())
            is_complete = self._running.steps % self._sites == 0
            if is_complete:
                self.energies.append(self._energy())
                self.changed[self.sweeps] = self.changes
                if self.sweeps in kept:
                    self.samples[self.sweeps] = self._running.tokens.cpu().clone()
            if time.monotonic() - self._saved > _CHECKPOINT_SECONDS:
                self.save()
            if is_complete:
                return

    def save(self) -> None:
        """Write the checkpoint file, if a path is given."""
        if self._path is not None:
            tensors = {f"chains/{name}": tensor for name, tensor in self._running.saved().items()}
            tensors |= {f"sample/{number}": tokens for number, tokens in self.samples.items()}
            changed = {str(number): count for number, count in self.changed.items()}
            tensors["energies"] = torch.stack(self.energies)
            write_tensors(self._path, _KIND, tensors, {"changes": self.changes, "changed": changed})
        self._saved = time.monotonic()

    def _restore(self, path: Path) -> None:
        tensors, metadata = read_tensors(path, _KIND, _RESTART_HINT)
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


def describe_convergence(found: Convergence | None) -> str:
    """Describe in words whether Markov chains have converged.

    Args:
        found: Convergence diagnostics, or None if there were too few sweeps.

    Returns:
        A short text, for example "mixed" or "not mixed: increase --sweeps".
    """
    if found is None:
        return "too few sweeps to assess"
    if found.mixed:
        return "mixed"
    if math.isnan(found.r_hat):
        return "not mixed: no sequence changes"
    return "not mixed: increase --sweeps"
