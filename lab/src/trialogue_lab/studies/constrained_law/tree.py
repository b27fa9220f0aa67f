"""The tree of token sequences that a rule allows, scored by the model: exact laws of what decoding rules sample.

A rule with few strings still has many token sequences, as a string can be cut into tokens in many ways. The tree is
explored from the top, the heaviest prefixes first, until what is left unexplored cannot matter.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Decoding, PrefixOracle, Verifier, padded
from trialogue.samplers.exact import Conductances
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.judge import Judge
from trialogue_lab.data.list_append.literals import shared_length

_ROWS = 16


@dataclass(frozen=True)
class Node:
    """An allowed prefix: what the model and masked decoding give it, and its allowed one-token continuations.

    `tokens` is the completion so far. `log_p` is its log-probability under the model, `log_q` under masked decoding.
    `children` (k,) int64 are the allowed next tokens and `log_probs` (k,) float64 the model's law of them.
    """

    tokens: tuple[int, ...]
    log_p: float
    log_q: float
    children: NDArray[np.int64]
    log_probs: NDArray[np.float64]

    def continuations(self) -> Iterator[tuple[int, float, float]]:
        """Each allowed next token with the log-probabilities of the longer prefix: model, masked decoding."""
        accepted = float(np.logaddexp.reduce(self.log_probs)) if len(self.children) else 0.0
        for token, log_prob in zip(self.children.tolist(), self.log_probs.tolist(), strict=True):
            yield token, self.log_p + log_prob, self.log_q + log_prob - accepted


@dataclass(frozen=True)
class TokenTree:
    """The explored part of the tree of a rule.

    `nodes` maps every explored prefix to its node; `leaves` maps every complete allowed sequence found to its
    log-probability under the model and under masked decoding. `left_p` and `left_q` are the probabilities that the
    model and masked decoding give to the allowed prefixes that were left unexplored: bounds of what is missing.
    """

    nodes: Mapping[tuple[int, ...], Node]
    leaves: Mapping[tuple[int, ...], tuple[float, float]]
    left_p: float
    left_q: float

    @property
    def accepted_mass(self) -> float:
        """The model's probability of the rule, what was left unexplored counted as outside of it."""
        return math.fsum(math.exp(log_p) for log_p, _ in self.leaves.values())

    @property
    def restricted(self) -> dict[tuple[int, ...], float]:
        """The model's law restricted to the rule, by token sequence."""
        total = self.accepted_mass
        return {tokens: math.exp(log_p) / total for tokens, (log_p, _) in self.leaves.items()}

    @property
    def masked(self) -> dict[tuple[int, ...], float]:
        """The law of masked decoding, by token sequence; what is missing from 1 is `left_q`."""
        return {tokens: math.exp(log_q) for tokens, (_, log_q) in self.leaves.items()}


@torch.inference_mode()
def explore(
    oracle: Autoregressive,
    verifier: Verifier,
    prompt: Sequence[int],
    max_new_tokens: int,
    *,
    tolerance: float,
    max_prefixes: int,
) -> TokenTree:
    """Explore the completions of `prompt` that `verifier` allows, at most `max_new_tokens` long.

    Ends when the prefixes left unexplored hold less than `tolerance` of the restricted law and of the law of masked
    decoding. Raises `InputError` where that needs more than `max_prefixes` of them, or nothing is allowed.
    """
    capacity = len(prompt) + max_new_tokens
    batch = Batch(oracle, _ROWS, capacity, layers=tuple(verifier.layers))
    judge = Judge(verifier, batch)
    nodes: dict[tuple[int, ...], Node] = {}
    leaves: dict[tuple[int, ...], tuple[float, float]] = {}
    # Heap of the allowed prefixes that are not explored yet, by the negative of what each may hold of either law.
    frontier: list[tuple[float, tuple[int, ...], float, float]] = [(-1.0, (), 0.0, 0.0)]
    mass, left_p, left_q = 0.0, 1.0, 1.0
    rows: list[tuple[int, ...]] = [()] * _ROWS
    while left_p > tolerance * mass or left_q > tolerance:
        if len(nodes) >= max_prefixes:
            left = f"up to {left_p / mass:.1e} of the rule" if mass else "all of the rule"
            raise InputError("max_prefixes", max_prefixes, f"{left} is unexplored: allow more of them")
        number = min(_ROWS, max_prefixes - len(nodes), len(frontier))
        if not number:
            break
        taken = [heapq.heappop(frontier) for _ in range(number)]
        heaviest = {prefix: (log_p, log_q) for _, prefix, log_p, log_q in taken}
        asked = torch.tensor(_placed(rows, heaviest))
        tokens, lengths = padded([(*prompt, *completion) for completion in rows], capacity)
        batch.select(asked[:0])
        batch.add(tokens, lengths, torch.full_like(lengths, len(prompt)), torch.full_like(lengths, capacity))
        log_probs = batch.log_probs(asked).double()
        allowed = judge.children(asked, log_probs > -math.inf) > 0
        for row, law, mask in zip(asked.tolist(), log_probs, allowed, strict=True):
            children = mask.nonzero()[:, 0]
            node = Node(rows[row], *heaviest[rows[row]], children.numpy(), law[children].numpy())
            nodes[node.tokens] = node
            for token, log_p, log_q in node.continuations():
                longer = (*node.tokens, token)
                if token == oracle.eos or len(longer) == max_new_tokens:
                    leaves[longer] = (log_p, log_q)
                    mass += math.exp(log_p)
                else:
                    weight = max(math.exp(log_p) / mass if mass else 0.0, math.exp(log_q))
                    heapq.heappush(frontier, (-weight, longer, log_p, log_q))
        left_p = math.fsum(math.exp(log_p) for _, _, log_p, _ in frontier)
        left_q = math.fsum(math.exp(log_q) for *_, log_q in frontier)
    if not mass:
        raise InputError("verifier", type(verifier).__name__, "it allows no completion of the prompt")
    return TokenTree(nodes, leaves, left_p, left_q)


