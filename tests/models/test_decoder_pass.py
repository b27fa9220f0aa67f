"""`DecoderPass` agrees with transformers, and is used only if its results are correct."""

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from models.tiny_pretrained import random_model, tiny_model, tiny_tokenizer
from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.packed.formats import available_formats
from trialogue.models.packed.linear import Packing, pack_linear_layers

pytestmark = pytest.mark.skipif(
    "float32" not in available_formats(), reason="this build of torch cannot pack layers"
)

SIZES = {
    "vocab_size": len(tiny_tokenizer()),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "initializer_range": 0.15,
    "pad_token_id": 0,
}
KINDS = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, {}),
    "llama, biases": (
        transformers.LlamaForCausalLM,
        transformers.LlamaConfig,
        {"attention_bias": True, "mlp_bias": True},
    ),
    "llama, dynamic positions": (
        transformers.LlamaForCausalLM,
        transformers.LlamaConfig,
        {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}, "max_position_embeddings": 64},
    ),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig, {"sliding_window": None}),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config, {}),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config, {}),
}


def make_model(kind: str, seed: int = 0) -> Any:
    of, config, settings = KINDS[kind]

    def build() -> Any:
        model = of(config(**SIZES | settings))
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        return model

    return random_model(build, seed)


def packed_oracle(model: Any, packing: Packing | None = None) -> PretrainedOracle:
    pack_linear_layers(model, packing, model.get_output_embeddings())
    return PretrainedOracle(model, tiny_tokenizer())


def evaluate_schedule(oracle: PretrainedOracle, layers: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and features of ragged rows after rewinds, copies and single-token passes."""
    tokens = (torch.arange(3 * 12).view(3, 12) * 37 + 5) % SIZES["vocab_size"]
    rows = torch.arange(3)
    context = oracle.open(3, 12, layers)
    with torch.inference_mode():
        context.features(tokens.flip(1), torch.zeros(3, dtype=torch.int64), torch.tensor([9, 4, 12]), rows)
        context.features(tokens, torch.zeros(3, dtype=torch.int64), torch.tensor([5, 8, 3]), rows)
        found = []
        for start, stop, positions in (
            ([5, 8, 3], [6, 9, 4], [0, 1, 2]),
            ([6, 9], [7, 12], [0, 1]),
            ([4, 7], [7, 7], [2, 0]),
            ([7, 7, 7], [8, 8, 8], [0, 1, 2]),
            # Single tokens: rows of equal length, rows that are not consecutive, and rows of different lengths.
            ([9, 9, 9], [9, 9, 9], [0, 1, 2]),
            ([10, 10], [10, 10], [2, 0]),
            ([11, 10, 11], [11, 10, 11], [0, 1, 2]),
        ):
            chosen = torch.tensor(positions)
            found.append(context.features(tokens[chosen], torch.tensor(start), torch.tensor(stop), chosen))
        features = torch.cat(found)
        return context.log_probs(features), features


@pytest.mark.parametrize("kind", list(KINDS))
def test_pass_equals_transformers(kind):
    short, own = packed_oracle(make_model(kind)), packed_oracle(make_model(kind))
    assert short.decoder is not None
    own.decoder = None
    for given, expected in zip(evaluate_schedule(short, (0, 2)), evaluate_schedule(own, (0, 2)), strict=True):
        assert torch.allclose(given, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_loops_equal_operators_of_torch(monkeypatch, kind, weights):
    if weights not in available_formats():
        pytest.skip("this machine does not support the format")
    oracle = packed_oracle(make_model(kind), Packing(weights, weights))
    calls, run = [], DecoderPass._run_single_tokens
    monkeypatch.setattr(DecoderPass, "_run_single_tokens", lambda *given: calls.append(1) or run(*given))
    loops = evaluate_schedule(oracle, (0, 2))
    assert len(calls) == 3
    monkeypatch.setattr(DecoderPass, "_can_loop", lambda *_: False)
    # Layers in bfloat16 may round a sum in another order to the next number.
    tolerance = 0.05 if weights == "int8" else 2e-5
    for given, expected in zip(loops, evaluate_schedule(oracle, (0, 2)), strict=True):
        assert torch.allclose(given, expected, atol=tolerance, rtol=tolerance)


def test_failing_pass_is_not_used(monkeypatch):
    def raising(self: DecoderPass, *arguments: Any) -> list[Tensor]:
        raise RuntimeError("sizes of tensors must match")

    monkeypatch.setattr(DecoderPass, "__call__", raising)
    oracle = packed_oracle(make_model("llama"))
    assert oracle.decoder is None
    monkeypatch.undo()
    expected = evaluate_schedule(packed_oracle(make_model("llama")))[0]
    assert torch.allclose(evaluate_schedule(oracle)[0], expected, atol=2e-4, rtol=1e-4)


def test_only_supported_packed_layers_have_a_pass():
    assert DecoderPass.create(tiny_model().model) is None
    assert (
        DecoderPass.create(transformers.GPT2Model(transformers.GPT2Config(n_layer=1, n_embd=8, n_head=2)))
        is None
    )


def test_forward_hooks_are_called():
    oracle = packed_oracle(make_model("llama"))
    before = evaluate_schedule(oracle)[0]
    hook = oracle.body.layers[1].mlp.register_forward_hook(lambda part, given, output: output * 0.5)
    during = evaluate_schedule(oracle)[0]
    hook.remove()
    assert not torch.allclose(during, before, atol=1e-2)
    assert torch.equal(evaluate_schedule(oracle)[0], before)
