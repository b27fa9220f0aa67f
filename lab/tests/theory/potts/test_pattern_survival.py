"""Tests of pattern survival against sums over all texts and eigenvalues of dense matrices."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from one_line_errors import refusals
from trialogue.errors import InputError
from trialogue.inspection.coherence import coherence
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.theory.potts import pattern_survival
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival

CASES = {  # patterns, vocabulary, window, label
    "two constants": ([[0], [1]], 2, 2, 0),
    "phases": ([[0, 1], [0, 0]], 2, 3, 1),
    "three tokens": ([[0, 1, 2]], 3, 2, 2),
    "ties": ([[0, 1, 1], [0, 0, 1]], 2, 4, 4),
}
STEPS = 5


def random_log_probs(vocab: int, context: int, *names: object) -> Tensor:
    return torch.randn(
        vocab**context, vocab, generator=generator(0, *names), dtype=torch.float64
    ).log_softmax(1)


def enumerate_survival(name: str, log_probs: Tensor, steps: int = STEPS) -> list[float]:
    """Sum over all continuations of the prompt. `log_probs` is one table (V^w, V), or one table per step."""
    patterns, vocab, window, label = CASES[name]
    prompt = window
    tables = log_probs if log_probs.ndim == 3 else log_probs.expand(steps, *log_probs.shape)
    context = round(math.log(tables.shape[1], vocab))
    period = len(patterns[0])
    pattern, phase = divmod(label, period)
    start = [patterns[pattern][(place + phase) % period] for place in range(prompt)]
    texts = torch.tensor([start + list(rest) for rest in itertools.product(range(vocab), repeat=steps)])
    log_weight = torch.zeros(len(texts), dtype=torch.float64)
    for step in range(steps):
        place = prompt + step
        code = (texts[:, place - context : place] * vocab ** torch.arange(context - 1, -1, -1)).sum(1)
        log_weight += tables[step][code, texts[:, place]]
    labels = coherence(texts, patterns, window, vocab_size=vocab).labels[:, prompt - window :]
    survived_steps = (labels == labels[:1, :1]).long().cumprod(1).sum(1) - 1
    return [float(log_weight[survived_steps >= step].exp().sum()) for step in range(steps + 1)]


def largest_error(name: str, steps: int = STEPS) -> float:
    patterns, vocab, window, label = CASES[name]
    chain = PatternSurvival(patterns, window, label, vocab)
    worst = 0.0
    for context in (0, 1, window):
        stationary = random_log_probs(vocab, context, "law", context)
        changing = torch.stack([random_log_probs(vocab, context, "law", step) for step in range(steps)])
        for log_probs in (stationary, changing):
            exact = enumerate_survival(name, log_probs, steps)
            found = chain.curve(log_probs, steps)
            worst = max(worst, float(np.abs(found - exact).max()))
    return worst


@pytest.mark.parametrize("name", CASES)
def test_survival_agrees_with_a_sum_over_texts(name: str) -> None:
    assert largest_error(name) < 1e-12


def _contexts_reversed(mass, codes, following, table, after):  # type: ignore[no-untyped-def]
    return original_advance(mass, codes, following, np.ascontiguousarray(table[::-1]), after)


original_advance = pattern_survival._advance


def test_reversed_contexts_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_survival, "_advance", _contexts_reversed)
    assert max(largest_error(name, 3) for name in ("phases", "ties")) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_decay_rate_agrees_with_an_eigenvalue(name: str) -> None:
    patterns, vocab, window, label = CASES[name]
    log_probs = random_log_probs(vocab, window, "law", 0)
    period, states = len(patterns[0]), vocab**window
    labels = [_labels(name, site) for site in range(period)]
    product = np.eye(states)
    for site in range(period):
        step = np.zeros((states, states))
        for state in range(states):
            for token in range(vocab):
                after = (state * vocab + token) % states
                if int(labels[site][state]) == label and int(labels[(site + 1) % period][after]) == label:
                    step[state, after] = math.exp(float(log_probs[state, token]))
        product = product @ step
    largest = np.abs(np.linalg.eigvals(product)).max()
    found = PatternSurvival(patterns, window, label, vocab).decay_rate(log_probs)
    assert found.rate == pytest.approx(-math.log(largest) / period, rel=1e-6)


@pytest.mark.parametrize("probability", [1e-3, 1e-9])
def test_decay_rate_converges_if_the_loss_alternates(probability: float) -> None:
    """Label 0 has windows 00, 01 and 10, and the loss of a step alternates between 01 and 10."""
    log_probs = torch.tensor([[probability, 1 - probability], [0.5, 0.5]], dtype=torch.float64)
    # Of the surviving windows 00 and 01 lead to each other's contexts; 11 follows the other label.
    steps = np.zeros((4, 4))
    for window in range(4):
        for token in range(2):
            after = (window * 2 + token) % 4
            if window != 3 and after != 3:
                steps[window, after] = float(log_probs[window % 2, token])
    largest = np.abs(np.linalg.eigvals(steps)).max()
    found = PatternSurvival([[0], [1]], 2, 0).decay_rate(log_probs.log())
    assert found.rate == pytest.approx(-math.log(largest), rel=1e-6)
    assert found.change <= 1e-9


def test_decay_rate_that_does_not_converge_is_rejected() -> None:
    with pytest.raises(InputError, match=r"^log_probs=.*the relative change of the rate is still"):
        PatternSurvival([[0], [1]], 2, 0).decay_rate(random_log_probs(2, 1), tolerance=-1.0)


def _labels(name: str, site: int) -> Tensor:
    """Return the label of every window whose first token is at `site`."""
    patterns, vocab, window, _ = CASES[name]
    windows = enumerate_sequences(vocab, window)
    texts = torch.cat((torch.zeros(len(windows), site, dtype=torch.int64), windows), 1)
    return coherence(texts, patterns, window, vocab_size=vocab).labels[:, -1]


def test_decay_rate_of_1e_30_is_precise() -> None:
    log_probs = torch.tensor([[1.0, 1e-30], [0.5, 0.5]], dtype=torch.float64).log()
    rate = PatternSurvival([[0], [1]], 1, 0).decay_rate(log_probs).rate
    assert rate == pytest.approx(1e-30, rel=1e-9)


def test_decay_rate_is_zero_without_loss_and_infinite_if_the_pattern_ends_at_once() -> None:
    chain = PatternSurvival([[0, 1]], 2, 0)
    alternating = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64).log()
    assert chain.curve(alternating, 10)[-1] == 1
    assert chain.decay_rate(alternating).rate == 0
    leaving = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).log()
    assert PatternSurvival([[0], [1]], 1, 0).decay_rate(leaving).rate == 0
    assert PatternSurvival([[0], [1]], 1, 0).decay_rate(leaving.flip(1)).rate == math.inf
    assert PatternSurvival([[0], [1]], 1, 0).curve(leaving.flip(1), 3).tolist() == [1, 0, 0, 0]


test_errors_name_the_invalid_argument = refusals(
    "^{}=",
    [
        ("label", lambda: PatternSurvival([[0], [1]], 1, 2)),
        ("window", lambda: PatternSurvival([[0], [1]], 25, 0)),
        ("patterns", lambda: PatternSurvival([[0, 1], [0, 0]], 1, 2).curve(random_log_probs(2, 1), 3)),
        (
            "log_probs",
            lambda: PatternSurvival([[0], [1]], 2, 0).curve(random_log_probs(2, 1).expand(2, 2, 2), 3),
        ),
        ("log_probs", lambda: PatternSurvival([[0], [1]], 2, 0).curve(torch.full((2, 2), math.nan), 3)),
    ],
)
