"""Tests of the corpus of stored patterns against sums over labels and errors."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from one_line_errors import refusals
from trialogue.oracles import Autoregressive, enumerate_sequences
from trialogue_lab.studies.window_coherence.pattern_corpus import PatternCorpus, make_maximal_length_patterns

LENGTH = 5
SMALL = {
    "binary": PatternCorpus([[0, 1, 1], [0, 0, 1]], 0.2),
    "three tokens": PatternCorpus([[0, 1], [2, 2]], 0.3, vocab_size=3),
    "one constant": PatternCorpus([[1]], 0.6),
}


def enumerate_distribution(corpus: PatternCorpus, length: int = LENGTH) -> Tensor:
    """Return p(x) (V^length,) by the definition: a label, then correct and wrong tokens."""
    distribution = []
    for tokens in itertools.product(range(corpus.vocab_size), repeat=length):
        total = 0.0
        for pattern in corpus.patterns:
            for phase in range(corpus.period):
                right = [token == int(pattern[(i + phase) % corpus.period]) for i, token in enumerate(tokens)]
                wrong = corpus.noise / (corpus.vocab_size - 1)
                total += math.prod(1 - corpus.noise if ok else wrong for ok in right) / corpus.labels
        distribution.append(total)
    return torch.tensor(distribution, dtype=torch.float64)


def has_exact_conditionals(corpus: PatternCorpus) -> bool:
    distribution = enumerate_distribution(corpus).view((corpus.vocab_size,) * LENGTH)
    for length in range(LENGTH):
        prefixes = enumerate_sequences(corpus.vocab_size, length)
        marginal = distribution.sum(tuple(range(length + 1, LENGTH))) if length + 1 < LENGTH else distribution
        exact = marginal.reshape(-1, corpus.vocab_size)
        exact = (exact / exact.sum(1, keepdim=True)).log()
        found = corpus.next_log_probs(prefixes, torch.full((len(prefixes),), length))
        if not torch.allclose(found, exact, atol=1e-12, rtol=0):
            return False
    return True


@pytest.mark.parametrize("name", SMALL)
def test_conditionals_agree_with_enumeration(name: str) -> None:
    assert isinstance(SMALL[name], Autoregressive)
    assert has_exact_conditionals(SMALL[name])


def test_wrong_posteriors_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    original = PatternCorpus._mixture_log_probs
    monkeypatch.setattr(
        PatternCorpus,
        "_mixture_log_probs",
        lambda corpus, log_weights, predicted: original(corpus, 2 * log_weights, predicted),
    )
    assert not has_exact_conditionals(SMALL["binary"])


def test_padding_has_no_effect() -> None:
    corpus = SMALL["binary"]
    tokens = torch.tensor([[0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1]])
    lengths = torch.tensor([4, 2, 0])
    found = corpus.next_log_probs(tokens, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = corpus.next_log_probs(tokens[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(found[row : row + 1], alone)


@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_window_has_the_same_distribution_at_every_position(window: int) -> None:
    corpus = SMALL["three tokens"]
    distribution = enumerate_distribution(corpus).view((3,) * LENGTH)
    for begin in range(LENGTH - window):
        outside = [axis for axis in range(LENGTH) if not begin <= axis <= begin + window]
        exact = (
            distribution.sum(outside).reshape(3**window, 3) if outside else distribution.reshape(3**window, 3)
        )
        exact = exact / exact.sum(1, keepdim=True)
        torch.testing.assert_close(corpus.context_log_probs(window).exp(), exact)


def test_label_has_the_expected_distribution() -> None:
    corpus = SMALL["three tokens"]
    distribution = corpus.label_log_probs(1, 3, 2).exp()  # 0 1 0 1 .. shifted by one: 1 0 1 [0 1]
    torch.testing.assert_close(
        distribution, torch.tensor([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15]], dtype=torch.float64)
    )


def sampled_chi2(corpus: PatternCorpus, distribution: Tensor, n: int = 20_000) -> float:
    """Return chi-squared of counts of three tokens minus its degrees of freedom, in standard deviations."""
    places = corpus.vocab_size ** torch.arange(2, -1, -1)
    counts = torch.bincount((corpus.sample(n, 3) * places).sum(1), minlength=len(distribution)).double()
    freedom = len(distribution) - 1
    return float(
        (((counts - n * distribution) ** 2 / (n * distribution)).sum() - freedom) / math.sqrt(2 * freedom)
    )


@pytest.mark.parametrize("name", SMALL)
def test_samples_have_the_exact_distribution(name: str) -> None:
    corpus = SMALL[name]
    assert sampled_chi2(corpus, enumerate_distribution(corpus, 3)) < 6
    assert torch.equal(corpus.sample(7, 9, seed=3), corpus.sample(7, 9, seed=3))
    assert not torch.equal(corpus.sample(7, 9, seed=3), corpus.sample(7, 9, seed=4))
    assert corpus.sample(0, 4).shape == (0, 4)


@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_patterns_of_maximal_length_contain_every_window_once(bits: int) -> None:
    patterns = make_maximal_length_patterns(bits)
    period = 2**bits - 1
    assert [len(pattern) for pattern in patterns] == [period, period]
    labels = PatternCorpus(patterns, 0.1).predictions(period)
    distances = (labels[:, None] != labels).sum(2)
    assert int(distances[~torch.eye(2 * period, dtype=torch.bool)].min()) == (period - 1) // 2
    for pattern in patterns:
        windows = {tuple(pattern.repeat(2)[i : i + bits].tolist()) for i in range(period)}
        assert len(windows) == period


test_errors_name_the_invalid_argument = refusals(
    "^{}=",
    [
        ("patterns", lambda: PatternCorpus([], 0.1)),
        ("patterns", lambda: PatternCorpus([[0, 1], [0]], 0.1)),
        ("patterns", lambda: PatternCorpus([[0, 3]], 0.1, vocab_size=3)),
        ("window", lambda: SMALL["binary"].context_log_probs(21)),
        ("bits", lambda: make_maximal_length_patterns(25)),
        ("label", lambda: SMALL["binary"].label_log_probs(SMALL["binary"].labels, 0, 3)),
    ],
)
