"""Value-guided samplers by blocks: their transitions by enumeration, and what they tend to."""

import itertools
import math

import numpy as np
import pytest

from mutants import samplers as mutants
from samplers.reference_laws import expected_value, largest_difference, normalised, restricted
from trialogue.errors import InputError
from trialogue.samplers import BlockValueGuided, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.distributions import ruled
from trialogue.testing.trees import TREES, VIABLE, RandomTree


def blocks(tree, prefix, tokens, p=1.0) -> dict:
    """Continuations of `prefix` by so many tokens, or to their end, and their probabilities."""
    if tokens == 0 or tree.complete(prefix):
        return {prefix: p}
    found: dict = {}
    for child, q in tree.children(prefix):
        found |= blocks(tree, child, tokens - 1, p * q)
    return found


def reference(tree, value, candidates, tokens) -> tuple[dict, float]:
    """The distribution of the first leaf and the expected queries, by every tuple of candidates at every node."""
    nodes, edges, cost = [()], {}, {}
    for node in nodes:
        row: dict = {}
        below = blocks(tree, node, tokens)
        cost[node] = candidates * math.fsum(p * (len(x) - len(node)) for x, p in below.items())
        for drawn in itertools.product(below.items(), repeat=candidates):
            p = math.prod(q for _, q in drawn)
            weights = [candidates * value(node) if node else 0.0, *(value(x) for x, _ in drawn)]
            total = math.fsum(weights)
            for weight, to in zip(weights, [node[:-tokens], *(x for x, _ in drawn)], strict=True):
                if total == 0:
                    row[node] = row.get(node, 0.0) + p / len(weights)
                elif weight:
                    row[to] = row.get(to, 0.0) + p * weight / total
        edges[node] = row
        nodes += [x for x in row if x not in nodes and not tree.complete(x)]
    inner = np.array([[edges[y].get(z, 0.0) for z in nodes] for y in nodes])
    visits = np.linalg.solve(np.eye(len(nodes)) - inner.T, np.eye(len(nodes))[0])
    distribution: dict = {}
    for node, visit in zip(nodes, visits, strict=True):
        for to, p in edges[node].items():
            if tree.complete(to):
                distribution[to] = distribution.get(to, 0.0) + float(visit) * p
    return distribution, float(visits @ [cost[node] for node in nodes])


def error(sampler, tree, value) -> float:
    distribution = exact_distribution(sampler, tree.table(), value)
    due, queries = reference(tree, value, sampler.candidates, sampler.block_tokens)
    return max(
        largest_difference(distribution.probabilities, due),
        abs(distribution.expected_calls / queries - 1),
        distribution.failed,
    )


SMALL = [VIABLE[0], VIABLE[2], RandomTree(151, horizon=4, eos=1)]
SIZES = [(1, 1), (2, 1), (2, 2), (1, 3)]


@pytest.mark.parametrize(("candidates", "tokens"), SIZES)
@pytest.mark.parametrize("tree", SMALL, ids=str)
def test_the_walk_by_blocks_is_that_of_its_definition(tree, candidates, tokens):
    if tree.vocab ** (tokens * candidates) <= 81:
        for value in (tree.value, ruled(tree)):
            assert error(BlockValueGuided(candidates, tokens), tree, value) < 1e-10


@pytest.mark.parametrize("mutant", [mutants.LightParentBlocks, mutants.FirstCandidateGuided])
def test_broken_blocks_are_told_apart(mutant):
    assert error(mutant(2, 1), SMALL[0], SMALL[0].value) > 1e-3


def test_more_candidates_come_nearer_to_the_law_of_the_tree():
    tree = TREES[0]
    value = expected_value(tree, tree.value)
    errors = [
        largest_difference(reference(tree, value, k, 1)[0], restricted(tree, tree.value)) for k in (1, 3, 6)
    ]
    assert errors[0] > 2 * errors[1] > 3 * errors[2]


def test_one_block_of_one_candidate_is_rejection():
    tree = VIABLE[0]
    distribution = exact_distribution(BlockValueGuided(1, tree.horizon), tree.table(), ruled(tree))
    due = normalised({x: p * tree.allows(x) for x, p in tree.distribution().items()})
    assert largest_difference(distribution.probabilities, due) < 1e-12
    assert distribution.expected_calls == pytest.approx(
        tree.horizon / math.fsum(p for x, p in tree.distribution().items() if tree.allows(x))
    )


def test_what_never_has_a_candidate_ends_by_its_budget():
    run = generate(TREES[0].table(), sampler=BlockValueGuided(), verifier=lambda x: 0.0, max_queries=100)
    assert (run.stopped, run.accepted.tolist()) == (["max_queries"], [False])


@pytest.mark.parametrize("field", ["candidates", "block_tokens"])
def test_a_field_out_of_range_is_one_line(field):
    with pytest.raises(InputError, match=f"{field}=0: use at least 1"):
        BlockValueGuided(**{field: 0})
