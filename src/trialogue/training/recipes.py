"""Recipes that describe a trained network completely, with a cache of trained networks on disk.

    recipe = Recipe(Transformer, TransformerConfig(vocab_size=4), partial(strings, distribution), TrainingConfig(...))
    network = load_or_train(recipe, artifacts).network

A second call loads the network from the folder. An interrupted training is resumed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.networks.registry import NetworkT, get_class_registration
from trialogue.models.networks.saved import load_model, save_model
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.config import TrainingConfig
from trialogue.training.description import describe
from trialogue.training.loop import Batch, train
from trialogue.training.objectives import next_token_loss
from trialogue.training.observers import StoppingRule
from trialogue.training.optimizers import OptimizerFactory
from trialogue.training.running.checkpoints import Checkpoints
from trialogue.training.running.processes import get_processes

_KIND = "trialogue losses 1"


@dataclass(frozen=True)
class Recipe(Generic[NetworkT]):
    """Complete description of a trained network: architecture, data, loss and hyperparameters.

    Equal recipes give equal weights. Functions are compared by name and arguments; changes to the body of a
    function are not detected.

    Args:
        network: Registered network class.
        config: Config of the network.
        data: Function of the step that returns a batch for `train`.
        training: Hyperparameters.
        loss: Function of the network and the tensors of a batch that returns a scalar.
        optimizer: Function that builds an optimizer from the parameters. By default `training` selects the
            optimizer.
        seed: Seed of the initial weights. The seed of `training` by default.
        checkpoints: Steps after which the network is saved.
        until: Rule that can end the training early.
        initial: Initial values of some parameters by name, for example from another network. The other
            parameters are initialised randomly.

    Raises:
        InputError: If the network is not registered, if the config is of another class, or if a function or
            an argument has no description, for example a lambda.
    """

    network: type[NetworkT]
    config: Any
    data: Callable[[int], Batch]
    training: TrainingConfig
    loss: Callable[..., Tensor] = next_token_loss
    optimizer: OptimizerFactory | None = None
    seed: int | None = None
    checkpoints: tuple[int, ...] = ()
    until: StoppingRule | None = None
    initial: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted = get_class_registration(self.network).config
        if not isinstance(self.config, wanted):
            hint = f"use a {wanted.__name__} for a {self.network.__name__}"
            raise InputError("config", self.config, hint)
        _ = self.hash

    @property
    def initial_seed(self) -> int:
        """Seed of the initial weights."""
        return self.training.seed if self.seed is None else self.seed

    def description(self) -> dict[str, Any]:
        """Return the recipe as JSON data, from which `hash` is computed."""
        return {
            "network": get_class_registration(self.network).name,
            "config": describe("config", self.config),
            "data": describe("data", self.data),
            "training": self.training.trajectory(),
            "loss": describe("loss", self.loss),
            "optimizer": describe("optimizer", self.optimizer),
            "seed": self.initial_seed,
            "checkpoints": sorted(self.checkpoints),
            **({} if self.until is None else {"until": describe("until", self.until)}),
            **({"initial": describe("initial", self.initial)} if self.initial else {}),
        }

    @cached_property
    def hash(self) -> str:
        """Hash of the recipe, sixteen hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.description(), sort_keys=True).encode()).hexdigest()[:16]

    def begun(self) -> NetworkT:
        """Return the network with its initial weights.

        Raises:
            InputError: If `initial` has a parameter of another name or shape.
        """
        network = self.network(self.config, self.initial_seed)
        try:
            unknown = network.load_state_dict(self.initial, strict=False).unexpected_keys
        except RuntimeError as error:
            raise InputError(
                "initial", type(network).__name__, "use tensors with the shapes of the parameters"
            ) from error
        if unknown:
            raise InputError("initial", unknown[0], f"{type(network).__name__} has no such parameter")
        return network

    def folder(self, artifacts: str | PathLike[str]) -> Path:
        """Return the folder in which `load_or_train` stores its results."""
        return Path(artifacts) / f"{get_class_registration(self.network).name}-{self.hash}"


class Trained(NamedTuple, Generic[NetworkT]):
    """A trained network, its losses and checkpoints. Result of `load_or_train`.

    Attributes:
        network: The trained network in eval mode.
        losses: Loss of each completed step, (steps,) float32.
        checkpoints: Networks that were saved during the training.
    """

    network: NetworkT
    losses: Tensor
    checkpoints: Checkpoints


def load_or_train(
    recipe: Recipe[NetworkT],
    artifacts: str | PathLike[str],
    *,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> Trained[NetworkT]:
    """Return the trained network of a recipe. It is trained and stored on disk in the first call, and loaded later.

    An interrupted training is resumed. Under `accelerate launch`, every process must call this function. Only
    the main process writes files.

    Args:
        recipe: Description of the network and its training.
        artifacts: Folder that contains one folder per recipe.
        device: Device of the returned network.
        progress: Whether to show a progress bar.

    Raises:
        InputError: If a file is damaged, or if the training fails as described in `train`.
    """
    together = get_processes()
    folder = recipe.folder(artifacts)
    path, losses = folder / "network.safetensors", folder / "losses.safetensors"
    checkpoints = Checkpoints(folder / "checkpoints", recipe.checkpoints)
    if not path.exists():
        if together.is_main_process:
            atomic_write(folder / "recipe.json", json.dumps(recipe.description(), indent=1))
        result = train(
            recipe.begun(),
            recipe.data,
            recipe.training,
            checkpoint_dir=folder,
            progress=progress,
            loss=recipe.loss,
            optimizer=recipe.optimizer,
            observer=checkpoints,
            until=recipe.until,
        )
        if together.is_main_process:
            write_tensors(losses, _KIND, {"losses": result.losses}, {})
            # The network is saved last, so that its existence marks a complete folder.
            save_model(result.model, path)
        together.wait_for_everyone()
    if together.is_main_process:
        (folder / "training.safetensors").unlink(missing_ok=True)
    hint = f"delete the folder {folder} to train the network again"
    return Trained(
        load_model(path, recipe.network, device=device),
        read_tensors(losses, _KIND, hint)[0]["losses"],
        checkpoints,
    )
