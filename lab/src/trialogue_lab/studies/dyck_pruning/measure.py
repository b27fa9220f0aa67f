"""The parts of a run: how near subsets come to numbers, matrices, scores, two layers, and whole transformers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue_lab.ledger import Part
from trialogue_lab.studies.dyck_pruning.config import Config
from trialogue_lab.theory.pruning import (
    closest_subset,
    prune_linear,
    prune_network,
    prune_scores,
    uniform_weights,
)
from trialogue_lab.theory.transformer_pruning import (
    LAYERS_FOR_EACH,
    LargeSize,
    LayerWeights,
    Weights,
    prune_transformer,
    random_target,
    random_transformer,
    transformer,
)

_SCORES = 2
"""Rows and columns of the matrix that keys and queries are pruned to, and of both layers of a network"""

_TARGET = LargeSize(stream=2, keys=2, hidden=4)
_STREAM = 24
"""Coordinates of the random transformer's stream"""
_FLOOR = 0.5
"""C of LN_C"""
_SEQUENCES, _POSITIONS = 50, 8


def parts(config: Config) -> list[Part]:
    """One part for each draw."""
    return [
        Part(f"{name}-{seed}", partial(measured, config, seed), columns={"seed": seed})
        for seed in config.seeds
        for name, measured in (("draw", _draw), ("transformer", _transformer))
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


def _transformer(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    for layers in config.layers:
        targets = [random_target(layers, _TARGET, seed, name) for name in ("one", "other")]
        for hidden in config.hidden:
            size = LargeSize(_STREAM, hidden, hidden)
            large = random_transformer(LAYERS_FOR_EACH * layers, size, 4, seed, f"{layers} ")
            # Where the target's layers are does not change how near it is: for one layer both places are tried.
            for first in (0, 2) if layers == 1 else (0,):
                pruned = [prune_transformer(target, large, first) for target in targets]
                errors = [_apart(*pair, seed) for pair in zip(targets, pruned, strict=True)]
                # Layers that the targets do not take are the identity for both.
                shared = range(2 * layers) if first else range(2 * layers, len(large))
                yield {
                    "kind": "transformer",
                    "layers": layers,
                    "hidden": hidden,
                    "first": first,
                    "error": errors[0],
                    "other_error": errors[1],
                    "targets_apart": _apart(targets[0], targets[1], seed),
                    "changed": sum(_changed(each, large) for each in pruned),
                    "same": all(_equal(pruned[0][place], pruned[1][place]) for place in shared),
                }


@torch.no_grad()
def _apart(target: Weights, other: Weights, seed: int) -> float:
    """The largest distance of two transformers' answers over the largest vector of the input: |.|_{1,2}."""
    inputs = uniform_weights(_SEQUENCES * _POSITIONS, len(target[0].value), seed, "sequences")
    inputs = inputs.reshape(_SEQUENCES, _POSITIONS, -1) / inputs.norm(dim=1).max()
    padded = torch.nn.functional.pad(inputs, (0, len(other[0].value) - inputs.shape[2]))
    missed = transformer(other, _FLOOR)(padded)
    missed[..., : inputs.shape[2]] -= transformer(target, _FLOOR)(inputs)
    missed = missed.norm(dim=2).max(1).values
    return float((missed / inputs.norm(dim=2).max(1).values).max())


def _changed(pruned: Weights, large: Weights) -> int:
    """Weights that are neither those of the random transformer nor zero."""
    return sum(
        int(((kept != 0) & (kept != drawn)).sum())
        for ours, theirs in zip(pruned, large, strict=True)
        for kept, drawn in zip((*ours[:3], *ours.mlp), (*theirs[:3], *theirs.mlp), strict=True)
    )


def _equal(layer: LayerWeights, other: LayerWeights) -> bool:
    """Whether two layers have the same weights."""
    return all(map(torch.equal, (*layer[:3], *layer.mlp), (*other[:3], *other.mlp)))
