"""What attention to brackets must do: a pair cancels, for any query (the thesis' equations 2.47 to 2.54).

In a network whose first layer is minimal what a bracket adds to a sum of attention depends on its state, its token
and the depth of its pair. The query is a bracket that closes type j, with d - 1 brackets open behind it, d = 2 to D.
With the query's exponentials of scores as weights, S_{d,d',i,j} is what a pair of type i adds at depth d', and
P_{d,j} the length of the least that a prefix must add, once its open brackets have another innermost type than the
least of all.

Constants are corrected where the printed ones do not hold: 4 / eps + 1 for Lemma 2.2.1, excess for loss.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.oracles import whole_sequences
from trialogue.validation import Count, InstanceOf, Natural, Positive, Probability, Several, validated
from trialogue_lab.models.dyck_transformer.embeddings import state_count, state_of
from trialogue_lab.models.dyck_transformer.network import DyckTransformer

Statistic = Literal["thesis", "released"]
Target = Literal["next", "closing"]

_MOST_STRINGS = 10**6
_MINIMAL = 1e-5
"""First layers that answer differently by more than this for one state are not minimal."""

_ROUNDING = 1e-14
"""How far apart normed sums can seem that are the same: a bound must not rest on less."""


@validated
def state_vectors(network: InstanceOf[DyckTransformer]) -> Tensor:
    """What the last layer reads of a bracket in each state (2 k D + 1, m) float64, last of the starting token.

    Raises `InputError` for a network where that depends on more than token and depth.
    """
    shape = network.config
    if shape.positions == "none" and len(network.stack) == 1 and shape.embedding != "tokens":
        return network.table.double()
    first, second = (_read(network, kind, extra) for kind, extra in ((0, 0), (shape.types - 1, 2)))
    difference = float((first - second).abs().max())
    if difference > _MINIMAL:
        hint = (
            f"what it reads of one type and depth differs by {difference:.2g}: its first layer is not minimal"
        )
        raise InputError("network", f"{len(network.stack)} layers", hint)
    return first


@torch.no_grad()
def _read(network: DyckTransformer, kind: int, extra: int) -> Tensor:
    """What the last layer reads in each state behind `extra` pairs and brackets open of type `kind`."""
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


class Balance:
    """What pairs and prefixes add to the sum of attention of a network, each times the scale of its query."""

    @validated
    def __init__(self, network: InstanceOf[DyckTransformer]) -> None:
        """Read the contributions off `network`.

        Raises `InputError` where its first layer is not minimal, where it is normed behind the residual (2.85), which
        has no such sums, for one type of brackets or depth 1, and for more than a million strings of types.
        """
        shape = network.config
        if shape.norm == "sum" and (shape.residual or any(shape.mlps)):
            raise InputError("norm", shape.norm, "the sums are those of a norm of attention alone")
        hint = "the balance is one of at least two types and depths"
        self.types, self.depth = whole_number("types", shape.types, 2, hint=hint), shape.depth
        whole_number("depth", shape.depth, 2, hint=hint)
        if self.types ** (self.depth - 1) > _MOST_STRINGS:
            hint = f"{self.types}^{self.depth - 1} strings of types are too many to enumerate"
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
        """The state of the query that closes type `kind` and leaves d - 1 brackets open."""
        return state_of(2 * kind + 1, d, self.depth)

    @cached_property
    def pairs(self) -> Tensor:
        """S (D - 1, D, k, k, v): equation 2.51 for d = 2 to D, d' = 1 to D, types i of the pair and j of the query."""
        found = torch.zeros(self.depth - 1, self.depth, self.types, self.types, self.values.shape[1]).double()
        for d, at, i, j in itertools.product(
            range(2, self.depth + 1), range(1, self.depth + 1), range(self.types), range(self.types)
        ):
            both = [state_of(token, at, self.depth) for token in (2 * i, 2 * i + 1)]
            found[d - 2, at - 1, i, j] = self.weights[both, self.query(j, d)] @ self.values[both]
        return found

    def shortest(self, j: int, d: int) -> tuple[list[int], list[int], float, float]:
        """Types t and t' of open brackets, and the lengths of Q for them: the least, and the least P of another end."""
        strings, query = whole_sequences(self.types, d - 1), self.query(j, d)
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
    """How far pairs are from cancelling: 0 where they do for every query, as Theorem 2.2.1 asks.

    "thesis": the mean of |S| / P over d = 2 to D, d' = 1 to D and all pairs of types. "released": the largest |S| over
    d' and the pair's type, over the least |Q| of any open brackets, mean over queries: what the authors' program logs.
    Raises `InputError` as `Balance` does.
    """
    balance = Balance(network)
    lengths = balance.pairs.norm(dim=-1)
    ratios = []
    for d, j in itertools.product(range(2, balance.depth + 1), range(balance.types)):
        _, _, least, other = balance.shortest(j, d)
        here = lengths[d - 2, :, :, j]
        ratios.append(float(here.mean()) / other if statistic == "thesis" else float(here.max()) / least)
    return math.fsum(ratios) / len(ratios)


class Chain(NamedTuple):
    """Both sides of the inequalities of Theorem 2.2.2, each (cases,) float64; `left` is claimed to be no less or more.

    A case of the first two is a length N, a query and a prefix that is pumped; of the third a length and a query.
    """

    distance: Tensor  # of the normed sums of the two prefixes
    required: Tensor  # at least this: what the laws differ by, less both errors, over the Lipschitz constant
    total: Tensor  # length of the sum over what is pumped
    total_bound: Tensor  # at most this: (4 / eps + 1) P
    pair: Tensor  # the largest |S| of a query
    pair_bound: Tensor  # at most this: 16 D (4 / eps + 1) P / N
    lipschitz: float  # of head and network, an upper bound


