"""Networks that are trained once: a recipe says all that decides the weights, a folder keeps what came of it.

    recipe = Recipe(Transformer, TransformerConfig(vocab_size=4), partial(strings, distribution), TrainingConfig(...))
    network = trained(recipe, artifacts).network

A second call reads the network from the folder, and one that follows a training that was killed goes on with it.
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
from trialogue.models.networks.registry import NetworkT, registration_of
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
from trialogue.training.running.processes import processes

_KIND = "trialogue losses 1"


@dataclass(frozen=True)
class Recipe(Generic[NetworkT]):
    """All that decides the weights of a trained network: equal recipes give equal ones.

    `network` is a registered class and `config` its config; `data(step)` gives the batches of `train`. `seed` names
    the initial weights, by default by the seed of `training`. The networks after the steps `checkpoints` are kept;
    `until` may end the training before its last step. Parameters that `initial` names begin as it says, such as those
    of another network's layers, and the others as they are drawn.

    Functions are described by their names and by the arguments that `functools.partial`, or the dataclass whose method
    they are, gives them: what a function does is not seen. Raises `InputError` for a network that is not registered, a
    config of another one, and a function or an argument that cannot be described, such as a lambda; `trained` does for
    parameters in `initial` that the network does not have.
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
        wanted = registration_of(self.network).config
        if not isinstance(self.config, wanted):
            hint = f"a {self.network.__name__} is made of a {wanted.__name__}"
            raise InputError("config", self.config, hint)
        _ = self.hash

    @property
    def initial_seed(self) -> int:
        """The seed of the initial weights."""
        return self.training.seed if self.seed is None else self.seed

    def description(self) -> dict[str, Any]:
        """What `hash` is of, as JSON."""
        return {
            "network": registration_of(self.network).name,
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
        """Sixteen hexadecimal digits that name the recipe."""
        return hashlib.sha256(json.dumps(self.description(), sort_keys=True).encode()).hexdigest()[:16]

    def begun(self) -> NetworkT:
        """The network before its first update. Raises `InputError` where `initial` does not fit it."""
        network = self.network(self.config, self.initial_seed)
        try:
            unknown = network.load_state_dict(self.initial, strict=False).unexpected_keys
        except RuntimeError as error:
            raise InputError("initial", type(network).__name__, "give tensors of its shapes") from error
        if unknown:
            raise InputError("initial", unknown[0], f"{type(network).__name__} has no such parameter")
        return network

    def folder(self, artifacts: str | PathLike[str]) -> Path:
        """Where `trained` keeps what comes of the recipe."""
        return Path(artifacts) / f"{registration_of(self.network).name}-{self.hash}"


class Trained(NamedTuple, Generic[NetworkT]):
    """What came of a recipe: the network in eval mode, losses (steps done,) float32, and the networks on the way."""

    network: NetworkT
    losses: Tensor
    checkpoints: Checkpoints


def trained(
    recipe: Recipe[NetworkT],
    artifacts: str | PathLike[str],
    *,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> Trained[NetworkT]:
    """The network of `recipe` on `device`: read from the folder `artifacts` if it is there, else trained and kept.

    A training that was cut short is resumed. Under `accelerate launch` every process calls this, and the main one
    alone writes. Raises `InputError` as `train` does, and for a damaged file.
    """
    together = processes()
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
            # Last: where it is, all is.
            save_model(result.model, path)
        together.wait_for_everyone()
    if together.is_main_process:
        (folder / "training.safetensors").unlink(missing_ok=True)
    hint = f"delete the folder {folder}, so that it is trained again"
    return Trained(
        load_model(path, recipe.network, device=device),
        read_tensors(losses, _KIND, hint)[0]["losses"],
        checkpoints,
    )
