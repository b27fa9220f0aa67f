"""Tasks of a run: they train networks, sample clones from them, and measure an encoder on the clones."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scipy.stats import entropy
from torch import Tensor

from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.transformer import Transformer
from trialogue.training import CorpusLosses, TrainingConfig, corpus_score, log_steps, masked_token_loss, train
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.clones import material
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, CloneSettings, Config
from trialogue_lab.studies.clones.twin import measure_twin

SAMPLERS = (PUBLISHED, GIBBS)
CONVERGENCE = ("effective_sample_size", "r_hat", "drift", "drift_error")


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, in the order in which they must start.

    Each of the first tasks trains one network on a text and samples sequences from it, called a clone of the text. Each
    of the next tasks trains an encoder (BERT) on the text and measures its loss on all clones. The others train the
    same networks with other seeds, and repeat the experiment on a small known distribution.

    Args:
        config: Settings of the run.
    """
    return [
        *make_clone_tasks(config),
        *parts_by_seed(config, config.seeds, follow=_measure_encoder_training),
        *parts_by_seed(config, config.seeds[1:], networks=_measure_factored_networks),
        *parts_by_seed(config, config.seeds, twin=measure_twin),
    ]


def make_clone_tasks(config: CloneSettings) -> list[Part]:
    """Return one task per network, which trains the network on a text and samples sequences (a clone) from it.

    Args:
        config: Settings of the text, of the networks and of the sampling.

    Returns:
        The tasks, most expensive network first: the encoder, then factored networks from the deepest to the shallowest.
    """
    return [Part(f"clone-{name}", partial(_measure_clone, config, name)) for name in reversed(config.names)]


def _measure_clone(config: CloneSettings, name: str, artifacts: Path) -> MeasuredRows:
    """Train a network on the text, and sample sequences (a clone) from it. Yield measurements of the Markov chains."""
    corpus, seed = material.load_corpus(config, artifacts), config.seeds[0]
    network = material.train_or_load_network(config, name, seed, artifacts)
    if name != ENCODER:
        yield measure_network(config, name, seed, network, artifacts)
    for sampler in SAMPLERS:
        drawn = material.sample_clone(config, name, sampler, artifacts)
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
                "order": material.find_interaction_order(config, name),
                "sampler": sampler,
                "sweeps": sweeps,
                "acceptance": drawn.acceptance,
                **{column: getattr(convergence, column, None) for column in CONVERGENCE},
                "own_loss": corpus_score(network, tokens).loss,
                "token_entropy": float(entropy(tokens.flatten().bincount())),
                "example": corpus.decode(tokens[:1])[0],
            }


def measure_network(
    config: CloneSettings, name: str, seed: int, network: MaskedNetwork | Transformer, artifacts: Path
) -> dict[str, Any]:
    """Measure the loss and the accuracy with which a network predicts masked tokens of held-out text.

    Args:
        config: Settings of the text and of the networks.
        name: "encoder", or the name of a network with factored attention, for example "layers-2".
        seed: Seed of the network's training.
        network: The trained network.
        artifacts: Folder of the tokenized text.

    Returns:
        Dictionary with "loss" (mean in nats per token), "error" (its standard error), "accuracy", and "order" (largest
        number of tokens that interact in the network).
    """
    test = material.load_corpus(config, artifacts).test
    score = corpus_score(network, test[:: max(1, len(test) // config.scored)][: config.scored])
    return {
        "kind": "network",
        "seed": seed,
        "network": name,
        "order": material.find_interaction_order(config, name),
        "loss": score.loss,
        "error": score.error,
        "accuracy": score.accuracy,
    }


def _measure_factored_networks(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Train every factored network with the given seed, and yield its loss and accuracy on held-out text."""
    for name in config.names[:-1]:
        yield measure_network(
            config, name, seed, material.train_or_load_network(config, name, seed, artifacts), artifacts
        )


def _measure_encoder_training(config: Config, seed: int, artifacts: Path) -> MeasuredRows:
    """Train a BERT on the text, and yield its losses on every clone (sequences sampled from another network).

    All encoders have the same initial weights.
    """
    encoder, training = Transformer(config.encoder(), material.INITIAL), config.encoder_training(seed)
    batches = material.encoder_batches(material.load_corpus(config, artifacts), encoder, training)
    losses = record_clone_losses(
        config, encoder, batches, training, masked_token_loss, config.looks, artifacts
    )
    yield measure_network(config, ENCODER, seed, encoder, artifacts)
    yield from losses


def record_clone_losses(
    config: CloneSettings,
    network: Transformer,
    batches: Callable[[int], Any],
    training: TrainingConfig,
    loss: Callable[..., Tensor],
    looks: int,
    artifacts: Path,
) -> list[dict[str, Any]]:
    """Train a network on a text, and record its loss on each clone of the text during the training.

    A clone is a set of sequences that a Markov chain sampled from another network trained on the same text. The loss on
    the text itself is recorded too. For Gibbs sampling, only the clones after the largest number of sweeps are used.

    Args:
        config: Settings of the text and of the clones.
        network: The network, which is trained in place.
        batches: Function from a training step to a batch.
        training: Training settings.
        loss: Function that returns the loss of a batch.
        looks: Number of logarithmically spaced training steps at which losses are recorded.
        artifacts: Folder of the clones and of the checkpoints.

    Returns:
        One row per recorded step and clone, with the loss in nats per token and the accuracy.
    """
    clones = {
        name: tokens
        for name, tokens in material.collect_clones(config, SAMPLERS, artifacts).items()
        if f"/{GIBBS}/" not in name or name.endswith(f"/{config.sweeps[-1]}")
    }
    folder = artifacts / f"follow-{training.seed}"
    losses = CorpusLosses(clones, {0, *log_steps(training.steps, looks)}, path=folder / "losses.jsonl")
    train(network, batches, training, loss=loss, checkpoint_dir=folder, observer=losses, progress=False)
    return [_format_loss_row(row) for row in losses.rows]


def _format_loss_row(row: dict[str, Any]) -> dict[str, Any]:
    name, sampler, sweeps = f"{row['corpus']}//".split("/")[:3]
    place = {"step": row["step"], "clone": name, "sampler": sampler, "sweeps": int(sweeps or 0)}
    return {"kind": "loss", **place, "loss": row["loss"], "accuracy": row["accuracy"]}
