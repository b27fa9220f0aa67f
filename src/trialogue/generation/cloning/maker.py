"""Making one clone: a network trained, and sequences drawn from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data.clones import Clone
from trialogue.display.numbers import finite_or_none
from trialogue.generation.cloning.drawing import draw
from trialogue.generation.cloning.samplers import chain_of
from trialogue.generation.cloning.settings import MASKED_SHARE, DrawingSettings, NetworkSettings
from trialogue.models.networks.factored import FactoredAttention
from trialogue.randomness import seed_of
from trialogue.samplers import Convergence, MaskedMetropolis
from trialogue.training import (
    IndividualMasks,
    Recipe,
    corpus_score,
    masked_batches,
    masked_token_loss,
    trained,
)


class Made(NamedTuple):
    """A clone, and what its chains did: nothing for the text itself."""

    clone: Clone
    convergence: Convergence | None
    energies: Tensor | None
    """(sweeps + 1,) float64: means over sequences, the first before the first sweep"""


def name_of(depth: int) -> str:
    """The name of the clone by a network of so many layers."""
    return f"layers-{depth}"


@dataclass(frozen=True, kw_only=True)
class Maker:
    """All that a clone is made of, but for its depth."""

    network: NetworkSettings
    drawing: DrawingSettings
    train: Tensor
    """(n, N) int64: what networks are trained on"""
    scored: Tensor
    """(m, N) int64: what their loss is measured on"""
    start: Tensor
    """(rows, N) int64: where chains start"""
    vocab_size: int
    sweeps: Mapping[int, int]
    """by depth, those of a clone that is there"""
    device: str | None
    """None: the GPU, where there is one"""
    threads: int = 1
    """of torch, in a worker"""

    def made(
        self,
        depth: int,
        work: Path,
        *,
        progress: bool = False,
        report: Callable[[str], object] = lambda _: None,
    ) -> Made:
        """The clone by a network of `depth` layers; the folder `work` keeps what it is made from."""
        where = checked_device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        drawing, name = self.drawing, name_of(depth)
        report(f"{name}: training the network")
        network = factored_network(
            self.network,
            depth,
            self.train,
            self.vocab_size,
            work / "networks",
            seed=drawing.seed,
            device=where,
            progress=progress,
        )
        order, length = network.config.max_order, self.start.shape[1]
        sweeps = max(drawing.sweeps, self.sweeps.get(depth, 0))
        chain = chain_of(drawing.sampler, order)
        drawn = draw(
            chain,
            network,
            self.start.to(network.attention[0].device),
            sweeps,
            seed=seed_of(drawing.seed, "clone", depth),
            path=work / "chains" / f"{name}.safetensors",
            report=lambda done, energy: report(f"{name}: sweep {done} of {sweeps}, mean energy {energy:.2f}"),
        )
        found = drawn.convergence(sweeps)
        scored = chain if isinstance(chain, MaskedMetropolis) else None
        clone = Clone(
            name=name,
            tokens=drawn.samples[sweeps],
            source="factored-attention",
            layers=depth,
            max_order=None if order >= length else order,
            sampler=drawing.sampler,
            gauge=None if scored is None else scored.gauge,
            bodies=None if scored is None else float(scored.bodies),
            sweeps=sweeps,
            acceptance=drawn.acceptance,
            effective_sample_size=None if found is None else finite_or_none(found.effective_sample_size),
            r_hat=None if found is None else finite_or_none(found.r_hat),
            network_loss=corpus_score(network, self.scored).loss,
        )
        return Made(clone, found, drawn.energies.mean(1))


def factored_network(
    settings: NetworkSettings,
    layers: int,
    sequences: Tensor,
    vocab_size: int,
    artifacts: str | PathLike[str],
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> FactoredAttention:
    """A network of `layers` layers trained on `sequences` (n, N), which answers in single precision.

    It is kept in the folder `artifacts`, from which a training that was cut short goes on. Raises `InputError` for a
    rank above the vocabulary, a learning rate at which the loss diverges, and files that are damaged.
    """
    config = settings.network(layers, vocab_size, sequences.shape[1])
    distribution = IndividualMasks(MASKED_SHARE)
    training = settings.training(
        distribution.copies(sequences.shape[1]), seed_of(seed, "clone network", layers)
    )
    batches = masked_batches(
        sequences, FactoredAttention(config), distribution, batch_size=training.batch_size, seed=training.seed
    )
    recipe = Recipe(FactoredAttention, config, batches, training, loss=masked_token_loss)
    network = trained(recipe, artifacts, device=device, progress=progress).network
    network.dtype = torch.float32
    return network
