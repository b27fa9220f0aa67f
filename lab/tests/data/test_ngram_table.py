"""Tests of n-gram tables of limited size: stored contexts, backoff, and size in bytes."""

import math

import pytest
import torch

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.data.ngram_table import NgramTable
from trialogue_lab.data.ngrams import ngram_distributions

TEXT = torch.randint(0, 4, (9, 40), generator=generator(0, "text")).clamp_max(2)
ORDERS = [ngram_distributions(TEXT, length, 5) for length in range(3)]


def test_full_table_has_the_distributions_of_the_text():
    table, distributions = NgramTable(ORDERS, smoothing=0.1), ORDERS[2]
    assert torch.equal(table.context_log_probs(distributions.contexts), distributions.log_probs(0.1))
    assert table.contexts == (1, 3, distributions.different)
    counts = [int((each.counts > 0).sum()) for each in ORDERS]
    assert table.size == sum(counts) * 6 + 4 * (1 + 3 + distributions.different) + 2 * (
        3 + 2 * distributions.different
    )


def test_missing_contexts_use_their_longest_stored_suffix():
    full_table = NgramTable(ORDERS, smoothing=0.1)
    small_table = NgramTable(ORDERS, smoothing=0.1, most_bytes=full_table.size // 2)
    assert small_table.size <= full_table.size // 2
    assert small_table.contexts[0] == 1 <= small_table.contexts[1]
    contexts = enumerate_sequences(5, 2)
    unigrams, pairs, _ = ORDERS
    bigram_log_probs = {
        int(row[0]): distribution
        for row, distribution in zip(pairs.contexts, pairs.log_probs(0.1), strict=True)
    }
    stored = list(bigram_log_probs)[: small_table.contexts[1]]
    missing = contexts[contexts[:, 0] > 2]
    for context, log_probs in zip(missing.tolist(), small_table.context_log_probs(missing), strict=True):
        assert torch.equal(
            log_probs, bigram_log_probs[context[1]] if context[1] in stored else unigrams.log_probs(0.1)[0]
        )
    assert small_table.context_log_probs(contexts).logsumexp(1).abs().max() < 1e-12


def test_most_frequent_contexts_are_stored_first():
    small_table = NgramTable(ORDERS, most_bytes=NgramTable(ORDERS).size * 2 // 3)
    distributions = ORDERS[2]
    same = (small_table.context_log_probs(distributions.contexts) == distributions.log_probs()).all(1)
    assert int(same.sum()) == small_table.contexts[2]
    assert same[: small_table.contexts[2]].all()
    assert 0 < small_table.contexts[2] < distributions.different


def test_empty_table_is_uniform():
    empty = NgramTable(ORDERS[:2], most_bytes=0)
    assert (empty.size, empty.contexts) == (0, (0, 0))
    assert torch.allclose(
        empty.context_log_probs(torch.tensor([[1]])).exp(), torch.full((1, 5), 0.2).double()
    )
    assert float(empty.context_log_probs(torch.tensor([[1]]))[0, 0]) == -math.log(5)


def test_invalid_arguments_raise_a_one_line_error():
    with pytest.raises(InputError, match=r"contexts=\(1, 3\): give token ids \(n, 2\)"):
        NgramTable(ORDERS).context_log_probs(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(InputError, match=r"orders=\[0, 2\]: give the distributions after contexts of 0, 1"):
        NgramTable(ORDERS[::2])
    with pytest.raises(InputError, match=r"vocab_size=70000"):
        NgramTable([ngram_distributions(TEXT[:1, :5], length, 70_000) for length in range(2)])
