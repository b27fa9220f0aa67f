"""The exact value function V*(y) = E[tau(x) | x begins with y], by dynamic programming over the tree of prefixes."""

from typing import Unpack

import numpy as np

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.prefix_trees import PrefixTree, TreeLimits, prefix_tree
from trialogue.verifiers import TableValues
from trialogue.verifiers.functions.function import VerifierLike


def exact_values(oracle: Autoregressive, verifier: VerifierLike, **limits: Unpack[TreeLimits]) -> TableValues:
    """V*: of a complete sequence what `verifier` says of it, of a prefix the oracle's mean of that (thesis 3.3.1).

    What the verifier says of prefixes plays no part. The value of the prompt is the probability that a completion is
    accepted, where the verifier gives 0 or 1. `limits` say which tree is listed. Raises `InputError` for more than
    `max_nodes` prefixes, and where no complete sequence has a positive value.
    """
    tree = prefix_tree(oracle, **limits)
    values = tree_values(tree, verifier)
    if not values[0] > 0:
        raise InputError("verifier", 0.0, "accept at least one sequence that the oracle can give")
    return TableValues(dict(zip(tree.prefixes, values.tolist(), strict=True)))


def tree_values(tree: PrefixTree, verifier: VerifierLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """V* of every prefix (n,) of `tree`."""
    values = np.zeros(len(tree.prefixes))
    leaves = np.flatnonzero(tree.leaf)
    values[leaves] = tree.values(verifier, leaves)
    conditional = np.exp(tree.log_probs[1:] - tree.log_probs[tree.parent[1:]])
    # By depth, as a parent's value takes those of all its children.
    for depth in range(int(tree.depth.max()), 0, -1):
        level = np.flatnonzero(tree.depth == depth)
        np.add.at(values, tree.parent[level], conditional[level - 1] * values[level])
    return values