def first_leaf(tree: TokenTree) -> tuple[dict[tuple[int, ...], float], float]:
    """The law of the first leaf of the value-guided walk whose values are 1 where the rule allows, and its queries.

    What was left unexplored counts as not allowed; the second number is the expected one of queries of a walk that
    remembers nothing.
    """
    order = sorted([*tree.nodes, *tree.leaves], key=len)
    place = {prefix: index for index, prefix in enumerate(order)}
    parent = np.array([place.get(prefix[:-1], -1) if prefix else -1 for prefix in order])
    log_p = np.array([tree.leaves[x][0] if x in tree.leaves else tree.nodes[x].log_p for x in order])
    leaf = np.array([prefix in tree.leaves for prefix in order])
    network = Conductances(parent, np.exp(log_p), leaf)
    law = {prefix: float(network.first_leaf[place[prefix]]) for prefix in tree.leaves}
    return law, math.fsum(network.visits)


def _placed(rows: list[tuple[int, ...]], prefixes: Iterable[tuple[int, ...]]) -> list[int]:
    """Put each prefix into a row of the batch, one where the longest part of it has been evaluated already."""
    places: dict[int, tuple[int, ...]] = {}
    for prefix in prefixes:
        free = (row for row in range(len(rows)) if row not in places)
        places[max(free, key=lambda row: (shared_length(rows[row], prefix), -row))] = prefix
    for row, prefix in places.items():
        rows[row] = prefix
    return list(places)


class Lumped(PrefixOracle, Verifier):
    """The model seen through the rule, oracle and verifier: allowed continuations one by one, the rest as one token.

    A walk that never goes beyond a rejected token has the same law on it as on the model, at a small vocabulary. Token
    0 ends a sequence, tokens 1, 2, ... are the other allowed continuations of a prefix, the most probable first, and
    the last token, `elsewhere`, is all that is not allowed or was left unexplored. `leaves` maps a complete sequence
    to the completion it stands for.
    """

    scope: Literal["sequence", "completion"] = "sequence"
    layers: Sequence[int] = ()
    most = 1.0

    def __init__(self, tree: TokenTree, eos: int | None) -> None:
        self.vocab_size = 2 + max(len(node.children) for node in tree.nodes.values())
        self.elsewhere, self.eos = self.vocab_size - 1, 0
        # Not that of the longest leaf: a longer prefix may have been explored, and is not complete.
        self.max_length = 1 + max(map(len, tree.nodes))
        self.leaves: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._laws: dict[tuple[int, ...], Tensor] = {}
        names: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        for completion in sorted(tree.nodes, key=len):
            node, own = tree.nodes[completion], names[completion]
            law = torch.zeros(self.vocab_size, dtype=torch.float64)
            order = np.argsort(-node.log_probs, kind="stable")
            for place, (token, log_prob) in enumerate(
                zip(node.children[order].tolist(), node.log_probs[order].tolist(), strict=True), start=1
            ):
                longer, name = (*completion, token), (*own, 0 if token == eos else place)
                if longer in tree.leaves:
                    self.leaves[name] = longer
                elif longer in tree.nodes:
                    names[longer] = name
                else:
                    continue
                law[name[-1]] = math.exp(log_prob)
            law[self.elsewhere] = max(0.0, 1.0 - float(law.sum()))
            self._laws[own] = law.log()
        self._lost = torch.full((self.vocab_size,), -math.inf, dtype=torch.float64)
        self._lost[self.elsewhere] = 0.0

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        rows = zip(tokens.tolist(), lengths.tolist(), strict=True)
        return torch.stack([self._laws.get(tuple(row[:length]), self._lost) for row, length in rows])

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Which (n,) of the sequences in `rows` (n,) the rule allows."""
        tokens, lengths = decoding.tokens[rows], decoding.lengths[rows]
        within = torch.arange(tokens.shape[1]) < lengths[:, None]
        return (~(within & (tokens == self.elsewhere)).any(1)).double()

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """The same for their one-token continuations (n, vocab)."""
        allowed = self.values(decoding, rows)[:, None].repeat(1, self.vocab_size)
        allowed[:, self.elsewhere] = 0.0
        return allowed
