"""Tests of subjects with recurrent, bidirectional and remote-code models."""

import json

import pytest
import torch
import transformers

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.inspection.measures.copying import Copying
from trialogue.inspection.measures.decoding import DecodingRules
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.subject import Subject, read_identity

SMALL = {"vocab_size": 300, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def make_subject(config: transformers.PretrainedConfig) -> Subject:
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config)
    return Subject(model, tiny_tokenizer(), "causal", name=config.model_type)


def test_recurrent_model_recomputes_prefixes():
    subject = make_subject(
        transformers.MambaConfig(hidden_size=16, num_hidden_layers=2, state_size=4, **SMALL)
    )
    assert subject.oracle.recompute
    assert not subject.sees_future_tokens
    assert (
        subject.processed_tokens(10, 4),
        Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny").processed_tokens(10, 4),
    ) == (48, 14)
    assert DecodingRules().refusal(subject, Material()) is None
    found = DecodingRules().take(subject, Material(), Effort(factor=0.1), lambda _: None)
    assert all(0 <= point.value <= 1 for one in found for point in one.points)


def test_bidirectional_model_is_rejected():
    subject = make_subject(transformers.XLNetConfig(d_model=16, n_layer=2, n_head=2, d_inner=32, **SMALL))
    assert subject.sees_future_tokens
    reason = Copying().refusal(subject, Material())
    assert reason is not None
    assert "predictions depend on later tokens" in reason


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rounding_errors_do_not_make_a_model_bidirectional(dtype):
    assert not Subject(tiny_model().to(dtype), tiny_tokenizer(), "causal", name="tiny").sees_future_tokens


OWN_CODE = """
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own"

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig

class OwnMaskedConfig(BertConfig):
    model_type = "own-masked"

class OwnForMaskedLM(BertForMaskedLM):
    config_class = OwnMaskedConfig
"""


@pytest.mark.parametrize(
    ("masked", "kind", "code"),
    [
        (False, "causal", {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"}),
        (True, "masked", {"AutoConfig": "own.OwnMaskedConfig", "AutoModelForMaskedLM": "own.OwnForMaskedLM"}),
    ],
)
def test_remote_code_requires_permission(tmp_path, monkeypatch, masked, kind, code):
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    folder = tmp_path / "model"
    shape = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=300
    )
    network = transformers.BertForMaskedLM(shape) if masked else tiny_model()
    network.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    (folder / "own.py").write_text(OWN_CODE)
    config = json.loads((folder / "config.json").read_text())
    head = next(place for name, place in code.items() if "For" in name).removeprefix("own.")
    code_fields = {"auto_map": code, "model_type": "own-masked" if masked else "own", "architectures": [head]}
    (folder / "config.json").write_text(json.dumps(config | code_fields))
    expect_error("If you trust it", Subject.load, folder)
    subject = Subject.load(folder, remote_code=True)
    assert (subject.kind, type(subject.model).__name__) == (kind, head)
    tokens = subject.ordinary_tokens[:6][None]
    assert torch.equal(subject.model(tokens).logits, network.eval()(tokens).logits)
    assert read_identity(folder, remote_code=True).weights == subject.files