def _lipschitz_bound(network: InstanceOf[DyckTransformer]) -> float:
    """How much the network's law can change, in Euclidean length, with the normed sum: a product of spectral norms."""
    with torch.no_grad():
        layer = network.stack[-1]
        norms = [
            float(torch.linalg.matrix_norm(part.weight.double(), 2))
            for part in (*layer.mlp, network.head)
            if isinstance(part, torch.nn.Linear)
        ]
        gain = 1.0 if layer.norm.gain is None else float(layer.norm.gain.abs().max())
    # The softmax changes by at most half of what logits do.
    return math.prod(norms) * gain / 2


@validated
def inequality_chain(
    network: InstanceOf[DyckTransformer],
    lengths: Several[Count] = (40, 128, 512),
    open_prob: Probability = 0.5,
    target: Target = "next",
) -> Chain:
    """The steps of Theorem 2.2.2, with corrected constants, on prefixes of up to N = `lengths` brackets.

    For each query two prefixes are compared that differ in the types of their open brackets: a pumped p, then t or t',
    then a pair of the query's type. `target` is the law that errors are measured from: of the "next" bracket with
    `open_prob`, or of "closing" brackets alone, for networks that were trained on these. Raises `InputError` as
    `Balance` does, and for lengths below 8 D.
    """
    balance = Balance(network)
    for length in lengths:
        whole_number("lengths", length, 8 * balance.depth)
    gamma, sizes = _lipschitz_bound(network), balance.pairs.norm(dim=-1)
    columns: list[list[float]] = [[] for _ in range(6)]
    distance, required, total, total_bound, pair, pair_bound = columns
    for length, d, j in itertools.product(lengths, range(2, balance.depth + 1), range(balance.types)):
        t, other, _, least = balance.shortest(j, d)
        laws = [_law(balance, types[-1], open_prob, target) for types in (t, other)]
        apart, factors = float((laws[0] - laws[1]).norm()), []
        for outer, i in itertools.product(range(balance.depth), range(balance.types)):
            pumped = _pumped(balance, outer, i, length // 2 - outer - d - 1)
            normed, answers, raw = _answers(balance, pumped, (t, other), j, d, target)
            errors = float((answers - torch.stack(laws)).norm(dim=1).sum())
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
    return Chain._make((*(torch.tensor(column, dtype=torch.float64) for column in columns), gamma))


@validated
def pumped_distances(network: InstanceOf[DyckTransformer], pairs: Natural) -> Tensor:
    """How far (cases,) normed sums are apart for open brackets t and t' once `pairs` pairs are put before them.

    A case is a query, a depth and a type of pairs. Where pairs do not cancel this falls as 1 / `pairs` (2.49).
    """
    balance = Balance(network)
    found = []
    for d, j in itertools.product(range(2, balance.depth + 1), range(balance.types)):
        t, other, _, _ = balance.shortest(j, d)
        for outer, i in itertools.product(range(balance.depth), range(balance.types)):
            pumped = _pumped(balance, outer, i, pairs)
            normed, _, _ = _answers(balance, pumped, (t, other), j, d, "next")
            found.append(float((normed[0] - normed[1]).norm()))
    return torch.tensor(found, dtype=torch.float64)


@validated
def log_weight_decay(
    network: InstanceOf[DyckTransformer], length: Count, eps: Positive, open_prob: Probability = 0.5
) -> float:
    """Log of a lambda_N of Corollary 2.2.2: with no more weight decay each optimum meets Theorem 2.2.2's premise.

    `network` is one without excess loss: an optimum's excess is at most lambda |theta|^2 / 2 of it, which is set to
    (q (1 - q) / k^2)^N eps.
    """
    squared = sum(float(parameter.detach().double().square().sum()) for parameter in network.parameters())
    least = math.log(open_prob * (1 - open_prob) / network.config.types**2)
    return math.log(2 * eps / squared) + length * least


def _pumped(balance: Balance, outer: int, i: int, pairs: int) -> Tensor:
    """How often each state is in p: `outer` brackets of type i around so many pairs of it."""
    counts = torch.zeros(state_count(balance.types, balance.depth), dtype=torch.float64)
    for at in range(1, outer + 1 + (outer < balance.depth)):
        both = [state_of(token, at, balance.depth) for token in (2 * i, 2 * i + 1)]
        counts[both] = 1.0 if at <= outer else float(pairs)
    return counts


def _answers(
    balance: Balance, pumped: Tensor, strings: Sequence[Sequence[int]], j: int, d: int, target: Target
) -> tuple[Tensor, Tensor, Tensor]:
    """Normed sums, laws and sums (2, v) of the network for brackets that are there so often."""
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
        logits = network.head(layer.behind(attended.to(dtype), own)).double()
    if target == "closing":
        logits = logits[:, 1 : 2 * balance.types : 2]
    return normed, logits.softmax(1), raw


def _law(balance: Balance, innermost: int, open_prob: float, target: Target) -> Tensor:
    """The exact law behind the query, whose innermost open bracket is of the type `innermost`."""
    if target == "closing":
        return torch.eye(balance.types, dtype=torch.float64)[innermost]
    law = torch.zeros(balance.network.vocab_size, dtype=torch.float64)
    law[0 : 2 * balance.types : 2] = open_prob / balance.types
    law[2 * innermost + 1] = 1 - open_prob
    return law
