"""Tokens, embeddings, the Responses API, metrics, several keys, and requests from web pages."""

import base64
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import openai
import pytest
import torch
from pydantic import BaseModel
from starlette.testclient import TestClient

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from refusals import expect_error
from serving.loopback import serving
from serving.test_bad_requests import send
from trialogue.generation.settings import MachineSettings
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.serving.app import Application
from trialogue.serving.server import create_application
from trialogue.serving.settings import Address, Serving

TOOL = {
    "type": "function",
    "name": "count",
    "parameters": {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}},
        "required": ["a"],
        "additionalProperties": False,
    },
}


@pytest.fixture(scope="module")
def model():
    return PretrainedOracle(tiny_model().double(), tiny_tokenizer(), name="tiny")


@pytest.fixture(scope="module")
def server(model):
    with serving(model, context=128) as loopback:
        yield loopback


@pytest.fixture(scope="module")
def client(server):
    with server.client() as client:
        yield client


def test_texts_are_tokenized_and_detokenized(server, model):
    text = "the café"
    tokens = model.tokenization.encode(text)
    for special in (True, False):
        status, found, _ = send(
            server, "/tokenize", {"prompt": text, "add_special_tokens": special, "return_token_strs": special}
        )
        assert (status, found["tokens"], found["count"], found["max_model_len"]) == (
            200,
            tokens,
            len(tokens),
            128,
        )
        strings = model.tokenization.tokenizer.convert_ids_to_tokens(tokens)
        assert found["token_strs"] == (strings if special else None)
    assert send(server, "/detokenize", {"tokens": tokens})[1] == {"prompt": text}
    messages = [{"role": "user", "content": text}]
    assert send(server, "/tokenize", {"messages": messages})[1]["tokens"] == model.tokenization.chat(messages)
    assert send(server, "/tokenizer_info")[1]["eos_token"] == "</s>"
    for path, body, field in (
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "text": "a"}, "text"),
        ("/tokenize", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("/detokenize", {"tokens": [300]}, "tokens"),
        ("/detokenize", [], "body"),
    ):
        status, found, _ = send(server, path, body)
        assert (status, found["error"]["param"]) == (400, field)


def test_embeddings_are_mean_hidden_states(client, server, model):
    texts = ["the cat", "a longer list: [1, 2]", "a"]
    response = client.embeddings.create(model="tiny", input=texts, encoding_format="float")
    with torch.inference_mode():
        for text, found in zip(texts, response.data, strict=True):
            tokens = torch.tensor([model.tokenization.encode(text)])
            states = model.body(input_ids=tokens).last_hidden_state[0].mean(0)
            assert found.embedding == pytest.approx((states / states.norm()).tolist(), abs=1e-6)
    ids = [model.tokenization.encode(text) for text in texts]
    status, coded, _ = send(server, "/v1/embeddings", {"input": ids, "encoding_format": "base64"})
    assert status == 200
    for one, other in zip(coded["data"], response.data, strict=True):
        vector = torch.frombuffer(bytearray(base64.b64decode(one["embedding"])), dtype=torch.float32)
        assert vector.tolist() == pytest.approx(other.embedding)
    assert response.usage.prompt_tokens == sum(map(len, ids))
    for body, field in (
        ({"input": ["a"] * 65}, "input"),
        ({"input": "the cat " * 90}, "input"),
        ({"input": "a", "dimensions": 4}, "dimensions"),
    ):
        assert send(server, "/v1/embeddings", body)[1]["error"]["param"] == field
    assert server.wait_until_idle()


class Answer(BaseModel):
    """The structure of a parsed answer."""

    a: bool


def test_responses_equal_chats(client):
    messages = [{"role": "system", "content": "yes"}, {"role": "user", "content": "the cat"}]
    chat = client.chat.completions.create(model="tiny", messages=messages, max_tokens=12, seed=3)
    settings: dict[str, Any] = {
        "model": "tiny",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "the cat"}]}],
        "instructions": "yes",
        "max_output_tokens": 12,
        "extra_body": {"seed": 3},
    }
    response = client.responses.create(**settings)
    [choice] = chat.choices
    assert response.output_text == choice.message.content
    assert (response.status == "incomplete") == (choice.finish_reason == "length")
    assert response.usage.output_tokens == chat.usage.completion_tokens
    assert response.trialogue["log_prob"] == choice.trialogue["log_prob"]
    events = list(client.responses.create(stream=True, **settings))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(pieces) == response.output_text
    assert len(pieces) > 1
    assert events[-1].response.output_text == response.output_text
    settings["extra_body"] = {"rule": {"choice": ["yes"]}}
    with client.responses.stream(**settings) as stream:
        assert stream.get_final_response().output_text == "yes"


