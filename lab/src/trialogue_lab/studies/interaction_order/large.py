"""Measurements on a large distribution of the published size, which is sampled and not enumerated."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.one_hot import OneHotNetwork
from trialogue.oracles import Masked
from trialogue.randomness import derive_seed
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
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.models.product_form import ProductForm, ProductFormConfig
from trialogue_lab.studies.interaction_order.config import DEPTHS, Config

TEST_SEQUENCES = 1024
"""Number of sequences on which losses are measured, with each site masked in turn."""
_CURVE_POINTS = 40


def measure_large(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train networks on samples of one random distribution of the published size.

    Args:
        config: Settings of the run.
        seed: Seed of the distribution and of the networks.

    Yields:
        One row with the held-out losses of simple predictors and of the distribution itself. A simple predictor is a
        product of functions of two or three tokens. One row per network and recorded step, with its held-out loss.
    """
    stream = derive_seed(seed, "interaction-order", "large")
    shape = config.large_sites, config.large_vocab_size
    model = ManyBody.random(*shape, rank=config.large_rank, scale=config.scale, seed=stream)
    chains = config.large_sequences + TEST_SEQUENCES
    samples = run_sweeps(model, sweeps=config.large_sweeps, chains=chains, seed=stream)
    data = samples[TEST_SEQUENCES:], samples[:TEST_SEQUENCES]
    yield {
        "kind": "large-law",
        "four": compute_heldout_loss(model, data[1]),
        "uniform": math.log(model.vocab_size),
        "two": _measure_product_form(config, 2, *data, seed),
        "three": _measure_product_form(config, 3, *data, seed),
    } | {f"share_{order}": float(share) for order, share in enumerate(model.variance_by_order())}
    for layers in DEPTHS:
        yield from _measure_network(config, layers, *data, seed)


def compute_heldout_loss(oracle: Masked, test_sequences: Tensor) -> float:
    """Return the mean negative log-probability of single masked tokens given the other tokens, in nats.

    Args:
        oracle: The masked language model.
        test_sequences: Token ids (n, sites). Each position is masked in turn.
    """
    return -float(oracle.site_log_probs(test_sequences).gather(2, test_sequences[:, :, None]).mean())


def _measure_network(config: Config, layers: int, sequences: Tensor, test: Tensor, seed: int) -> MeasuredRows:
    size: dict[str, Any] = {"vocab_size": config.large_vocab_size, "sites": config.large_sites}
    shape = FactoredAttentionConfig(**size, layers=layers, initial_scale=config.large_scale)
    net = FactoredAttention(shape, derive_seed(seed, "interaction-order", "large", layers))
    net.dtype = torch.float32
    training = config.large_training(layers, seed)
    steps = (0, *log_steps(training.steps, _CURVE_POINTS))
    movement, losses = Displacement(net, steps, FactoredAttention.matrices), dict[int, float]()
    evaluation = Scheduled(
        steps, lambda update: losses.update({update.step: compute_heldout_loss(net, test)})
    )
    _train(net, sequences, training, [movement, evaluation])
    for step in steps:
        moved = {f"moved_{layer}": float(size) for layer, size in enumerate(movement.displacements[step], 1)}
        yield {"kind": "large-curve", "layers": layers, "step": step, "loss": losses[step], **moved}


def _measure_product_form(config: Config, order: int, sequences: Tensor, test: Tensor, seed: int) -> float:
    """Train a predictor that is a product of functions of `order` tokens, and return its held-out loss."""
    size: dict[str, Any] = {"vocab_size": config.large_vocab_size, "sites": config.large_sites}
    shape = ProductFormConfig(**size, order=order, initial_scale=0.1)
    form = ProductForm(shape, derive_seed(seed, "interaction-order", "form", order))
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
    return compute_heldout_loss(form, test)


def _train(net: OneHotNetwork, sequences: Tensor, training: TrainingConfig, observers: list[Any]) -> None:
    data = masked_batches(sequences, net, CyclicMasks(), batch_size=training.batch_size, seed=training.seed)
    train(net, data, training, loss=masked_token_loss, observer=observers, progress=False)
