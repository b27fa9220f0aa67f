"""Training of the networks, and the sequences sampled from them (clones), shared by all tasks of a run.

A clone is a set of sequences sampled from a network that was trained on the text. The first task that needs a network
or a clone stores it in the folder of artifacts. Other processes wait for the file and load it.
"""

from itertools import product
from pathlib import Path

from filelock import FileLock
from torch import Tensor

from trialogue.data.corpus.corpus import Corpus
from trialogue.generation.cloning.drawing import ChainStates, draw
from trialogue.generation.cloning.maker import train_factored_network
from trialogue.generation.cloning.making import select_held_out
from trialogue.generation.cloning.samplers import make_chain
from trialogue.generation.cloning.settings import NetworkSettings
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.transformer import Transformer
from trialogue.randomness import derive_seed
from trialogue.training import MaskedBatches, Recipe, load_or_train, masked_batches, masked_token_loss
from trialogue.training.config import TrainingConfig
from trialogue_lab.data.sentences import corpus_or_sentences
from trialogue_lab.ledger import record_model
from trialogue_lab.studies.clones.config import ENCODER, MASKS, TEXT, CloneSettings

INITIAL = 0
"""Seed of the initial weights of all networks whose losses on clones are recorded"""


def load_corpus(config: CloneSettings, artifacts: Path) -> Corpus:
    """Load and tokenize the text, and record its files in the provenance of the run.

    Args:
        config: Settings with the name of the text and the vocabulary size.
        artifacts: Folder in which the tokenized text is stored.

    Returns:
        Corpus with training sequences, held-out sequences and the vocabulary.
    """
    sizes = {"vocab_size": config.vocab_size, "length": config.length}
    corpus = corpus_or_sentences(config.text, artifacts, **sizes, test_share=config.test_share)
    record_model({"text": config.text or "synthetic sentences", "files": corpus.fingerprint})
    return corpus


def train_or_load_network(config: CloneSettings, name: str, seed: int, artifacts: Path) -> MaskedNetwork:
    """Train a masked language model on the text, or load it if it was trained before.

    Args:
        config: Settings of the text and of the networks.
        name: "encoder" for a BERT, or the name of a network with factored attention, for example "layers-2".
        seed: Seed of the training.
        artifacts: Folder in which trained networks are stored.

    Returns:
        The trained network.
    """
    corpus = load_corpus(config, artifacts)
    with FileLock(artifacts / f".{name}-{seed}.lock"):
        if name == ENCODER:
            # Its initial weights differ from those of the encoders that are measured.
            shape, training = config.encoder(), config.encoder_training(derive_seed(seed, "cloned encoder"))
            batches = encoder_batches(corpus, Transformer(shape), training)
            recipe = Recipe(Transformer, shape, batches, training, loss=masked_token_loss)
            return MaskedTransformer(load_or_train(recipe, artifacts).network)
        settings, depth = _network_settings(config), parse_depth(name)
        return train_factored_network(settings, depth, corpus.train, corpus.vocab_size, artifacts, seed=seed)


def encoder_batches(corpus: Corpus, encoder: Transformer, training: TrainingConfig) -> MaskedBatches:
    """Return a function that maps a training step to a batch of masked sequences, for training the encoder (BERT).

    Args:
        corpus: The tokenized text.
        encoder: The network to train, which defines the mask token.
        training: Training settings. Only the batch size and the seed are used.
    """
    return masked_batches(corpus.train, encoder, MASKS, batch_size=training.batch_size, seed=training.seed)


def select_initial_sequences(config: CloneSettings, artifacts: Path) -> Tensor:
    """Return the held-out sequences at which all Markov chains start.

    Args:
        config: Settings of the text and the number of sequences.
        artifacts: Folder of the tokenized text.

    Returns:
        Token ids (sequences, length).
    """
    return select_held_out(load_corpus(config, artifacts), config.sequences, config.seeds[0])


def sample_clone(config: CloneSettings, name: str, sampler: str, artifacts: Path) -> ChainStates:
    """Sample sequences from a trained network by a Markov chain.

    The samples are called a clone of the training text. They are loaded from `artifacts` if they were sampled before.

    Args:
        config: Settings of the text, the networks and the Markov chains.
        name: "encoder" for a BERT, or the name of a network with factored attention, for example "layers-2".
        sampler: Name of the Markov chain, "metropolis" or "gibbs".
        artifacts: Folder of the trained networks and of the sampled sequences.

    Returns:
        Sequences after each number of sweeps in `config.sweeps`, and the energies along the chains. A sweep consists of
        N single-token updates of a sequence of N tokens.
    """
    seed = config.seeds[0]
    network, start = (
        train_or_load_network(config, name, seed, artifacts),
        select_initial_sequences(config, artifacts),
    )
    with FileLock(artifacts / f".{name}-{sampler}.lock"):
        return draw(
            make_chain(sampler, find_interaction_order(config, name) or config.length),
            network,
            start,
            config.sweeps,
            seed=derive_seed(seed, "clone", name),
            path=artifacts / f"clone-{name}-{sampler}.safetensors",
        )


def collect_clones(config: CloneSettings, samplers: tuple[str, ...], artifacts: Path) -> dict[str, Tensor]:
    """Return the held-out text, and the sequences sampled from all trained networks.

    Args:
        config: Settings of the text, the networks and the Markov chains.
        samplers: Names of the Markov chains, for example ("metropolis", "gibbs").
        artifacts: Folder of the trained networks and of the sampled sequences.

    Returns:
        Token ids (sequences, length) by name. "text" is the held-out text. Other names have the form
        "network/chain/sweeps", for example "layers-2/gibbs/70" for samples after 70 sweeps.
    """
    clones = {TEXT: select_initial_sequences(config, artifacts)}
    for name, sampler in product(config.names, samplers):
        for sweeps, tokens in sample_clone(config, name, sampler, artifacts).samples.items():
            clones[f"{name}/{sampler}/{sweeps}"] = tokens
    return clones


def find_interaction_order(config: CloneSettings, name: str) -> int | None:
    """Return the largest number of tokens that interact in a network.

    Args:
        config: Settings of the text and of the networks.
        name: "text", "encoder", or the name of a network with factored attention, for example "layers-2".

    Returns:
        Number of tokens, or None if all tokens of a sequence can interact. It is None for "text" and "encoder".
    """
    if name in (ENCODER, TEXT):
        return None
    order = _network_settings(config).network(parse_depth(name), config.vocab_size, config.length).max_order
    return None if order >= config.length else order


def parse_depth(name: str) -> int:
    """Return the number of layers from a network's name, for example 2 for "layers-2".

    Args:
        name: Name of a network with factored attention.
    """
    return int(name.removeprefix("layers-"))


def _network_settings(config: CloneSettings) -> NetworkSettings:
    return NetworkSettings(
        layers=config.layers,
        rank=config.rank,
        layer_norm=config.layer_norm,
        steps=config.network_steps,
        batch_size=config.network_batch,
        learning_rate=config.network_rate,
    )
