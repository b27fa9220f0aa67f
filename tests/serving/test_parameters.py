"""Parameters of OpenAI and vLLM that change the distribution, end a completion, constrain it, or have no effect."""

import json
from typing import Any

import pytest

from models.tiny_pretrained import TEMPLATE, tiny_model, tiny_tokenizer
from serving.loopback import serving
from trialogue import generate
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.samplers import AdaptiveRejection, OpenRun, Terms
from trialogue.samplers.penalties import Penalties
from trialogue.serving.body import IGNORED, IGNORED_HEADER
from trialogue.verifiers import GrammarVerifier

USER = [{"role": "user", "content": "the cat"}]


@pytest.fixture(scope="module")
def model():
    return PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="module")
def client(model):
    with serving(model, context=128) as loopback, loopback.client() as client:
        yield client


def complete(client: Any, **settings: Any) -> Any:
    known = {
        "max_tokens",
        "n",
        "seed",
        "stream",
        "stream_options",
        "temperature",
        "frequency_penalty",
        "logit_bias",
    }
    extra = {name: value for name, value in settings.items() if name not in known}
    chosen = {name: value for name, value in settings.items() if name in known}
    return client.completions.create(model="tiny", prompt="the cat", extra_body=extra, **chosen)


def test_penalties_change_the_target_of_exact_samples(client, model):
    terms = Terms(
        GrammarVerifier.regex("[^x]*", model.tokenization),
        6,
        penalties=Penalties(((5, 3.0),), 1.2, 0.5, 0.25, ((model.eos, 4),)),
    )
    run = OpenRun(model, AdaptiveRejection(), batch_size=8, capacity=128)
    run.submit(model.tokenization.encode("the cat"), terms, seed=7, max_steps=65536)
    expected: dict[int, str] = {}
    while run.busy:
        for _, samples in run.step():
            expected |= {sample.index: sample.text for sample in samples}
    settings = {
        "logit_bias": {"5": 3},
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.25,
    }
    response = complete(
        client, max_tokens=6, seed=7, sampler="exact", rule={"regex": "[^x]*"}, min_tokens=4, **settings
    )
    assert [choice.text for choice in response.choices] == [expected[0]]


def test_completions_end_where_the_request_says(client, model):
    plain = generate(model, ["the cat"], max_new_tokens=30, seed=1)[0]
    stop = plain.tokens[3]
    stopped = complete(client, max_tokens=30, seed=1, stop_token_ids=[stop, model.eos]).choices[0]
    assert stopped.text == model.tokenization.text(plain.tokens[: plain.tokens.index(stop)])
    assert (stopped.finish_reason, stopped.trialogue["ended"]) == ("stop", "stop")
    biased = {"seed": 1, "max_tokens": 10, "logit_bias": {str(model.eos): 100}}
    assert complete(client, **biased).usage.completion_tokens == 1
    assert complete(client, min_tokens=6, **biased).usage.completion_tokens == 7
    assert complete(client, ignore_eos=True, **biased).usage.completion_tokens == 10


@pytest.mark.parametrize(
    ("name", "content", "possible"),
    [
        ("regex", "[ab]{2}", {"aa", "ab", "ba", "bb"}),
        ("choice", ["yes", "no"], {"yes", "no"}),
        ("grammar", 'start: "a" | "bc"', {"a", "bc"}),
        ("json", {"enum": [1, "x"]}, {"1", '"x"'}),
        ("json", json.dumps({"enum": [True]}), {"true"}),
    ],
)
def test_constraints_have_the_names_of_vllm(client, name, content, possible):
    for fields in (
        {f"guided_{name}": content},
        {"structured_outputs": {name: content, "disable_fallback": True}},
    ):
        choices = complete(client, max_tokens=12, n=4, seed=3, **fields).choices
        assert {choice.text for choice in choices} <= possible
        assert all(choice.trialogue["accepted"] for choice in choices)


def test_any_json_object_can_be_required(client):
    text = complete(client, max_tokens=60, seed=1, structured_outputs={"json_object": True}).choices[0]
    assert text.text.startswith("{")


def test_usage_is_reported_with_every_piece(client):
    options = {"include_usage": True, "continuous_usage_stats": True}
    *pieces, last = complete(client, max_tokens=8, seed=5, n=2, stream=True, stream_options=options)
    counts = [piece.usage.completion_tokens for piece in pieces]
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1] == last.usage.completion_tokens
    assert not last.choices


def test_parameters_without_effect_are_listed_in_a_header(client):
    chat = client.chat.completions.with_raw_response.create
    settings = {"model": "tiny", "messages": USER, "max_tokens": 4, "seed": 1}
    plain = chat(**settings)
    assert IGNORED_HEADER not in plain.headers
    extra: dict[str, Any] = dict.fromkeys(IGNORED, "low") | {"modalities": ["text"]}
    for stream in (False, True):
        response = chat(extra_body=extra, stream=stream, **settings)
        assert response.headers[IGNORED_HEADER].split(", ") == sorted(IGNORED)
        if not stream:
            assert response.parse().choices[0].message == plain.parse().choices[0].message


def test_variables_of_the_chat_template_can_be_set(model):
    tokenizer = model.tokenization.tokenizer
    messages = [{"role": "user", "content": "a"}]
    try:
        tokenizer.chat_template = TEMPLATE + "{% if no_thinking %}<think></think>{% endif %}"
        plain = model.tokenization.chat(messages)
        thought = model.tokenization.chat(messages, template_options={"no_thinking": True})
    finally:
        tokenizer.chat_template = TEMPLATE
    assert model.tokenization.text(thought) == model.tokenization.text(plain) + "<think></think>"


def test_one_response_may_contain_several_tool_calls(client):
    parameters = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in "fg"]

    def calls(**settings: Any) -> list[Any]:
        settings |= {"tools": tools, "messages": USER, "model": "tiny", "max_tokens": 80, "n": 8, "seed": 1}
        choices = client.chat.completions.create(**settings).choices
        return [choice.message.tool_calls for choice in choices if choice.trialogue["accepted"]]

    longer = {"min_tokens": 45}
    several = calls(tool_choice="required", parallel_tool_calls=True, extra_body=longer)
    assert max(map(len, several)) > 1
    assert {call.function.name for listed in several for call in listed} <= {"f", "g"}
    assert set(map(len, calls(tool_choice="required"))) == {1}
    # A text of several calls is one that the model wrote without a constraint on calls.
    twice = {
        "rule": {
            "regex": '\\{"name":"f","arguments":\\{"a":1\\}\\}\n\\{"name":"g","arguments":\\{"a":2\\}\\}'
        }
    }
    assert [call.function.name for call in calls(extra_body=twice)[0]] == ["f", "g"]
    assert calls(extra_body=twice, parallel_tool_calls=False)[0] is None
