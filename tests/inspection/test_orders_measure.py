"""Tests of the measure of reveal orders, against an independent enumeration of the samplers."""

from unittest import mock

import numpy as np
import pytest
import torch

from inspection.test_consistency_measure import SITES, VOCAB, Enumerated
from samplers.unmasking.naive_passes import RandomConditionals, naive_distribution
from trialogue.errors import InputError
from trialogue.inspection.conclusions import describe_conclusion
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.measures.orders import (
    COMPARED,
    ORDERS,
    POSITIONS,
    RANDOM,
    RevealOrder,
    order_log_probs,
)
from trialogue.inspection.measures.quantities import Point, curve_quantity
from trialogue.inspection.picture import Series, curve_figures
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.oracles import Masked, enumerate_sequences
from trialogue.samplers.unmasking import Confidence, Entropy, Fixed, LeftToRight, Margin, Ordered

MODEL = RandomConditionals(3, VOCAB, SITES)
EVERY = torch.ones(VOCAB**SITES, SITES, dtype=torch.bool)
DETERMINISTIC = [name for name in ORDERS if name != RANDOM]


def naive_scores(name, positions, texts):
    """Return the log-likelihood of each text per token, by recursion."""
    order, blocks = ORDERS[name]
    outputs, _ = naive_distribution(Ordered(order, Fixed(positions), blocks=blocks), MODEL, [None] * SITES)
    return np.log([outputs[tuple(text)] for text in texts.tolist()]) / SITES


def largest_difference(name):
    texts = enumerate_sequences(VOCAB, SITES)
    return max(
        np.abs(order_log_probs(MODEL, texts, EVERY, k, 0)[name] - naive_scores(name, k, texts)).max()
        for k in (1, 2)
    )


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_likelihoods_equal_enumeration(name):
    assert largest_difference(name) < 1e-12


@pytest.mark.parametrize("kind", [LeftToRight, Confidence, Entropy, Margin])
def test_a_wrong_order_is_detected(kind):
    right = kind.scores
    name = next(name for name, (order, _) in ORDERS.items() if isinstance(order, kind))
    with mock.patch.object(kind, "scores", lambda self, x: -right(self, x)):
        assert largest_difference(name) > 0.01


def test_random_order_has_the_mean_over_orders():
    texts = torch.tensor([[0, 1, 2, 1]]).expand(4000, -1)
    found = order_log_probs(MODEL, texts, EVERY[:1].expand(4000, -1), 1, 5)[RANDOM]
    probabilities = np.exp(found * SITES)
    expected = np.exp(naive_scores(RANDOM, 1, texts[:1]) * SITES)[0]
    error = probabilities.std() / np.sqrt(len(probabilities))
    assert abs(probabilities.mean() - expected) < 4 * error
    assert error < 0.04 * expected
    assert len(np.unique(found.round(9))) == 24  # orders


def test_networks_of_the_package_are_measured():
    network = MaskedTransformer(
        Transformer(TransformerConfig(vocab_size=4, layers=1, heads=2, width=8, causal=False))
    )
    tokens = torch.tensor([[0, 1, 2, 1, 0, 2], [2, 2, 1, 0, 0, 1]])
    masked = torch.tensor([[True] * 6, [False, True, False, True, True, False]])
    for found in (order_log_probs(network, tokens, masked, k, 0) for k in (1, 2, 8)):
        assert found.keys() == ORDERS.keys()
        assert all((values > -3).all() and (values < 0).all() for values in found.values())


class Framed(Masked):
    """The model between two special tokens."""

    vocab_size = 6

    def log_probs(self, tokens, masked):
        distributions = torch.full((*tokens.shape, self.vocab_size), -torch.inf, dtype=torch.float64)
        distributions[:, 1:-1, :VOCAB] = MODEL.log_probs(tokens[:, 1:-1], masked[:, 1:-1])
        return distributions

    def proposable(self, tokens):
        return tokens < VOCAB


def subject_and_text(texts):
    subject, material = Enumerated(0.0), Material()
    subject.masked = Framed()
    material.documents = texts
    return subject, material


def test_quantities_are_means_over_passages():
    texts = enumerate_sequences(VOCAB, SITES)[7:55:3]
    letters = [" ".join("abc"[token] for token in text) for text in texts.tolist()]
    found = RevealOrder().take(*subject_and_text(letters), Effort(), lambda _: None)
    curves = {one.name: one.points for one in found if one.along}
    for name in DETERMINISTIC:
        points = curves[f"log-likelihood, {name}"]
        assert [point.at for point in points] == list(POSITIONS)
        exact = [naive_scores(name, k, texts).mean() for k in POSITIONS]
        assert [point.value for point in points] == pytest.approx(exact, abs=1e-12)
        gains = [point.value for point in curves[name + COMPARED]]
        randoms = [point.value for point in curves[f"log-likelihood, {RANDOM}"]]
        assert gains == pytest.approx(np.subtract(exact, randoms), abs=1e-12)
    [main] = [one for one in found if one.finding]
    assert main.points[0].value == curves[f"confidence{COMPARED}"][0].value


def test_figures_have_short_labels_inside_the_axes():
    """Curves with equal values have labels that are moved apart, and the shared words are in the title."""
    points = [Point(float(position), at=position) for position in POSITIONS]
    curves = [curve_quantity(f"{name}{COMPARED}", points, "tokens per pass") for name in DETERMINISTIC]
    [draw] = curve_figures([Series("mine", curves)], logarithmic=True)
    [panel] = draw().axes
    assert panel.get_title() == f"mine: {COMPARED.removeprefix(', ')}"
    labels = {" ".join(text.get_text().split()): text.xy[1] for text in panel.texts}
    assert set(labels) == set(DETERMINISTIC)
    heights = sorted(labels.values())
    assert heights[-1] < 1
    assert min(np.diff(heights)) > 0.05


def test_the_conclusion_names_orders_whose_interval_excludes_zero():
    def series(**gains):
        quantities = [
            curve_quantity(name.replace("_", " ") + COMPARED, [Point(*ends, 1), Point(9, 8, 10, 2)], "k")
            for name, ends in gains.items()
        ]
        return Series("x", quantities)

    control = series(margin=(0.0, -0.1, 0.1), entropy=(0.0, -0.2, 0.1))
    model = series(left_to_right=(-0.2, -0.3, -0.1), margin=(0.21, 0.15, 0.28), entropy=(0.1, 0.05, 0.2))
    assert describe_conclusion("orders", model, control) == (
        "Revealing by margin gives the text 0.210 [0.150, 0.280] nats per token more than random order (random "
        "weights: 0 [-0.100, 0.100]). Orders that also give more than random order: entropy: 0.100 [0.0500, 0.200]. "
        "Orders that give less than random order: left to right: -0.200 [-0.300, -0.100]."
    )
    undecided = series(margin=(0.21, -0.01, 0.4), entropy=(0.1, -0.1, 0.2))
    assert describe_conclusion("orders", undecided, None) == (
        "This run shows no order that gives the text more than random order. The largest difference is 0.210 [-0.0100, "
        "0.400] nats per token, for the order margin."
    )


def test_reasons_why_the_measure_is_not_taken():
    subject, material = subject_and_text(["a b c a"])
    reason = RevealOrder().refusal(subject, material)
    assert "Use --text FILE, because samples of the model would favour the order" in reason
    assert "maximum length is only 6" in RevealOrder().model_refusal(subject)
    del subject.masked
    subject.tokenizer.mask_token = None
    with pytest.raises(InputError, match="no mask token"):
        RevealOrder().model_refusal(subject)
