"""Tests of the measures of patterns and context with models of known behaviour."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.inspection.coherence import Runs
from trialogue.inspection.measures import patterns
from trialogue.inspection.measures.context import (
    LENGTH,
    ContextLength,
    context_bin_edges,
    mean_loss_by_context_length,
)
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.measures.patterns import TextPatterns, _surviving_share
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    combine_quantities,
    curve_quantity,
    mean_of_points,
    mean_point,
    single_quantity,
)
from trialogue.inspection.subject import Subject
from trialogue.models.tokenization import Tokenization
from trialogue.randomness import numpy_generator


class Reader(Subject):
    """Causal model whose loss is 5 nats minus 1 nat per doubling of the context up to `memory`."""

    def __init__(self, memory: int) -> None:
        super().__init__(tiny_model(), tiny_tokenizer(), "causal", name="reader")
        self.memory = memory

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        read = torch.arange(1, tokens.shape[1] + 1).clamp_max(self.memory)
        probability = torch.exp(-5 + read.double().log2().floor())
        distributions = ((1 - probability) / 299)[None, :, None].expand(len(tokens), -1, 300).clone()
        following = torch.cat((tokens[:, 1:], tokens[:, :1]), 1)
        return distributions.scatter(
            -1, following[..., None], probability[None, :, None].expand(len(tokens), -1, 1)
        ).log()


class Words(Material):
    """Material with documents of random letters."""

    documents = tuple(
        "".join(numpy_generator(number, "letters").choice(list("abcdefgh"), 700)) for number in range(16)
    )


def test_losses_by_context():
    assert context_bin_edges(256) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert context_bin_edges(9) == [1, 2, 4]
    losses = np.arange(1, 9, dtype=float)[None]  # Losses of all tokens but the first of nine.
    assert mean_loss_by_context_length(losses).tolist() == [[1, 2.5, 5.5]]


@pytest.mark.parametrize("memory", [4, 16])
def test_saturation_length_equals_the_memory(memory):
    subject = Reader(memory)
    found = {
        one.name: one.points
        for one in ContextLength().take(subject, Words(), Effort(factor=0.2), lambda _: None)
    }
    edges = [point.at for point in found["loss"]]
    assert edges == context_bin_edges(LENGTH)
    wanted = [5 - math.log2(min(edge, memory)) for edge in edges]
    assert [point.value for point in found["loss"]] == pytest.approx(wanted, abs=1e-5)
    assert found["context that matters, of up to 128"][0].value == memory
    assert found["gained by 128 tokens of context"][0].value == pytest.approx(math.log2(memory), abs=1e-5)


def test_short_text_is_reported_in_one_line():
    short = Material()
    short.documents = ["too short"]
    with pytest.raises(InputError, match="give a longer text or longer documents"):
        ContextLength().take(Reader(4), short, Effort(), lambda _: None)


def writer(wrong: float, eos: bool = False) -> Table:
    """Return a causal oracle that repeats the token one period before, or makes an error."""
    tokenization = Tokenization(tiny_tokenizer(), 300)
    period = len(tokenization.encode(patterns.PATTERNS[0] * 2)) - len(
        tokenization.encode(patterns.PATTERNS[0])
    )

    def distribution(prefix: tuple[int, ...]) -> list[float]:
        distributions = np.full(300, 0.0)
        distributions[10:100] = wrong / 90
        distributions[prefix[-period]] += 1 - wrong
        return distributions.tolist()

    def end(prefix: tuple[int, ...]) -> list[float]:
        return [0.0, 0.0, 1.0] + [0.0] * 297

    oracle = Table(end, 300, eos=2) if eos else Table(distribution, 300)
    oracle.window = None
    oracle.tokenization = tokenization
    return oracle


def long_reader() -> Subject:
    return Subject(tiny_model(max_position_embeddings=1024), tiny_tokenizer(), "causal", name="writer")


@pytest.mark.parametrize("wrong", [0.0, 0.5])
def test_errors_end_runs(wrong, monkeypatch):
    monkeypatch.setattr(patterns, "PATTERNS", patterns.PATTERNS[:1])
    subject = long_reader()
    assert TextPatterns().model_refusal(subject) is None
    subject.oracle = writer(wrong)
    found = {
        one.name: one for one in TextPatterns().take(subject, Material(), Effort(factor=0.5), lambda _: None)
    }
    rate = found["leaves the pattern"].points[0]
    if wrong:
        assert rate.low > 0.005
        shares = [point.value for point in found["still in the pattern"].points]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > shares[-1]
    else:
        assert rate.value == 0
        assert {point.value for point in found["still in the pattern"].points} == {1.0}


def test_end_of_text_censors_a_run(monkeypatch):
    monkeypatch.setattr(patterns, "PATTERNS", patterns.PATTERNS[:1])
    subject = long_reader()
    subject.oracle = writer(0.0, eos=True)
    with pytest.raises(InputError, match="all its continuations are empty"):
        TextPatterns().take(subject, Material(), Effort(factor=0.5), lambda _: None)


def test_patterns_longer_than_the_sliding_window_are_rejected():
    subject = long_reader()
    subject.oracle = writer(0.0)
    subject.oracle.window = 40
    assert subject.max_generated_length == 40
    assert "it generates texts of at most 40 tokens" in str(TextPatterns().model_refusal(subject))


@pytest.mark.parametrize("positions", [1, 3])
def test_models_with_a_few_positions_are_rejected_with_a_reason(positions):
    model = tiny_model(max_position_embeddings=positions)
    subject = Subject(model, tiny_tokenizer(), "causal", name="tiny")
    refusal = str(TextPatterns().model_refusal(subject))
    assert refusal.startswith(f"it generates texts of at most {positions} tokens")


@pytest.mark.parametrize(
    ("repeats", "room", "sizes"), [(4, 64, (4, 64)), (4, 20, (4, 20)), (2, 16, (2, 16)), (2, 15, None)]
)
def test_patterns_are_shortened_to_the_context_of_the_model(repeats, room, sizes):
    subject = long_reader()
    subject.oracle = writer(0.0)
    subject.oracle.window = patterns._max_prompt_length(subject, repeats) + room
    assert patterns._sizes(subject) == sizes


def test_the_interval_of_a_mean_is_cut_off_at_the_smallest_possible_value():
    losses = np.array([0.0, 0.0, 6.0])
    assert mean_point(losses).low < 0
    assert mean_point(losses, lowest=0.0) == dataclasses.replace(mean_point(losses), low=0.0)


def test_nonfinite_numbers_are_rejected():
    assert single_quantity("loss", Point(1.0)).record()["points"] == [{"value": 1.0}]
    for point in (Point(math.nan), Point(1.0, -math.inf, 2.0)):
        assert expect_error(r".loss. is not finite", single_quantity("loss", point).record).field == "model"


def test_passages_are_spread_over_documents():
    subject = Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny")
    documents = [*Words.documents[:5], "short"]
    passages = subject.sample_passages(documents, 40, 5, numpy_generator(0, "some"))
    assert sorted(passages.documents) == [0, 1, 2, 3, 4]
    more = subject.sample_passages(documents, 40, 12, numpy_generator(0, "more"))
    assert np.bincount(more.documents).tolist() == [3, 3, 2, 2, 2]
    assert len({tuple(row) for row in more.tokens.tolist()}) == 12
    values = np.arange(12.0)
    wanted = [values[more.documents == one].mean() for one in range(5)]
    assert more.document_means(values).tolist() == wanted
    assert more.document_means(values[:, None])[:, 0].tolist() == wanted
    with pytest.raises(
        InputError, match=r"contain 20 passages of 40 tokens \(at most 4 of each\), but 21 are needed"
    ):
        subject.sample_passages(documents, 40, 21, numpy_generator(0, "most"))


def test_constant_share_has_a_binomial_interval():
    runs = Runs(np.array([64, 64, 64, 64, 3, 64]), np.array([False, False, False, False, False, True]))
    point = _surviving_share(runs, 8, 0)  # One of six texts was censored before.
    assert (point.value, point.at) == (1.0, 8)
    assert point.low == pytest.approx(0.025 ** (1 / 5))
    assert point.high == 1
    mixed = _surviving_share(Runs(np.array([64, 4] * 20), np.array([True] * 40)), 8, 0)
    assert mixed.low is not None
    assert mixed.low < mixed.value == 0.5


def test_interval_of_combined_points():
    random = numpy_generator(0, "means")
    rows = [random.normal(place, 1 + place, 200) for place in (0, 1, 2)]
    point = mean_of_points([mean_point(values) for values in rows])
    error = math.sqrt(sum(values.var(ddof=1) / 200 for values in rows)) / 3
    assert point.value == pytest.approx(np.mean([values.mean() for values in rows]))
    assert point.low == pytest.approx(point.value - 1.97 * error, abs=0.01 * error)
    assert point.high == pytest.approx(point.value + 1.97 * error, abs=0.01 * error)
    assert mean_of_points([Point(1.0, 0.0, 1.5), Point(1.0)]) == Point(1.0)
    uneven = mean_of_points([Point(1.0, 0.0, 1.5), Point(3.0, 2.0, 3.5)])
    assert (uneven.low, uneven.high) == pytest.approx((2 - math.sqrt(0.5), 2 + math.sqrt(0.125)))


def test_the_control_has_the_median_and_the_range_of_all_models():
    def results(number: Point, *curve: Point) -> list[Quantity]:
        return [single_quantity("number", number, exact=1.0), curve_quantity("curve", curve, "bytes")]

    number, curve = combine_quantities(
        [
            results(Point(0.4, 0.3, 0.6), Point(0.0, at=8), Point(5.0, at=16)),
            results(Point(0.9, 0.8, 0.95), Point(0.0, at=8)),
            results(Point(0.2, 0.15, 0.3), Point(0.0, at=8), Point(5.0, at=16)),
        ]
    )
    assert (number.name, number.exact, number.points) == ("number", 1.0, (Point(0.4, 0.15, 0.95),))
    assert curve.points == (Point(0.0, at=8),)
    assert combine_quantities([results(Point(1.0)), [single_quantity("other", Point(1.0))]]) == []
