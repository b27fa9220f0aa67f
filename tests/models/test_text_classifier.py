"""Sequence classifiers of Hugging Face as rewards, compared with passes over single texts."""

import copy

import pytest
import torch
from transformers import (
    BartConfig,
    BartForSequenceClassification,
    BloomConfig,
    BloomForSequenceClassification,
    FNetConfig,
    FNetForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    MptConfig,
    MptForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForSequenceClassification,
    XLNetConfig,
    XLNetForSequenceClassification,
)

from models.tiny_pretrained import SMALL, TEXT, random_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from trialogue import generate, tilted
from trialogue.models.hub.text_classifier import TextClassifier, load_classifier
from trialogue.samplers import Ancestral

TEXTS = [*TEXT, "the cat", "yes or no, " * 40]
ONE_CLASS = {"vocab_size": 300, "num_labels": 1}
BUILDERS = {
    "llama": lambda padding: LlamaForSequenceClassification(
        LlamaConfig(**SMALL | {"pad_token_id": padding}, num_labels=1)
    ),
    "gpt2": lambda padding: GPT2ForSequenceClassification(
        GPT2Config(**ONE_CLASS, n_positions=64, n_embd=16, n_layer=1, n_head=2, pad_token_id=padding)
    ),
    "roberta": lambda padding: RobertaForSequenceClassification(
        RobertaConfig(
            **ONE_CLASS,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=66,
            pad_token_id=padding,
        )
    ),
    "mpt": lambda padding: MptForSequenceClassification(
        MptConfig(**ONE_CLASS, d_model=16, n_heads=2, n_layers=1, max_seq_len=64, pad_token_id=padding)
    ),
    "bloom": lambda padding: BloomForSequenceClassification(
        BloomConfig(**ONE_CLASS, hidden_size=16, n_head=2, n_layer=1, pad_token_id=padding)
    ),
    "xlnet": lambda padding: XLNetForSequenceClassification(
        XLNetConfig(**ONE_CLASS, d_model=16, n_layer=1, n_head=2, d_inner=16, pad_token_id=padding)
    ),
    "fnet": lambda padding: FNetForSequenceClassification(
        FNetConfig(
            **ONE_CLASS,
            hidden_size=16,
            num_hidden_layers=1,
            intermediate_size=16,
            max_position_embeddings=64,
            pad_token_id=padding,
        )
    ),
}

ENCODER_DECODERS = {
    "bart": lambda **tokens: BartForSequenceClassification(
        BartConfig(
            **ONE_CLASS | tokens,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            max_position_embeddings=64,
        )
    ),
    "t5": lambda **tokens: T5ForSequenceClassification(
        T5Config(
            **ONE_CLASS | tokens,
            d_model=16,
            d_kv=8,
            d_ff=16,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
        )
    ),
}


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


def changed_tokenizer(**settings):
    """Return a copy of the tiny tokenizer with other settings."""
    tokenizer = copy.deepcopy(tiny_tokenizer())
    for name, value in settings.items():
        setattr(tokenizer, name, value)
    return tokenizer


@pytest.mark.parametrize(
    ("name", "padding", "longest", "settings"),
    [
        ("llama", 0, 64, {"padding_side": "left"}),
        ("llama", 0, 64, {"pad_token": "</s>"}),
        ("llama", None, 64, {}),
        ("gpt2", 0, 64, {"padding_side": "left"}),
        ("gpt2", 2, 64, {"pad_token": None}),
        ("gpt2", None, 64, {"pad_token": None}),
        ("gpt2", -1, 64, {}),
        ("roberta", 1, 64, {"padding_side": "left"}),
        ("mpt", 0, 64, {"model_max_length": int(1e30)}),
        ("bloom", 0, 10**9, {"model_max_length": int(1e30)}),
        ("xlnet", 0, 10**9, {}),
        ("fnet", 0, 64, {"model_input_names": ["input_ids", "token_type_ids"]}),
    ],
)
def test_logits_do_not_depend_on_other_texts(name, padding, longest, settings):
    model = random_model(lambda: BUILDERS[name](padding), 7, 8.0)
    tokenizer = changed_tokenizer(**settings)
    texts = [*TEXTS, "", "the cat</s>"]
    found = TextClassifier(model, tokenizer).call_all(texts)
    for text, logit in zip(texts, found, strict=True):
        tokens = torch.tensor([tiny_tokenizer()(text or "</s>")["input_ids"][-longest:]])
        with torch.inference_mode():
            assert logit == pytest.approx(float(model(tokens).logits), abs=1e-5)
    assert len(set(found)) >= len(TEXTS)
    assert model.config.pad_token_id == padding
    for setting in ("padding_side", "truncation_side", "pad_token", "model_max_length"):
        assert getattr(tokenizer, setting) == getattr(changed_tokenizer(**settings), setting)


def test_an_empty_text_needs_an_end_of_sequence_token():
    reward = TextClassifier(random_model(lambda: BUILDERS["llama"](0), 7), changed_tokenizer(eos_token=None))
    assert reward("None") == pytest.approx(reward.call_all(["the cat", "None"])[1], abs=1e-5)
    expect_error("no end-of-sequence token", reward, "")
    expect_error("no end-of-sequence token", reward.call_all, ["the cat", ""])


@pytest.mark.parametrize("padding", [0, "eos"])
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_texts_with_different_numbers_of_end_of_sequence_tokens_have_the_logits_of_single_texts(
    name, padding
):
    tokenizer = tiny_tokenizer()
    eos = tokenizer.eos_token_id
    tokens = {"eos_token_id": eos, "pad_token_id": eos if padding == "eos" else padding}
    model = random_model(lambda: ENCODER_DECODERS[name](**tokens), 7, 8.0)
    texts = ["the cat</s>", "the</s> cat</s>", "", "yes</s>or</s> no", "no</s></s></s>", "a longer text</s>"]
    reward = TextClassifier(model, tokenizer)
    found = reward.call_all(texts)
    for text, logit in zip(texts, found, strict=True):
        with torch.inference_mode():
            expected = float(model(torch.tensor([tokenizer(text or "</s>")["input_ids"]])).logits)
        assert logit == pytest.approx(expected, abs=1e-5)
        assert reward(text) == pytest.approx(expected, abs=1e-5)
    assert len({round(logit, 4) for logit in found}) == len(texts)
    expect_error("texts='the cat': .* end-of-sequence token", reward.call_all, ["no</s>", "the cat"])
    expect_error("texts='the cat': .* end-of-sequence token", reward, "the cat")
