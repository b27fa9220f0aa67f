"""Tests of the measure of reveal orders, against an independent enumeration of the samplers."""

import shlex
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch

from inspection.test_consistency_measure import SITES, VOCAB, Enumerated
from samplers.unmasking.naive_passes import RandomConditionals, naive_distribution
from trialogue.errors import InputError
from trialogue.inspection.conclusions import recommend_orders
from trialogue.inspection.measures import orders
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.measures.orders import (
    COMPARED,
    COST,
    ORDERS,
    POSITIONS,
    RANDOM,
    RevealOrder,
    order_log_probs,
    sampling_command,
)
from trialogue.inspection.measures.quantities import Point, curve_quantity, mean_point, single_quantity
from trialogue.inspection.page import describe_measure, make_table
from trialogue.inspection.picture import Series, curve_figures
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.oracles import Masked, enumerate_sequences
from trialogue.samplers.registered import UNMASKING
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
    """Passages of four tokens have no rows for four tokens per pass and for blocks of eight."""
    texts = enumerate_sequences(VOCAB, SITES)[7:55:3]
    letters = [" ".join("abc"[token] for token in text) for text in texts.tolist()]
    likelihood, cost, *differences = RevealOrder().take(*subject_and_text(letters), Effort(), lambda _: None)
    assert [one.name for one in differences] == [COMPARED + name for name in DETERMINISTIC[:-1]]
    assert "of 4 tokens in random order, one token per pass" in likelihood.name
    _, rows = make_table([Series("x", [likelihood, cost, *differences])], every=False)
    assert len(rows) == 1 + 1 + 2 * 4
    random = likelihood.points[0].value - np.array([0, cost.points[0].value])
    assert [point.at for point in cost.points] == [2]
    for curve in differences:
        assert [point.at for point in curve.points] == [1, 2]
        exact = [naive_scores(curve.name.removeprefix(COMPARED), k, texts).mean() for k in (1, 2)]
        assert [point.value for point in curve.points] + random == pytest.approx(exact, abs=1e-12)


def test_intervals_of_all_differences_and_costs_hold_together():
    """Four orders with one and two tokens per pass, and one cost, are nine intervals."""
    letters = [" ".join("abc"[int(digit)] for digit in f"{n:04}") for n in (0, 12, 210, 1201, 2012, 1111)]
    with mock.patch.object(orders, "mean_point", wraps=mean_point) as called:
        RevealOrder().take(*subject_and_text(letters), Effort(factor=0.25), lambda _: None)
    assert [call.kwargs.get("intervals", 1) for call in called.call_args_list] == [1] + [9] * 9


def test_the_estimated_work_is_that_of_the_measured_orders():
    """One and two tokens per pass need four and two passes over six tokens of each of 16 passages, in five orders."""
    assert RevealOrder().count_tokens(*subject_and_text([]), Effort()) == 5 * (4 + 2) * 16 * 6


def test_figures_have_short_labels_inside_the_axes():
    """Curves with equal values have labels that are moved apart, and the shared words are in the title."""
    points = [Point(float(position), at=position) for position in POSITIONS]
    curves = [curve_quantity(f"{COMPARED}{name}", points, "tokens per pass") for name in DETERMINISTIC]
    [draw] = curve_figures([Series("mine", curves)], logarithmic=True)
    [panel] = draw().axes
    assert panel.get_title() == f"mine: {COMPARED.removesuffix(', ')}"
    labels = {" ".join(text.get_text().split()): text.xy[1] for text in panel.texts}
    assert set(labels) == set(DETERMINISTIC)
    heights = sorted(labels.values())
    assert heights[-1] < 1
    assert min(np.diff(heights)) > 0.05


def test_each_number_of_tokens_per_pass_has_a_conclusion():
    def curve(name, *ends):
        points = [Point(*each, at) for at, each in zip((1, 2, 4), ends, strict=True)]
        return curve_quantity(COMPARED + name, points, "tokens per pass", unit="nats per token")

    costs = [Point(0.5, 0.4, 0.6, 2), Point(0.9, 0.8, 1.0, 4)]
    likelihood = single_quantity(
        "log-likelihood", Point(-1.5, -1.6, -1.4), finding="The log-likelihood is {}"
    )
    quantities = [
        likelihood,
        curve_quantity(COST, costs, "tokens per pass instead of one", unit="nats per token"),
        curve("margin", (0.2, -0.1, 0.4), (0.3, 0.2, 0.4), (-0.2, -0.3, -0.1)),
        curve("entropy", (0.1, -0.1, 0.2), (0.2, 0.1, 0.3), (-0.1, -0.2, -0.01)),
        curve("left to right", (-0.2, -0.3, -0.1), (-0.2, -0.3, 0.1), (-0.3, -0.4, -0.2)),
    ]
    control = Series("random weights", [replace(likelihood, points=(Point(-2.0, -3.0, -1.0),))], quiet=True)
    lines = [
        "With one token per pass, use random order. No other order is shown to be better. The largest difference is "
        "0.200 [-0.100, 0.400] nats per token, for margin. Worse: left to right -0.200 [-0.300, -0.100]. The "
        "log-likelihood is -1.50 [-1.60, -1.40] (random weights: -2 [-3, -1]).",
        "With 2 tokens per pass, use margin. Better than random order: margin 0.300 [0.200, 0.400]; entropy 0.200 "
        "[0.100, 0.300] nats per token. Compared with one token per pass, the log-likelihood in random order decreases "
        "by 0.500 [0.400, 0.600] nats per token.",
        "With 4 tokens per pass, use random order. All other orders are worse. Worse: left to right -0.300 [-0.400, "
        "-0.200]; margin -0.200 [-0.300, -0.100]; entropy -0.100 [-0.200, -0.0100]. Compared with one token per pass, "
        "the log-likelihood in random order decreases by 0.900 [0.800, 1] nats per token.",
    ]
    assert describe_measure("orders", [Series("x", quantities)], [control]) == lines
    assert recommend_orders(Series("x", quantities)) == {1: RANDOM, 2: "margin", 4: RANDOM}
    change, *last = describe_measure(
        "orders", [Series("step 0", quantities), Series("step 9", quantities)], []
    )
    assert change.startswith("From step 0 to step 9, “log-likelihood” stayed at -1.50")
    assert [line.startswith("At step 9: ") for line in last] == [True] * 3


@pytest.mark.parametrize("name", ORDERS)
def test_the_command_of_an_order_samples_in_this_order(name):
    words = shlex.split(sampling_command("a model", name, 2))
    order, blocks = ORDERS[name]
    assert words[3] == "a model"
    assert UNMASKING.build(words[-1].removeprefix("unmasking:")) == Ordered(order, Fixed(2), blocks=blocks)


def test_reasons_why_the_measure_is_not_taken():
    subject, material = subject_and_text(["a b c a"])
    reason = RevealOrder().refusal(subject, material)
    assert "Use --text FILE, because samples of the model would favour the order" in reason
    assert "maximum length is only 6" in RevealOrder().model_refusal(subject)
    del subject.masked
    subject.tokenizer.mask_token = None
    with pytest.raises(InputError, match="no mask token"):
        RevealOrder().model_refusal(subject)
