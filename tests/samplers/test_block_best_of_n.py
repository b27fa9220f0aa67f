"""Block best of n against all tuples of blocks, by recursion over the definition."""

import itertools
import math
from collections import defaultdict

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from mutants import samplers as mutants
from samplers.reference_laws import best_of, largest_difference
from trialogue.errors import InputError
from trialogue.samplers import BestOfN, BlockBestOfN, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, VIABLE, RandomTree

LINES = RandomTree(31, vocab=3, horizon=4, eos=1)
SETTINGS = [
    ({"block_tokens": 1}, TREES[0]),
    ({"block_tokens": 2}, TREES[0]),
    ({"block_tokens": 2}, RandomTree(32, horizon=4)),
    ({"block_tokens": 9}, TREES[3]),
    ({"delimiters": (0,)}, TREES[0]),
    ({"delimiters": (0,)}, TREES[3]),
    ({"delimiters": (0, 2)}, TREES[5]),
    ({"delimiters": (0,), "min_tokens": 2}, RandomTree(33, horizon=4)),
    ({"delimiters": (2,), "min_tokens": 2}, TREES[3]),
]


def blocks(tree, prefix, ends, begun=None, mass=1.0):
    """Every block that follows `prefix`, with its probability."""
    begun = len(prefix) if begun is None else begun
    if tree.complete(prefix) or ends(prefix[begun:]):
        yield prefix, mass
    else:
        for child, p in tree.children(prefix):
            yield from blocks(tree, child, ends, begun, mass * p)


def reference(tree, rule, n, delimiters=(), block_tokens=None, min_tokens=1):
    """Distribution of the output and expected queries: the best of all n-tuples of blocks, block after block."""

    def ends(block):
        if block_tokens is not None:
            return len(block) == block_tokens
        return len(block) >= min_tokens and block[-1] in delimiters

    distribution, queries = defaultdict(float), 0.0

    def go_on(prefix, mass):
        nonlocal queries
        if tree.complete(prefix):
            distribution[prefix] += mass
            return
        candidates = list(blocks(tree, prefix, ends))
        queries += mass * n * math.fsum(p * (len(y) - len(prefix)) for y, p in candidates)
        best = defaultdict(float)
        for drawn in itertools.product(candidates, repeat=n):
            best[max((y for y, _ in drawn), key=rule)] += math.prod(p for _, p in drawn)
        for block, p in best.items():
            go_on(block, mass * p)

    go_on((), 1.0)
    return dict(distribution), queries


def block_error(sampler, tree, rule, n, settings) -> float:
    """Distance from the distribution and from the expected queries of the definition."""
    distribution = exact_distribution(sampler(n, **settings), tree.table(), rule)
    expected, queries = reference(tree, rule, n, **settings)
    return max(
        largest_difference(distribution.probabilities, expected), abs(distribution.expected_calls - queries)
    )


@pytest.mark.parametrize(("settings", "tree"), SETTINGS, ids=str)
def test_it_has_its_law_and_cost(settings, tree):
    for n in (1, 2):
        assert block_error(BlockBestOfN, tree, tree.value, n, settings) < 1e-12
    assert block_error(BlockBestOfN, tree, tree.judges, 2, settings) < 1e-12


def test_three_candidates():
    assert block_error(BlockBestOfN, TREES[0], TREES[0].value, 3, {"block_tokens": 2}) < 1e-12


def test_one_block_is_best_of_n():
    tree = VIABLE[3]
    samplers = (BlockBestOfN(2, block_tokens=tree.horizon), BestOfN(2))
    distributions = [exact_distribution(sampler, tree.table(), tree.value) for sampler in samplers]
    assert largest_difference(distributions[0].probabilities, best_of(tree, tree.value, 2)) < 1e-12
    assert distributions[0].expected_calls == pytest.approx(distributions[1].expected_calls, rel=1e-12)


@pytest.mark.parametrize(
    ("mutant", "settings"),
    [
        (mutants.EarlyScoringBlocks, {"delimiters": (0,)}),
        (mutants.ShorterBlocks, {"block_tokens": 2}),
        (mutants.FirstCandidateBlocks, {"block_tokens": 2}),
        (mutants.FirstCandidateBlocks, {"delimiters": (0,)}),
        (mutants.WorstCandidateBlocks, {"block_tokens": 2}),
        (mutants.EndlessFirstBlock, {"block_tokens": 1}),
        (mutants.ShortLineBlocks, {"delimiters": (0,), "min_tokens": 2}),
    ],
)
def test_broken_blocks_are_told_apart(mutant, settings):
    tree = RandomTree(32, horizon=4)
    assert block_error(BlockBestOfN, tree, tree.value, 2, settings) < 1e-12
    assert block_error(mutant, tree, tree.value, 2, settings) > 1e-3


def first_of_the_greatest(sampler) -> bool:
    """Whether, with all values equal, each sample is what its first candidate draws."""
    chosen = generate(
        LINES.table(), sampler=sampler(3, block_tokens=1), verifier=lambda y: 1.0, num_samples=40
    )
    ids = range(0, 120, 3)
    drawn = generate(LINES.table(), num_samples=40, sample_ids=ids)
    return chosen.sequences() == drawn.sequences()


def test_the_first_of_equals_is_taken():
    assert first_of_the_greatest(BlockBestOfN)
    assert not first_of_the_greatest(mutants.LastCandidateBlocks)
    tree = RandomTree(32, horizon=4)
    assert block_error(mutants.LastCandidateBlocks, tree, tree.judges, 2, {"block_tokens": 2}) < 1e-12


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": 0, "block_tokens": 1}, "candidates=0"),
        ({"block_delimiter": "a", "block_tokens": 1}, "block_delimiter='a': leave it out"),
        ({"block_delimiter": "a", "delimiters": (0,)}, "block_delimiter='a': leave it out"),
        ({"block_delimiter": ""}, "block_delimiter='': give a text of at least 1 character"),
        ({"delimiters": (0,), "block_tokens": 2}, "block_tokens=2: leave it out"),
        ({"block_tokens": 0}, "block_tokens=0"),
        ({"delimiters": (-1,)}, "delimiters=-1"),
        ({"delimiters": (0,), "min_tokens": 0}, "min_tokens=0"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        BlockBestOfN(**settings)


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
