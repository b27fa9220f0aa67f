"""Exact value function V*(y) = E[tau(x) | x begins with y], by dynamic programming on the tree of prefixes."""

from typing import Unpack

import numpy as np

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.prefix_trees import PrefixTree, TreeLimits, prefix_tree
from trialogue.verifiers import TableValues
from trialogue.verifiers.functions.function import VerifierLike


def exact_values(oracle: Autoregressive, verifier: VerifierLike, **limits: Unpack[TreeLimits]) -> TableValues:
    """Compute the exact value function V*, the expected verifier value of a completed sequence given its prefix.

    For a 0/1 verifier, V*(y) is the probability that a completion of the prefix y is accepted (thesis 3.3.1).

    Args:
        oracle: The model.
        verifier: The verifier, which is evaluated on complete sequences only.
        **limits: Arguments `prompt`, `max_new_tokens` and `max_nodes` of `prefix_tree`.

    Returns:
        A verifier that looks up V* of each prefix in a table.

    Raises:
        InputError: If there are more than `max_nodes` prefixes, or no complete sequence has a positive value.
    """
    tree = prefix_tree(oracle, **limits)
    values = tree_values(tree, verifier)
    if not values[0] > 0:
        raise InputError("verifier", 0.0, "accept at least one sequence of positive probability")
    return TableValues(dict(zip(tree.prefixes, values.tolist(), strict=True)))


def tree_values(tree: PrefixTree, verifier: VerifierLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the expected verifier value of a completed sequence, given each prefix of a tree.

    Args:
        tree: All n prefixes of positive probability under a model.
        verifier: The verifier, which is evaluated on complete sequences.

    Returns:
        Values (n,) float64.
    """
    values = np.zeros(len(tree.prefixes))
    leaves = np.flatnonzero(tree.leaf)
    values[leaves] = tree.values(verifier, leaves)
    conditional = np.exp(tree.log_probs[1:] - tree.log_probs[tree.parent[1:]])
    # The values of all children must be computed before the value of their parent.
    for depth in range(int(tree.depth.max()), 0, -1):
        level = np.flatnonzero(tree.depth == depth)
        np.add.at(values, tree.parent[level], conditional[level - 1] * values[level])
    return values
