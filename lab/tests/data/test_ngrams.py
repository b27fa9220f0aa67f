"""Tests of n-gram counts against independent counts."""

from collections import Counter

import pytest
import torch

from one_line_errors import refusals
from trialogue.randomness import generator
from trialogue_lab.data.ngrams import ngram_distributions


@pytest.mark.parametrize("context", [1, 2, 3])
def test_counts_agree_with_the_text(context):
    text = torch.randint(0, 4, (500,), generator=generator(0, "text"))
    found = ngram_distributions(text, context, 5)
    places = [tuple(text[i : i + context + 1].tolist()) for i in range(500 - context)]
    counted, context_counts = Counter(places), Counter(place[:-1] for place in places)
    assert found.occurrences == 500 - context
    assert found.different == len(found.contexts) == len(context_counts)
    assert found.share == 1
    for row, distribution in zip(found.contexts.tolist(), found.counts.tolist(), strict=True):
        assert distribution == [counted[*row, token] for token in range(5)]
    times = [context_counts[tuple(row)] for row in found.contexts.tolist()]
    assert times == sorted(times, reverse=True)
    assert found.prior.tolist() == pytest.approx([each / (500 - context) for each in times])


def test_only_the_most_frequent_contexts_are_kept():
    text = torch.randint(0, 3, (300,), generator=generator(1, "text"))
    all_contexts, frequent = ngram_distributions(text, 2, 3), ngram_distributions(text, 2, 3, most=4)
    assert torch.equal(frequent.contexts, all_contexts.contexts[:4])
    assert torch.equal(frequent.counts, all_contexts.counts[:4])
    assert frequent.share == pytest.approx(float(all_contexts.counts[:4].sum()) / 298)
    smoothed = frequent.log_probs(0.5).exp()
    assert smoothed[0].tolist() == pytest.approx(
        ((frequent.counts[0] + 0.5) / (frequent.counts[0].sum() + 1.5)).tolist()
    )


def test_contexts_do_not_cross_rows():
    rows = torch.randint(0, 4, (7, 20), generator=generator(3, "text"))
    found = ngram_distributions(rows, 2, 4)
    by_row = [ngram_distributions(row, 2, 4) for row in rows]
    assert found.occurrences == sum(each.occurrences for each in by_row) == 7 * 18
    for context, distribution in zip(found.contexts, found.counts, strict=True):
        parts = [each.counts[(each.contexts == context).all(1)].sum(0) for each in by_row]
        assert torch.equal(sum(parts), distribution)
    assert ngram_distributions(rows.flatten(), 2, 4).occurrences == 7 * 20 - 2


def test_context_of_length_zero_counts_tokens():
    rows = torch.randint(0, 4, (7, 20), generator=generator(3, "text"))
    found = ngram_distributions(rows, 0, 5)
    assert (found.contexts.shape, found.different, found.share) == ((1, 0), 1, 1)
    assert torch.equal(found.counts[0], rows.flatten().bincount(minlength=5).double())


def test_long_contexts_of_a_large_vocabulary_are_counted():
    text = torch.randint(0, 1000, (400,), generator=generator(2, "text")).repeat(2)
    found = ngram_distributions(text, 30, 1000)
    assert (found.different, int(found.counts.max())) == (400, 2)


test_invalid_texts_raise_a_one_line_error = refusals(
    "^{}",
    [
        (lambda: ngram_distributions(torch.arange(3), 3, 5), r"context=3: the text has 3 tokens"),
        (lambda: ngram_distributions(torch.arange(6), 2, 5), r"tokens=5: tokens are 0 to 4"),
        (
            lambda: ngram_distributions(torch.arange(20_000), 1, 20_000),
            r"most=None: a table of 19999 contexts .* is too large",
        ),
    ],
)
