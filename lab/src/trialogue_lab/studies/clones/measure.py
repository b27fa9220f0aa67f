"""The parts of a run: networks and their clones, an encoder followed on them, and the exact twin."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.models.masked import MaskedNetwork
from trialogue.models.transformer import Transformer
from trialogue.training import (
    CorpusLosses,
    corpus_score,
    log_steps,
    masked_batches,
    masked_token_loss,
    train,
)
from trialogue_lab.ledger import Part
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, MASKS, PUBLISHED, Config, Material, of_layers
from trialogue_lab.studies.clones.material import (
    INITIAL,
    clone_of,
    clones_of,
    corpus_of,
    network_of,
    order_of,
)
from trialogue_lab.studies.clones.twin import twin_rows

SAMPLERS = (PUBLISHED, GIBBS)


def parts(config: Config) -> list[Part]:
    """Clones first, the costliest of them first of all; a followed encoder waits for what it is measured on."""
    found = clone_parts(config)
    found += [
        Part(f"follow-{seed}", partial(_followed, config, seed), columns={"seed": seed})
        for seed in config.seeds
    ]
    found += [
        Part(f"networks-{seed}", partial(_networks, config, seed), columns={"seed": seed})
        for seed in config.seeds[1:]
    ]
    found += [
        Part(f"twin-{seed}", partial(twin_rows, config, seed), columns={"seed": seed})
        for seed in config.seeds
    ]
    return found


def clone_parts(config: Material) -> list[Part]:
    """A network and its clones each, the costliest first."""
    return [Part(f"clone-{name}", partial(_cloned, config, name)) for name in reversed(config.names)]


def _cloned(config: Material, name: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """A network, what its chains did, and what came of them."""
    corpus, seed = corpus_of(config, artifacts), config.seeds[0]
    network = network_of(config, name, seed, artifacts)
    if name != ENCODER:
        yield network_row(config, name, seed, network, artifacts)
    for sampler in SAMPLERS:
        drawn = clone_of(config, name, sampler, artifacts)
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
            found = drawn.convergence(sweeps)
            counts = torch.bincount(tokens.flatten(), minlength=corpus.vocab_size).double()
            shares = counts / counts.sum()
            yield {
                "kind": "clone",
                "clone": name,
                "order": order_of(config, name),
                "sampler": sampler,
                "sweeps": sweeps,
                "acceptance": drawn.acceptance,
                "effective_sample_size": None if found is None else found.effective_sample_size,
                "r_hat": None if found is None else found.r_hat,
                "drift": None if found is None else found.drift,
                "drift_error": None if found is None else found.drift_error,
                "own_loss": corpus_score(network, tokens).loss,
                "token_entropy": float(-torch.special.xlogy(shares, shares).sum()),
                "example": corpus.decode(tokens[:1])[0],
            }


def network_row(
    config: Material, name: str, seed: int, network: MaskedNetwork | Transformer, artifacts: Path
) -> dict[str, Any]:
    """Loss and accuracy of a network on held-out text."""
    test = corpus_of(config, artifacts).test
    score = corpus_score(network, test[:: max(1, len(test) // config.scored)][: config.scored])
    found = {"loss": score.loss, "error": score.error, "accuracy": score.accuracy}
    return {"kind": "network", "seed": seed, "network": name, "order": order_of(config, name), **found}


def _networks(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """The factored networks, trained once more."""
    for depth in config.layers:
        name = of_layers(depth)
        yield network_row(config, name, seed, network_of(config, name, seed, artifacts), artifacts)


def _followed(config: Config, seed: int, artifacts: Path) -> Iterator[dict[str, Any]]:
    """An encoder followed on every clone; all have the same initial weights, and another order of the data."""
    corpus = corpus_of(config, artifacts)
    clones = measured_clones(config, artifacts)
    folder = artifacts / f"follow-{seed}"
    schedule = {0, *log_steps(config.encoder_steps, config.looks)}
    losses = CorpusLosses(clones, schedule, path=folder / "losses.jsonl")
    encoder, training = Transformer(config.encoder(), INITIAL), config.encoder_training(seed)
    batches = masked_batches(corpus.train, encoder, MASKS, batch_size=training.batch_size, seed=seed)
    train(
        encoder,
        batches,
        training,
        loss=masked_token_loss,
        checkpoint_dir=folder,
        observer=losses,
        progress=False,
    )
    yield network_row(config, ENCODER, seed, encoder, artifacts)
    yield from loss_rows(losses)


def measured_clones(config: Material, artifacts: Path) -> dict[str, Tensor]:
    """The clones that networks are followed on, and the text: of those by Gibbs the last alone."""
    return {
        name: tokens
        for name, tokens in clones_of(config, SAMPLERS, artifacts).items()
        if f"/{GIBBS}/" not in name or name.endswith(f"/{config.sweeps[-1]}")
    }


def loss_rows(losses: CorpusLosses) -> Iterator[dict[str, Any]]:
    """What was measured on every clone, one row for each step."""
    for row in losses.rows:
        name, _, rest = str(row["corpus"]).partition("/")
        sampler, _, sweeps = rest.partition("/")
        yield {
            "kind": "loss",
            "step": row["step"],
            "clone": name,
            "sampler": sampler,
            "sweeps": int(sweeps or 0),
            "loss": row["loss"],
            "accuracy": row["accuracy"],
        }
