"""The twin of the study on a law that is known: clones are exact laws, and losses on them are exact too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import ManyBody
from trialogue.generation.cloning.samplers import SAMPLERS, chain_of
from trialogue.models.masked_transformer import MaskedTransformer
from trialogue.models.transformer import Transformer
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator, seed_of
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
from trialogue_lab.models.published import bert
from trialogue_lab.studies.clones.config import Config
from trialogue_lab.studies.clones.material import INITIAL
from trialogue_lab.theory.order_truncation import keep_orders


def twin_rows(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """A random law of four-body energies: what samplers make of laws of k bodies, and an encoder that learns it."""
    law = _law(config, seed, 4)
    states = law.states()
    clones = _clones(config, law)
    for order, clone in clones.items():
        yield {"kind": "twin-law", "order": order, "entropy": _conditional_entropy(clone)}
    yield from _sampled(config, seed)
    shape = bert(config.twin_vocab, config.twin_sites, layers=2, heads=4, width=32)
    drawn = torch.multinomial(
        law.probabilities(), config.twin_rows, replacement=True, generator=generator(seed, "twin rows")
    )
    student = Transformer(shape, INITIAL)
    batches = masked_batches(states[drawn], student, CyclicMasks(), batch_size=256, seed=seed)
    training = TrainingConfig(
        steps=config.twin_steps,
        batch_size=256,
        weight_decay=0.0,
        warmup_steps=min(100, config.twin_steps // 10),
        seed=seed,
    )
    losses: list[dict[str, Any]] = []

    def look(update: Update) -> None:
        assert isinstance(update.model, Transformer)
        answers = MaskedTransformer(update.model).site_log_probs(states)
        own = answers.gather(2, states[:, :, None])[:, :, 0].double().mean(1)
        for order, clone in clones.items():
            loss = -float(clone.flatten() @ own)
            losses.append({"kind": "twin-loss", "step": update.step, "order": order, "loss": loss})

    schedule = {0, *log_steps(config.twin_steps, 2 * config.looks)}
    train(
        student, batches, training, loss=masked_token_loss, observer=Scheduled(schedule, look), progress=False
    )
    del artifacts  # the training is shorter than what keeping it would save
    yield from losses


def _law(config: Config, seed: int, order: int) -> ManyBody:
    return ManyBody.random(
        config.twin_sites,
        config.twin_vocab,
        order=order,
        rank=config.twin_rank,
        scale=config.twin_scale,
        seed=seed_of(seed, "twin", order),
    )


def _clones(config: Config, law: ManyBody) -> dict[int, Tensor]:
    """The law's part of at most k bodies (V, ..., V), by k; of four bodies it is the law itself."""
    whole = law.probabilities().view((config.twin_vocab,) * config.twin_sites)
    return {order: whole if order == 4 else keep_orders(whole, order, 1e-9) for order in config.twin_orders}


def _conditional_entropy(law: Tensor) -> float:
    """Mean entropy of a site given the others, in nats: the least loss on the law."""
    parts = [-(law * law.log().log_softmax(site)).sum() for site in range(law.ndim)]
    return float(torch.stack(parts).mean())


def _sampled(config: Config, seed: int) -> Iterator[dict[str, Any]]:
    """How far from a law of exactly k bodies each sampler ends, given its exact conditionals: in total variation."""
    states = whole_sequences(config.twin_vocab, config.twin_sites)
    for order in config.twin_orders:
        law = _law(config, seed, order)
        target = law.probabilities()
        for sampler in SAMPLERS:
            chain = chain_of(sampler, order)
            found = (-chain.energy(law, states)).softmax(0) if isinstance(chain, MaskedMetropolis) else target
            distance = float((found - target).abs().sum()) / 2
            yield {"kind": "twin-sampler", "order": order, "sampler": sampler, "distance": distance}
