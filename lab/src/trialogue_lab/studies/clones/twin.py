"""The experiment with clones on a small known distribution, the twin, for which losses are exact."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.generation.cloning.samplers import SAMPLERS, make_chain
from trialogue.models.networks.masked_transformer import MaskedTransformer
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import derive_seed, generator
from trialogue.samplers import MaskedMetropolis
from trialogue.training import (
    CyclicMasks,
    Scheduled,
    TrainingConfig,
    Update,
    log_steps,
    masked_batches,
    masked_token_loss,
    train,
)
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.models.published import bert
from trialogue_lab.studies.clones.config import Config
from trialogue_lab.studies.clones.material import INITIAL
from trialogue_lab.theory.order_truncation import truncate_orders
from trialogue_lab.training.population import MaskedPopulation


def measure_twin(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Train an encoder on a small random distribution, and record its exact losses on simplified copies.

    The distribution has interactions of up to four tokens, and all its sequences can be enumerated. A simplified copy
    (clone) lacks the interactions of more than k tokens.

    Args:
        config: Settings of the run.
        seed: Seed of the distribution and of the training.

    Yields:
        Three kinds of rows: the conditional entropy of each clone, the exact loss of the encoder on each clone by
        training step, and the total variation distance between each Markov chain's stationary distribution and its
        target.
    """
    model = _make_many_body_model(config, seed, 4)
    states = model.states()
    clones = _remove_high_orders(config, model)
    for order, clone in clones.items():
        yield {"kind": "twin-law", "order": order, "entropy": MaskedPopulation(clone).entropy}
    yield from _measure_samplers(config, seed)
    shape = bert(config.twin_vocab, config.twin_sites, layers=2, heads=4, width=32)
    random = generator(seed, "twin rows")
    chosen = torch.multinomial(model.probabilities(), config.twin_rows, replacement=True, generator=random)
    student = Transformer(shape, INITIAL)
    batches = masked_batches(states[chosen], student, CyclicMasks(), batch_size=256, seed=seed)
    warmup = min(100, config.twin_steps // 10)
    training = TrainingConfig(
        steps=config.twin_steps, batch_size=256, weight_decay=0.0, warmup_steps=warmup, seed=seed
    )
    losses: list[dict[str, Any]] = []

    def record_losses(update: Update) -> None:
        assert isinstance(update.model, Transformer)
        log_probs = MaskedTransformer(update.model).site_log_probs(states)
        own = log_probs.gather(2, states[:, :, None])[:, :, 0].double().mean(1)
        for order, clone in clones.items():
            loss = -float(clone.flatten() @ own)
            losses.append({"kind": "twin-loss", "step": update.step, "order": order, "loss": loss})

    observer = Scheduled({0, *log_steps(config.twin_steps, 2 * config.looks)}, record_losses)
    # The training is too short to store checkpoints.
    train(student, batches, training, loss=masked_token_loss, observer=observer, progress=False)
    yield from losses


def _make_many_body_model(config: Config, seed: int, order: int) -> ManyBody:
    size, stream = (config.twin_sites, config.twin_vocab), derive_seed(seed, "twin", order)
    return ManyBody.random(*size, order=order, rank=config.twin_rank, scale=config.twin_scale, seed=stream)


def _remove_high_orders(config: Config, model: ManyBody) -> dict[int, Tensor]:
    """Return, by k, the model's distribution (V, ..., V) without interactions of more than k tokens."""
    full = model.probabilities().view((config.twin_vocab,) * config.twin_sites)
    return {order: full if order == 4 else truncate_orders(full, order, 1e-9) for order in config.twin_orders}


def _measure_samplers(config: Config, seed: int) -> MeasuredRows:
    """Yield the total variation distance of each Markov chain's stationary distribution from its target."""
    states = enumerate_sequences(config.twin_vocab, config.twin_sites)
    for order in config.twin_orders:
        model = _make_many_body_model(config, seed, order)
        target = model.probabilities()
        for sampler in SAMPLERS:
            chain = make_chain(sampler, order)
            invariant = (
                (-chain.energy(model, states)).softmax(0) if isinstance(chain, MaskedMetropolis) else target
            )
            distance = float((invariant - target).abs().sum()) / 2
            yield {"kind": "twin-sampler", "order": order, "sampler": sampler, "distance": distance}
