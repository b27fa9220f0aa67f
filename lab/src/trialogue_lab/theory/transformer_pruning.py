"""Pruning of a random transformer to a smaller one (thesis, Theorem 2.2.3 and Corollary 2.2.3).

The large transformer has four random layers for each layer of the target. Two of them approximate the target
layer, and two become the identity:

    carrier   has no attention. Its feedforward network computes the value vectors of the target.
    attender  has the attention scores and the feedforward network of the target.
    identity  has no attention, and its feedforward network is pruned to x -> x.

Layers follow equation 2.42 with the normalization LN_C and without a prediction head.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.validation import Natural, Positive, validated
from trialogue_lab.models.dyck_transformer.config import DyckTransformerConfig
from trialogue_lab.models.dyck_transformer.layers import DyckLayer
from trialogue_lab.theory.pruning import prune_keys_and_queries, prune_weight_matrices, uniform_weights
from trialogue_lab.theory.rectifier_networks import linear_map

LAYERS_FOR_EACH = 4
"""Number of random layers per target layer."""
_COMPARED = 24
"""Largest number of products compared for one weight. Their subset sums reach an accuracy of 1e-6."""


class LayerWeights(NamedTuple):
    """Weights of a transformer layer of width m without biases.

    Attributes:
        value: Value weights (m, m).
        key: Key weights (m_a, m).
        query: Query weights (m_a, m).
        mlp: Weights of the feedforward network from input to output, (w, m), ..., (m, w).
    """

    value: Tensor
    key: Tensor
    query: Tensor
    mlp: tuple[Tensor, ...]


Weights = tuple[LayerWeights, ...]


class LargeSize(NamedTuple):
    """Size of a random transformer.

    Attributes:
        stream: Width of the residual stream.
        keys: Width of keys and queries.
        hidden: Width of the hidden layers of the feedforward networks.
    """

    stream: int
    keys: int
    hidden: int


def random_transformer(layers: int, size: LargeSize, mlp_layers: int, seed: int, name: str = "") -> Weights:
    """Return random transformer weights, uniformly distributed on (-1, 1).

    Args:
        layers: Number of transformer layers.
        size: Widths of the transformer.
        mlp_layers: Number of layers of each feedforward network.
        seed: Seed of the weights.
        name: Prefix of the names of the random streams.
    """
    widths = [size.stream, *[size.hidden] * (mlp_layers - 1), size.stream]

    def draw(place: int, what: str, rows: int, columns: int) -> Tensor:
        return uniform_weights(rows, columns, seed, f"{name}{what} {place}")

    return tuple(
        LayerWeights(
            draw(place, "value", size.stream, size.stream),
            draw(place, "key", size.keys, size.stream),
            draw(place, "query", size.keys, size.stream),
            tuple(
                draw(place, f"mlp {part}", rows, columns)
                for part, (columns, rows) in enumerate(pairwise(widths))
            ),
        )
        for place in range(layers)
    )


def random_target(layers: int, size: LargeSize, seed: int, name: str = "") -> Weights:
    """Return the weights of a small random transformer that a larger one is pruned to approximate.

    Each feedforward network has two layers, and each matrix is scaled to spectral norm 1.

    Args:
        layers: Number of transformer layers.
        size: Widths of the transformer.
        seed: Seed of the weights.
        name: Suffix of the names of the random streams.
    """
    return tuple(
        LayerWeights(
            _scale_to_unit_norm(layer.value),
            _scale_to_unit_norm(layer.key),
            _scale_to_unit_norm(layer.query),
            tuple(_scale_to_unit_norm(each) for each in layer.mlp),
        )
        for layer in random_transformer(layers, size, 2, seed, f"target {name}")
    )


def _scale_to_unit_norm(weights: Tensor) -> Tensor:
    return weights / torch.linalg.matrix_norm(weights, 2)


@validated
@torch.no_grad()
def transformer(weights: Weights, floor: Positive) -> nn.Sequential:
    """Build the causal transformer with the given weights in float64.

    Args:
        weights: Weights of each layer.
        floor: Constant C of the normalization LN_C.

    Returns:
        Module that maps activations (n, T, m) at T positions to the same shape.
    """
    stack = []
    for layer in weights:
        width, widths = len(layer.value), tuple(len(each) for each in layer.mlp)
        # On the meta device, torch does not draw weights from its global generator.
        shape = DyckTransformerConfig(
            key_width=len(layer.key), residual=True, norm_floor=floor, learned_gain=False
        )
        with torch.device("meta"):
            made = DyckLayer(width, width, widths, shape)
        made.to_empty(device="cpu").double()
        linears = [part for part in made.mlp if isinstance(part, nn.Linear)]
        for linear, given in zip(linears, layer.mlp, strict=True):
            linear.weight.copy_(given)
            linear.bias.zero_()
        made.attention.value.weight.copy_(layer.value)
        made.attention.key.weight.copy_(layer.key)
        made.attention.query.weight.copy_(layer.query)
        stack.append(made)
    return nn.Sequential(*stack).eval()


@validated
def prune_transformer(
    target: Sequence[LayerWeights], large: Sequence[LayerWeights], first: Natural = 0
) -> Weights:
    """Prune the random transformer `large` to approximate the transformer `target`.

    Each target layer is approximated by two consecutive large layers, and the remaining layers become the
    identity. Input and output are the first m coordinates of the large residual stream. The other coordinates
    are zero.

    Args:
        target: Layers of the target transformer of width m.
        large: Random layers, four for each target layer.
        first: Index of the first large layer that approximates the target.

    Returns:
        Weights of the large transformer, zero where pruned.

    Raises:
        InputError: If a weight is outside [-1, 1], the number of layers is wrong, or `large` is too small.
    """
    target, large = tuple(target), tuple(large)
    if not target or len(large) != LAYERS_FOR_EACH * len(target):
        hint = f"give {LAYERS_FOR_EACH} random layers for each of the {len(target)} target layers"
        raise InputError("large", f"{len(large)} layers", hint)
    if first > 2 * len(target):
        raise InputError("first", first, f"use at most {2 * len(target)}")
    _require_room(target[0], large[0])
    inputs = torch.arange(len(target[0].value))
    pruned = []
    for place, layer in enumerate(large):
        which, attends = divmod(place - first, 2)
        if not 0 <= which < len(target):
            pruned.append(_prune_to_linear_layer(layer, torch.eye(len(inputs)).double(), inputs, inputs))
            continue
        own = target[which]
        if attends:
            pruned.append(_prune_to_attention_layer(layer, own, inputs))
            continue
        rows, columns, diagonal = _choose_diagonal(large[place + 1].value, len(inputs))
        centred = own.value - own.value.mean(0)
        carried = torch.cat((torch.eye(len(inputs)).double(), centred / diagonal[:, None]))
        pruned.append(_prune_to_linear_layer(layer, carried, inputs, torch.cat((rows, columns))))
    return tuple(pruned)


def _require_room(target: LayerWeights, large: LayerWeights) -> None:
    """Raise `InputError` if the large layer is too small for the target."""
    width, hidden = len(target.value), max(len(target.mlp[0]), 2 * len(target.value))
    for field, has, least in (
        ("stream", len(large.value), 4 * width),
        ("keys", len(large.key), width * width),
        ("hidden", len(large.mlp[0]), 4 * hidden),
    ):
        if has < least:
            hint = f"use at least {least} for a target of width {width}"
            raise InputError(field, has, hint)


def _choose_diagonal(value: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Choose one large entry of `value` for each of `count` coordinates, the largest one of a block.

    Returns rows, columns (count,) and weights. Rows are in the first half of the coordinates and columns in the second
    half, so the layer never writes to the coordinates that it reads.
    """
    half = len(value) // 2
    side = half // count
    rows, columns = [], []
    for place in range(count):
        block = value[place * side : (place + 1) * side, half + place * side : half + (place + 1) * side]
        row, column = divmod(int(block.abs().argmax()), side)
        rows.append(place * side + row)
        columns.append(half + place * side + column)
    return torch.tensor(rows), torch.tensor(columns), value[rows, columns]


