"""Tasks of a run, which prune random networks to numbers, matrices, attention scores, two layers and transformers."""

from pathlib import Path

import torch
from torch import Tensor

from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.dyck_pruning.config import Config
from trialogue_lab.theory import pruning
from trialogue_lab.theory import transformer_pruning as theory
from trialogue_lab.theory.pruning import uniform_weights
from trialogue_lab.theory.transformer_pruning import LargeSize, LayerWeights, Weights, transformer

_SMALL_SIZE = 2
"""Number of rows and columns of the matrices to which scores and two-layer networks are pruned."""
_TARGET = LargeSize(stream=2, keys=2, hidden=4)
_STREAM_WIDTH = 24
"""Width of the residual stream of the random transformers."""
_NORM_FLOOR = 0.5
"""Constant C of LN_C."""
_SEQUENCES, _POSITIONS = 50, 8


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, two for each seed, which prune random networks to approximate targets.

    Pruning sets some random weights to zero and leaves the others unchanged. The targets of the first task are numbers,
    matrices, attention scores and two-layer networks. The targets of the second task are transformers.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, draw=_measure_lemmas, transformer=_measure_transformers)


def _measure_lemmas(config: Config, seed: int, _: Path) -> MeasuredRows:
    for count in config.counts:
        products = uniform_weights(2, count, seed, f"products {count}").prod(0)
        targets = uniform_weights(1, config.targets, seed, f"numbers {count}")[0]
        largest = max(pruning.closest_subset(products, float(target))[1] for target in targets)
        yield {"kind": "number", "count": count, "error": largest}
    for size in config.sizes:
        target, other = (uniform_weights(size, size, seed, f"{name} {size}") for name in ("target", "other"))
        inputs = uniform_weights(config.inputs, size, seed, f"inputs {size}")
        for units in config.units:
            width = 2 * size * units
            pruned, other_pruned = (pruning.prune_linear(matrix, width, seed) for matrix in (target, other))
            outputs = pruned(inputs)
            yield {
                "kind": "matrix",
                "size": size,
                "units": units,
                "width": width,
                "error": pruned.error,
                "measured": _largest_error(outputs - inputs @ target.T, inputs),
                "kept": float((pruned.second != 0).double().mean()),
                "other_error": other_pruned.error,
                "same_first": bool(torch.equal(pruned.first, other_pruned.first)),
                "apart": float((outputs - other_pruned(inputs)).norm(dim=1).max()),
            }
    first, second = (uniform_weights(_SMALL_SIZE, _SMALL_SIZE, seed, name) for name in ("first", "second"))
    inputs = uniform_weights(config.inputs, _SMALL_SIZE, seed, "inputs")
    outputs = (inputs @ first.T).relu() @ second.T
    for units in config.units:
        scores = pruning.prune_scores(first, units * _SMALL_SIZE**2, seed)
        yield {"kind": "scores", "units": units, "error": scores.error}
        layers = pruning.prune_network(first, second, (2 * _SMALL_SIZE * units,) * 2, seed)
        measured = _largest_error(layers(inputs) - outputs, inputs)
        yield {"kind": "layers", "units": units, "error": layers.error, "measured": measured}


def _largest_error(differences: Tensor, inputs: Tensor) -> float:
    """Return the largest ratio |difference| / |input| over rows, for two tensors (n, size)."""
    return float((differences.norm(dim=1) / inputs.norm(dim=1)).max())


def _measure_transformers(config: Config, seed: int, _: Path) -> MeasuredRows:
    for layers in config.layers:
        targets = [theory.random_target(layers, _TARGET, seed, name) for name in ("one", "other")]
        for hidden in config.hidden:
            size = LargeSize(_STREAM_WIDTH, hidden, hidden)
            large = theory.random_transformer(theory.LAYERS_FOR_EACH * layers, size, 4, seed, f"{layers} ")
            # The position of the target's layers does not change the error. For one layer, both positions are tried.
            for first in (0, 2) if layers == 1 else (0,):
                pruned = [theory.prune_transformer(target, large, first) for target in targets]
                errors = [_measure_distance(*pair, seed) for pair in zip(targets, pruned, strict=True)]
                # The layers that the targets do not use are the identity for both.
                shared = range(2 * layers) if first else range(2 * layers, len(large))
                yield {
                    "kind": "transformer",
                    "layers": layers,
                    "hidden": hidden,
                    "first": first,
                    "error": errors[0],
                    "other_error": errors[1],
                    "targets_apart": _measure_distance(targets[0], targets[1], seed),
                    "changed": sum(_count_changed(weights, large) for weights in pruned),
                    "same": all(_are_equal(pruned[0][place], pruned[1][place]) for place in shared),
                }


@torch.no_grad()
def _measure_distance(target: Weights, other: Weights, seed: int) -> float:
    """Return the largest distance between the outputs of two transformers, relative to the largest input."""
    inputs = uniform_weights(_SEQUENCES * _POSITIONS, len(target[0].value), seed, "sequences")
    inputs = inputs.reshape(_SEQUENCES, _POSITIONS, -1) / inputs.norm(dim=1).max()
    padded = torch.nn.functional.pad(inputs, (0, len(other[0].value) - inputs.shape[2]))
    differences = transformer(other, _NORM_FLOOR)(padded)
    differences[..., : inputs.shape[2]] -= transformer(target, _NORM_FLOOR)(inputs)
    largest = differences.norm(dim=2).max(1).values
    return float((largest / inputs.norm(dim=2).max(1).values).max())


def _list_matrices(layer: LayerWeights) -> tuple[Tensor, ...]:
    return (*layer[:3], *layer.mlp)


def _count_changed(pruned: Weights, large: Weights) -> int:
    """Count the pruned weights that are neither zero nor equal to the original weight."""
    return sum(
        int(((after != 0) & (after != before)).sum())
        for pruned_layer, layer in zip(pruned, large, strict=True)
        for after, before in zip(_list_matrices(pruned_layer), _list_matrices(layer), strict=True)
    )


def _are_equal(layer: LayerWeights, other: LayerWeights) -> bool:
    return all(map(torch.equal, _list_matrices(layer), _list_matrices(other)))
