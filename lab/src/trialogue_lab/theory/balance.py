"""Test of whether attention cancels matched brackets (thesis, equations 2.47 to 2.54).

The networks read balanced strings of brackets and predict the next one. Only the brackets that are still open
matter for the prediction. A network is balanced if each closed pair adds the zero vector to the attention
sum, which is the sum of value vectors weighted by exp(score), before normalization.

Two published constants are corrected: Lemma 2.2.1 uses 4 / eps + 1, and Corollary 2.2.2 uses the excess loss
instead of the loss.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.validation import (
    Count,
    InstanceOf,
    Natural,
    Positive,
    Probability,
    Several,
    check,
    integer_range,
    validated,
)
from trialogue_lab.models.dyck_transformer.embeddings import state_count, state_of
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

Statistic = Literal["thesis", "released"]
Target = Literal["next", "closing"]

_MOST_STRINGS = 10**6
_MINIMAL = 1e-5
"""Tolerance for the test that earlier layers depend on bracket and depth only."""

_ROUNDING = 1e-14
"""Rounding error of a distance, subtracted so that bounds stay valid."""


@validated
def state_vectors(network: InstanceOf[DyckTransformer]) -> Tensor:
    """Compute the vectors that the last attention layer of a network reads for brackets.

    Brackets of the same type and depth have the same vector. The depth of a bracket is the number of open brackets,
    including its own pair. Each vector is computed from a short example string.

    Args:
        network: Network for k bracket types and at most D open brackets.

    Returns:
        Matrix (2 k D + 1, m) float64 with one vector of width m per row. Row `state_of(token, depth, D)`
        belongs to a bracket at a depth, and the last row to the start token.

    Raises:
        InputError: If the vectors depend on more than bracket and depth.
    """
    shape = network.config
    if shape.positions == "none" and len(network.stack) == 1 and shape.embedding != "tokens":
        return network.table.double()
    first, second = (
        _compute_last_layer_inputs(network, kind, extra) for kind, extra in ((0, 0), (shape.types - 1, 2))
    )
    difference = float((first - second).abs().max())
    if difference > _MINIMAL:
        hint = f"the input of its last layer depends on more than bracket and depth (difference {difference:.2g})"
        raise InputError("network", f"{len(network.stack)} layers", hint)
    return first


@torch.no_grad()
def _compute_last_layer_inputs(network: DyckTransformer, kind: int, extra: int) -> Tensor:
    """Return the last layer's input at each bracket and depth, in strings that start with `extra` closed pairs."""
    types, depth = network.config.types, network.config.depth
    before = [2 * kind, 2 * kind + 1] * extra
    prefixes = [
        [*before, *[2 * kind] * (d - 1), *([token] if token % 2 == 0 else [token - 1, token])]
        for token in range(2 * types)
        for d in range(1, depth + 1)
    ]
    rows = []
    for prefix in (*prefixes, []):
        x = network.embed(torch.tensor([prefix], dtype=torch.int64, device=network.table.device))
        for layer in network.stack[:-1]:
            x = layer(x)
        rows.append(x[0, -1].double())
    return torch.stack(rows)


