"""Samplers that draw candidates: best of n, best of n blocks, and value-guided sampling by blocks."""

import pytest
import torch

from models.tiny_pretrained import tiny_oracle
from mutants import samplers as mutants
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.samplers import BestOfN, BlockBestOfN, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import RandomTree

LINES = RandomTree(31, vocab=3, horizon=4, eos=1)


def takes_the_first_of_equals(sampler) -> bool:
    """Return whether each sample is its first candidate if all values are equal.

    The exact distribution does not depend on the choice among equals, because candidates are exchangeable.
    """
    chosen = generate(LINES.table(), sampler=sampler, verifier=lambda y: 1.0, num_samples=40)
    first = generate(LINES.table(), num_samples=40, sample_ids=range(0, 120, 3))
    return chosen.sequences() == first.sequences()


def test_the_first_of_equal_candidates_is_taken():
    assert takes_the_first_of_equals(BestOfN(3))
    assert takes_the_first_of_equals(BlockBestOfN(3, block_tokens=1))
    assert not takes_the_first_of_equals(mutants.LastBestOfN(3))
    assert not takes_the_first_of_equals(mutants.LastCandidateBlocks(3, block_tokens=1))


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
    with pytest.raises(InputError, match="block_delimiter='@@@': no token of the model contains this text"):
        generate(oracle, ["the cat"], sampler=BlockBestOfN(2, block_delimiter="@@@"), **settings)


def test_invalid_delimiters_are_rejected():
    table, value = LINES.table(), LINES.value
    with pytest.raises(InputError, match="delimiters=7: use token ids below 3"):
        generate(table, sampler=BlockBestOfN(2, (0, 7)), verifier=value)
    message = r"delimiters=\(\): the model has no tokenization"
    expect_error(message, generate, table, sampler=BlockBestOfN(2), verifier=value)
    expect_error(message, exact_distribution, BlockBestOfN(2), table, value)
