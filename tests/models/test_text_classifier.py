"""Sequence classifiers of Hugging Face as rewards, compared with passes over single texts."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

from models.tiny_pretrained import SMALL, TEXT, random_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from trialogue import generate, tilted
from trialogue.models.hub.text_classifier import TextClassifier, load_classifier
from trialogue.samplers import Ancestral

TEXTS = [*TEXT, "the cat", "yes or no, " * 40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("classifier")
    config = LlamaConfig(**SMALL, id2label={0: "good", 1: "bad"}, label2id={"good": 0, "bad": 1})
    random_model(lambda: LlamaForSequenceClassification(config), 5, 8.0).save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def test_logits_agree_with_passes_over_single_texts(folder):
    model, tokenizer = LlamaForSequenceClassification.from_pretrained(folder), tiny_tokenizer()
    for index, label in enumerate(("good", "bad")):
        found = load_classifier(folder, label, batch_size=2).call_all(TEXTS)
        for text, logit in zip(TEXTS, found, strict=True):
            tokens = torch.tensor([tokenizer(text)["input_ids"][-SMALL["max_position_embeddings"] :]])
            expected = float(model(tokens).logits[0, index].detach())
            assert logit == pytest.approx(expected, abs=1e-5)
    assert len({round(logit, 3) for logit in found}) == len(TEXTS)


def test_a_classifier_is_a_reward(folder):
    classifier, oracle = load_classifier(folder, 1), tiny_oracle()
    target = tilted(classifier, 2.0, tokenization=oracle.tokenization)
    samples = generate(
        oracle, ["the cat"], sampler=Ancestral(), verifier=target, num_samples=6, max_new_tokens=5, seed=1
    )
    rows = zip(samples.tokens.tolist(), samples.lengths.tolist(), strict=True)
    texts = [oracle.tokenization.text(tokens[:length], True) for tokens, length in rows]
    rewards = [2.0 * classifier(text) for text in texts]
    assert samples.log_weight.tolist() == pytest.approx(rewards, abs=1e-4)
    assert len(set(texts)) > 1


def test_wrong_models_and_labels_are_refused(folder, tmp_path):
    expect_error("label=None: choose one of the classes good, bad", load_classifier, folder)
    expect_error("label='ugly'", load_classifier, folder, "ugly")
    random_model(lambda: LlamaForCausalLM(LlamaConfig(**SMALL)), 6).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    expect_error("not a sequence classifier: its checkpoint lacks score", load_classifier, tmp_path)


def test_one_class_needs_no_label():
    config = LlamaConfig(**SMALL, num_labels=1)
    model = random_model(lambda: LlamaForSequenceClassification(config), 7, 8.0)
    reward = TextClassifier(model, tiny_tokenizer())
    assert reward("the cat") != 0
    assert reward("") == reward("</s>")
