"""Masked networks as checkpoints: `load_pretrained_masked` and `inspect` compute the logits of the saved network."""

import pytest
import torch

from refusals import expect_error
from trialogue import exact_distribution, load_pretrained_masked, unmask
from trialogue.inspection.subject import Subject
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig, save_masked
from trialogue.models.hub.gpt2_export import make_tokenizer
from trialogue.models.tokenization import Tokenization
from trialogue.samplers.unmasking import Constrained, Ordered
from trialogue.verifiers import GrammarVerifier


def masked(**fields) -> MaskedTransformer:
    config = TransformerConfig(vocab_size=3, max_length=5, width=8, mlp_width=16, causal=False, **fields)
    return MaskedTransformer(Transformer(config, seed=1))


@pytest.mark.parametrize("positions", ["learned", "none"])
@pytest.mark.parametrize("as_tokenizer", [False, True])
def test_a_saved_masked_network_has_the_same_logits(positions, as_tokenizer, tmp_path):
    model = masked(positions=positions)
    tokens = make_tokenizer("ab(", model.model) if as_tokenizer else "ab("
    loaded = load_pretrained_masked(save_masked(model, tokens, tmp_path / "saved"))
    ids = loaded.masked_prompt("a[MASK](b", 1)
    assert ids.tolist() == [0, model.mask, 2, 1, model.mask]
    places = torch.zeros(2, dtype=torch.int64), torch.tensor([1, 4])
    assert torch.equal(loaded.logits_at(ids[None], *places), model.logits_at(ids[None], *places))
    assert loaded.decode(torch.tensor([[0, 2, 2]])) == ["a(("]
    tokenization = Tokenization(loaded.tokenizer, loaded.vocab_size)  # It defines the bytes of each token.
    constrained = Constrained(GrammarVerifier.regex(r"a\(.", tokenization))
    samples = unmask(loaded, constrained, [loaded.masked_prompt("", 3)], num_samples=20, seed=0)
    assert {text[:2] for text in loaded.decode(samples.tokens)} == {"a("}
    assert (loaded.vocab_size, loaded.max_length) == (3, 5 if positions == "learned" else None)


def test_samples_without_a_prompt_have_the_length_of_the_configuration():
    model = masked()
    assert unmask(model, Ordered(), seed=0).tokens.shape == (1, 5)
    assert {len(text) for text in exact_distribution(Ordered(), model).probabilities} == {5}
    assert unmask(model, Ordered(), length=3, seed=0).tokens.shape == (1, 3)


def test_inspect_compares_a_saved_masked_network_with_random_weights(tmp_path):
    model = masked()
    subject = Subject.load(save_masked(model, "ab(", tmp_path), device="cpu")
    assert (subject.kind, subject.ordinary_tokens.tolist(), subject.frame) == ("masked", [0, 1, 2], ([], []))
    assert subject.files.startswith("sha256 ")
    weights = [dict(subject.control(seed).model.named_parameters()) for seed in (0, 0, 1)]
    name = "network.token_embedding.weight"
    assert torch.equal(weights[0][name], weights[1][name])
    assert not torch.equal(weights[0][name], weights[2][name])


def test_tokens_that_do_not_fit_the_network_are_rejected(tmp_path):
    expect_error("the network has 4 tokens including EOS", save_masked, masked(), "ab", tmp_path)
    expect_error(r"leave out the tokens", save_masked, masked(), ["a", "b", "[MASK]"], tmp_path)
