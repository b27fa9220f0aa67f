"""Laws of the size that the document uses, by samples: the staircase with masked tokens in mini-batches."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.models.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.one_hot import OneHotNetwork
from trialogue.oracles import Masked
from trialogue.randomness import seed_of
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue.training import (
    CyclicMasks,
    Displacement,
    Scheduled,
    TrainingConfig,
    log_steps,
    masked_batches,
    masked_token_loss,
    train,
)
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig
from trialogue_lab.studies.interaction_order.config import DEPTHS, Config

TESTS = 1024
"""Sequences that losses are measured on, each with every site masked in its turn."""
_POINTS = 40


def measure_large(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    """The law of a seed, product forms of two and three bodies on its samples, and networks of one to three layers."""
    stream = seed_of(seed, "interaction-order", "large")
    law = ManyBody.random(
        config.large_sites, config.large_vocab_size, rank=config.large_rank, scale=config.scale, seed=stream
    )
    drawn = run_sweeps(law, sweeps=config.large_sweeps, chains=config.large_sequences + TESTS, seed=stream)
    sequences, tests = drawn[TESTS:], drawn[:TESTS]
    forms = {
        name: _form_loss(config, order, sequences, tests, seed) for name, order in (("two", 2), ("three", 3))
    }
    yield {
        "kind": "large-law",
        "four": unseen_loss(law, tests),
        "uniform": math.log(law.vocab_size),
        **forms,
    } | {f"share_{order}": float(share) for order, share in enumerate(law.variance_by_order())}
    for layers in DEPTHS:
        yield from _network_rows(config, layers, sequences, tests, seed)


def unseen_loss(oracle: Masked, tests: Tensor) -> float:
    """Mean surprise of single masked tokens, in nats."""
    return -float(oracle.site_log_probs(tests).gather(2, tests[:, :, None]).mean())


def _network_rows(
    config: Config, layers: int, sequences: Tensor, tests: Tensor, seed: int
) -> Iterator[dict[str, Any]]:
    shape = FactoredAttentionConfig(
        vocab_size=config.large_vocab_size,
        sites=config.large_sites,
        layers=layers,
        initial_scale=config.large_scale,
    )
    net = FactoredAttention(shape, seed_of(seed, "interaction-order", "large", layers))
    net.dtype = torch.float32
    training = config.large_training(layers, seed)
    steps = (0, *log_steps(training.steps, _POINTS))
    watching, losses = Displacement(net, steps, FactoredAttention.matrices), dict[int, float]()
    told = Scheduled(steps, lambda update: losses.update({update.step: unseen_loss(net, tests)}))
    _train(net, sequences, training, [watching, told])
    for step in steps:
        moved = {f"moved_{layer + 1}": float(size) for layer, size in enumerate(watching.displacements[step])}
        yield {"kind": "large-curve", "layers": layers, "step": step, "loss": losses[step], **moved}


def _form_loss(config: Config, order: int, sequences: Tensor, tests: Tensor, seed: int) -> float:
    """The loss of a product form that is trained until it is as good as it gets, by AdamW."""
    shape = ProductFormConfig(
        vocab_size=config.large_vocab_size, sites=config.large_sites, order=order, initial_scale=0.1
    )
    form = ProductForm(shape, seed_of(seed, "interaction-order", "form", order))
    form.dtype = torch.float32
    training = TrainingConfig(
        steps=config.large_steps // 2,
        batch_size=config.large_batch,
        learning_rate=0.01,
        weight_decay=0.0,
        warmup_steps=config.large_steps // 50,
        seed=seed,
        bf16=False,
    )
    _train(form, sequences, training, [])
    return unseen_loss(form, tests)


def _train(net: OneHotNetwork, sequences: Tensor, training: TrainingConfig, observers: list[Any]) -> None:
    batches = masked_batches(
        sequences, net, CyclicMasks(), batch_size=training.batch_size, seed=training.seed
    )
    train(net, batches, training, loss=masked_token_loss, observer=observers, progress=False)
