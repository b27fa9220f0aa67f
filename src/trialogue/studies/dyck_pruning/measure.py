"""The parts of a run: for each draw how near subsets come to numbers, matrices, scores and two layers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue.ledger import Part
from trialogue.studies.dyck_pruning.config import Config
from trialogue.theory.pruning import (
    closest_subset,
    prune_linear,
    prune_network,
    prune_scores,
    uniform_weights,
)

_SCORES = 2
"""Rows and columns of the matrix that keys and queries are pruned to, and of both layers of a network"""


def parts(config: Config) -> list[Part]:
    """One part for each draw."""
    return [
        Part(f"draw-{seed}", partial(_draw, config, seed), columns={"seed": seed}) for seed in config.seeds
    ]


def _draw(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    for count in config.counts:
        products = uniform_weights(2, count, seed, f"products {count}").prod(0)
        wanted = uniform_weights(1, config.targets, seed, f"numbers {count}")[0]
        worst = max(closest_subset(products, float(each))[1] for each in wanted)
        yield {"kind": "number", "count": count, "error": worst}
    for size in config.sizes:
        target, other = (uniform_weights(size, size, seed, f"{name} {size}") for name in ("target", "other"))
        inputs = uniform_weights(config.inputs, size, seed, f"inputs {size}")
        for units in config.units:
            width = 2 * size * units
            pruned, another = (prune_linear(each, width, seed) for each in (target, other))
            missed = (pruned(inputs) - inputs @ target.T).norm(dim=1) / inputs.norm(dim=1)
            yield {
                "kind": "matrix",
                "size": size,
                "units": units,
                "width": width,
                "error": pruned.error,
                "measured": float(missed.max()),
                "kept": float((pruned.second != 0).double().mean()),
                "other_error": another.error,
                "same_first": bool(torch.equal(pruned.first, another.first)),
                "apart": float((pruned(inputs) - another(inputs)).norm(dim=1).max()),
            }
    matrices = [uniform_weights(_SCORES, _SCORES, seed, name) for name in ("first", "second")]
    inputs = uniform_weights(config.inputs, _SCORES, seed, "inputs")
    for units in config.units:
        scores = prune_scores(matrices[0], units * _SCORES**2, seed)
        yield {"kind": "scores", "units": units, "error": scores.error}
        layers = prune_network(matrices[0], matrices[1], (2 * _SCORES * units,) * 2, seed)
        wanted = (inputs @ matrices[0].T).relu() @ matrices[1].T
        missed = (layers(inputs) - wanted).norm(dim=1) / inputs.norm(dim=1)
        yield {"kind": "layers", "units": units, "error": layers.error, "measured": float(missed.max())}
