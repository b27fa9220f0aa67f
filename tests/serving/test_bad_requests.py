"""Rejected requests: the status, and a body with the name of the field."""

import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from models.tiny_pretrained import tiny_oracle
from refusals import expect_error
from serving.loopback import KEY, Loopback, serving
from trialogue import cli
from trialogue.errors import InputError
from trialogue.samplers import Ancestral
from trialogue.serving import worker as workers
from trialogue.serving.jobs import FailedRequest, Job
from trialogue.serving.server import open_socket
from trialogue.serving.settings import Address, Serving
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def server():
    with serving(tiny_oracle(), rows=4, context=64, max_new_tokens=32, samples=6, body=5000) as loopback:
        yield loopback


def send(
    server: Loopback, path: str, body: Any = None, key: str = KEY, kind: str = "application/json"
) -> tuple[int, Any, Any]:
    """Return status, body and headers of the response."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.url}{path}", data, {"Authorization": f"Bearer {key}", "Content-Type": kind}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read()), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


COMPLETIONS = [
    ({}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [1, 99999]}, "prompt"),
    ({"prompt": "\ud800"}, "prompt"),
    ({"prompt": "the cat " * 60}, "prompt"),
    ({"model": "other"}, "model"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": 0, "rule": {"regex": "a"}}, "max_tokens"),
    ({"n": 7}, "n"),
    ({"n": 2, "best_of": 3}, "best_of"),
    ({"temperature": -1}, "temperature"),
    ({"top_k": 0}, "top_k"),
    ({"stop": [3]}, "stop"),
    ({"stop": [f"stop {number}" for number in range(17)]}, "stop"),
    ({"stop": "é" * 129}, "stop"),
    ({"seed": 1.5}, "seed"),
    ({"logprobs": 21}, "logprobs"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"echo": 1}, "echo"),
    ({"stream": True, "stream_options": {"include": True}}, "stream_options"),
    ({"logit_bias": {"5": 101}}, "logit_bias"),
    ({"logit_bias": {"300": 1}}, "logit_bias"),
    ({"logit_bias": {"the": 1}}, "logit_bias"),
    ({"frequency_penalty": 3}, "frequency_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"stop_token_ids": [300]}, "stop_token_ids"),
    ({"stop_token_ids": [5], "rule": {"regex": "a"}}, "stop_token_ids"),
    ({"ignore_eos": True, "rule": {"regex": "a"}}, "ignore_eos"),
    ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
    ({"guided_regex": "("}, "guided_regex"),
    ({"structured_outputs": {"xml": "a"}}, "structured_outputs"),
    ({"structured_outputs": {"regex": ""}}, "structured_outputs"),
    ({"skip_special_tokens": False}, "skip_special_tokens"),
    ({"modalities": ["audio"]}, "modalities"),
    ({"temperatures": 1}, "temperatures"),
    ({"tools": [TOOL]}, "tools"),
    ({"rule": 3}, "rule"),
    ({"rule": {"regex": "("}}, "rule"),
    ({"rule": {"regx": "a"}}, "rule"),
    ({"rule": {"python": "/etc/passwd:f"}}, "rule"),
    ({"rule": "probe:model.safetensors"}, "rule"),
    ({"rule": {"json-schema": "schema.json"}}, "rule"),
    ({"confidence": True}, "confidence"),
    ({"confidence": True, "rule": {"regex": "a"}}, "confidence"),
    ({"confidence": True, "rule": [{"json-schema": {"type": "null"}}] * 2}, "confidence"),
    ({"confidence": 1, "rule": {"json-schema": {"type": "null"}}}, "confidence"),
    ({"sampler": "stroll"}, "sampler"),
    ({"sampler": "rejection"}, "sampler"),
    ({"rule": {"regex": "a"}, "sampler": {"name": "smc", "particles": 0}}, "sampler.particles"),
    ({"rule": {"regex": "a"}, "sampler": {"name": "smc", "quota": 1}}, "sampler.quota"),
    ({"rule": {"regex": "a"}, "sampler": {"name": "smc", "particles": 5}}, "sampler"),
    ({"rule": {"regex": "a"}, "sampler": {"name": "backtracking", "erase_prompt": True}}, "sampler"),
    ({"rule": {"regex": "a"}, "sampler": "rejection", "temperature": 0}, "temperature"),
    ({"max_steps": 65537}, "max_steps"),
]
MESSAGES = [{"role": "user", "content": "hi"}]
CHATS = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [*MESSAGES, {"role": "user"}]}, "messages[1].content"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
    ({"tools": []}, "tools"),
    ({"tools": [TOOL], "tool_choice": "must"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [TOOL], "response_format": {"type": "xml"}}, "response_format"),
    ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "any", "tools": [TOOL]}},
        "tool_choice",
    ),
    ({"response_format": {"type": "json_object"}, "tools": [TOOL], "confidence": True}, "confidence"),
    ({"response_format": {"type": "xml"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"minimum": "x"}}}},
        "response_format",
    ),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"echo": True}, "echo"),
    ({"logprobs": 1}, "logprobs"),
    ({"functions": [TOOL]}, "functions"),
    ({"chat_template_kwargs": {"tokenize": False}}, "chat_template_kwargs"),
]


def test_the_invalid_field_is_reported(server):
    cases = [("/v1/completions", body and {"prompt": "the cat"} | body, field) for body, field in COMPLETIONS]
    cases += [("/v1/chat/completions", {"messages": MESSAGES} | body, field) for body, field in CHATS]
    for path, body, field in cases:
        status, response, _ = send(server, path, body)
        assert status == (404 if field == "model" else 400), response
        assert response["error"]["param"] == field, response
        assert response["error"]["type"] == "invalid_request_error"
        assert "\n" not in response["error"]["message"]
    assert not server.worker.unfinished


def test_malformed_requests_are_rejected(server):
    path = "/v1/completions"
    assert send(server, path, b"{")[0] == 400
    assert send(server, path, b'{"prompt": "a", "temperature": NaN}')[1]["error"]["param"] == "body"
    assert send(server, path, b"[" * 4000)[1]["error"]["param"] == "body"
    assert send(server, path, [1])[1]["error"]["param"] == "body"
    assert send(server, path, {"prompt": "a" * 6000})[0] == 413
    assert send(server, path, {"prompt": "a"}, kind="text/plain")[0] == 415
    assert send(server, path, {"prompt": "a"}, key="another")[0] == 401
    assert send(server, path)[0] == 405
    assert send(server, "/v1/nothing")[1]["error"]["code"] == "not_found"
    assert send(server, "/v1/models/other")[0] == 404
    assert send(server, "/health", key="")[:2] == (200, {"status": "ok", "requests": 0})


def test_equal_verifiers_are_built_once(monkeypatch):
    rules, started = VerifierCache(tiny_oracle(), {}), Event()
    built: list[RequestedVerifier] = []

    def slow(*arguments: Any) -> list[Any]:
        built.append(arguments[0])
        started.wait(0.2)
        return []

    monkeypatch.setattr(rules, "_build", slow)
    request, sampler = RequestedVerifier("rule", "regex", "a"), Ancestral()
    with ThreadPoolExecutor(4) as pool:
        judgings = set(pool.map(lambda _: rules.get((request,), sampler, ()).result(), range(4)))
    assert (len(judgings), len(built)) == (1, 1)


def test_the_length_of_a_grammar_is_limited():
    with pytest.raises(InputError, match="65536 characters") as error:
        RequestedVerifier("response_format", "json-schema", "a" * (1 << 16) + "a")
    assert error.value.field == "response_format"


def test_a_full_queue_returns_a_retry_time():
    with serving(tiny_oracle(), requests=1) as server:
        server.worker._unfinished = 1
        status, response, headers = send(server, "/v1/completions", {"prompt": "a", "rule": {"regex": "("}})
        assert (status, response["error"]["type"], headers["Retry-After"]) == (429, "rate_limit_error", "1")
        server.worker._unfinished = 0
        assert send(server, "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200


def test_an_error_in_the_worker_fails_only_the_current_requests(monkeypatch):
    body = {"prompt": "a", "max_tokens": 2}
    with serving(tiny_oracle()) as server:
        with monkeypatch.context() as broken:
            broken.setattr(workers.Worker, "_admit", lambda worker: [][len(worker._waiting) - 1])
            status, response, _ = send(server, "/v1/completions", body)
            assert (status, response["error"]["type"]) == (500, "server_error")
        assert send(server, "/v1/completions", body)[0] == 200
        assert server.wait_until_idle()
        server.worker.close()
        assert send(server, "/v1/completions", body)[0] == 503


def test_a_waiting_sampler_is_not_delayed_indefinitely(monkeypatch):
    """Later requests wait too if their sampler's run must end first."""
    monkeypatch.setattr(workers, "OpenRun", lambda *_, **__: Mock(busy=True))
    worker = workers.Worker(tiny_oracle(), rows=1, context=8, most=9, samplers=2, layers=(), memory=1)

    def job(sampler: str) -> Job:
        arguments = Mock(sampler=sampler, prompts=((1,),), body=Mock(n=1, stops=()))
        return Job(arguments, Mock(), lambda event: None)

    jobs = [job(sampler) for sampler in ("first", "second", "third", "first", "second")]
    worker._waiting.extend(jobs)
    worker._admit()
    assert [one in worker._waiting for one in jobs] == [False, False, True, True, False]
    worker._runs["first", None].busy = False
    worker._admit()
    assert [one in worker._waiting for one in jobs] == [False, False, False, True, False]


