"""Compilation of verifiers: in the background, once per verifier, and in a bounded cache."""

import gc
import json
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from threading import Event, Semaphore
from typing import Any
from urllib.parse import urlsplit

import pytest

from models.tiny_pretrained import tiny_oracle
from serving.loopback import KEY, serving
from trialogue.generation.verifiers.specs import BuiltVerifier
from trialogue.samplers import Ancestral, MaskedDecoding
from trialogue.serving import verifiers as verifiers
from trialogue.serving.errors import RequestError
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache


def test_a_slow_compilation_delays_no_other_request(monkeypatch):
    """Samples under way and later requests with known or no verifiers continue."""
    started, go, built = Semaphore(0), Event(), VerifierCache._build

    def build_slowly(rules: VerifierCache, request: RequestedVerifier, *others: Any) -> list[BuiltVerifier]:
        if request.content.startswith("slow"):
            started.release()
            assert go.wait(60)
        return built(rules, request, *others)

    monkeypatch.setattr(VerifierCache, "_build", build_slowly)
    with serving(tiny_oracle(), max_new_tokens=64) as server, server.client() as client:

        def send(**settings: Any) -> Any:
            options = {"model": "tiny", "prompt": "the", "max_tokens": 3, "seed": 1} | settings
            return client.completions.create(**options)

        def ruled(pattern: str) -> Any:
            return send(extra_body={"rule": {"regex": pattern}})

        ruled("[a-c]+")
        under_way = iter(send(max_tokens=60, stream=True))
        next(under_way)
        with ThreadPoolExecutor(8) as clients:
            # More verifiers than can be compiled at once, two requests for each.
            slow = [clients.submit(ruled, f"slow{number // 2}") for number in range(2 * verifiers._COMPILING)]
            try:
                for _ in range(verifiers._COMPILING):
                    assert started.acquire(timeout=60)
                assert send().choices
                assert ruled("[a-c]+").choices
                assert [piece.choices[0].finish_reason for piece in under_way][-1]
                assert not any(one.done() for one in slow)
            finally:
                go.set()
            assert all(one.result().choices for one in slow)
        assert not started.acquire(blocking=False)
        assert server.wait_until_idle()


def test_abandoned_compilations_count_until_they_end(monkeypatch):
    go, made = Event(), list[str]()

    def build_slowly(rules: VerifierCache, request: RequestedVerifier, *_: Any) -> list[BuiltVerifier]:
        assert go.wait(60)
        made.append(request.content)
        return []

    def make_request(pattern: str) -> tuple[RequestedVerifier, ...]:
        return (RequestedVerifier("rule", "regex", pattern),)

    monkeypatch.setattr(VerifierCache, "_build", build_slowly)
    rules = VerifierCache(tiny_oracle(), {}, most=verifiers.CACHE_SIZE + 9)
    try:
        judgings = [
            rules.get(make_request(str(number)), Ancestral(), ())
            for number in range(verifiers.CACHE_SIZE + 9)
        ]
        with pytest.raises(RequestError, match="73 verifiers are waiting for compilation") as error:
            rules.get(make_request("one more"), Ancestral(), ())
        assert (error.value.status, error.value.code) == (429, "rate_limit_exceeded")
        # A cached verifier needs no compilation.
        assert (
            rules.get(make_request(str(verifiers.CACHE_SIZE)), Ancestral(), ())
            is judgings[verifiers.CACHE_SIZE]
        )
    finally:
        go.set()
    assert all(one.result(60) for one in judgings)
    assert len(made) == len(judgings)
    for number in range(verifiers.CACHE_SIZE + 9):
        rules.get(make_request(f"later {number}"), Ancestral(), ()).result(60)
    rules.close()


def test_a_client_that_disconnects_during_compilation_frees_its_place(monkeypatch):
    started, go, built = Event(), Event(), VerifierCache._build

    def build_slowly(*options: Any) -> list[BuiltVerifier]:
        started.set()
        assert go.wait(60)
        return built(*options)

    monkeypatch.setattr(VerifierCache, "_build", build_slowly)
    with serving(tiny_oracle(), requests=1) as server, server.client() as client:
        try:
            body = json.dumps({"prompt": "the", "rule": {"regex": "a"}})
            headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
            with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
                connection.request("POST", "/v1/completions", body, headers)
                assert started.wait(60)
                assert server.worker.unfinished == 1
            assert server.wait_until_idle()
            assert client.completions.create(model="tiny", prompt="the", max_tokens=2).choices
        finally:
            go.set()


def test_named_verifiers_are_loaded_once_for_all_stop_strings(tmp_path):
    (tmp_path / "rules.py").write_text(
        "from pathlib import Path\n\n"
        "with (Path(__file__).parent / 'loaded').open('a') as log:\n    log.write('x')\n\n\n"
        "def short(text):\n    return len(text) < 4\n",
        encoding="utf-8",
    )
    rules = VerifierCache(tiny_oracle(), {"short": f"python:{tmp_path}/rules.py:short"})
    [request], alive = rules.read_rule("short"), weakref.WeakSet[Any]()
    for number in range(2 * verifiers.CACHE_SIZE):
        for sampler in (Ancestral(), MaskedDecoding()):
            alive.add(rules.get((request,), sampler, (f"stop {number}",)).result().built[0].graded)
    # The file is read once for samplers of verdicts and once for the others.
    assert (tmp_path / "loaded").read_text(encoding="utf-8") == "xx"
    gc.collect()
    assert len(alive) <= verifiers.CACHE_SIZE
    rules.close()


def test_failed_compilations_are_not_cached():
    rules = VerifierCache(tiny_oracle(), {})
    assert rules.get((RequestedVerifier("rule", "regex", "("),), Ancestral(), ()).exception() is not None
    rules.close()
    assert not rules._cache