class PairContributions:
    """Contributions of matched pairs of brackets to the attention of a network.

    Only open brackets matter for the next bracket, so a matched pair should contribute zero. Contributions
    are computed for each query (j, d): a closing bracket of type j after which d - 1 brackets are still open.

    Args:
        network: Network with at least two bracket types and two depths.

    Raises:
        InputError: If the network is not supported, for example if its first layer depends on more than
            bracket and depth, or if more than 10^6 strings would be enumerated.
    """

    @validated
    def __init__(self, network: InstanceOf[DyckTransformer]) -> None:
        shape = network.config
        if shape.norm == "sum" and (shape.residual or any(shape.mlps)):
            raise InputError("norm", shape.norm, "use a network that normalizes the attention output only")
        hint = "use at least two types and two depths"
        self.types, self.depth = check("types", shape.types, integer_range(2), hint), shape.depth
        check("depth", shape.depth, integer_range(2), hint)
        if self.types ** (self.depth - 1) > _MOST_STRINGS:
            hint = f"{self.types}^{self.depth - 1} strings of types are too many. Use fewer types or depths"
            raise InputError("depth", self.depth, hint)
        self.network = network
        with torch.no_grad():
            self.vectors = state_vectors(network)
            attention = network.attention
            values = self.vectors @ attention.value.weight.double().T
            self.values = values - values.mean(1, keepdim=True)
            keys, queries = (
                self.vectors @ side.weight.double().T for side in (attention.key, attention.query)
            )
            scores = keys @ queries.T * (not attention.uniform)
            self.weights = (scores - scores.max(0).values).exp()  # (keys, queries)

    def query(self, kind: int, d: int) -> int:
        """Return the row of a closing bracket in the matrix `state_vectors`.

        Args:
            kind: Bracket type.
            d: Depth of the closing bracket. After it, d - 1 brackets are still open.
        """
        return state_of(2 * kind + 1, d, self.depth)

    @cached_property
    def pairs(self) -> Tensor:
        """Vector that a matched pair of brackets adds to the attention sum, for each pair and query.

            w_open v_open + w_close v_close

        Here v are the value vectors of the two brackets and w = exp(score) their attention weights (S of
        equation 2.51). The result is a float64 tensor (D - 1, D, k, k, v). Its axes are the depth of the
        query (2 to D), the depth of the pair (1 to D), the type of the pair, the type of the query, and the
        components of the vector.
        """
        found = torch.zeros(self.depth - 1, self.depth, self.types, self.types, self.values.shape[1]).double()
        for d, at, i, j in itertools.product(
            range(2, self.depth + 1), range(1, self.depth + 1), range(self.types), range(self.types)
        ):
            both = [state_of(token, at, self.depth) for token in (2 * i, 2 * i + 1)]
            found[d - 2, at - 1, i, j] = self.weights[both, self.query(j, d)] @ self.values[both]
        return found

    def shortest(self, j: int, d: int) -> tuple[list[int], list[int], float, float]:
        """Find two strings of open brackets with the smallest attention sums for a query.

        The query is a closing bracket, and each string consists of the d - 1 brackets that are still open after it. The
        last brackets of the two strings have different types. A sum is small if its norm is small.

        Args:
            j: Type of the query's closing bracket.
            d: Depth of the query, from 2 to D.

        Returns:
            Types in the first string, types in the second string, norm of the first sum, norm of the second.
        """
        strings, query = enumerate_sequences(self.types, d - 1), self.query(j, d)
        added = self.weights[:, query, None] * self.values
        opening = (2 * strings) * self.depth + torch.arange(d - 1)
        always = [len(added) - 1, state_of(2 * j, d, self.depth), state_of(2 * j + 1, d, self.depth)]
        lengths = (added[opening].sum(1) + added[always].sum(0)).norm(dim=1)
        best = int(lengths.argmin())
        others = lengths.where(strings[:, -1] != strings[best, -1], math.inf)
        other = int(others.argmin())
        return strings[best].tolist(), strings[other].tolist(), float(lengths[best]), float(others[other])


@validated
def balance_violation(network: InstanceOf[DyckTransformer], statistic: Statistic = "thesis") -> float:
    """Measure the remaining contribution of matched brackets to the attention of a network.

    The result is 0 if every pair of matched brackets adds the zero vector to each attention sum (Theorem
    2.2.1).

    Args:
        network: Network to analyze.
        statistic: "thesis" averages the relative norm of a pair's contribution over queries, depths and
            types. "released" averages only the largest norm of each query, as the published code does. Norms
            are relative to the second and the first norm of `PairContributions.shortest`, respectively.

    Raises:
        InputError: If `PairContributions` rejects the network.
    """
    balance = PairContributions(network)
    lengths = balance.pairs.norm(dim=-1)
    ratios = []
    for d, j in itertools.product(range(2, balance.depth + 1), range(balance.types)):
        _, _, least, other = balance.shortest(j, d)
        here = lengths[d - 2, :, :, j]
        ratios.append(float(here.mean()) / other if statistic == "thesis" else float(here.max()) / least)
    return math.fsum(ratios) / len(ratios)


