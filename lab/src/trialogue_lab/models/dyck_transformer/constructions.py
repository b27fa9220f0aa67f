"""Transformers whose weights are set by hand, so that they predict brackets exactly (Theorem 2.2.1, Corollary 2.2.1).

The second layer sums over all brackets. A pair of matching brackets contributes zero, so only open brackets
remain in the sum, each in its own direction. A ReLU network reads the innermost open bracket from this sum.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.validation import Count, Natural, NonNegative, Probability, validated
from trialogue_lab.models.dyck_transformer.config import DyckTransformerConfig
from trialogue_lab.models.dyck_transformer.embeddings import state_count, state_of
from trialogue_lab.models.dyck_transformer.layers import DyckLayer
from trialogue_lab.models.dyck_transformer.network import DyckTransformer
from trialogue_lab.models.dyck_transformer.rectifiers import (
    AffineForm,
    Rectifiers,
    coordinates,
    select_value,
    sum_forms,
    write,
)

SMALLEST_PROJECTION = 1e-7
"""Smallest share of an unmatched bracket in the norm of the sum that exceeds rounding errors."""
_LOG_ZERO = -40.0
_DIRECTIONS = 256


class _Size(NamedTuple):
    types: int
    depth: int

    @property
    def brackets(self) -> list[tuple[int, int, int]]:
        """Token, type and depth of every combination of bracket and depth, in the order of `state_of`."""
        return [(token, token // 2, d) for token in range(2 * self.types) for d in range(1, self.depth + 1)]

    def direction(self, kind: int, pair_depth: int) -> int:
        """Return the index of the vector that represents an open bracket of a type and depth."""
        return kind * self.depth + pair_depth - 1


@validated
def balanced_transformer(
    types: Count, depth: Count, logits_std: NonNegative = 2.0, seed: Natural = 0, open_prob: Probability = 0.5
) -> DyckTransformer:
    """Construct a two-layer transformer that predicts the next bracket exactly at any length (Theorem 2.2.1).

    Attention scores are random, except that matching brackets must cancel in the attention output ("perfect
    balance"). All bracket types are equally likely. Weights are float64.

    Args:
        types: Number of bracket types.
        depth: Largest number of open brackets.
        logits_std: Standard deviation of the random attention scores.
        seed: Seed of the random numbers.
        open_prob: Probability that a bracket opens if it can also close.

    Raises:
        InputError: If the contribution of an open bracket can be as small as a rounding error.
    """
    size = _Size(types, depth)
    count = state_count(*size)
    drawn = generator(seed, "balanced transformer", "scores")
    scores = torch.empty(count, count, dtype=torch.float64).normal_(generator=drawn) * logits_std
    ratios = torch.empty(size.types, size.depth, dtype=torch.float64).normal_(generator=drawn) * logits_std
    for token, kind, d in size.brackets:
        if token % 2:
            # Equation 2.47: the scores of a closing and of its opening bracket differ by a number that does not
            # depend on the query.
            scores[state_of(token, d, depth)] = scores[state_of(token - 1, d, depth)] - ratios[kind, d - 1]
    smallest = smallest_projection(scores, size.types, size.depth)
    if smallest < SMALLEST_PROJECTION:
        hint = (
            f"an unmatched bracket's part of the sum can be {smallest:.1g}, below {SMALLEST_PROJECTION}, which "
            "rounding hides: use a smaller spread or another seed"
        )
        raise InputError("logits_std", logits_std, hint)
    network = DyckTransformer(
        DyckTransformerConfig(
            types=types,
            depth=depth,
            key_width=count,
            residual=True,
            mlps=(_compute_decoder_widths(size),),
            double=True,
        )
    )
    with torch.no_grad():
        network.attention.key.weight.copy_(torch.eye(count))
        network.attention.query.weight.copy_(scores)
    _write_decoder(network, size, ratios, smallest, seed, open_prob)
    return network.eval()


@validated
def uniform_attention_transformer(
    types: Count, depth: Count, seed: Natural = 0, open_prob: Probability = 0.5
) -> DyckTransformer:
    """Construct a transformer with uniform attention that predicts the next bracket exactly (Corollary 2.2.1).

    It has two layers, and its predictions are exact at any length. Weights are float64.

    Args:
        types: Number of bracket types.
        depth: Largest number of open brackets.
        seed: Seed of the directions that represent open brackets.
        open_prob: Probability that a bracket opens if it can also close.
    """
    size = _Size(types, depth)
    count, width = state_count(*size), 2 * size.types + 1
    network = DyckTransformer(
        DyckTransformerConfig(
            types=types,
            depth=depth,
            embedding="tokens",
            width=width,
            key_width=1,
            residual=True,
            mlps=((2 * (count - 1), count), _compute_decoder_widths(size)),
            double=True,
        )
    ).eval()
    first = network.stack[0]
    with torch.no_grad():
        _set_gain(first, 1.0)
        for layer in network.stack:
            layer.attention.query.weight.zero_()
            layer.attention.key.weight.zero_()
        value = first.attention.value.weight
        value.zero_()
        value[0, 0:-1:2], value[0, 1:-1:2], value[1, -1] = 1.0, -1.0, 1.0
        # The first layer computes the depth after each token, and detects the start token.
    counts = torch.zeros(count, width, dtype=torch.float64)
    counts[:, 1] = 1
    for token, _, d in size.brackets:
        counts[state_of(token, d, depth), 0] = d - token % 2
    codes = first.norm(counts) + network.table
    direction = _find_separating_direction(codes, torch.eye(width, dtype=torch.float64), seed)
    stage = Rectifiers()
    marks, order = _add_indicators(stage, coordinates(direction[None])[0], codes @ direction)
    # If the input encodes state s, the output is the unit vector s (equation 2.55).
    outputs = [AffineForm()] * count
    for mark, state in zip(marks, order, strict=True):
        outputs[state] = mark
    write(first.mlp, [stage], outputs)
    smallest = smallest_projection(torch.zeros(count, count, dtype=torch.float64), *size)
    ratios = torch.zeros(size.types, size.depth, dtype=torch.float64)
    _write_decoder(network, size, ratios, smallest, seed, open_prob)
    return network.eval()


def smallest_projection(scores: Tensor, types: int, depth: int) -> float:
    """Return the smallest possible projection of the normalized attention output on an open bracket's direction.

    If it is close to zero, the bracket cannot be distinguished from rounding errors. It is smallest if all
    other open brackets have their largest attention weights.

    Args:
        scores: Attention scores (states, states) of keys for queries. A state is a bracket with its depth.
        types: Number of bracket types.
        depth: Largest number of open brackets.

    Returns:
        The projection, between 0 and 1. It is 1 if no bracket can remain open.
    """
    least = 1.0
    opening = torch.tensor([[state_of(2 * t, d, depth) for t in range(types)] for d in range(1, depth + 1)])
    for token in range(1, 2 * types, 2):
        for d in range(1, depth):
            query = state_of(token, d + 1, depth)
            logs = scores[opening[:d], query]
            logs = logs - logs.max()
            low, high = logs.min(1).values.exp(), logs.max(1).values.exp()
            others = high.square().sum() - high.square()
            least = min(least, float((low / (low.square() + others).sqrt()).min()))
    return least


def _find_separating_direction(vectors: Tensor, within: Tensor, seed: int) -> Tensor:
    """Find a random unit vector (m,) on which the projections of `vectors` (n, m) are far apart."""
    drawn = generator(seed, "dyck transformer", "directions")
    tried = torch.empty(_DIRECTIONS, len(within), dtype=torch.float64).normal_(generator=drawn) @ within
    tried /= tried.norm(dim=1, keepdim=True)
    gaps = (vectors @ tried.T).sort(0).values.diff(dim=0).min(0).values
    return tried[gaps.argmax()]


def _add_indicators(
    stage: Rectifiers, form: AffineForm, values: Tensor
) -> tuple[list[AffineForm], list[int]]:
    """Add an indicator for each possible value of `form`: 1 if it has this value and 0 otherwise.

    Returns the indicators and the indices that sort `values`, which is the order of the indicators.
    """
    ordered, order = values.sort()
    return stage.steps(form, ordered.tolist()), order.tolist()


def _compute_decoder_widths(size: _Size) -> tuple[int, ...]:
    pairs, states = size.types * size.depth, state_count(*size)
    return (
        2 * (states - 1) + 2 * pairs,
        2 * pairs + 3,
        2 * size.depth + 3,
        2,
        4 * size.types,
        2 * size.types + 1,
    )


@torch.no_grad()
def _write_decoder(
    network: DyckTransformer, size: _Size, ratios: Tensor, smallest: float, seed: int, open_prob: float
) -> None:
    """Set the value weights to orthogonal vectors (equations 2.63 and 2.64), and build the six-layer ReLU network."""
    types, depth = size
    states, pairs = state_count(*size), types * depth
    drawn = torch.empty(states, states - 1, dtype=torch.float64)
    drawn.normal_(generator=generator(seed, "dyck transformer", "values"))
    drawn[:, 0] = 1.0
    basis = torch.linalg.qr(drawn, mode="complete").Q.T
    directions, rest = basis[1 : pairs + 1], torch.cat((basis[:1], basis[pairs + 1 :]))
    value = network.attention.value.weight
    value.zero_()
    for token, kind, d in size.brackets:
        direction = directions[size.direction(kind, d)]
        column = direction * -float(ratios[kind, d - 1].exp()) if token % 2 else direction
        value[:, state_of(token, d, depth)] = column
    separating = _find_separating_direction(torch.eye(states, dtype=torch.float64), rest, seed)
    # At depth 0, only rounding errors remain, which LN_0 scales to a unit vector of any direction. The gain is so small
    # that the state can still be read from the residual.
    scale = float(separating.sort().values.diff().min()) / 4
    _set_gain(network.stack[-1], scale)
    smallest *= scale

    hidden = [Rectifiers() for _ in range(5)]
    # Layers 1 and 2: the state of the last bracket, and a 0/1 indicator for each bracket that may be unmatched.
    at, order = _add_indicators(hidden[0], coordinates(separating[None])[0], separating)
    projected = [hidden[0].signed(form) for form in coordinates(directions)]
    facts = [_describe_state(size, state) for state in order]
    own = [select_value(at, [float(row[state]) for state in order]) for row in directions]
    unmatched = [
        hidden[1].ramp(here - known, smallest / 3, 2 * smallest / 3)
        for here, known in zip(projected, own, strict=True)
    ]
    base, reads, behind = (
        hidden[1].relu(select_value(at, [float(fact[i]) for fact in facts])) for i in range(3)
    )
    # Layer 3 (Lemma 2.2.17) selects the type at the depth after the last bracket.
    kinds = [
        sum_forms([unmatched[size.direction(kind, d)] * (kind + 1.0) for kind in range(types)])
        for d in range(1, depth + 1)
    ]
    most = types * (types + 1) / 2
    units = [
        (
            hidden[2].relu(kind + (behind - d) * most),
            hidden[2].relu(kind + (behind - (d + 1.0)) * most),
        )
        for d, kind in enumerate(kinds, 1)
    ]
    base, reads, behind = (hidden[2].relu(form) for form in (base, reads, behind))
    innermost = sum_forms([first - second for first, second in units]) - (behind - 1.0) * most
    # Layer 4: the type is ignored after an opening bracket and at depth 0, where the sum has only rounding errors.
    innermost = hidden[3].relu(innermost - (reads * -1.0 + 1.0) * most)
    base = hidden[3].relu(base)
    # Layers 5 and 6: look up the distribution of the next bracket.
    answers = hidden[4].steps(base + innermost, [float(i) for i in range(2 * types + 1)])
    write(network.stack[-1].mlp, hidden, answers)
    network.head.weight.copy_(_list_distributions(types, open_prob).log().clamp_min(_LOG_ZERO).T)
    network.head.bias.zero_()


@torch.no_grad()
def _set_gain(layer: DyckLayer, gain: float) -> None:
    assert layer.norm.gain is not None
    layer.norm.gain.fill_(gain)


def _describe_state(size: _Size, state: int) -> tuple[int, int, int]:
    """Return the numbers from which the ReLU network computes the distribution of the next bracket.

    They are an index in `_list_distributions`, whether to add the type of the innermost open bracket to it,
    and the depth.
    """
    if state == state_count(*size) - 1:
        return 0, 0, 1
    token, kind, d = size.brackets[state]
    if token % 2 == 0:
        return kind + 1 + size.types * (d == size.depth), 0, d
    return 0, int(d > 1), max(1, d - 1)


def _list_distributions(types: int, open_prob: float) -> Tensor:
    """Return all possible distributions of the next bracket, shape (2 k + 1, 2 k) for k types.

    Row 0: no bracket is open. Row t + 1: the innermost open bracket has type t. Row k + t + 1: the same at
    full depth.
    """
    distributions = torch.zeros(2 * types + 1, 2 * types, dtype=torch.float64)
    distributions[0, ::2] = 1 / types
    distributions[1 : types + 1, ::2] = open_prob / types
    for kind in range(types):
        distributions[1 + kind, 2 * kind + 1] = 1 - open_prob
        distributions[1 + types + kind, 2 * kind + 1] = 1.0
    return distributions