def test_responses_have_structure_and_tools(client):
    settings: dict[str, Any] = {"model": "tiny", "input": "the cat", "max_output_tokens": 40}
    parsed = client.responses.parse(text_format=Answer, extra_body={"seed": 1}, **settings)
    assert isinstance(parsed.output_parsed, Answer)
    history = [
        {"role": "user", "content": "the cat"},
        {"type": "function_call", "call_id": "1", "name": "count", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "2"},
    ]
    called = client.responses.create(
        **settings | {"input": history}, tools=[TOOL], tool_choice={"type": "function", "name": "count"}
    )
    [call] = called.output
    assert (call.type, call.name, json.loads(call.arguments).keys()) == ("function_call", "count", {"a"})
    streamed = client.responses.create(**settings, tools=[TOOL], tool_choice="required", stream=True)
    done = [event for event in streamed if event.type == "response.function_call_arguments.done"]
    assert json.loads(done[0].arguments).keys() == {"a"}
    for wrong in ({"previous_response_id": "x"}, {"tools": [{"type": "web_search"}]}, {"input": []}):
        with pytest.raises(openai.BadRequestError):
            client.responses.create(**settings | wrong)


def application(**settings: Any) -> TestClient:
    worker = Mock(context=8, alive=True, closing=False, unfinished=0)
    return TestClient(Application(worker, Mock(), Serving(model="tiny"), **settings).app)


def test_pages_of_allowed_origins_may_send_requests():
    page = {"Origin": "https://example.org"}
    asked = page | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    name = "access-control-allow-origin"
    for origins, expected in (((), None), (("https://example.org",), page["Origin"]), (("*",), "*")):
        client = application(origins=origins, api_keys=["k"])
        allowed = client.options("/v1/chat/completions", headers=asked)
        assert (allowed.status_code == 200) == bool(origins)
        assert allowed.headers.get(name) == expected
        # The page can also read errors.
        assert client.get("/v1/models", headers=page).headers.get(name) == expected
    other = application(origins=("https://example.org",)).get("/health", headers={"Origin": "https://a.b"})
    assert name not in other.headers


def test_every_key_of_a_file_is_accepted(tmp_path):
    file = Path(tmp_path) / "keys"
    file.write_text("# team\nfirst\n\n  second\n", encoding="utf-8")
    keys = Address(api_keys=file, api_key="third").keys("unused")
    assert keys == ["third", "first", "second"]
    assert Address().keys("default") == ["default"]
    client = application(api_keys=keys)
    for key, status in (("first", 200), ("second", 200), ("third", 200), ("# team", 401), ("", 401)):
        assert client.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == status
    file.write_text("# none\n", encoding="utf-8")
    for wrong in (file, file / "missing"):
        assert expect_error("", Address(api_keys=wrong).keys).field == "api_keys"
    assert expect_error("", Address, allow_origin=("example.org",)).field == "allow_origin"


def test_metrics_count_requests_and_tokens(model):
    pytest.importorskip("prometheus_client")
    served = create_application(model, Serving(model="tiny"), MachineSettings(batch_size=4), has_metrics=True)
    with TestClient(served.app) as client:
        body = {"prompt": [5, 6], "max_tokens": 3, "n": 2, "ignore_eos": True}
        assert client.post("/v1/completions", json=body).status_code == 200
        assert client.post("/v1/completions", json=body | {"stream": True}).status_code == 200
        assert client.post("/v1/completions", json=body | {"n": 0}).status_code == 400
        lines = dict(
            line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#"
        )
    assert lines["trialogue_prompt_tokens_total"] == "4.0"
    assert lines["trialogue_generation_tokens_total"] == "12.0"
    assert lines['trialogue_samples_total{accepted="true",sampler="ancestral"}'] == "4.0"
    assert lines['trialogue_responses_total{path="/v1/completions",status="200"}'] == "2.0"
    assert lines['trialogue_responses_total{path="/v1/completions",status="400"}'] == "1.0"
    assert lines["trialogue_time_to_first_token_seconds_count"] == "1.0"
    assert lines["trialogue_request_seconds_count"] == "2.0"
    assert lines["trialogue_requests"] == "0.0"
