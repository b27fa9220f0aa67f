"""What requests are judged by is made aside of everything else, once, and no more of it is kept than is said."""

import gc
import json
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Semaphore
from typing import Any
from urllib.parse import urlsplit

import pytest

from models.tiny_pretrained import tiny_oracle
from serving.loopback import KEY, serving
from trialogue.generation.verifier_specs import Built
from trialogue.samplers import Ancestral, MaskedDecoding
from trialogue.serving import verifiers as own
from trialogue.serving.errors import Refused
from trialogue.serving.verifiers import RequestedVerifier, VerifierCache


def test_a_rule_that_takes_long_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither samples under way nor requests that come later, be they without a rule or under one that is known."""
    begun, go, built = Semaphore(0), Event(), VerifierCache._built

    def slowly(rules: VerifierCache, wish: RequestedVerifier, *others: Any) -> list[Built]:
        if wish.content.startswith("slow"):
            begun.release()
            assert go.wait(60)
        return built(rules, wish, *others)

    monkeypatch.setattr(VerifierCache, "_built", slowly)
    with serving(tiny_oracle(), max_new_tokens=64) as server, server.client() as client:

        def ask(**settings: Any) -> Any:
            asked = {"model": "tiny", "prompt": "the", "max_tokens": 3, "seed": 1} | settings
            return client.completions.create(**asked)

        def ruled(pattern: str) -> Any:
            return ask(extra_body={"rule": {"regex": pattern}})

        ruled("[a-c]+")
        under_way = iter(ask(max_tokens=60, stream=True))
        next(under_way)
        with ThreadPoolExecutor(8) as clients:
            # More than are compiled at once, some of them the same.
            slow = [clients.submit(ruled, f"slow{number // 2}") for number in range(2 * own._COMPILING)]
            try:
                for _ in range(own._COMPILING):
                    assert begun.acquire(timeout=60)
                assert ask().choices
                assert ruled("[a-c]+").choices
                assert [piece.choices[0].finish_reason for piece in under_way][-1]
                assert not any(one.done() for one in slow)
            finally:
                go.set()
            assert all(one.result().choices for one in slow)
        assert not begun.acquire(blocking=False)
        assert server.settled()


def test_rules_that_nobody_waits_for_any_more_take_their_place_until_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, made = Event(), list[str]()

    def slowly(rules: VerifierCache, wish: RequestedVerifier, *_: Any) -> list[Built]:
        assert go.wait(60)
        made.append(wish.content)
        return []

    def wished(pattern: str) -> tuple[RequestedVerifier, ...]:
        return (RequestedVerifier("rule", "regex", pattern),)

    monkeypatch.setattr(VerifierCache, "_built", slowly)
    rules = VerifierCache(tiny_oracle(), {}, most=own.KEPT + 9)
    try:
        judgings = [rules.judging(wished(str(number)), Ancestral(), ()) for number in range(own.KEPT + 9)]
        with pytest.raises(Refused, match="73 rules are compiled or wait") as error:
            rules.judging(wished("one more"), Ancestral(), ())
        assert (error.value.status, error.value.code) == (429, "rate_limit_exceeded")
        # What is kept already is nothing more to make.
        assert rules.judging(wished(str(own.KEPT)), Ancestral(), ()) is judgings[own.KEPT]
    finally:
        go.set()
    assert all(one.result(60) for one in judgings)
    assert len(made) == len(judgings)
    for number in range(own.KEPT + 9):
        rules.judging(wished(f"later {number}"), Ancestral(), ()).result(60)
    rules.close()


def test_who_goes_while_his_rule_is_compiled_leaves_his_place(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, built = Event(), Event(), VerifierCache._built

    def slowly(*asked: Any) -> list[Built]:
        begun.set()
        assert go.wait(60)
        return built(*asked)

    monkeypatch.setattr(VerifierCache, "_built", slowly)
    with serving(tiny_oracle(), requests=1) as server, server.client() as client:
        try:
            body = json.dumps({"prompt": "the", "rule": {"regex": "a"}})
            headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
            with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as going:
                going.request("POST", "/v1/completions", body, headers)
                assert begun.wait(60)
                assert server.worker.unfinished == 1
            assert server.settled()
            assert client.completions.create(model="tiny", prompt="the", max_tokens=2).choices
        finally:
            go.set()


def test_named_rules_are_loaded_once_whatever_stops_their_texts(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        "from pathlib import Path\n\n"
        "with (Path(__file__).parent / 'loaded').open('a') as log:\n    log.write('x')\n\n\n"
        "def short(text):\n    return len(text) < 4\n",
        encoding="utf-8",
    )
    rules = VerifierCache(tiny_oracle(), {"short": f"python:{tmp_path}/rules.py:short"})
    [wish], alive = rules.wishes("short"), weakref.WeakSet[Any]()
    for number in range(2 * own.KEPT):
        for sampler in (Ancestral(), MaskedDecoding()):
            alive.add(rules.judging((wish,), sampler, (f"stop {number}",)).result().built[0].graded)
    # Once for samplers that ask for verdicts, once for those that do not.
    assert (tmp_path / "loaded").read_text(encoding="utf-8") == "xx"
    gc.collect()
    assert len(alive) <= own.KEPT
    rules.close()


def test_what_cannot_be_built_is_not_kept() -> None:
    rules = VerifierCache(tiny_oracle(), {})
    assert rules.judging((RequestedVerifier("rule", "regex", "("),), Ancestral(), ()).exception() is not None
    rules.close()
    assert not rules._kept
