"""The published networks against those of transformers, whose weights they are given."""

import dataclasses

import pytest
import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from models.random_transformer import small
from trialogue.models import Transformer
from trialogue.randomness import generator
from trialogue.training import TrainingConfig
from trialogue_lab.models.published import bert, gpt_neo
from trialogue_lab.training.published import bert_training, gpt_neo_training


def gpt_neo_of(model: Transformer, window: int = 256) -> GPTNeoForCausalLM:
    """The GPT-Neo of transformers, global and local attention in turn, with the weights of `model`."""
    shape = model.config
    config = GPTNeoConfig(
        vocab_size=len(model.token_embedding.weight),
        max_position_embeddings=shape.max_length + 2,
        hidden_size=shape.width,
        intermediate_size=shape.mlp_width,
        num_layers=shape.layers,
        num_heads=shape.heads,
        attention_types=[[["global", "local"], shape.layers // 2]],
        window_size=window,
        tie_word_embeddings=False,
        bos_token_id=model.bos,
        eos_token_id=model.eos,
    )
    twin = GPTNeoForCausalLM(config).eval()
    with torch.no_grad():
        twin.transformer.wte.weight.copy_(model.token_embedding.weight)
        twin.transformer.wpe.weight.copy_(model.position_embedding.weight)
        for block, ours in zip(twin.transformer.h, model.blocks, strict=True):
            attention = block.attn.attention
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            for part, weight in zip(parts, ours.qkv.weight.chunk(3), strict=True):
                part.weight.copy_(weight)
            pairs = [
                (attention.out_proj, ours.projection), (block.ln_1, ours.attention_norm), (block.ln_2, ours.mlp_norm),
                (block.mlp.c_fc, ours.up), (block.mlp.c_proj, ours.down),
            ]  # fmt: skip
            for theirs, own in [*pairs, (twin.transformer.ln_f, model.final_norm)]:
                theirs.load_state_dict(own.state_dict())
        twin.lm_head.weight.zero_()
        twin.lm_head.weight[: len(model.head.weight)].copy_(model.head.weight)
    return twin


def farthest(model: Transformer, window: int = 256) -> float:
    """The largest difference of logits between `model` and GPT-Neo."""
    with torch.no_grad():
        for block in model.blocks:
            block.qkv.bias.zero_()
        random = generator(1, "ids")
        ids = torch.randint(0, model.config.vocab_size, (3, model.config.max_length), generator=random)
        theirs = gpt_neo_of(model, window)(input_ids=ids).logits[..., : model.vocab_size]
        return (model(ids) - theirs).abs().max().item()


def neo(**changes: object) -> Transformer:
    config = gpt_neo(7, 12, heads=2, width=8)
    return small(**dataclasses.asdict(config) | changes)


def test_a_gpt_neo_is_that_of_transformers() -> None:
    assert farthest(neo()) < 1e-5
    # The check sees scaled scores, and a window that is shorter than the sequences.
    assert farthest(neo(scaled_attention=True)) > 1e-3
    assert farthest(neo(), window=5) > 1e-3


def test_published_sizes() -> None:
    encoder, decoder = bert(10_000, 128), gpt_neo(10_000, 128)
    assert (encoder.layers, encoder.heads, encoder.width, encoder.mlp_width) == (4, 16, 768, 1536)
    assert (decoder.layers, decoder.heads, decoder.width, decoder.mlp_width) == (2, 16, 768, 3072)
    assert encoder.scaled_attention
    assert not encoder.causal
    assert decoder.causal


def test_published_trainings() -> None:
    encoder, decoder = bert_training(100_000), gpt_neo_training(1000, batch_size=64)
    assert (encoder.optimizer, encoder.batch_size, encoder.momentum) == ("sgd", 1024, 0.0)
    assert encoder.learning_rate_at(0) == 0.03
    assert encoder.learning_rate_at(50_000) == pytest.approx(0.015)
    assert isinstance(decoder, TrainingConfig)
    assert (decoder.beta_1, decoder.beta_2, decoder.weight_decay, decoder.batch_size) == (0.9, 0.95, 0.1, 64)
    assert decoder.learning_rate_at(999) == 5e-4
