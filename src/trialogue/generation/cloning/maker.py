"""Creation of one clone of a text: train a network, and sample sequences from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import parse_device
from trialogue.data.clones import Clone
from trialogue.display.numbers import finite_or_none
from trialogue.generation.cloning.drawing import draw
from trialogue.generation.cloning.samplers import make_chain
from trialogue.generation.cloning.settings import MASKED_SHARE, DrawingSettings, NetworkSettings
from trialogue.models.networks.factored import FactoredAttention
from trialogue.randomness import derive_seed
from trialogue.samplers import Convergence, MaskedMetropolis
from trialogue.training import (
    IndividualMasks,
    Recipe,
    corpus_score,
    load_or_train,
    masked_batches,
    masked_token_loss,
)


class MadeClone(NamedTuple):
    """A clone of a text (sequences sampled from a network), with convergence diagnostics.

    Attributes:
        clone: The clone.
        convergence: Convergence diagnostics of the Markov chains. None for few sweeps, and for the original text, which
            needs no chains.
        energies: Mean energy of the chains before the first sweep and after each sweep, float64 of shape (sweeps + 1,).
            None for the original text.
    """

    clone: Clone
    convergence: Convergence | None
    energies: Tensor | None


def clone_name(depth: int) -> str:
    """Return the name of the clone that is sampled from a network with `depth` layers."""
    return f"layers-{depth}"


@dataclass(frozen=True, kw_only=True)
class CloneMaker:
    """Creates clones of a text: sequences sampled from a network that was trained on the text.

    The network is a factored attention network, whose number of layers limits how many tokens interact. The
    sequences are sampled by a Markov chain.

    Args:
        network: Options on networks and their training.
        drawing: Options on sampling.
        train: Training sequences, int64 of shape (n, N).
        scored: Sequences on which the loss of a network is evaluated, int64 of shape (m, N).
        start: Initial states of the chains, int64 of shape (rows, N).
        vocab_size: Number of tokens.
        sweeps: Number of sweeps of clones that already exist, by number of layers. A new clone gets at least
            as many.
        device: Torch device. None for the GPU if there is one and the CPU otherwise.
        threads: Number of PyTorch threads per worker.
    """

    network: NetworkSettings
    drawing: DrawingSettings
    train: Tensor
    scored: Tensor
    start: Tensor
    vocab_size: int
    sweeps: Mapping[int, int]
    device: str | None
    threads: int = 1

    def make(
        self,
        depth: int,
        work: Path,
        *,
        progress: bool = False,
        report: Callable[[str], object] = lambda _: None,
    ) -> MadeClone:
        """Train a network with a given number of layers, and sample a clone from it.

        Trained networks and states of chains are read from `work` if they exist there.

        Args:
            depth: Number of layers of the network.
            work: Folder for networks and states of chains.
            progress: Whether to show a progress bar during the training.
            report: Function called with progress messages.

        Returns:
            The clone with diagnostics of the chains.
        """
        torch_device = parse_device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        drawing, name = self.drawing, clone_name(depth)
        report(f"{name}: training the network")
        network = train_factored_network(
            self.network,
            depth,
            self.train,
            self.vocab_size,
            work / "networks",
            seed=drawing.seed,
            device=torch_device,
            progress=progress,
        )
        order, length = network.config.max_order, self.start.shape[1]
        sweeps = max(drawing.sweeps, self.sweeps.get(depth, 0))
        chain = make_chain(drawing.sampler, order)
        drawn = draw(
            chain,
            network,
            self.start.to(network.attention[0].device),
            sweeps,
            seed=derive_seed(drawing.seed, "clone", depth),
            path=work / "chains" / f"{name}.safetensors",
            report=lambda done, energy: report(f"{name}: sweep {done} of {sweeps}, mean energy {energy:.2f}"),
        )
        diagnostics = drawn.convergence(sweeps)
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
            effective_sample_size=None
            if diagnostics is None
            else finite_or_none(diagnostics.effective_sample_size),
            r_hat=None if diagnostics is None else finite_or_none(diagnostics.r_hat),
            network_loss=corpus_score(network, self.scored).loss,
        )
        return MadeClone(clone, diagnostics, drawn.energies.mean(1))


def train_factored_network(
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
    """Train a factored attention network on a text. The result has single precision.

    Args:
        settings: Options on the network and its training.
        layers: Number of layers.
        sequences: Training sequences, int64 of shape (n, N).
        vocab_size: Number of tokens.
        artifacts: Folder in which the network and the state of an interrupted training are stored.
        seed: Random seed.
        device: Device of the training.
        progress: Whether to show a progress bar.

    Returns:
        The trained network, which is read from `artifacts` if it is stored there.

    Raises:
        InputError: If the rank exceeds the vocabulary size, the loss diverges, or a file is damaged.
    """
    config = settings.network(layers, vocab_size, sequences.shape[1])
    distribution = IndividualMasks(MASKED_SHARE)
    training = settings.training(
        distribution.copies(sequences.shape[1]), derive_seed(seed, "clone network", layers)
    )
    batches = masked_batches(
        sequences, FactoredAttention(config), distribution, batch_size=training.batch_size, seed=training.seed
    )
    recipe = Recipe(FactoredAttention, config, batches, training, loss=masked_token_loss)
    network = load_or_train(recipe, artifacts, device=device, progress=progress).network
    network.dtype = torch.float32
    return network
