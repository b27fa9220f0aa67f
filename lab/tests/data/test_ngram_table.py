"""Tables of limited size: what they hold, what they answer for the rest, and how many bytes that takes."""

import math

import pytest
import torch

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue_lab.data.ngram_table import NgramTable
from trialogue_lab.data.ngrams import ngram_distributions

TEXT = torch.randint(0, 4, (9, 40), generator=generator(0, "text")).clamp_max(2)
ORDERS = [ngram_distributions(TEXT, length, 5) for length in range(3)]


def test_a_table_with_room_for_all_has_the_laws_of_the_text():
    table, distributions = NgramTable(ORDERS, smoothing=0.1), ORDERS[2]
    assert torch.equal(table.answers(distributions.contexts), distributions.log_probs(0.1))
    assert table.contexts == (1, 3, distributions.different)
    counts = [int((each.counts > 0).sum()) for each in ORDERS]
    assert table.size == sum(counts) * 6 + 4 * (1 + 3 + distributions.different) + 2 * (
        3 + 2 * distributions.different
    )


def test_what_is_not_held_has_the_law_of_the_longest_end_that_is():
    whole = NgramTable(ORDERS, smoothing=0.1)
    few = NgramTable(ORDERS, smoothing=0.1, most_bytes=whole.size // 2)
    assert few.size <= whole.size // 2
    assert few.contexts[0] == 1 <= few.contexts[1]
    contexts = whole_sequences(5, 2)
    alone, pairs, _ = ORDERS
    single = {
        int(row[0]): distribution
        for row, distribution in zip(pairs.contexts, pairs.log_probs(0.1), strict=True)
    }
    held = list(single)[: few.contexts[1]]
    missing = contexts[contexts[:, 0] > 2]
    for context, answer in zip(missing.tolist(), few.answers(missing), strict=True):
        assert torch.equal(answer, single[context[1]] if context[1] in held else alone.log_probs(0.1)[0])
    assert few.answers(contexts).logsumexp(1).abs().max() < 1e-12


def test_the_most_frequent_contexts_of_any_length_are_held():
    few = NgramTable(ORDERS, most_bytes=NgramTable(ORDERS).size * 2 // 3)
    distributions = ORDERS[2]
    same = (few.answers(distributions.contexts) == distributions.log_probs()).all(1)
    assert int(same.sum()) == few.contexts[2]
    assert same[: few.contexts[2]].all()
    assert 0 < few.contexts[2] < distributions.different


def test_a_table_without_room_knows_nothing():
    empty = NgramTable(ORDERS[:2], most_bytes=0)
    assert (empty.size, empty.contexts) == (0, (0, 0))
    assert torch.allclose(empty.answers(torch.tensor([[1]])).exp(), torch.full((1, 5), 0.2).double())
    assert float(empty.answers(torch.tensor([[1]]))[0, 0]) == -math.log(5)


def test_what_cannot_be_asked_is_one_line():
    with pytest.raises(InputError, match=r"contexts=\(1, 3\): give token ids \(n, 2\)"):
        NgramTable(ORDERS).answers(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(InputError, match=r"orders=\[0, 2\]: give the distributions after contexts of 0, 1"):
        NgramTable(ORDERS[::2])
    with pytest.raises(InputError, match=r"vocab_size=70000"):
        NgramTable([ngram_distributions(TEXT[:1, :5], length, 70_000) for length in range(2)])
