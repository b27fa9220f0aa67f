"""Log-probabilities and confidence of prompts, samples and other tokens, against the model."""

from typing import Any

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from serving.loopback import serving
from trialogue import confidence, generate, truncated
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.samplers import MaskedDecoding
from trialogue.serving.log_probs import _offsets
from trialogue.verifiers import GrammarVerifier

PROMPTS = ["the cat", "café 東京", "a"]
USER = [{"role": "user", "content": "the cat"}]


@pytest.fixture(scope="module")
def model():
    return PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="module")
def client(model):
    with serving(model, context=128, max_new_tokens=64) as loopback, loopback.client() as client:
        yield client


def complete(client: Any, prompt: Any, **settings: Any) -> Any:
    return client.completions.create(model="tiny", prompt=prompt, **settings)


def distributions(model: PretrainedOracle, tokens: list[int]) -> torch.Tensor:
    """Return the log-probabilities (tokens, vocab) after each token, computed without the oracle."""
    with torch.inference_mode():
        return model.model(torch.tensor([tokens])).logits[0].log_softmax(-1)


def test_prompts_are_scored_as_by_the_model(client, model):
    encode, text = model.tokenization.encode, model.tokenization.text
    for given in (PROMPTS, [encode(prompt) for prompt in PROMPTS]):
        choices = complete(client, given, echo=True, logprobs=3, max_tokens=0).choices
        assert [choice.text for choice in choices] == PROMPTS
        for prompt, choice in zip(PROMPTS, choices, strict=True):
            tokens, found = encode(prompt), choice.logprobs
            true = distributions(model, tokens)
            expected = [float(true[place, token]) for place, token in enumerate(tokens[1:])]
            assert found.token_logprobs[0] is None
            assert found.token_logprobs[1:] == pytest.approx(expected)
            assert found.top_logprobs[0] is None
            for place, top in enumerate(found.top_logprobs[1:]):
                best = true[place].topk(3)
                assert max(top.values()) == pytest.approx(float(best.values[0]))
                spellings = {text([token]) for token in [*best.indices.tolist(), tokens[place + 1]]}
                assert top.keys() == spellings
            assert found.tokens == [text([token]) for token in tokens]
            if prompt.isascii():
                ends = [*found.text_offset[1:], len(prompt)]
                pieces = [prompt[i:j] for i, j in zip(found.text_offset, ends, strict=True)]
                assert pieces == found.tokens


def test_offsets_count_characters_of_the_text(model):
    tokens = model.tokenization.encode("é東")
    assert len(tokens) > 2
    assert _offsets([1, *tokens], model.tokenization) == [
        0,
        *(len(model.tokenization.text(tokens[:i], False)) for i in range(len(tokens))),
    ]


def test_new_tokens_are_scored_behind_the_prompt(client, model):
    settings = {"max_tokens": 6, "n": 2, "seed": 4, "temperature": 0.7}
    plain = complete(client, PROMPTS, logprobs=0, **settings)
    for echo in (True, False):
        response = complete(client, PROMPTS, logprobs=1, echo=echo, **settings)
        for choice, other in zip(response.choices, plain.choices, strict=True):
            prompt = PROMPTS[choice.index // 2] if echo else ""
            assert choice.text == prompt + other.text
            new = len(other.logprobs.tokens)
            assert choice.logprobs.tokens[-new:] == other.logprobs.tokens
            # Temperature and truncation do not change the reported log-probabilities.
            assert choice.logprobs.token_logprobs[-new:] == pytest.approx(other.logprobs.token_logprobs)
            assert len(choice.logprobs.tokens) - new == (
                len(model.tokenization.encode(prompt)) if echo else 0
            )
    greedy = complete(client, "the cat", logprobs=1, temperature=0, max_tokens=5).choices[0].logprobs
    tops = zip(greedy.token_logprobs, greedy.top_logprobs, strict=True)
    assert all(score == max(top.values()) for score, top in tops)
    assert complete(client, "the cat", max_tokens=0).choices[0].text == ""


def test_chats_report_the_most_probable_tokens(client):
    settings = {"model": "tiny", "messages": USER, "max_tokens": 5, "seed": 3, "logprobs": True}
    content = client.chat.completions.create(top_logprobs=2, **settings).choices[0].logprobs.content
    plain = client.chat.completions.create(**settings).choices[0]
    assert [one.logprob for one in content] == pytest.approx([one.logprob for one in plain.logprobs.content])
    for one in content:
        first, second = one.top_logprobs
        assert first.logprob >= max(second.logprob, one.logprob)
    assert (
        b"".join(bytes(one.bytes) for one in content)
        .decode(errors="replace")
        .startswith(plain.message.content)
    )
    pieces = list(client.chat.completions.create(top_logprobs=2, stream=True, **settings))
    [streamed] = [piece.choices[0].logprobs.content for piece in pieces if piece.choices[0].logprobs]
    assert [one.logprob for one in streamed] == pytest.approx([one.logprob for one in content])


def test_a_prompt_may_fill_the_context_if_nothing_is_generated(client):
    tokens = [5] * 128
    assert (
        len(complete(client, [tokens], echo=True, logprobs=0, max_tokens=0).choices[0].logprobs.tokens) == 128
    )


def test_the_confidence_of_json_fields_is_that_of_the_library(client, model):
    """Fields with few values are enumerated, and a pattern with many values is drawn again."""
    properties = {"a": {"enum": ["x", "yes", 1]}, "b": {"type": "string", "pattern": "^[a-c]{6}$"}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"]}
    schema["additionalProperties"] = False
    extra = {"rule": {"json-schema": schema}, "confidence": True}
    settings = {"n": 2, "seed": 4, "temperature": 0.7, "max_tokens": 40, "extra_body": extra}
    verifier = GrammarVerifier.json_schema(schema, model.tokenization)
    prompts, cool = PROMPTS[:2], truncated(model, 0.7)
    drawn = generate(
        cool, prompts, sampler=MaskedDecoding(), verifier=verifier, num_samples=2, max_new_tokens=40, seed=4
    )
    choices = complete(client, prompts, **settings).choices
    pieces = list(complete(client, prompts, stream=True, **settings))
    ends = {one.choices[0].index: one.choices[0] for one in pieces if one.choices[0].finish_reason}
    for choice, sample in zip(choices, drawn, strict=True):
        assert choice.text == sample.text
        fields = confidence(model, prompts[choice.index // 2], sample.tokens, verifier, seed=4)
        expected = {pointer: field.probability for pointer, field in fields.items()}
        for found in (choice.trialogue, ends[choice.index].trialogue):
            assert found["confidence"] == pytest.approx(expected)
            assert found["confidence_error"] == pytest.approx({"/b": fields["/b"].standard_error})
    assert "confidence" not in complete(client, prompts, max_tokens=2).choices[0].trialogue
    unfinished = complete(client, prompts[0], **settings | {"max_tokens": 3}).choices[0].trialogue
    assert (unfinished["accepted"], unfinished["confidence"]) == (False, None)
