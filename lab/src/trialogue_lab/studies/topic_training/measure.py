"""Tasks of a run: for each seed, trainings of embeddings, values and attention, and the two stages of training."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue.training import TrainingConfig, train
from trialogue_lab.data.batch_draw import sample_document_batch
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.models.topic_transformer import TopicTransformer, TopicTransformerConfig
from trialogue_lab.studies.topic_training.attention import compute_attention_by_class
from trialogue_lab.studies.topic_training.config import (
    DIAGONAL_RATES,
    FIGURE_RATE,
    SETTINGS,
    SGD_RATES,
    Config,
)
from trialogue_lab.studies.topic_training.matrices import compute_entry_means, list_entries
from trialogue_lab.theory.topics import diagonal_values
from trialogue_lab.training.counted_documents import CountedDocuments, Loss, document_loss
from trialogue_lab.training.weight_norms import WeightNorms

MASKING = BertMasking()
SHIFT = 4
"""Number of words by which the authors' analysis shifts the topics of words"""
LOSSES: dict[str, Loss] = {"CE": "cross-entropy", "squared": "squared"}
ONE_HOT: dict[str, Any] = {"embeddings": "one-hot", "biases": "all"}
VALUES_ONLY = ONE_HOT | {"attention": "uniform", "biases": "prediction"}
EMBEDDING_ONLY: dict[str, Any] = {"attention": "uniform", "values": "fixed"}
_LAST_LOSSES = 20
_CURVE_POINTS = 50


@dataclass(frozen=True)
class TopicTraining:
    """Settings of one training of a transformer on documents of a topic model.

    Args:
        group: Group of trainings that run in one task: "embeddings", "values", "attention" or "stages".
        name: Name of the training within the group.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.
        steps: Number of steps.
        penalty: Coefficient of the L2 penalty (default: 0).
        network: Fields of `TopicTransformerConfig` other than the vocabulary and the initial scale.
    """

    group: str
    name: str
    loss: str
    optimizer: str
    rate: float
    steps: int
    penalty: float = 0.0
    network: dict[str, Any] = field(default_factory=dict)

    def columns(self) -> dict[str, Any]:
        """Return all settings except `network` by name.

        They become columns of every row about the training.
        """
        return {name: value for name, value in vars(self).items() if name != "network"}


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which trains transformers on documents of a topic model.

    Args:
        config: Settings of the run.

    Returns:
        One task per seed and group of trainings: embeddings, value matrices, attention, or the stages of training.
    """
    return parts_by_seed(
        config,
        config.seeds,
        embeddings=_measure_embeddings,
        values=_measure_values,
        attention=_measure_attention,
        stages=_measure_stages,
    )


def make_topic_model(config: Config) -> TopicModel:
    """Return the topic model that generates the documents."""
    return TopicModel(config.topics, config.words_per_topic, concentration=config.concentration)


@lru_cache(maxsize=1)
def sample_documents(config: Config, seed: int) -> tuple[CountedDocuments, CountedDocuments]:
    """Sample the training and test documents of a seed from a topic model, with fixed masked positions.

    Args:
        config: Settings of the documents.
        seed: Seed of the documents and of the masked positions.

    Returns:
        The training documents and the test documents.
    """
    model = make_topic_model(config)

    def sample(number: int, name: str) -> CountedDocuments:
        stream = derive_seed(seed, "topic-training", name)
        tokens = sample_document_batch(model, number, config.lengths, stream).tokens
        return CountedDocuments(tokens, model.vocab_size, MASKING, config.batch_size, stream, once=True)

    return sample(config.documents, "documents"), sample(config.tests, "tests")


def train_network(
    config: Config,
    run: TopicTraining,
    seed: int,
    observer: WeightNorms | None = None,
    values: Tensor | None = None,
    deviation: float | None = None,
) -> tuple[TopicTransformer, dict[str, Any]]:
    """Train a transformer to predict the masked words of the documents of a seed.

    Args:
        config: Settings of the study.
        run: Settings of the training.
        seed: Seed of the documents, the batches and the initial weights.
        observer: Recorder of matrix norms (default: none).
        values: Fixed value matrix (default: none).
        deviation: Standard deviation of initial weights (default: `config.deviation`).

    Returns:
        The network, and its row of measurements with the training and test losses. The losses are None if the training
        diverged.
    """
    shape: dict[str, Any] = {"vocab_size": config.topics * config.words_per_topic, **run.network}
    width = shape.get("width") or shape["vocab_size"] + 1
    scale = (config.deviation if deviation is None else deviation) * math.sqrt(width)
    network = TopicTransformer(
        TopicTransformerConfig(**shape, initial_scale=scale), derive_seed(seed, run.group, run.name)
    )
    if values is not None:
        network.fix_values(values)
    batches, tests = sample_documents(config, seed)
    training = TrainingConfig(
        steps=run.steps,
        batch_size=config.batch_size,
        optimizer="adamw" if run.optimizer == "adam" else "sgd",
        learning_rate=run.rate,
        beta_2=0.999,
        weight_decay=0.0,
        warmup_steps=0,
        schedule="constant",
        gradient_clip=None,
        seed=seed,
        bf16=False,
        log_every=10,
    )
    loss = partial(document_loss, kind=LOSSES[run.loss], penalty=run.penalty)
    row: dict[str, Any] = {"kind": "training", **run.columns(), "failed": False}
    observers = [] if observer is None else [observer]
    try:
        result = train(network, batches, training, loss=loss, observer=observers, progress=False)
    except InputError as error:
        if error.field != "learning_rate":
            raise
        return network, row | {"failed": True, "train": None, "test": None}
    with torch.no_grad():
        test = float(document_loss(network, *tests.all, kind=LOSSES[run.loss]))
    return network, row | {"train": float(result.losses[-_LAST_LOSSES:].mean()), "test": test}


def _measure_matrix(
    config: Config, seed: int, run: TopicTraining, matrix_of: Callable[[TopicTransformer], Tensor]
) -> MeasuredRows:
    """Train a network, and yield its measurements and the entries of a matrix.

    The entries are yielded for the first seed only.
    """
    network, row = train_network(config, run, seed)
    matrix = matrix_of(network)
    yield row | compute_entry_means(matrix, make_topic_model(config))
    if seed == config.seeds[0]:
        yield from ({**run.columns(), **line} for line in list_entries(matrix))


def _list_combinations(config: Config, group: str, steps: int) -> list[tuple[str, str, float, int]]:
    """Return loss, optimizer, learning rate and steps of every training of a group."""
    return [
        (loss, *case)
        for loss in LOSSES
        for case in (
            ("adam", FIGURE_RATE, steps),
            ("sgd", FIGURE_RATE, steps),
            ("sgd", SGD_RATES[group][loss], steps * config.slower),
        )
    ]


def _compute_gram_matrix(network: TopicTransformer) -> Tensor:
    return network.embedding @ network.embedding.T


def _measure_embeddings(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train embeddings and yield losses and mean inner products of word vectors (Figure 2.1)."""
    for case in _list_combinations(config, "embeddings", config.embedding_steps):
        run = TopicTraining("embeddings", "all", *case, network={"biases": "all"})
        yield from _measure_matrix(config, seed, run, _compute_gram_matrix)
    by_adam = ("adam", FIGURE_RATE, config.embedding_steps)
    for loss in LOSSES:
        run = TopicTraining("embeddings", "embedding alone", loss, *by_adam, network=EMBEDDING_ONLY)
        network, row = train_network(config, run, seed)
        yield row | compute_entry_means(_compute_gram_matrix(network), make_topic_model(config))


