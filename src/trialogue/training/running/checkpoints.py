"""Observer that saves networks during training, and loads them.

Example:
    >>> checkpoints = Checkpoints("folder", log_steps(10_000, 20))
    >>> train(model, batches, config, observer=checkpoints)
    >>> early = checkpoints.load(checkpoints.steps()[0], Transformer)
"""

import re
from collections.abc import Container
from os import PathLike
from pathlib import Path

import torch

from trialogue.errors import InputError
from trialogue.models.networks.registry import NetworkT
from trialogue.models.networks.saved import load_model, save_model
from trialogue.training.observers import Observer, Update


class Checkpoints(Observer):
    """Observer that saves the network after given steps, and loads saved networks.

    Networks are saved as `train` would return them, with averaged weights if averaging is enabled. Files are written
    atomically. A resumed run writes the networks after its checkpoint again.

    Args:
        folder: Folder for the networks of one training.
        schedule: Steps after which to save the network. Empty by default, for loading only.
    """

    def __init__(self, folder: str | PathLike[str], schedule: Container[int] = ()) -> None:
        self.folder, self.schedule = Path(folder), schedule

    def updated(self, update: Update) -> None:
        """Save the network.

        Raises:
            InputError: If `save_model` cannot save it.
        """
        save_model(update.model, self._path(update.step))

    def steps(self) -> tuple[int, ...]:
        """Return the steps of the saved networks in increasing order."""
        names = (re.fullmatch(r"step-(\d+)\.safetensors", path.name) for path in self.folder.glob("step-*"))
        return tuple(sorted(int(name[1]) for name in names if name))

    def load(self, step: int, network: type[NetworkT], *, device: torch.device | str = "cpu") -> NetworkT:
        """Load the network after `step` updates, in eval mode.

        Args:
            step: Number of updates.
            network: Registered class of the network.
            device: Device of the network.

        Raises:
            InputError: If there is no such network, or if its file is damaged.
        """
        if not self._path(step).exists():
            steps = ", ".join(map(str, self.steps())) or "none"
            raise InputError("step", step, f"no such checkpoint in {self.folder}; use one of {steps}")
        return load_model(self._path(step), network, device=device)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step}.safetensors"
