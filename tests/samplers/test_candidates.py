"""Samplers that draw candidates: best of n, best of n blocks, and value-guided sampling by blocks."""

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from mutants import samplers as mutants
from trialogue.errors import InputError
from trialogue.samplers import BestOfN, BlockBestOfN, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import VIABLE, RandomTree


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


def test_a_block_is_judged_once_at_its_end():
    judged = []

    def value(prefix):
        judged.append(prefix)
        return 1.0

    sampler = BlockBestOfN(3, delimiters=(0,))
    generate(LINES.table(), sampler=sampler, verifier=value, num_samples=30)
    assert len(set(judged)) == len(judged)
    assert all(LINES.complete(prefix) or prefix[-1] == 0 for prefix in judged)


def test_delimiters_may_be_a_tensor():
    sampler = BlockBestOfN(2, torch.tensor([2, 0, 2]))
    assert sampler == BlockBestOfN(2, (0, 2))
    assert hash(sampler) == hash(BlockBestOfN(2, (0, 2)))


def test_blocks_end_at_a_text_if_the_oracle_has_a_tokenization():
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


def test_a_delimiter_outside_the_vocabulary_is_refused():
    with pytest.raises(InputError, match="delimiters=7: use token ids below 3"):
        generate(LINES.table(), sampler=BlockBestOfN(2, (0, 7)), verifier=lambda prefix: True)
