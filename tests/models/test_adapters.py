"""Adapters of peft in folders and in models, and adapters of different base models."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from models import test_pretrained_masked as bert
from models.tiny_pretrained import next_distribution, save_tiny, tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.generation.custom_generate import decoding
from trialogue.models.hub.attention_weights import AttentionModel, load_attention_model
from trialogue.models.hub.opening import open_pretrained
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.hub.pretrained_masked import PretrainedMasked, load_pretrained_masked
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import MaskedDecoding
from trialogue.verifiers import GrammarVerifier

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::UserWarning"
)  # These come from peft.
TOKENS = torch.tensor([tiny_tokenizer()("the cat")["input_ids"]])


def save_adapted_model(folder: Path) -> Any:
    """Save the tiny model to `folder` / "base" and an adapter to `folder` / "adapter", and return both combined."""
    peft = pytest.importorskip("peft")
    base = transformers.AutoModelForCausalLM.from_pretrained(save_tiny(folder / "base"))
    config = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj", "up_proj"], task_type="CAUSAL_LM", init_lora_weights=False
    )
    model = peft.get_peft_model(base, config).eval()
    model.save_pretrained(folder / "adapter")
    return model


def test_all_ways_of_loading_an_adapter_agree(tmp_path):
    model = save_adapted_model(tmp_path)
    with torch.inference_mode():
        wanted = model(input_ids=TOKENS).logits[0, -1].log_softmax(-1)
    plain = next_distribution(load_pretrained(tmp_path / "base", device="cpu"), TOKENS[0].tolist())
    assert not torch.allclose(wanted, plain, atol=1e-2)
    handed = PretrainedOracle(model, tiny_tokenizer())
    for oracle in (
        handed,
        load_pretrained(tmp_path / "adapter", device="cpu"),
        load_pretrained(tmp_path / "adapter", device="cpu", packed=False),
        open_pretrained(tmp_path / "adapter", device="cpu").load(),
    ):
        assert torch.allclose(next_distribution(oracle, TOKENS[0].tolist()), wanted, atol=1e-4)
    # The model that was passed is unchanged.
    with model.disable_adapter(), torch.inference_mode():
        assert torch.allclose(model(input_ids=TOKENS).logits[0, -1].log_softmax(-1), plain, atol=1e-4)
    assert (
        load_pretrained(tmp_path / "adapter", device="cpu").weights
        == load_pretrained(tmp_path / "base", device="cpu").weights
    )


def test_adapters_of_headless_and_masked_models(tmp_path):
    model, tokens = save_adapted_model(tmp_path), torch.arange(4)[None] + 5
    model.get_base_model().set_attn_implementation("eager")
    loaded, handed, plain = (
        attending.attention(tokens, torch.tensor([4]))
        for attending in (
            load_attention_model(tmp_path / "adapter"),
            AttentionModel(model, tiny_tokenizer()),
            load_attention_model(tmp_path / "base"),
        )
    )
    assert torch.allclose(loaded, handed, atol=1e-4)
    assert not torch.allclose(loaded, plain, atol=1e-3)
    peft = pytest.importorskip("peft")
    path = bert.save(tmp_path / "masked")
    base = transformers.AutoModelForMaskedLM.from_pretrained(path)
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    masked = peft.get_peft_model(base, config).eval()
    masked.save_pretrained(tmp_path / "masked adapter")
    sequences, hidden = torch.tensor([[7, 8, 9]]), torch.tensor([[False, True, False]])
    distributions = [
        oracle.log_probs(sequences, hidden)[hidden]
        for oracle in (
            PretrainedMasked(masked, bert.tokenizer()),
            load_pretrained_masked(tmp_path / "masked adapter"),
            load_pretrained_masked(path),
        )
    ]
    assert torch.allclose(distributions[0], distributions[1], atol=1e-4)
    assert not torch.allclose(distributions[0], distributions[2], atol=1e-4)


def test_samplers_run_on_adapted_models(tmp_path):
    tokenization = Tokenization(tiny_tokenizer())
    rule = {"sampler": MaskedDecoding(), "verifier": GrammarVerifier.regex("[a-c]{3}", tokenization)}
    drawn = save_adapted_model(tmp_path).generate(
        input_ids=TOKENS,
        attention_mask=torch.ones_like(TOKENS),
        max_new_tokens=8,
        do_sample=True,
        custom_generate=decoding(**rule, tokenizer=tiny_tokenizer()),
    )
    assert tokenization.text(drawn[0, TOKENS.shape[1] :].tolist()).strip("abc") == ""


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"hidden_size": 32, "intermediate_size": 64}, "whose weights have other sizes"),
        ({"num_hidden_layers": 1}, "which has no model.layers.1"),
    ],
)
def test_adapter_of_different_model_is_rejected(tmp_path, other, message):
    save_adapted_model(tmp_path)
    tiny_model(**other).save_pretrained(tmp_path / "other")
    tiny_tokenizer().save_pretrained(tmp_path / "other")
    described = tmp_path / "adapter" / "adapter_config.json"
    config = json.loads(described.read_text()) | {"base_model_name_or_path": str(tmp_path / "other")}
    described.write_text(json.dumps(config))
    words = f"model='.*adapter': it is not an adapter of '.*other', {message}"
    expect_error(words, load_pretrained, tmp_path / "adapter")


def test_pickled_and_prompt_adapters_are_rejected(tmp_path):
    peft = pytest.importorskip("peft")
    save_adapted_model(tmp_path)
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    expect_error("the adapter has no safetensors weights", load_pretrained, tmp_path / "adapter")
    prompts = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(InputError, match="its adapter extends the prompt"):
        PretrainedOracle(peft.get_peft_model(tiny_model(), prompts), tiny_tokenizer())


def test_missing_peft_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("trialogue.models.hub.adapters.find_spec", lambda name: None)
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/base"}')
    message = r"it is an adapter of 'someone/base'\. Install peft to load it \(`pip install peft`\)"
    expect_error(message, load_pretrained, tmp_path)
