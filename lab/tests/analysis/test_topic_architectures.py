"""Tests that topics are measured in small random models of every architecture of the source."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from trialogue.data.corpus.documents import split_passages
from trialogue.errors import InputError
from trialogue.inspection.topic_structure.measure import AS_READ, TopicSettings, measure_topics
from trialogue.inspection.topic_structure.ratios import ATTENTION, COSINE, DIFFERENT, SAME
from trialogue.models.hub.attention_weights import load_attention_model
from trialogue_lab.studies.topic_pretrained.tiny import make_synthetic_documents, make_synthetic_tokenizer

WIDTH, TABLE, POSITIONS = 16, 8, 40
SHAPE = {"vocab_size": 42, "hidden_size": WIDTH, "intermediate_size": 16, "num_attention_heads": 2}
DEPTH = {"num_hidden_layers": 2, "max_position_embeddings": POSITIONS}
BART = {
    "vocab_size": 42,
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": POSITIONS,
}
# Models have the training head of published checkpoints, and narrow embeddings if the architecture supports them.
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (transformers.BertForMaskedLM, transformers.BertConfig, SHAPE | DEPTH),
    "albert": (
        transformers.AlbertForMaskedLM,
        transformers.AlbertConfig,
        SHAPE | DEPTH | {"embedding_size": TABLE},
    ),
    "bart": (transformers.BartModel, transformers.BartConfig, BART),
    "electra": (
        transformers.ElectraForPreTraining,
        transformers.ElectraConfig,
        SHAPE | DEPTH | {"embedding_size": TABLE},
    ),
    "roberta": (transformers.RobertaForMaskedLM, transformers.RobertaConfig, SHAPE | DEPTH),
}


@pytest.fixture(params=MODELS)
def saved_model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return the name of an architecture, and a folder with a model."""
    model, config, shape = MODELS[request.param]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model(config(**shape)).save_pretrained(tmp_path)
    make_synthetic_tokenizer().save_pretrained(tmp_path)
    return request.param, tmp_path


def test_topics_are_measured_in_every_published_architecture(saved_model: tuple[str, Path]) -> None:
    name, folder = saved_model
    model = load_attention_model(folder)
    tokens, lengths = torch.arange(20).reshape(2, 10) + 2, torch.tensor([10, 6])
    weights = model.attention(tokens, lengths)
    assert (
        weights[0] > 0
    ).all()  # bidirectional, because the encoder of an encoder-decoder model is measured
    assert torch.allclose(weights.sum(2)[0], torch.ones(10), atol=1e-5)
    assert torch.allclose(weights[1, :6, :6].sum(1), torch.ones(6), atol=1e-5)
    assert (weights[1, :, 6:] == 0).all()
    rows, read = model.embeddings(tokens[0]), model.read_embeddings(tokens[0])
    assert rows.shape == (10, TABLE if name in ("albert", "electra") else WIDTH)
    assert read.shape == (10, WIDTH)
    assert any(torch.equal(rows, table[tokens[0]]) for table in _token_tables(folder))

    corpus = split_passages(make_synthetic_documents(), 40)
    settings = TopicSettings(topics=4, passes=2, least=2, read=8, length=24)
    for one in measure_topics(model, corpus, settings):
        found = {each.measure: each for each in one.compare(6)}
        assert COSINE + AS_READ in found
        for each in found.values():
            assert all(np.isfinite(each.means[kind].estimate) for kind in (SAME, DIFFERENT))
        # Weights are random, so attention within topics equals attention between topics.
        assert found[ATTENTION].ratio.estimate == pytest.approx(1, abs=0.05)


def test_texts_longer_than_the_position_embeddings_are_rejected(saved_model: tuple[str, Path]) -> None:
    name, folder = saved_model
    model = load_attention_model(folder)
    # Positions of RoBERTa start after the position of the padding token.
    max_length = POSITIONS - 2 if name == "roberta" else POSITIONS
    assert model.max_length == max_length
    model.attention(torch.full((1, max_length), 5), torch.tensor([max_length]))
    corpus = split_passages(make_synthetic_documents(), 40)
    settings = TopicSettings(topics=4, passes=2, least=2, read=8, length=max_length + 1)
    with pytest.raises(
        InputError, match=f"length={max_length + 1}: use at most {max_length}, the maximum length"
    ):
        measure_topics(model, corpus, settings)


def _token_tables(folder: Path) -> list[torch.Tensor]:
    """Return the tensors of the checkpoint that have a row for each token."""
    return [each for each in load_file(folder / "model.safetensors").values() if len(each) == 42]