class InequalityChain(NamedTuple):
    """Both sides of three inequalities on errors of a network and the effect of matched brackets (Theorem 2.2.2).

    The inequalities compare two strings with different open brackets after the same repeated pairs of matched
    brackets. Each entry ("case") belongs to a string length N, a query (closing bracket), and a choice of the
    repeated pairs. The entries of `pair` and `pair_bound` belong to a length and a query only.

    Attributes:
        distance: Distance (cases,) between the normalized attention sums of the two strings.
        required: Lower bound (cases,) on `distance`: the distance of the exact output distributions minus the
            errors of the network, divided by `lipschitz`.
        total: Norm (cases,) of the vector that all repeated pairs add to the attention sum.
        total_bound: Upper bound (cases,) on `total`, (4 / `distance` + 1) P, where P is the second norm of
            `PairContributions.shortest`.
        pair: Largest norm (cases,) of the vector that one pair adds to the sum of a query.
        pair_bound: Upper bound (cases,) on `pair`, 16 D (4 / eps + 1) P / N.
        lipschitz: Upper bound on the Lipschitz constant of the map from normalized sums to output
            distributions.
    """

    distance: Tensor
    required: Tensor
    total: Tensor
    total_bound: Tensor
    pair: Tensor
    pair_bound: Tensor
    lipschitz: float


def _bound_lipschitz_constant(network: InstanceOf[DyckTransformer]) -> float:
    """Return an upper bound on |change of the next-token distribution| / |change of the attention output|."""
    with torch.no_grad():
        layer = network.stack[-1]
        norms = [
            float(torch.linalg.matrix_norm(part.weight.double(), 2))
            for part in (*layer.mlp, network.head)
            if isinstance(part, torch.nn.Linear)
        ]
        gain = 1.0 if layer.norm.gain is None else float(layer.norm.gain.abs().max())
    # The softmax has Lipschitz constant 1/2.
    return math.prod(norms) * gain / 2


