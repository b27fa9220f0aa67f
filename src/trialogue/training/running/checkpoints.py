"""Networks of some steps of a training, in a folder:

kept = Checkpoints("folder", log_steps(10_000, 20))
train(model, batches, config, observer=kept)
early = kept.load(kept.steps()[0], Transformer)
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
    """The networks of a training after the steps in `schedule`, in a `folder` of its own; without one, what it holds.

    A file appears whole, under the name of its step, and stays. Networks are as `train` would have returned them, with
    the averaged weights where there are any. A run that resumes writes those again that lie behind its own checkpoint.
    """

    def __init__(self, folder: str | PathLike[str], schedule: Container[int] = ()) -> None:
        self.folder, self.schedule = Path(folder), schedule

    def updated(self, update: Update) -> None:
        """Keep the network; raises `InputError` where it cannot be saved (`save_model`)."""
        save_model(update.model, self._path(update.step))

    def steps(self) -> tuple[int, ...]:
        """The steps whose networks are there, in order."""
        names = (re.fullmatch(r"step-(\d+)\.safetensors", path.name) for path in self.folder.glob("step-*"))
        return tuple(sorted(int(name[1]) for name in names if name))

    def load(self, step: int, network: type[NetworkT], *, device: torch.device | str = "cpu") -> NetworkT:
        """The network after `step` updates, in eval mode; raises `InputError` where it is not there, or damaged."""
        if not self._path(step).exists():
            hint = f"{self.folder} has those of steps {', '.join(map(str, self.steps())) or 'none'}"
            raise InputError("step", step, f"there is no checkpoint of it: {hint}")
        return load_model(self._path(step), network, device=device)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step}.safetensors"
