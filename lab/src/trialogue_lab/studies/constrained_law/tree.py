"""The tree of all token sequences that a constraint allows, with their probabilities under the model.

A string can be tokenized in many ways. A constraint that allows few strings therefore allows many token sequences. The
tree is explored from the root, most probable prefixes first, until the rest has a negligible probability.
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
from trialogue.oracles import Autoregressive, Decoding, PrefixOracle, Verifier, pad_sequences
from trialogue.samplers.exact import Conductances
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue_lab.data.list_append.literals import measure_shared_prefix

_ROWS = 16


@dataclass(frozen=True)
class Node:
    """A token prefix that the constraint allows, with its allowed next tokens.

    Args:
        tokens: Token ids generated so far, without the prompt.
        log_p: Log-probability of the prefix under the model.
        log_q: Log-probability of the prefix under masked decoding, which renormalizes each next-token distribution over
            the allowed tokens.
        children: Token ids (k,) int64 of the allowed next tokens.
        log_probs: Log-probabilities (k,) float64 of the allowed next tokens under the model.
    """

    tokens: tuple[int, ...]
    log_p: float
    log_q: float
    children: NDArray[np.int64]
    log_probs: NDArray[np.float64]

    def continuations(self) -> Iterator[tuple[int, float, float]]:
        """Yield all allowed extensions of the prefix by one token.

        Yields:
            The token, and the log-probabilities of the extended prefix under the model and under masked
            decoding.
        """
        accepted = float(np.logaddexp.reduce(self.log_probs)) if len(self.children) else 0.0
        for token, log_prob in zip(self.children.tolist(), self.log_probs.tolist(), strict=True):
            yield token, self.log_p + log_prob, self.log_q + log_prob - accepted


@dataclass(frozen=True)
class TokenTree:
    """Tree of the token sequences that a constraint allows, with their probabilities.

    Probabilities are given under the model and under masked decoding, which sets the probability of forbidden
    next tokens to zero and renormalizes.

    Args:
        nodes: Node of every explored prefix, by the tokens of the prefix.
        leaves: Log-probabilities of every complete allowed sequence, under the model and under masked
            decoding.
        left_p: Probability under the model of all allowed prefixes that were not explored.
        left_q: The same probability under masked decoding.
    """

    nodes: Mapping[tuple[int, ...], Node]
    leaves: Mapping[tuple[int, ...], tuple[float, float]]
    left_p: float
    left_q: float

    @property
    def accepted_mass(self) -> float:
        """Probability under the model that an output is one of the enumerated allowed sequences."""
        return math.fsum(math.exp(log_p) for log_p, _ in self.leaves.values())

    @property
    def restricted(self) -> dict[tuple[int, ...], float]:
        """Probability of each enumerated token sequence under the model given the constraint."""
        total = self.accepted_mass
        return {tokens: math.exp(log_p) / total for tokens, (log_p, _) in self.leaves.items()}

    @property
    def masked(self) -> dict[tuple[int, ...], float]:
        """Probability of each enumerated token sequence under masked decoding, which never samples a forbidden token.

        The sum is 1 - `left_q`.
        """
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
    """Enumerate the completions of a prompt that a constraint allows.

    The most probable prefixes are explored first, until the missing completions have a negligible
    probability.

    Args:
        oracle: The language model.
        verifier: Checks whether a token prefix can still satisfy the constraint.
        prompt: Token ids of the prompt.
        max_new_tokens: Maximum number of tokens of a completion.
        tolerance: Largest fraction of the allowed probability that may be missing, under the model and under
            masked decoding.
        max_prefixes: Maximum number of explored prefixes.

    Returns:
        Tree of the explored prefixes and the complete sequences, with their probabilities.

    Raises:
        InputError: If `max_prefixes` is too small for the tolerance, or if no completion is allowed.
    """
    capacity = len(prompt) + max_new_tokens
    batch = Batch(oracle, _ROWS, capacity, layers=tuple(verifier.layers))
    judge = CachedVerifier(verifier, batch)
    nodes: dict[tuple[int, ...], Node] = {}
    leaves: dict[tuple[int, ...], tuple[float, float]] = {}
    # Heap of the unexplored allowed prefixes. The key is minus the larger of their two probabilities.
    frontier: list[tuple[float, tuple[int, ...], float, float]] = [(-1.0, (), 0.0, 0.0)]
    mass, left_p, left_q = 0.0, 1.0, 1.0
    rows: list[tuple[int, ...]] = [()] * _ROWS
    while left_p > tolerance * mass or left_q > tolerance:
        if len(nodes) >= max_prefixes:
            left = f"up to {left_p / mass:.1e} of the allowed mass" if mass else "all of the allowed mass"
            raise InputError("max_prefixes", max_prefixes, f"{left} is unexplored: use a larger number")
        number = min(_ROWS, max_prefixes - len(nodes), len(frontier))
        if not number:
            break
        taken = [heapq.heappop(frontier) for _ in range(number)]
        heaviest = {prefix: (log_p, log_q) for _, prefix, log_p, log_q in taken}
        selected = torch.tensor(_assign_to_rows(rows, heaviest))
        tokens, lengths = pad_sequences([(*prompt, *completion) for completion in rows], capacity)
        batch.select(selected[:0])
        batch.add(tokens, lengths, torch.full_like(lengths, len(prompt)), torch.full_like(lengths, capacity))
        log_probs = batch.log_probs(selected).double()
        allowed = judge.children(selected, log_probs > -math.inf) > 0
        for row, next_log_probs, mask in zip(selected.tolist(), log_probs, allowed, strict=True):
            children = mask.nonzero()[:, 0]
            node = Node(rows[row], *heaviest[rows[row]], children.numpy(), next_log_probs[children].numpy())
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
        hint = "this verifier allows no completion of the prompt: relax the constraint or allow more tokens"
        raise InputError("verifier", type(verifier).__name__, hint)
    return TokenTree(nodes, leaves, left_p, left_q)


def compute_first_leaf_distribution(tree: TokenTree) -> tuple[dict[tuple[int, ...], float], float]:
    """Return the exact output distribution of the value-guided random walk on a tree of prefixes.

    In each step, the walk adds a token or removes the last one. It stops at the first complete sequence, and never
    leaves the explored tree.

    Args:
        tree: Tree of the allowed token sequences.

    Returns:
        Probability of each complete sequence, and the expected number of model calls without a cache.
    """
    order = sorted([*tree.nodes, *tree.leaves], key=len)
    place = {prefix: index for index, prefix in enumerate(order)}
    parent = np.array([place.get(prefix[:-1], -1) if prefix else -1 for prefix in order])
    log_p = np.array([tree.leaves[x][0] if x in tree.leaves else tree.nodes[x].log_p for x in order])
    leaf = np.array([prefix in tree.leaves for prefix in order])
    network = Conductances(parent, np.exp(log_p), leaf)
    leaves = {prefix: float(network.first_leaf[place[prefix]]) for prefix in tree.leaves}
    return leaves, math.fsum(network.visits)


def _assign_to_rows(rows: list[tuple[int, ...]], prefixes: Iterable[tuple[int, ...]]) -> list[int]:
    """Return, for each prefix, the index of the batch row that shares the longest prefix with it."""
    places: dict[int, tuple[int, ...]] = {}
    for prefix in prefixes:
        free = (row for row in range(len(rows)) if row not in places)
        places[max(free, key=lambda row: (measure_shared_prefix(rows[row], prefix), -row))] = prefix
    for row, prefix in places.items():
        rows[row] = prefix
    return list(places)


class ExploredTreeModel(PrefixOracle, Verifier):
    """Small model that reproduces a language model and its verifier on an explored tree of prefixes.

    Its small vocabulary makes exact computations fast. Token 0 ends a sequence, and tokens 1, 2, ... are the
    allowed next tokens, most probable first. The last token, `elsewhere`, stands for all others, and the
    verifier rejects it.

    Args:
        tree: Tree of the allowed token sequences.
        eos: End-of-sequence token of the original model.

    Attributes:
        leaves: Maps each complete sequence of this model to the token sequence of the original model.
    """

    scope: Literal["sequence", "completion"] = "sequence"
    layers: Sequence[int] = ()
    most = 1.0

    def __init__(self, tree: TokenTree, eos: int | None) -> None:
        self.vocab_size = 2 + max(len(node.children) for node in tree.nodes.values())
        self.elsewhere, self.eos = self.vocab_size - 1, 0
        # Explored prefixes that are not complete can be longer than every leaf.
        self.max_length = 1 + max(map(len, tree.nodes))
        self.leaves: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._log_probs: dict[tuple[int, ...], Tensor] = {}
        names: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        for completion in sorted(tree.nodes, key=len):
            node, own = tree.nodes[completion], names[completion]
            probabilities = torch.zeros(self.vocab_size, dtype=torch.float64)
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
                probabilities[name[-1]] = math.exp(log_prob)
            probabilities[self.elsewhere] = max(0.0, 1.0 - float(probabilities.sum()))
            self._log_probs[own] = probabilities.log()
        self._rejected = torch.full((self.vocab_size,), -math.inf, dtype=torch.float64)
        self._rejected[self.elsewhere] = 0.0

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the next-token log-probabilities (n, vocab) float64 after prefixes.

        Args:
            tokens: Token ids (n, capacity).
            lengths: Lengths (n,) of the prefixes.
        """
        rows = zip(tokens.tolist(), lengths.tolist(), strict=True)
        return torch.stack([self._log_probs.get(tuple(row[:length]), self._rejected) for row, length in rows])

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return 0 for sequences that contain the rejected token `elsewhere`, and 1 for others.

        Args:
            decoding: The sequences being generated.
            rows: Indices (n,) of the selected sequences.

        Returns:
            Values (n,) float64.
        """
        tokens, lengths = decoding.tokens[rows], decoding.lengths[rows]
        within = torch.arange(tokens.shape[1]) < lengths[:, None]
        return (~(within & (tokens == self.elsewhere)).any(1)).double()

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return, for each possible next token, 1 if the extended sequence is allowed and 0 otherwise.

        Args:
            decoding: The sequences being generated.
            rows: Indices (n,) of the selected sequences.

        Returns:
            Values (n, vocab) float64.
        """
        allowed = self.values(decoding, rows)[:, None].repeat(1, self.vocab_size)
        allowed[:, self.elsewhere] = 0.0
        return allowed