@validated
def inequality_chain(
    network: InstanceOf[DyckTransformer],
    lengths: Several[Count] = (40, 128, 512),
    open_prob: Probability = 0.5,
    target: Target = "next",
) -> InequalityChain:
    """Evaluate the inequalities in the proof of Theorem 2.2.2 on a network that predicts brackets.

    By the theorem, matched brackets nearly cancel in the attention sums of a network with small errors on long strings.
    The inequalities compare two strings that differ in the types of their open brackets only. Their constants are
    corrected.

    Args:
        network: Network to analyze.
        lengths: Numbers of brackets N, each at least 8 D.
        open_prob: Probability of an opening bracket in the exact distribution.
        target: Distribution that defines the errors: "next" for the next bracket, or "closing" for closing
            brackets only, for networks trained on these.

    Raises:
        InputError: If `PairContributions` rejects the network or a length is below 8 D.
    """
    balance = PairContributions(network)
    for length in lengths:
        check("lengths", length, integer_range(8 * balance.depth))
    gamma, sizes = _bound_lipschitz_constant(network), balance.pairs.norm(dim=-1)
    columns: list[list[float]] = [[] for _ in range(6)]
    distance, required, total, total_bound, pair, pair_bound = columns
    for length, d, j in itertools.product(lengths, range(2, balance.depth + 1), range(balance.types)):
        t, other, _, least = balance.shortest(j, d)
        exact = [_compute_exact_distribution(balance, types[-1], open_prob, target) for types in (t, other)]
        apart, factors = float((exact[0] - exact[1]).norm()), []
        for outer, i in itertools.product(range(balance.depth), range(balance.types)):
            pumped = _count_brackets(balance, outer, i, length // 2 - outer - d - 1)
            normed, outputs, raw = _compute_outputs(balance, pumped, (t, other), j, d, target)
            errors = float((outputs - torch.stack(exact)).norm(dim=1).sum())
            distance.append(float((normed[0] - normed[1]).norm()))
            required.append((apart - errors) / gamma)
            unfloored = raw / raw.norm(dim=1, keepdim=True)
            eps = max(0.0, float((unfloored[0] - unfloored[1]).norm()) - _ROUNDING)
            factors.append(4 / eps + 1 if eps else math.inf)
            added = (pumped * balance.weights[:, balance.query(j, d)]) @ balance.values
            total.append(float(added.norm()))
            total_bound.append(factors[-1] * least)
        pair.append(float(sizes[d - 2, :, :, j].max()))
        pair_bound.append(16 * balance.depth * max(factors) * least / length)
    return InequalityChain._make((*(torch.tensor(column, dtype=torch.float64) for column in columns), gamma))


@validated
def pumped_distances(network: InstanceOf[DyckTransformer], pairs: Natural) -> Tensor:
    """Measure how well a network distinguishes two strings after many matched pairs of brackets.

    The strings have different open brackets. If the repeated pairs do not cancel in the attention sum, the
    distance between the attention outputs of the strings falls as 1 / `pairs` (equation 2.49).

    Args:
        network: Network to analyze.
        pairs: Number of repeated pairs before the open brackets.

    Returns:
        Distances (cases,) float64 between normalized attention sums. A case is a query with a depth and a
        type of the repeated pairs.

    Raises:
        InputError: If `PairContributions` rejects the network.
    """
    balance = PairContributions(network)
    found = []
    for d, j in itertools.product(range(2, balance.depth + 1), range(balance.types)):
        t, other, _, _ = balance.shortest(j, d)
        for outer, i in itertools.product(range(balance.depth), range(balance.types)):
            pumped = _count_brackets(balance, outer, i, pairs)
            normed, _, _ = _compute_outputs(balance, pumped, (t, other), j, d, "next")
            found.append(float((normed[0] - normed[1]).norm()))
    return torch.tensor(found, dtype=torch.float64)


@validated
def log_weight_decay(
    network: InstanceOf[DyckTransformer], length: Count, eps: Positive, open_prob: Probability = 0.5
) -> float:
    """Return the logarithm of a weight decay for which the optimal network has small errors (Corollary 2.2.2).

    It is the log of the lambda for which lambda |theta|^2 / 2 = (q (1 - q) / k^2)^N eps. The left side bounds the
    excess loss of an optimum with weight decay, for the parameters theta of `network` and k bracket types.

    Args:
        network: Network whose loss is the smallest possible.
        length: Length N of the strings.
        eps: Accuracy eps of Theorem 2.2.2.
        open_prob: Probability q of an opening bracket.
    """
    squared = sum(float(parameter.detach().double().square().sum()) for parameter in network.parameters())
    least = math.log(open_prob * (1 - open_prob) / network.config.types**2)
    return math.log(2 * eps / squared) + length * least


def _count_brackets(balance: PairContributions, outer: int, i: int, pairs: int) -> Tensor:
    """Count how often each bracket and depth occurs in `pairs` matched pairs inside `outer` nested pairs of type i."""
    counts = torch.zeros(state_count(balance.types, balance.depth), dtype=torch.float64)
    for at in range(1, outer + 1 + (outer < balance.depth)):
        both = [state_of(token, at, balance.depth) for token in (2 * i, 2 * i + 1)]
        counts[both] = 1.0 if at <= outer else float(pairs)
    return counts


def _compute_outputs(
    balance: PairContributions,
    pumped: Tensor,
    strings: Sequence[Sequence[int]],
    j: int,
    d: int,
    target: Target,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the attention of a query after each of some strings of open brackets.

    Returns normalized attention sums, output distributions and sums before normalization, one row per string.
    """
    network, query = balance.network, balance.query(j, d)
    layer = network.stack[-1]
    counts = pumped.repeat(len(strings), 1)
    for row, types in zip(counts, strings, strict=True):
        opened = [state_of(2 * kind, at, balance.depth) for at, kind in enumerate(types, 1)]
        for state in (-1, *opened, state_of(2 * j, d, balance.depth), query):
            row[state] += 1
    weighed = counts * balance.weights[:, query]
    raw = weighed @ balance.values
    attended = raw / weighed.sum(1, keepdim=True)
    normed = attended / attended.norm(dim=1, keepdim=True).clamp_min(max(layer.norm.floor, 1e-300))
    with torch.no_grad():
        dtype = network.table.dtype
        own = balance.vectors[query].to(dtype).expand(len(attended), -1)
        logits = network.head(layer.after_attention(attended.to(dtype), own)).double()
    if target == "closing":
        logits = logits[:, 1 : 2 * balance.types : 2]
    return normed, logits.softmax(1), raw


def _compute_exact_distribution(
    balance: PairContributions, innermost: int, open_prob: float, target: Target
) -> Tensor:
    """Return the exact distribution of the next bracket, given the type of the innermost open bracket."""
    if target == "closing":
        return torch.eye(balance.types, dtype=torch.float64)[innermost]
    probabilities = torch.zeros(balance.network.vocab_size, dtype=torch.float64)
    probabilities[0 : 2 * balance.types : 2] = open_prob / balance.types
    probabilities[2 * innermost + 1] = 1 - open_prob
    return probabilities
