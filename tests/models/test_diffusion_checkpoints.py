"""Checkpoints of masked diffusion models, whose code comes from their repositories.

transformers has none of these architectures. The checkpoints of the tests have their configurations, their classes and
the signatures of their forward passes, and a tiny bidirectional network.
"""

import json

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast, dynamic_module_utils

from refusals import expect_error
from trialogue import unmask
from trialogue.models.hub.pretrained_masked import load_pretrained_masked
from trialogue.randomness import generator, numpy_generator
from trialogue.samplers.unmasking import Confidence, Fixed, Ordered

CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput

class Config(PretrainedConfig):
    model_type = "{kind}"

class Model(PreTrainedModel):
    config_class = Config
    def __init__(self, config):
        super().__init__(config)
        self.embedding = torch.nn.Embedding(config.vocab_size, 8)
        self.mixing = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, config.vocab_size)
        self.post_init()
    def forward(self, input_ids=None, {argument}):
        hidden = self.embedding(input_ids)
        hidden = hidden + self.mixing(hidden.mean(1, keepdim=True)).tanh()
        logits = self.head(hidden)
        return {output}
"""
KINDS = {
    "llada": ("AutoModel", "attention_mask=None", "MaskedLMOutput(logits=logits)", {"mask_token_id": 12}, 0),
    "Dream": ("AutoModel", "attention_mask=None", "MaskedLMOutput(logits=logits)", {"mask_token_id": 12}, 1),
    "mdlm": ("AutoModelForMaskedLM", "timesteps=None", "logits + timesteps[:, None, None]", {}, 0),
}
"""Class that loads the model, argument and output of its forward pass, configuration, and shift of its logits."""
VOCAB = 13


def save(folder, kind):
    loader, argument, output, config, _ = KINDS[kind]
    folder.mkdir()
    code = CODE.format(kind=kind, argument=argument, output=output)
    (folder / "own.py").write_text(code)
    classes = {"AutoConfig": "own.Config", loader: "own.Model"}
    entries = {"model_type": kind, "vocab_size": VOCAB, "architectures": ["Model"], "auto_map": classes}
    (folder / "config.json").write_text(json.dumps({**entries, **config}))
    random = generator(0, "weights")
    shapes = {"embedding.weight": (VOCAB, 8), "mixing.weight": (8, 8), "mixing.bias": (8,)}
    shapes |= {"head.weight": (VOCAB, 8), "head.bias": (VOCAB,)}
    weights = {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    words = Tokenizer(WordLevel({**{f"w{i}": i for i in range(10)}, "<eos>": 10}, "w0"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>").save_pretrained(folder)
    return weights


@pytest.mark.parametrize("kind", KINDS)
def test_diffusion_checkpoints_predict_like_their_networks(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / kind
    weights, shift = save(folder, kind), KINDS[kind][4]
    expect_error(
        r"code from its repository\. If you trust it, use remote_code=True", load_pretrained_masked, folder
    )
    model = load_pretrained_masked(folder, remote_code=True)
    assert (model.vocab_size, model.mask, model.eos) == (VOCAB, 12, 10)
    tokens = torch.tensor([[3, 1, 0, 0, 5, 0]])
    masked = torch.tensor([[False, False, True, True, False, True]])
    hidden = weights["embedding.weight"][tokens.masked_fill(masked, 12)]
    mixed = hidden.mean(1, keepdim=True) @ weights["mixing.weight"].T + weights["mixing.bias"]
    logits = (hidden + mixed.tanh()) @ weights["head.weight"].T + weights["head.bias"]
    logits[:, :, 11:] = -torch.inf  # ids without a token, and the mask
    expected = logits.log_softmax(-1)[0, masked[0].nonzero()[:, 0] - shift]
    assert model.log_probs(tokens, masked)[masked] == pytest.approx(expected, abs=1e-5)
    prompt = model.masked_prompt("w3 w1", 4)
    samples = unmask(model, Ordered(Confidence(), Fixed(2)), prompt[None], num_samples=3, eos=model.eos)
    assert samples.passes.tolist() == [2, 2, 2]
    assert (samples.tokens[:, :2] == prompt[:2]).all()
    assert (samples.tokens < 11).all()


@pytest.mark.parametrize("kind", KINDS)
def test_diffusion_checkpoints_are_inspected(kind, tmp_path, monkeypatch, run_command):
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    save(tmp_path / kind, kind)
    random = numpy_generator(0, "words")
    documents = [" ".join(f"w{word}" for word in random.integers(0, 10, 100)) for _ in range(4)]
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(documents))
    words = ["--trust-remote-code", "--text", str(text), "--effort", "0.1", "--no-control"]
    code, out, err = run_command("inspect", str(tmp_path / kind), *words, "--out", str(tmp_path / "found"))
    assert code == 0, err
    record = json.loads((tmp_path / "found" / "inspection.json").read_text())
    assert record["kind"] == "masked"
    assert {"consistency", "orders"} <= record["measures"].keys(), record["refused"]
    assert "orders: " in out
