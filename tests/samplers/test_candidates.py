"""Samplers that draw candidates: best of n, its blocks, and value-guided sampling by blocks."""

import math

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from mutants import samplers as mutants
from samplers.rational import ValuedTree, expected
from samplers.reference_laws import expected_value, largest_difference, normalised, restricted
from trialogue.errors import InputError
from trialogue.samplers import BestOfN, BlockBestOfN, BlockValueGuided, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.distributions import ruled
from trialogue.testing.trees import TREES, VIABLE, RandomTree


def first_of_the_greatest(sampler) -> bool:
    """Whether each sample is the first of the greatest of the candidates that its streams draw.

    In distribution it does not matter which of equals is taken, since the draws are exchangeable.
    """
    tree, n = VIABLE[0], 3
    chosen = generate(tree.table(), sampler=sampler(n), verifier=tree.allows, num_samples=40).sequences()
    drawn = generate(tree.table(), num_samples=40 * n).sequences()
    groups = [drawn[start : start + n] for start in range(0, len(drawn), n)]
    return chosen == [max(group, key=tree.allows) for group in groups]


def test_the_first_of_equal_completions_is_taken():
    assert first_of_the_greatest(BestOfN)
    assert not first_of_the_greatest(mutants.LastBestOfN)


LINES = RandomTree(31, vocab=3, horizon=4, eos=1)


def first_of_equals(sampler) -> bool:
    """Whether, with all values equal, each sample is what its first candidate draws."""
    chosen = generate(
        LINES.table(), sampler=sampler(3, block_tokens=1), verifier=lambda y: 1.0, num_samples=40
    )
    ids = range(0, 120, 3)
    drawn = generate(LINES.table(), num_samples=40, sample_ids=ids)
    return chosen.sequences() == drawn.sequences()


def test_the_first_of_equal_blocks_is_taken():
    assert first_of_equals(BlockBestOfN)
    assert not first_of_equals(mutants.LastCandidateBlocks)


def test_a_block_is_judged_once_and_where_it_ends():
    judged = []

    def value(prefix):
        judged.append(prefix)
        return 1.0

    sampler = BlockBestOfN(3, delimiters=(0,))
    generate(LINES.table(), sampler=sampler, verifier=value, num_samples=30)
    assert len(set(judged)) == len(judged)
    assert all(LINES.complete(prefix) or prefix[-1] == 0 for prefix in judged)


def test_a_complete_prompt_is_returned():
    run = generate(LINES.table(), [(1,)], sampler=BlockBestOfN(2, (0,)), verifier=lambda prefix: True)
    assert (run.sequences(), run.queries.tolist()) == ([(1,)], [0])


def test_delimiters_may_be_a_tensor():
    sampler = BlockBestOfN(2, torch.tensor([2, 0, 2]))
    assert sampler == BlockBestOfN(2, (0, 2))
    assert hash(sampler) == hash(BlockBestOfN(2, (0, 2)))


def test_blocks_end_at_a_text_where_the_oracle_has_a_tokenization():
    oracle = tiny_oracle()
    settings = {"verifier": lambda prefix: len(set(prefix)), "max_new_tokens": 12, "num_samples": 3}
    for text, given in (("\n", None), ("e", "e")):
        tokens = tuple(oracle.tokenization.tokens_containing(text).tolist())
        runs = [
            generate(oracle, ["the cat"], sampler=sampler, **settings)
            for sampler in (BlockBestOfN(2, tokens), BlockBestOfN(2, block_delimiter=given))
        ]
        assert runs[0].sequences() == runs[1].sequences()
    with pytest.raises(InputError, match="block_delimiter='@@@': no token of the model contains it"):
        generate(oracle, ["the cat"], sampler=BlockBestOfN(2, block_delimiter="@@@"), **settings)
    for run in (
        lambda sampler, *rest: generate(rest[0], sampler=sampler, verifier=rest[1]),
        exact_distribution,
    ):
        with pytest.raises(InputError, match=r"delimiters=\(\): .* the oracle has no tokenization"):
            run(BlockBestOfN(2), LINES.table(), LINES.value)


def test_a_delimiter_outside_the_vocabulary_is_named():
    with pytest.raises(InputError, match="delimiters=7: use token ids below 3"):
        generate(LINES.table(), sampler=BlockBestOfN(2, (0, 7)), verifier=lambda prefix: True)


def test_more_candidates_come_nearer_to_the_law_of_the_tree():
    tree = TREES[0]
    valued = ValuedTree(tree, expected_value(tree, tree.value))
    errors = [
        largest_difference(
            expected(BlockValueGuided(k, 1), valued).distribution, restricted(tree, tree.value)
        )
        for k in (1, 3, 6)
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