def _prune_to_linear_layer(
    layer: LayerWeights, wanted: Tensor, inputs: Tensor, outputs: Tensor
) -> LayerWeights:
    """Return a layer without attention that maps coordinates `inputs` by the matrix `wanted` to `outputs`."""
    value, key, query = (torch.zeros_like(each) for each in layer[:3])
    return LayerWeights(value, key, query, _prune_mlp(layer.mlp, linear_map(wanted), inputs, outputs))


def _prune_to_attention_layer(layer: LayerWeights, target: LayerWeights, outputs: Tensor) -> LayerWeights:
    """Return a pruned layer that approximates the attention and feedforward network of `target`.

    It reads the output of the layer before it, and writes to the coordinates `outputs`.
    """
    rows, columns, diagonal = _choose_diagonal(layer.value, len(outputs))
    value, key, query = (torch.zeros_like(each) for each in layer[:3])
    value[rows, columns] = diagonal
    scores = prune_keys_and_queries(
        target.key.T @ target.query, layer.key[:, rows], layer.query[:, rows], _COMPARED
    )
    key[:, rows], query[:, rows] = scores.key, scores.query
    return LayerWeights(value, key, query, _prune_mlp(layer.mlp, target.mlp, rows, outputs))


def _prune_mlp(
    mlp: tuple[Tensor, ...], target: tuple[Tensor, ...], inputs: Tensor, outputs: Tensor
) -> tuple[Tensor, ...]:
    """Prune a random four-layer feedforward network to a two-layer one (Lemma 2.2.6).

    It reads the coordinates `inputs` of the residual stream and writes to the coordinates `outputs`.
    """
    first, second = target
    hidden = torch.arange(len(first))
    found = [torch.zeros_like(each) for each in mlp]
    inner = prune_weight_matrices(first, mlp[0][:, inputs], mlp[1][hidden], _COMPARED)
    outer = prune_weight_matrices(second, mlp[2][:, hidden], mlp[3][outputs], _COMPARED)
    found[0][:, inputs], found[1][hidden] = inner.first, inner.second
    found[2][:, hidden], found[3][outputs] = outer.first, outer.second
    return tuple(found)
