"""Tests of published networks against transformers with the same weights."""

import dataclasses

import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from models.random_transformer import small
from trialogue.models import Transformer
from trialogue.randomness import generator
from trialogue_lab.models.published import gpt_neo


def gpt_neo_of(model: Transformer, window: int = 256) -> GPTNeoForCausalLM:
    """Return a GPT-Neo of transformers with alternating global and local attention and the weights of `model`."""
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


def largest_difference(model: Transformer, window: int = 256) -> float:
    """Return the largest difference of logits between `model` and GPT-Neo."""
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


def test_gpt_neo_agrees_with_transformers() -> None:
    assert largest_difference(neo()) < 1e-5
    # Scaled scores and a window that is shorter than the sequences are detected.
    assert largest_difference(neo(scaled_attention=True)) > 1e-3
    assert largest_difference(neo(), window=5) > 1e-3
