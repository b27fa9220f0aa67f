"""Pruning a whole random transformer to a small one: Theorem 2.2.3 and Corollary 2.2.3 of the thesis.

A layer is that of equation 2.42, with LN_C and without a head. Of four random layers for each of the target's, two in
a row become it and the others the identity:

    carrier   attends to nothing; its network writes x beside W^-1 P W_V x, where W is what is left of the next layer's
              values: a diagonal of large weights that read from some coordinates and write to others (Lemma 2.2.9)
    attender  attends as the target does, the values by that diagonal, and its network is pruned to the target's
    identity  attends to nothing; its network is pruned to x -> x
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
from trialogue_lab.theory.pruning import prune_keys_and_queries, prune_pair, uniform_weights

LAYERS_FOR_EACH = 4
"""Random layers for each layer of the target."""
_COMPARED = 24
"""Products that a subset of is to be one weight, at most: their subsets come within 1e-6 of it."""


class LayerWeights(NamedTuple):
    """The weights of a layer of a transformer of width m: columns of X are positions, no biases."""

    value: Tensor  # (m, m)
    key: Tensor  # (m_a, m)
    query: Tensor  # (m_a, m)
    mlp: tuple[Tensor, ...]  # of g, from its input to its output: (w, m), ..., (m, w)


Weights = tuple[LayerWeights, ...]


class LargeSize(NamedTuple):
    """The size of a random transformer: of its stream, of its keys, of the hidden layers of its networks."""

    stream: int
    keys: int
    hidden: int


def random_transformer(layers: int, size: LargeSize, mlp_layers: int, seed: int, name: str = "") -> Weights:
    """`layers` layers whose weights are uniform on (-1, 1), with networks of `mlp_layers` layers."""
    widths = [size.stream, *[size.hidden] * (mlp_layers - 1), size.stream]

    def drawn(place: int, what: str, rows: int, columns: int) -> Tensor:
        return uniform_weights(rows, columns, seed, f"{name}{what} {place}")

    return tuple(
        LayerWeights(
            drawn(place, "value", size.stream, size.stream),
            drawn(place, "key", size.keys, size.stream),
            drawn(place, "query", size.keys, size.stream),
            tuple(
                drawn(place, f"mlp {part}", rows, columns)
                for part, (columns, rows) in enumerate(pairwise(widths))
            ),
        )
        for place in range(layers)
    )


def random_target(layers: int, size: LargeSize, seed: int, name: str = "") -> Weights:
    """A transformer as the theorem asks for: networks of two layers, every matrix of spectral norm 1."""
    return tuple(
        LayerWeights(
            _unit(layer.value), _unit(layer.key), _unit(layer.query), tuple(_unit(each) for each in layer.mlp)
        )
        for layer in random_transformer(layers, size, 2, seed, f"target {name}")
    )


def _unit(weights: Tensor) -> Tensor:
    return weights / torch.linalg.matrix_norm(weights, 2)


@validated
@torch.no_grad()
def transformer(weights: Weights, floor: Positive) -> nn.Sequential:
    """The network (n, T, m) -> (n, T, m) of `weights`, float64 and causal, LN_C with C = `floor`."""
    stack = []
    for layer in weights:
        width, widths = len(layer.value), tuple(len(each) for each in layer.mlp)
        # Weights that torch would draw by itself would come from the global generator.
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
    """Prune the random layers `large` to the transformer `target`, whose layers take the place of layers from `first`.

    Each takes two, and all others are the identity. Input and output are the first m coordinates of the stream, the
    others zero. Raises `InputError` for weights beyond 1, unless there are four random layers for each, and where
    `large` is too small for the target to have its place in it.
    """
    target, large = tuple(target), tuple(large)
    if not target or len(large) != LAYERS_FOR_EACH * len(target):
        hint = f"{len(target)} layers are pruned of {LAYERS_FOR_EACH} random ones each"
        raise InputError("large", f"{len(large)} layers", hint)
    if first > 2 * len(target):
        raise InputError("first", first, f"the target takes {2 * len(target)} of {len(large)} layers")
    _require_room(target[0], large[0])
    inputs = torch.arange(len(target[0].value))
    pruned = []
    for place, layer in enumerate(large):
        which, attends = divmod(place - first, 2)
        if not 0 <= which < len(target):
            pruned.append(_linear_layer(layer, torch.eye(len(inputs)).double(), inputs, inputs))
            continue
        own = target[which]
        if attends:
            pruned.append(_attending_layer(layer, own, inputs))
            continue
        rows, columns, diagonal = _diagonal(large[place + 1].value, len(inputs))
        centred = own.value - own.value.mean(0)
        carried = torch.cat((torch.eye(len(inputs)).double(), centred / diagonal[:, None]))
        pruned.append(_linear_layer(layer, carried, inputs, torch.cat((rows, columns))))
    return tuple(pruned)


def _require_room(target: LayerWeights, large: LayerWeights) -> None:
    """Raise where a coordinate, an entry of the scores or a hidden unit of the target finds nothing to be made of."""
    width, hidden = len(target.value), max(len(target.mlp[0]), 2 * len(target.value))
    for field, has, least in (
        ("stream", len(large.value), 4 * width),
        ("keys", len(large.key), width * width),
        ("hidden", len(large.mlp[0]), 4 * hidden),
    ):
        if has < least:
            hint = f"too small for a target of width {width}: it would have to be at least {least}"
            raise InputError(field, has, hint)


def _diagonal(value: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns (count,) and weights of what is kept of `value`: the largest weight of each of some blocks,
    of either sign.

    Rows are of the first half of the coordinates and columns of the second, so that what is read is not written.
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


def _linear_layer(layer: LayerWeights, wanted: Tensor, inputs: Tensor, outputs: Tensor) -> LayerWeights:
    """A layer that attends to nothing and maps coordinates `inputs` by the matrix `wanted` to `outputs`.

    W x = [W, -W] ReLU([I; -I] x): Lemma 2.2.20.
    """
    identity = torch.eye(len(inputs)).double()
    both = torch.cat((identity, -identity)), torch.cat((wanted, -wanted), 1)
    value, key, query = (torch.zeros_like(each) for each in layer[:3])
    return LayerWeights(value, key, query, _pruned_mlp(layer.mlp, both, inputs, outputs))


def _attending_layer(layer: LayerWeights, target: LayerWeights, outputs: Tensor) -> LayerWeights:
    """A layer that does what `target` does, of what a carrier has written; its answer is in `outputs`."""
    rows, columns, diagonal = _diagonal(layer.value, len(outputs))
    value, key, query = (torch.zeros_like(each) for each in layer[:3])
    value[rows, columns] = diagonal
    scores = prune_keys_and_queries(
        target.key.T @ target.query, layer.key[:, rows], layer.query[:, rows], _COMPARED
    )
    key[:, rows], query[:, rows] = scores.key, scores.query
    return LayerWeights(value, key, query, _pruned_mlp(layer.mlp, target.mlp, rows, outputs))


def _pruned_mlp(
    mlp: tuple[Tensor, ...], target: tuple[Tensor, ...], inputs: Tensor, outputs: Tensor
) -> tuple[Tensor, ...]:
    """A random network of four layers pruned to one of two, between coordinates of the stream: Lemma 2.2.6."""
    first, second = target
    hidden = torch.arange(len(first))
    found = [torch.zeros_like(each) for each in mlp]
    inner = prune_pair(first, mlp[0][:, inputs], mlp[1][hidden], _COMPARED)
    outer = prune_pair(second, mlp[2][:, hidden], mlp[3][outputs], _COMPARED)
    found[0][:, inputs], found[1][hidden] = inner.first, inner.second
    found[2][:, hidden], found[3][outputs] = outer.first, outer.second
    return tuple(found)
