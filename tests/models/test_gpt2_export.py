"""Networks saved as GPT-2 checkpoints have the same probabilities, and invalid networks are rejected."""

from itertools import product

import pytest
import torch

from refusals import expect_error
from trialogue.inspection.subject import Subject
from trialogue.models import Transformer, TransformerConfig, save_gpt2
from trialogue.randomness import generator

TOKENS = ("a", "ab", "(")


def network(**fields) -> Transformer:
    made = Transformer(TransformerConfig(vocab_size=3, max_length=3, width=8, mlp_width=16, **fields), seed=1)
    for parameter in made.parameters():
        # Biases and norms are also random, so that each tensor matters.
        noise = torch.empty(parameter.shape).normal_(generator=generator(0, "noise", str(parameter.numel())))
        parameter.data += noise / 2
    return made.eval()


@pytest.mark.parametrize("scaled", [True, False])
def test_all_texts_have_equal_probabilities_after_export(scaled, tmp_path):
    model = network(scaled_attention=scaled)
    subject = Subject.load(save_gpt2(model, TOKENS, tmp_path / "checkpoint-1"), device="cpu")
    rows = torch.tensor(list(product(range(3), repeat=3)))
    texts = ["".join(TOKENS[token] for token in row) for row in rows.tolist()]
    assert subject.tokenizer(texts)["input_ids"] == [[model.eos, *row] for row in rows.tolist()]
    assert (subject.frame, subject.max_length) == (([model.eos], []), 4)
    again = save_gpt2(model, subject.tokenizer.backend_tokenizer, tmp_path / "checkpoint-2")
    assert (
        Subject.load(again, device="cpu").tokenizer(texts)["input_ids"]
        == subject.tokenizer(texts)["input_ids"]
    )
    with torch.no_grad():
        expected = model(torch.cat((torch.full((len(rows), 1), model.bos), rows), 1))
    torch.testing.assert_close(subject.logits(subject.framed(rows)), expected, rtol=0, atol=1e-5)


def test_a_network_without_letters_has_a_start_token(tmp_path):
    subject = Subject.load(save_gpt2(network(), "()[", tmp_path), device="cpu")
    assert subject.frame == ([3], [])


@pytest.mark.parametrize(
    ("fields", "tokens", "message"),
    [
        ({"causal": False}, "abc", "causal=False: GPT-2 has only causal=True"),
        ({"positions": "none"}, "abc", "positions='none': GPT-2 has only positions='learned'"),
        ({"attention_window": 2}, "abc", "attention_window=2: GPT-2 has only attention_window=None"),
        ({}, "ab", "the network has 4 tokens including EOS"),
    ],
)
def test_networks_that_gpt2_cannot_represent_are_rejected(fields, tokens, message, tmp_path):
    expect_error(message, save_gpt2, network(**fields), tokens, tmp_path)
