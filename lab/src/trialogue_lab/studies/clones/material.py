"""The text, the networks trained on it, and the clones sampled from them.

All tasks of a run share them. The first task that needs an object stores it in the folder of artifacts, and other
processes wait for it.
"""

from itertools import product
from pathlib import Path

from filelock import FileLock
from torch import Tensor

from trialogue.data.corpus.corpus import Corpus
from trialogue.generation.cloning.drawing import Drawn, draw
from trialogue.generation.cloning.maker import factored_network
from trialogue.generation.cloning.making import held_out
from trialogue.generation.cloning.samplers import chain_of
from trialogue.generation.cloning.settings import NetworkSettings
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.transformer import Transformer
from trialogue.randomness import seed_of
from trialogue.training import Recipe, masked_batches, masked_token_loss, trained
from trialogue_lab.data.sentences import corpus_or_sentences
from trialogue_lab.ledger import record_model
from trialogue_lab.studies.clones.config import ENCODER, MASKS, TEXT, Material

INITIAL = 0
"""Seed of the initial weights of all followed networks"""


def corpus_of(config: Material, artifacts: Path) -> Corpus:
    """Return the text as rows of tokens, and record its files in the provenance."""
    sizes = {"vocab_size": config.vocab_size, "length": config.length}
    corpus = corpus_or_sentences(config.text, artifacts, **sizes, test_share=config.test_share)
    record_model({"text": config.text or "synthetic sentences", "files": corpus.fingerprint})
    return corpus


def network_of(config: Material, name: str, seed: int, artifacts: Path) -> MaskedNetwork:
    """Return a trained network by name. Its encoder is trained separately from the followed encoders."""
    corpus = corpus_of(config, artifacts)
    with FileLock(artifacts / f".{name}-{seed}.lock"):
        if name == ENCODER:
            return MaskedTransformer(_encoder(config, corpus, seed, artifacts))
        settings, depth = _settings(config), depth_of(name)
        return factored_network(settings, depth, corpus.train, corpus.vocab_size, artifacts, seed=seed)


def _encoder(config: Material, corpus: Corpus, seed: int, artifacts: Path) -> Transformer:
    """Train an encoder like the followed encoders, with other initial weights and another order of the data."""
    shape, training = config.encoder(), config.encoder_training(seed_of(seed, "cloned encoder"))
    batches = masked_batches(
        corpus.train, Transformer(shape), MASKS, batch_size=training.batch_size, seed=training.seed
    )
    recipe = Recipe(Transformer, shape, batches, training, loss=masked_token_loss)
    return trained(recipe, artifacts).network


def starts_of(config: Material, artifacts: Path) -> Tensor:
    """Return the held-out sequences (sequences, length) from which chains start."""
    return held_out(corpus_of(config, artifacts), config.sequences, config.seeds[0])


def clone_of(config: Material, name: str, sampler: str, artifacts: Path) -> Drawn:
    """Return the sequences sampled from a network, after each number of sweeps."""
    seed = config.seeds[0]
    network, start = network_of(config, name, seed, artifacts), starts_of(config, artifacts)
    with FileLock(artifacts / f".{name}-{sampler}.lock"):
        return draw(
            chain_of(sampler, order_of(config, name) or config.length),
            network,
            start,
            config.sweeps,
            seed=seed_of(seed, "clone", name),
            path=artifacts / f"clone-{name}-{sampler}.safetensors",
        )


def clones_of(config: Material, samplers: tuple[str, ...], artifacts: Path) -> dict[str, Tensor]:
    """Return the text and every clone as tokens (sequences, length), by "name/sampler/sweeps"."""
    clones = {TEXT: starts_of(config, artifacts)}
    for name, sampler in product(config.names, samplers):
        for sweeps, tokens in clone_of(config, name, sampler, artifacts).samples.items():
            clones[f"{name}/{sampler}/{sweeps}"] = tokens
    return clones


def order_of(config: Material, name: str) -> int | None:
    """Return the highest order of the interactions in a clone, or None for all orders."""
    if name in (ENCODER, TEXT):
        return None
    order = _settings(config).network(depth_of(name), config.vocab_size, config.length).max_order
    return None if order >= config.length else order


def depth_of(name: str) -> int:
    """Return the number of layers of a factored network from its name."""
    return int(name.removeprefix("layers-"))


def _settings(config: Material) -> NetworkSettings:
    return NetworkSettings(
        layers=config.layers,
        rank=config.rank,
        layer_norm=config.layer_norm,
        steps=config.network_steps,
        batch_size=config.network_batch,
        learning_rate=config.network_rate,
    )
