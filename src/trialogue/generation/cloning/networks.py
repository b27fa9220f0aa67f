"""Factored networks trained on a corpus by the masking of the document on the distributional simplicity bias."""

from os import PathLike

import torch
from torch import Tensor

from trialogue.generation.cloning.settings import MASKED_SHARE, NetworkSettings
from trialogue.models.factored import FactoredAttention
from trialogue.randomness import seed_of
from trialogue.training import IndividualMasks, Recipe, masked_batches, masked_token_loss, trained


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