def _measure_values(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train value matrices under uniform attention and yield losses and mean entries (Figures 2.2 and 2.5)."""
    for penalty in (config.penalty, 0.0):
        for case in _list_combinations(config, "values", config.value_steps):
            name = "with L2" if penalty else "without L2"
            run = TopicTraining("values", name, *case, penalty, VALUES_ONLY)
            yield from _measure_matrix(config, seed, run, lambda network: network.values[0])


def _measure_attention(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train attention and yield losses and mean attention weights (Tables 2.1 and 2.2, Figure 2.6)."""
    model, steps = make_topic_model(config), config.attention_steps
    diagonal = diagonal_values(TopicModel(config.topics, config.words_per_topic, 1), MASKING)
    by_sgd = ("sgd", SGD_RATES["attention"]["CE"], steps * config.slower)
    cases: list[tuple[str, str, float, int]]
    cases = [("CE", *setting, steps) for setting in SETTINGS] + [("CE", *by_sgd)]
    runs = [TopicTraining("attention", "with values", *case, network=ONE_HOT) for case in cases]
    fixed = ONE_HOT | {"values": "fixed"}
    runs += [
        TopicTraining("attention", "diagonal values", "CE", "adam", rate, steps, network=fixed)
        for rate in DIAGONAL_RATES
    ]
    runs.append(
        TopicTraining("attention", "with values", "squared", "adam", FIGURE_RATE, steps, network=ONE_HOT)
    )
    tests = sample_documents(config, seed)[1]
    for run in runs:
        network, row = train_network(config, run, seed, values=diagonal if run.network is fixed else None)
        yield row | compute_entry_means(network.values[0], model)
        for shift in (0, SHIFT):
            attended = compute_attention_by_class(network, tests.tokens, model, shift)
            setting = run.columns() | {"shift": shift, "failed": row["failed"]}
            yield {"kind": "attention", **setting, **attended._asdict()}


def _measure_stages(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Yield matrix norms during training (Figures 2.4 and 2.9), and a test of the saddle point at zero weights."""
    deep = {"width": config.deep_width, "layers": 4, "heads": 4, "residual": True, "biases": "all"}
    one_layer = partial(TopicTraining, "stages", "one layer", "CE", network=ONE_HOT)
    for run in (
        one_layer("sgd", config.stage_rate, config.stage_steps),
        one_layer("adam", FIGURE_RATE, config.attention_steps),
        TopicTraining(
            "stages", "four layers", "CE", "adam", config.deep_rate, config.deep_steps, network=deep
        ),
    ):
        every = max(1, run.steps // _CURVE_POINTS)
        norms = WeightNorms(range(0, run.steps + 1, every), TopicTransformer.matrices)
        yield train_network(config, run, seed, norms, deviation=config.stage_deviation)[1]
        for step, sizes in norms.norms.items():
            turned = {f"{name}_turned": size for name, size in norms.rotations[step].items()}
            yield {"kind": "stage", **run.columns(), "step": step, **sizes, **turned}
    yield {"kind": "saddle", "moved": _measure_saddle_point(config, seed)}


def _measure_saddle_point(config: Config, seed: int) -> float:
    """Train ten steps from zero key and query matrices, and return their largest entry, which should remain zero.

    Keys and queries have no biases.
    """
    batches = sample_documents(config, seed)[0]
    shape = TopicTransformerConfig(vocab_size=batches.vocab_size, embeddings="one-hot")
    network = TopicTransformer(shape, seed)
    matrices = (*network.keys, *network.queries)
    with torch.no_grad():
        for matrix in matrices:
            matrix.zero_()
    training = TrainingConfig(
        steps=10, batch_size=config.batch_size, learning_rate=FIGURE_RATE, weight_decay=0.0, bf16=False
    )
    train(network, batches, training, loss=document_loss, progress=False)
    return max(float(matrix.detach().abs().max()) for matrix in matrices)
