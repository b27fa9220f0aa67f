"""Log-probabilities of prompts, samples and other tokens, against the logits of the model."""

from typing import Any

import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from serving.loopback import serving
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.serving.log_probs import _offsets

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
