"""Measurements: networks and their clones, an encoder followed on the clones, and the exact twin."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import entropy
from torch import Tensor

from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.transformer import Transformer
from trialogue.training import (
    CorpusLosses,
    TrainingConfig,
    corpus_score,
    log_steps,
    masked_batches,
    masked_token_loss,
    train,
)
from trialogue_lab.ledger import Part, parts_by_seed
from trialogue_lab.studies.clones import material
from trialogue_lab.studies.clones.config import (
    ENCODER,
    GIBBS,
    MASKS,
    PUBLISHED,
    Config,
    Material,
    factored_name,
)
from trialogue_lab.studies.clones.twin import twin_rows

SAMPLERS = (PUBLISHED, GIBBS)
CONVERGENCE = ("effective_sample_size", "r_hat", "drift", "drift_error")


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run in the order in which they must start.

    The first tasks train networks on a text and sample clones, which are sets of sequences from these networks. Later
    tasks measure the losses of encoders on the clones while the encoders are trained, train networks with further
    seeds, and repeat the experiment on a small known distribution.

    Args:
        config: Settings of the run.

    Returns:
        The tasks.
    """
    return [
        *clone_parts(config),
        *parts_by_seed(config, config.seeds, follow=_followed),
        *parts_by_seed(config, config.seeds[1:], networks=_networks),
        *parts_by_seed(config, config.seeds, twin=twin_rows),
    ]


def clone_parts(config: Material) -> list[Part]:
    """Return one task per network, which trains the network on the text and samples sequences from it (its clone).

    Args:
        config: Settings of the text, of the networks and of the sampling.

    Returns:
        The tasks. The transformer encoder, which is the most expensive network, comes first. Factored networks follow
        in reversed order of `config.layers`.
    """
    return [Part(f"clone-{name}", partial(_cloned, config, name)) for name in reversed(config.names)]


def _cloned(config: Material, name: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a network, of its chains, and of their samples."""
    corpus, seed = material.corpus_of(config, artifacts), config.seeds[0]
    network = material.network_of(config, name, seed, artifacts)
    if name != ENCODER:
        yield network_row(config, name, seed, network, artifacts)
    for sampler in SAMPLERS:
        drawn = material.clone_of(config, name, sampler, artifacts)
        for sweep, energies in enumerate(drawn.energies):
            yield {
                "kind": "energy",
                "clone": name,
                "sampler": sampler,
                "sweep": sweep,
                "energy": float(energies.mean()),
                "error": float(energies.std()) / len(energies) ** 0.5,
            }
        for sweeps, tokens in drawn.samples.items():
            convergence = drawn.convergence(sweeps)
            yield {
                "kind": "clone",
                "clone": name,
                "order": material.order_of(config, name),
                "sampler": sampler,
                "sweeps": sweeps,
                "acceptance": drawn.acceptance,
                **{column: getattr(convergence, column, None) for column in CONVERGENCE},
                "own_loss": corpus_score(network, tokens).loss,
                "token_entropy": float(entropy(tokens.flatten().bincount())),
                "example": corpus.decode(tokens[:1])[0],
            }


def network_row(
    config: Material, name: str, seed: int, network: MaskedNetwork | Transformer, artifacts: Path
) -> dict[str, Any]:
    """Return a row with the masked-token loss and the accuracy of a network on held-out text.

    Args:
        config: Settings of the text and of the networks.
        name: "encoder", or the name of a factored network, for example "layers-2".
        seed: Seed of the network's training.
        network: The trained network.
        artifacts: Folder of the tokenized text.

    Returns:
        The row as a dictionary: "kind", "seed", "network" (its name), "order" (largest number of interacting tokens),
        "loss" in nats per token, "error" of the loss, and "accuracy".
    """
    test = material.corpus_of(config, artifacts).test
    score = corpus_score(network, test[:: max(1, len(test) // config.scored)][: config.scored])
    return {
        "kind": "network",
        "seed": seed,
        "network": name,
        "order": material.order_of(config, name),
        "loss": score.loss,
        "error": score.error,
        "accuracy": score.accuracy,
    }


def _networks(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the factored networks, trained with another seed."""
    for depth in config.layers:
        name = factored_name(depth)
        yield network_row(config, name, seed, material.network_of(config, name, seed, artifacts), artifacts)


def _followed(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Yield the losses of an encoder on every clone. All encoders have the same initial weights."""
    encoder, training = Transformer(config.encoder(), material.INITIAL), config.encoder_training(seed)
    text = material.corpus_of(config, artifacts).train
    batches = masked_batches(text, encoder, MASKS, batch_size=training.batch_size, seed=seed)
    losses = follow(config, encoder, batches, training, masked_token_loss, config.looks, artifacts)
    yield network_row(config, ENCODER, seed, encoder, artifacts)
    yield from losses


def follow(
    config: Material,
    network: Transformer,
    batches: Callable[[int], Any],
    training: TrainingConfig,
    loss: Callable[..., Tensor],
    looks: int,
    artifacts: Path,
) -> list[dict[str, Any]]:
    """Train a network, and measure its losses on the text and on every clone during the training.

    A clone is a set of sequences that a Markov chain samples from another network trained on the text. It is stored
    after several numbers of sweeps. A sweep consists of N single-token steps for sequences of N tokens. Clones sampled
    by Gibbs sampling are used only after the last number of sweeps.

    Args:
        config: Settings of the text and the clones.
        network: The network, which is trained in place.
        batches: Function from a training step to a batch.
        training: Settings of the training.
        loss: Function that returns the loss of a batch.
        looks: Number of logarithmically spaced steps at which losses are measured.
        artifacts: Folder of the clones and of the checkpoints.

    Returns:
        One row per measured step and clone, with the loss in nats per token and the accuracy.
    """
    clones = {
        name: tokens
        for name, tokens in material.clones_of(config, SAMPLERS, artifacts).items()
        if f"/{GIBBS}/" not in name or name.endswith(f"/{config.sweeps[-1]}")
    }
    folder = artifacts / f"follow-{training.seed}"
    losses = CorpusLosses(clones, {0, *log_steps(training.steps, looks)}, path=folder / "losses.jsonl")
    train(network, batches, training, loss=loss, checkpoint_dir=folder, observer=losses, progress=False)
    return [_loss_row(row) for row in losses.rows]


def _loss_row(row: dict[str, Any]) -> dict[str, Any]:
    name, sampler, sweeps = f"{row['corpus']}//".split("/")[:3]
    place = {"step": row["step"], "clone": name, "sampler": sampler, "sweeps": int(sweeps or 0)}
    return {"kind": "loss", **place, "loss": row["loss"], "accuracy": row["accuracy"]}
