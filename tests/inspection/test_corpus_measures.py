"""Tests that topics and interaction order of an inspection equal the results of the separate commands."""

import math
import re

import pytest
import torch
import transformers

from models.tiny_pretrained import random_model
from refusals import expect_error
from trialogue.data import Clone, Clones
from trialogue.data.corpus.documents import split_passages
from trialogue.errors import InputError
from trialogue.inspection.interaction_order.measure import clone_losses
from trialogue.inspection.measures import topics
from trialogue.inspection.measures.interactions import InteractionOrder
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.measures.topics import TopicRatios
from trialogue.inspection.subject import Subject
from trialogue.inspection.topic_structure.measure import TopicSettings, measure_topics
from trialogue.models.hub.attention_weights import AttentionModel
from trialogue.randomness import generator
from trialogue_lab.studies.topic_pretrained.tiny import make_synthetic_documents, make_synthetic_tokenizer

SHAPE = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 64, "vocab_size": 42, "pad_token_id": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def subject():
    model = random_model(lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)), 5)
    return Subject(model, make_synthetic_tokenizer(), "causal", name="made up")


def test_topics_equal_those_of_the_command(subject, tmp_path, monkeypatch):
    for name, value in (("TOPICS", 4), ("PASSAGE", 40), ("WORDS", 8), ("_LENGTH", 30)):
        monkeypatch.setattr(topics, name, value)
    material, before = Material(), subject.model.config._attn_implementation
    material.documents, material.shared_folder = make_synthetic_documents(), tmp_path / "kept"
    found = TopicRatios().take(subject, material, Effort(factor=0.2), lambda _: None)
    ratios = {one.name: one.points[0] for one in found}
    assert subject.model.config._attn_implementation == before
    body = transformers.LlamaModel(transformers.LlamaConfig(**SHAPE, attn_implementation="eager"))
    body.load_state_dict(subject.model.model.state_dict())
    settings = TopicSettings(topics=4, passes=10, read=12, length=30)
    results = measure_topics(
        AttentionModel(body, make_synthetic_tokenizer()),
        split_passages(make_synthetic_documents(), 40),
        settings,
        control=False,
    )[0].compare(8, single=True, resamples=200)
    defined = [one for one in results if not math.isnan(one.ratio.low)]
    assert 0 < len(defined) == len(ratios) - len(results)
    for one in results:
        assert ratios[f"{one.measure}, same less different"].value == pytest.approx(
            one.difference.estimate, rel=1e-6
        )
    for one in defined:
        point = ratios[f"{one.measure}, same / different"]
        assert point.value == pytest.approx(one.ratio.estimate, rel=1e-6)
        assert (point.low, point.high) == pytest.approx((one.ratio.low, one.ratio.high), rel=1e-6)
    assert len(list((tmp_path / "kept").iterdir())) == 2
    few = Material()
    few.documents = make_synthetic_documents()[:3]
    expect_error("at least 8 passages of 40 words", TopicRatios().require, subject, few, Effort())


@pytest.mark.parametrize(
    ("field", "reported_field", "hint"),
    [
        (
            "words",
            "model",
            "the text has too few words .* `trialogue topics`, which has the options --topics and --words",
        ),
        ("length", "model", "fix it"),
        ("folder", "folder", "fix it"),
    ],
)
def test_only_model_dependent_errors_name_the_model(field, reported_field, hint, subject, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise InputError(field, 1, "fix it")

    monkeypatch.setattr(topics, "measure_topics", fails)
    material = Material()
    material.documents = make_synthetic_documents()
    raised = expect_error("", TopicRatios().take, subject, material, Effort(), lambda _: None)
    assert raised.field == reported_field
    assert re.fullmatch(hint, raised.hint)


def test_losses_on_clones_equal_those_of_the_command(subject, tmp_path):
    tokenizer = make_synthetic_tokenizer()
    clones = Clones.create(tmp_path / "clones", tokenizer.backend_tokenizer, length=6, vocab_size=42)
    for name, order in (("independent", 1), ("text", None)):
        tokens = torch.randint(2, 42, (40, 6), generator=generator(0, name))
        clones.add(Clone(name=name, tokens=tokens, max_order=order))
    material = Material(clones=tmp_path / "clones")
    found = InteractionOrder().take(subject, material, Effort(factor=0.25), lambda _: None)
    points = {one.name: one.points[0] for one in found}
    subject.model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    results = {one.clone: one for one in clone_losses([tmp_path / "model"], clones, rows=32)}
    for name, one in results.items():
        assert points[f"loss of {name}"].value == pytest.approx(one.loss, abs=1e-6)
    gap = points["independent over the text"]
    assert gap.value == pytest.approx(results["independent"].loss - results["text"].loss, abs=1e-6)
    assert gap.low < 0 < gap.high
    text = results["text"]
    half = points["loss of text"].high - points["loss of text"].value
    assert half == pytest.approx(
        2.0395 * text.error, rel=1e-3
    )  # Student's quantile for 31 degrees of freedom.
    assert points["learned beyond order"].value == 0
    Clones.create(tmp_path / "empty", tokenizer.backend_tokenizer, length=6, vocab_size=42)
    with pytest.raises(InputError, match="the folder has no clones yet"):
        InteractionOrder().require(subject, Material(clones=tmp_path / "empty"), Effort())
    assert InteractionOrder().refusal(subject, Material()).startswith("it needs clones of a text")
    assert Material(clones=tmp_path / "clones").identity == material.identity
