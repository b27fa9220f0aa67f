"""Compare topic models with sums over all sets of topics, and test conditionals, masking and samples."""

import math
from itertools import combinations

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.data import BertMasking, TopicModel
from trialogue.oracles import enumerate_sequences
from trialogue.testing import check_energy, check_masked

BERT = BertMasking(p_mask=0.3, p_correct=0.2, p_random=0.3)
SIZES = [(3, 2, 1), (3, 2, 2), (4, 1, 2), (2, 2, 2), (4, 2, 3)]


def word_distributions(t: TopicModel) -> Tensor:
    """Return P_w (Assumption 2.1.1) of every set of topics in the order of `combinations`."""
    tau = t.topics_per_document
    assert tau is not None
    distributions = torch.zeros(math.comb(t.topics, tau), t.vocab_size, dtype=torch.float64)
    for row, chosen in enumerate(combinations(range(t.topics), tau)):
        for topic in chosen:
            distributions[row, topic * t.words_per_topic : (topic + 1) * t.words_per_topic] = 1 / (
                tau * t.words_per_topic
            )
    return distributions


def distribution_by_sets(t: TopicModel, length: int) -> Tensor:
    documents = enumerate_sequences(t.vocab_size, length)
    return torch.stack([distribution[documents].prod(1) for distribution in word_distributions(t)]).mean(0)


@pytest.mark.parametrize("size", SIZES)
def test_document_distribution_is_the_mean_over_sets_of_topics(size):
    t = TopicModel(*size)
    for length in (1, 3):
        documents = enumerate_sequences(t.vocab_size, length)
        torch.testing.assert_close(
            t.log_prob(documents).exp(), distribution_by_sets(t, length), rtol=1e-12, atol=1e-15
        )


def test_dirichlet_documents_follow_a_polya_urn():
    t = TopicModel(3, 2, concentration=0.4)
    for document in ([0, 1, 0], [0, 2, 5], [4, 4, 4]):
        chance, counts = 1.0, [0, 0, 0]
        for place, word in enumerate(document):
            chance *= (0.4 + counts[word // 2]) / (1.2 + place) / 2
            counts[word // 2] += 1
        assert float(t.log_prob(torch.tensor([document])).exp()) == pytest.approx(chance, rel=1e-12)
    assert float(t.log_prob(enumerate_sequences(6, 3)).exp().sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("t", [TopicModel(3, 2, 3), TopicModel(2, 2, concentration=0.3), TopicModel(4, 1, 3)])
def test_models_keep_their_contracts(t):
    check_masked(t, sites=3, distribution=t.log_prob(enumerate_sequences(t.vocab_size, 3)).exp())
    check_energy(t, sites=3)
    check_energy(TopicModel(3, 2, 1), sites=3)
    check_masked(TopicModel(3, 2, 1), sites=3)


@pytest.mark.parametrize("p", [(0.15, 0.1, 0.1), (0.3, 0.0, 0.5), (1.0, 0.5, 0.5), (0.2, 0.4, 0.0)])
def test_input_rates_equal_proposition_2_1_1(p):
    t, masks = TopicModel(5, 3, 2), BertMasking(p_mask=p[0], p_correct=p[1], p_random=p[2])
    p_0, p_1, p_2 = t.rates(masks)
    distribution = masks.read(word_distributions(t)[0])
    expected = torch.tensor([p_0] + [p_1] * 6 + [p_2] * 9, dtype=torch.float64)
    torch.testing.assert_close(distribution, expected, rtol=1e-12, atol=1e-15)
    assert float(distribution.sum()) == pytest.approx(1, abs=1e-14)
    by_hand = (1 - p[0]) / 6 + p[0] * (p[1] / 6 + p[2] / 15)
    assert p_1 == pytest.approx(by_hand, rel=1e-12)


def test_samples_have_the_requested_shares_and_lengths():
    t = TopicModel(10, 10, 3)
    tokens, shares = t.draw(4000, (20, 30), seed=3)
    lengths = (tokens >= 0).sum(1)
    assert tokens.shape == (4000, 30)
    assert (int(lengths.min()), int(lengths.max())) == (20, 30)
    assert torch.equal(tokens, t.draw(4000, (20, 30), seed=3).tokens)
    assert not torch.equal(tokens, t.draw(4000, (20, 30), seed=4).tokens)
    assert bool(((shares > 0).sum(1) == 3).all())
    assert bool(torch.isfinite(t.log_prob(tokens)).all())
    frequency = torch.bincount(tokens[tokens >= 0], minlength=100).double()
    expected = float(lengths.sum()) / 100
    assert float((frequency - expected).abs().max()) < 6 * math.sqrt(expected * 4)


@pytest.mark.parametrize(
    "t", [TopicModel(6, 2, 4), TopicModel(6, 2, concentration=0.1), TopicModel(6, 2, concentration=1e-12)]
)
def test_a_document_depends_on_the_seed_and_its_index_only(t):
    few, many = t.draw(20, (3, 9), seed=1), t.draw(50, (3, 9), seed=1)
    assert torch.equal(few.tokens, many.tokens[:20])
    assert torch.equal(few.shares, many.shares[:20])
    assert not torch.equal(many.tokens[:20], many.tokens[20:40])
    assert t.draw(0, (3, 9)).tokens.shape == (0, 9)
    words = t.draw(20_000, 2, seed=3).tokens
    distribution = t.log_prob(words).exp()
    pairs, place = torch.cartesian_prod(*[torch.arange(12)] * 2), words @ torch.tensor([12, 1])
    found = torch.bincount(place, minlength=144) / len(words)
    chance = t.log_prob(pairs).exp()
    assert float(((found - chance).abs() / (chance / len(words)).sqrt().clamp_min(1e-9)).max()) < 6
    assert bool((distribution > 0).all())


@pytest.mark.parametrize("t", [TopicModel(6, 2, 4), TopicModel(6, 2, concentration=0.1), TopicModel(2, 1, 2)])
def test_share_moments_equal_sample_moments(t):
    shares = t.draw(40_000, 1).shares
    same, different = t.share_moments()
    assert float(shares.square().mean()) == pytest.approx(same, abs=0.004)
    assert float((shares[:, 0] * shares[:, 1]).mean()) == pytest.approx(different, abs=0.004)
    assert t.topics * (same + (t.topics - 1) * different) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TopicModel(3, 2, 4), "topics_per_document=4: use at most 3"),
        (lambda: TopicModel(3, 2), "topics_per_document=None: give either"),
        (lambda: TopicModel(3, 2, 1, concentration=0.1), "topics_per_document=1: give either"),
        (
            lambda: BertMasking(p_correct=0.6, p_random=0.5),
            "p_random=0.5: use at most 0.4 with p_correct=0.6",
        ),
        (lambda: TopicModel(3, 2, 1).draw(2, (5, 4)), "lengths=4: use at least 5"),
        (lambda: TopicModel(3, 2, 1).log_prob(torch.tensor([[6]])), "tokens=6: use words from 0 to 5"),
        (lambda: TopicModel(3, 2, 1).log_prob(torch.tensor([1])), r"tokens=\(1,\): give words"),
        (lambda: TopicModel(3, 2, 1).draw(10**12, 5), "documents=1000000000000: sample at most"),
        (lambda: TopicModel(3, 2, concentration=1.0).rates(BERT), "model='Dirichlet': give a TopicModel"),
    ],
)
def test_invalid_input_is_reported_in_one_line(call, message):
    expect_error(f"^{message}", call)