def test_a_client_with_partial_text_does_not_see_the_errors_of_others():
    events: list[object] = []
    worker = workers.Worker(tiny_oracle(), rows=1, context=8, most=2, samplers=1, layers=(), memory=1)
    run, key = Mock(), (Mock(), None)
    jobs = [Job(Mock(), Mock(), events.append, shown={0: "text"}, run=run) for _ in range(2)]
    worker._runs[key], worker._jobs[run] = run, jobs
    worker._recover(key, run, InputError("rule", "a secret", "hint it"))
    for event in events:
        assert isinstance(event, FailedRequest)
        assert (event.refused.status, event.refused.param) == (500, None)
        assert "secret" not in event.refused.message
    assert len(events) == 2


def test_a_request_that_breaks_the_batch_fails_alone(monkeypatch, tmp_path):
    """An oracle, a sampler or a verifier may raise an error during a step of several requests."""
    (tmp_path / "rules.py").write_text("def value(text):\n    return 2.0\n", encoding="utf-8")
    with serving(tiny_oracle(), rule=(f"two=python:{tmp_path}/rules.py:value",)) as server:
        bodies = [
            {"prompt": "the cat", "max_tokens": 6, "seed": seed, "sampler": "outcome-rejection"}
            | {"rule": "two" if seed == 2 else {"regex": "(?s).*"}}
            for seed in range(4)
        ]
        single_responses = [send(server, "/v1/completions", body) for body in bodies]
        assert [status for status, *_ in single_responses] == [200, 200, 400, 200]
        assert "2" in single_responses[2][1]["error"]["message"]
        # Wait until all requests have arrived before the first step.
        step = workers.OpenRun.step
        monkeypatch.setattr(
            workers.OpenRun,
            "step",
            lambda run: step(run) if len(run._running.requests) == 4 or waited else [],
        )
        waited: list[int] = []
        admit = workers.Worker._admit

        def counted(worker: workers.Worker) -> None:
            admit(worker)
            if any(len(jobs) == 4 for jobs in worker._jobs.values()):
                waited.append(1)

        monkeypatch.setattr(workers.Worker, "_admit", counted)
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda body: send(server, "/v1/completions", body), bodies))
        assert waited
        assert [status for status, *_ in together] == [200, 200, 400, 200]
        for (_, one, _), (_, other, _) in zip(single_responses, together, strict=True):
            assert one.get("error") == other.get("error")
            if "choices" in one:
                assert one["choices"][0]["text"] == other["choices"][0]["text"]
        assert server.wait_until_idle()


def test_settings_are_validated():
    for wrong in ({"model": None}, {"context": 1}, {"requests": 0}, {"rule": ("regex:a",)}):
        assert {expect_error("", Serving, **{"model": "tiny"} | wrong).field} == wrong.keys()


def test_an_unavailable_address_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert expect_error("", open_socket, Address(port=taken.getsockname()[1])).field == "port"
    assert expect_error("", open_socket, Address(host="no such host")).field == "host"


def test_missing_and_unknown_options_are_reported(capsys):
    assert cli.main(["serve"]) == 2
    assert "model=None" in capsys.readouterr().err
    assert cli.main(["serve", "--model", "x", "--prot", "1"]) == 2
    assert "--port" in capsys.readouterr().err
